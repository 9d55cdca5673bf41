"""The one way a request goes, from its bytes to its answer; the gateway below it is real, its store in memory."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.bindings.directory import Directory, ServedAgent
from dragoman.bindings.exchange import RawRequest, Reply, StreamReply
from dragoman.bindings.fixed import FixedEndpoints
from dragoman.bindings.pipeline import Pipeline
from dragoman.cards import CardFile
from dragoman.gateway.ports import Lease
from dragoman.identity import Failures, Gate, Registry
from dragoman.model import LOCAL, Scope, TaskState
from dragoman.protocol.headers import Headers
from dragoman.protocol.registry import load_versions
from dragoman.telemetry.logs import LogSink
from dragoman.telemetry.metrics import Metrics
from tests.unit.gateway.scripted import World, chunk, play, status
from tests.wire.strategies import BREAKS

BASE = "/agents/demo"
SEND = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}
Ask = Callable[..., Any]


async def answer_in_full(world: World, lease: Lease) -> None:
    await world.act(lease, status(TaskState.WORKING, f"on{BREAKS}it"))
    await world.act(lease, chunk(f"one{BREAKS}"), status(TaskState.COMPLETED))


async def _ready() -> list[str]:
    return []


@asynccontextmanager
async def serving(world: World, version: str = "1.0") -> AsyncIterator[tuple[Ask, io.BytesIO]]:
    """What sends a request through a pipeline to the agent `demo`, served in `version`, and the log it writes."""
    written = io.BytesIO()
    stream = io.TextIOWrapper(written)  # held until the end, because it closes what it wraps
    log = LogSink(stream)
    agent = ServedAgent(
        id="demo",
        settings=world.settings,
        versions={version: load_versions()[version]},
        cards={version: CardFile(b"{}", 0)},
        unnamed=version,
        unnamed_card=CardFile(b"{}", 0),
    )
    directory = Directory({"demo": agent}, load_versions(), None)
    metrics = Metrics(load_versions(), lambda: ())
    pipeline = Pipeline(
        world.gateway,
        directory,
        Gate(Registry(), Failures(1, 1)),
        FixedEndpoints(directory, metrics, _ready),
        metrics,
        log,
    )

    async def ask(
        method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, query: bytes = b""
    ) -> Reply | StreamReply:
        sent = {"a2a-version": version} | ({"content-type": "application/json"} if body is not None else {})
        pairs = [(name.encode(), value.encode()) for name, value in (sent | (headers or {})).items()]
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()

        async def read_body(length: bytes | None, limit: int | None) -> bytes:
            return content

        return await pipeline.handle(RawRequest(method, path, query, Headers(pairs), "r-1", read_body))

    try:
        yield ask, written
    finally:
        log.close()
        stream.detach()


def call(method: str, params: Any, identifier: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


async def frames(reply: Reply | StreamReply) -> list[str]:
    assert isinstance(reply, StreamReply)
    try:
        return [frame.decode() async for frame in reply.frames]
    finally:
        reply.release()


def headers(reply: Reply | StreamReply) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in reply.headers}


@pytest.mark.parametrize("identifier", ["plain", f"line{BREAKS}line", 'quo"te', 2**70])
def test_every_frame_of_a_jsonrpc_stream_is_one_line_of_data_under_the_requests_id(identifier: Any) -> None:
    async def scenario() -> None:
        async with serving(World(answer_in_full)) as (ask, _):
            reply = await ask("POST", f"{BASE}/rpc", call("SendStreamingMessage", SEND, identifier))
            seen = await frames(reply)
            assert len(seen) == 4
            for frame in seen:
                identity, data, end = frame.splitlines()
                assert identity.startswith("id: ") and end == ""
                assert json.loads(data.removeprefix("data: "))["id"] == identifier

    play(scenario())


def test_every_frame_of_an_http_stream_is_one_line_of_data() -> None:
    async def scenario() -> None:
        async with serving(World(answer_in_full)) as (ask, _):
            reply = await ask("POST", f"{BASE}/message:stream", SEND)
            assert headers(reply)["content-type"] == "text/event-stream"
            items = []
            for seq, frame in enumerate(await frames(reply), start=1):
                identity, data, end = frame.splitlines()
                assert (identity, end) == (f"id: {seq}", "")
                items.append(json.loads(data.removeprefix("data: ")))
            assert [*map(list, items)] == [["task"], ["statusUpdate"], ["artifactUpdate"], ["statusUpdate"]]
            assert items[2]["artifactUpdate"]["artifact"]["parts"] == [{"text": f"one{BREAKS}"}]

    play(scenario())


@pytest.mark.parametrize(
    ("method", "path"), [("HEAD", "subscribe"), ("GET", "subscribe"), ("POST", "subscribe")]
)
def test_a_stream_whose_caller_has_gone_before_its_first_frame_leaves_nothing_behind(
    method: str, path: str
) -> None:
    async def scenario() -> None:
        world = World()
        async with serving(world) as (ask, _):
            sent = await ask(
                "POST", f"{BASE}/message:send", SEND | {"configuration": {"returnImmediately": True}}
            )
            task_id = json.loads(sent.body)["task"]["id"]
            reply = await ask(method, f"{BASE}/tasks/{task_id}:{path}")
            assert isinstance(reply, StreamReply)
            await reply.frames.aclose()
            reply.release()
            assert world.hub.count() == 0

    play(scenario())


def test_a_reply_names_its_version_and_request_and_what_it_varies_by() -> None:
    async def scenario() -> None:
        async with serving(World(answer_in_full)) as (ask, _):
            for reply in (
                await ask("POST", f"{BASE}/message:send", SEND),
                await ask("POST", f"{BASE}/rpc", call("SendMessage", SEND)),
                await ask("GET", f"{BASE}/tasks/unknown"),
            ):
                found = headers(reply)
                assert found["a2a-version"] == "1.0"
                assert found["vary"] == "A2A-Version, Accept"
                assert found["x-request-id"] == "r-1"

    play(scenario())


@pytest.mark.parametrize(
    "body", [b'{"a":1,"a":2', b'{"x":{"a":1,"a":2},"y":NaN}', b"[1e999", b"\xff", b"[" * 1000]
)
def test_a_body_that_is_no_json_is_never_an_internal_error(body: bytes) -> None:
    async def scenario() -> None:
        async with serving(World()) as (ask, _):
            over_http = await ask("POST", f"{BASE}/message:send", body)
            assert (over_http.status, json.loads(over_http.body)["error"]["code"]) == (400, 400)
            over_rpc = json.loads((await ask("POST", f"{BASE}/rpc", body)).body)
            assert (over_rpc["id"], over_rpc["error"]["code"]) == (None, -32700)

    play(scenario())


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"id": None, "method": "SendMessage", "params": SEND}, -32600),
        (call("GetTask", {"id": "unknown"}), -32001),
        (call("GetTask", {}), -32602),
        (call("GetTask", []), -32602),
        (call("message/send", SEND), -32601),
        ([call("GetTask", {"id": "x"})], -32600),
        ({"jsonrpc": "2.0", "method": "SendMessage", "params": SEND}, -32600),
    ],
)
def test_a_wrong_call_is_answered_over_jsonrpc_with_status_200(sent: Any, code: int) -> None:
    async def scenario() -> None:
        world = World()
        async with serving(world) as (ask, _):
            reply = await ask("POST", f"{BASE}/rpc", sent)
            assert (reply.status, json.loads(reply.body)["error"]["code"]) == (200, code)
            assert world.store.logs == {}

    play(scenario())


@pytest.mark.parametrize(
    ("method", "path", "changed", "status_"),
    [
        ("GET", "/agents/unknown/tasks", {}, 404),
        ("GET", f"{BASE}/nowhere", {}, 404),
        ("PUT", f"{BASE}/tasks", {}, 405),
        ("GET", f"{BASE}/rpc", {}, 405),
        ("GET", f"{BASE}/tasks", {"accept": "text/html"}, 406),
        ("POST", f"{BASE}/message:send", {"content-type": "text/plain"}, 415),
        ("POST", f"{BASE}/rpc", {"content-type": "application/a2a+json"}, 415),
        ("GET", f"{BASE}/tasks", {"a2a-version": "1.0.0"}, 400),
        ("GET", f"{BASE}/tasks", {"a2a-version": "2.0"}, 400),
    ],
)
def test_what_is_refused_before_it_is_read_keeps_its_http_status(
    method: str, path: str, changed: dict[str, str], status_: int
) -> None:
    async def scenario() -> None:
        world = World()
        async with serving(world) as (ask, _):
            reply = await ask(method, path, SEND if method == "POST" else None, changed)
            assert isinstance(reply, Reply)
            assert reply.status == status_
            document = json.loads(reply.body)
            if path.endswith("/rpc"):
                assert document["id"] is None
                assert document["error"]["code"] == (-32005 if status_ == 415 else -32000)
            else:
                assert document["error"]["code"] == status_
            assert world.store.logs == {}

    play(scenario())


def test_a_message_that_is_sent_again_says_so() -> None:
    async def scenario() -> None:
        async with serving(World(answer_in_full)) as (ask, _):
            first = await ask("POST", f"{BASE}/message:send", SEND)
            again = await ask("POST", f"{BASE}/rpc", call("SendMessage", SEND))
            assert "idempotent-replayed" not in headers(first)
            assert headers(again)["idempotent-replayed"] == "true"
            assert json.loads(again.body)["result"] == json.loads(first.body)

    play(scenario())


def test_the_log_has_one_line_a_request_without_anything_that_was_said() -> None:
    async def scenario() -> None:
        async with serving(World(answer_in_full)) as (ask, written):
            await ask("POST", f"{BASE}/message:send", SEND)
            await ask("GET", f"{BASE}/tasks", None, {"a2a-version": "a secret"}, b"contextId=another-secret")
        lines = [json.loads(line) for line in written.getvalue().splitlines()]
        assert [(line["operation"], line["version"], line["status"]) for line in lines[:1]] == [
            ("SendMessage", "1.0", 200)
        ]
        assert [(line["version"], line["outcome"]) for line in lines] == [
            ("1.0", "ok"),
            ("rejected", "VERSION_NOT_SUPPORTED"),
        ]
        assert lines[0]["task_id"] and lines[0]["request_id"] == "r-1"
        text = written.getvalue()
        assert b"hello" not in text and b"secret" not in text

    play(scenario())


def test_the_caller_is_the_implicit_one_where_no_identities_are_configured() -> None:
    async def scenario() -> None:
        world = World(answer_in_full)
        async with serving(world) as (ask, _):
            await asyncio.gather(ask("POST", f"{BASE}/message:send", SEND))
        assert [acceptance.scope for acceptance in world.store.acceptances] == [Scope(LOCAL, LOCAL, "demo")]

    play(scenario())


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_a_full_queue_is_told_in_the_form_of_the_binding_with_the_time_to_come_back(method: str) -> None:
    path = "/message:send" if method == "SendMessage" else "/message:stream"

    async def scenario() -> None:
        world = World()
        world.engine.room = 0
        async with serving(world) as (ask, written):
            web = await ask("POST", BASE + path, SEND)
            rpc = await ask("POST", f"{BASE}/rpc", call(method, SEND, 7))
        assert isinstance(web, Reply) and isinstance(rpc, Reply)
        assert (web.status, rpc.status) == (429, 200)
        assert [headers(reply)["retry-after"] for reply in (web, rpc)] == ["5", "5"]
        error, answer = json.loads(web.body)["error"], json.loads(rpc.body)
        assert (error["code"], error["status"]) == (429, "RESOURCE_EXHAUSTED")
        assert (answer["id"], answer["error"]["code"]) == (7, -32000)
        assert answer["error"]["data"] == error["details"]
        assert error["details"][0]["reason"] == "QUOTA_EXCEEDED"
        assert error["details"][0]["metadata"] == {"limit": "max_waiting"}
        lines = [json.loads(line) for line in written.getvalue().splitlines()]
        assert [(line["outcome"], line["level"], line["agent"]) for line in lines] == [
            ("QUOTA_EXCEEDED", "info", "demo")
        ] * 2
        assert world.store.logs == {}

    play(scenario())
