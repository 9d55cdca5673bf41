"""An agent that is a model: a real server process, and every fault that one can have."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.agents import Agent, openai
from dragoman.agents.openai import ChatModel
from dragoman.gateway.execute import execute
from dragoman.model import DataPart, RawPart
from dragoman.model.payload import pack
from tests.harness.model_server import DONE, EVENTS, STOP, ModelServer, Part, chunk
from tests.unit.agents.acted import brief
from tests.unit.agents.test_command import on_loop, shown, whole
from tests.unit.gateway.attempt import Attempt, begun
from tests.unit.gateway.scripted import message

KEY = "sk-very-secret-0123456789"
SECRET = "something that only the caller knows"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as started:
        yield started


def model(url: str, **settings: Any) -> ChatModel:
    headers = {"Authorization": f"Bearer {KEY}", "X-Team": "blue"}
    return ChatModel(url, "tiny", **{"headers": headers, "idle": 10.0, "max_output": 100_000, **settings})


def agent_of(handler: ChatModel) -> Agent:
    agent = Agent(id="agent")
    agent.handler(handler.answer)
    agent.on_startup(handler.startup)
    agent.on_shutdown(handler.shutdown)
    return agent


def done(handler: ChatModel, *attempts: Callable[[], Any]) -> list[str]:
    """What the attempts that are made did, all together, in one life of the agent."""

    async def scenario() -> list[str]:
        agent = agent_of(handler)
        await agent.startup()
        acts = []
        for make in attempts:
            attempt: Attempt = await make()
            await execute(attempt.execution, agent.run)
            acts += [brief(change) for change in attempt.done]
        await agent.shutdown()
        return acts

    acts: list[str] = on_loop(scenario)
    return acts


def asked(server: ModelServer, sent: Part | str, **settings: Any) -> list[str]:
    return done(model(server.url, **settings), lambda: begun(request=message(str(sent))))


def test_the_answer_comes_as_the_model_gives_it(server: ModelServer) -> None:
    acts = asked(server, Part([chunk("one "), 0.3, chunk("two "), 0.3, chunk("three"), STOP]))
    assert shown(acts) == ["artifact one ", "more two ", "more three", "COMPLETED"]


def test_the_request_is_a_streamed_chat_completion(server: ModelServer) -> None:
    async def turn() -> Attempt:
        first = await begun(request=message("", DataPart(data=pack({"n": 1})), RawPart(raw=b"a,b")))
        again = replace(message("What?").message, message_id="n")
        ref = replace(first.ref, messages=(*first.ref.messages, again))
        return Attempt(first.store, ref, first.settings)

    done(model(f"{server.url}/", system="Be brief.", user_agent="dragoman/1"), turn)
    request = server.asked()[-1]
    assert request["path"] == "/v1/chat/completions"
    assert request["body"] == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": '{"n":1}\na,b'},
            {"role": "user", "content": "What?"},
        ],
        "stream": True,
    }
    wanted = {
        "authorization": f"Bearer {KEY}",
        "x-team": "blue",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": "dragoman/1",
    }
    assert {name: request["headers"].get(name) for name in wanted} == wanted


def _bytes(text: str) -> list[str]:
    return list(text.encode().decode("latin-1"))


@pytest.mark.parametrize(
    "steps",
    [
        _bytes(chunk("größe 😀") + STOP),
        [(chunk("größe 😀") + STOP).replace("\n", "\r\n")],
        [(chunk("größe 😀") + STOP).replace("\n", "\r")],
        [": waiting\n\n", ": waiting\n\n", chunk("größe "), "event: x\nid: 1\n: c\n", chunk("😀"), STOP],
        [chunk("größe 😀").replace(", ", ",\ndata: "), STOP],
        [chunk("größe 😀", "stop")],
        [chunk("größe 😀"), chunk(finish="stop"), 'data: {"choices": [], "usage": {}}\n\n', DONE],
    ],
)
@pytest.mark.parametrize("headers", [{}, {"Transfer-Encoding": "chunked"}])
def test_a_stream_means_the_same_however_it_is_written(
    server: ModelServer, steps: Sequence[str | float], headers: dict[str, str]
) -> None:
    part = Part([*steps], headers={"Content-Type": f"{EVENTS}; charset=utf-8", **headers})
    assert whole(asked(server, part)) == "größe 😀"


def test_a_server_that_says_no_more_after_the_whole_answer_is_not_waited_for(server: ModelServer) -> None:
    began = time.monotonic()
    assert whole(asked(server, Part([chunk("all", "stop")], end="hold"))) == "all"
    assert time.monotonic() - began < 5


FAULTS = [
    (Part(status=401), "did not accept this server's credential (401)"),
    (Part(status=403), "did not accept this server's credential (403)"),
    (Part(status=429, headers={"Retry-After": "7"}), "has too much to do (429); try again in 7 s."),
    (Part(status=429, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), "(429); try again later."),
    (Part(status=429), "(429); try again later."),
    (Part(status=500), "The model server failed (500)."),
    (Part(status=503, end="hold"), "The model server failed (503)."),
    (Part(status=404), "refused the request (404)"),
    (Part(status=302, headers={"Location": "http://127.0.0.1:1/"}), "elsewhere (302)"),
    (
        Part([chunk("x", "stop")], headers={"Content-Type": "application/json"}),
        "something else than a stream",
    ),
    (Part([chunk("x")], headers={"Content-Type": EVENTS, "Content-Encoding": "gzip"}), "compressed"),
    (Part([chunk("half")]), "broke off"),
    (Part([chunk("half"), chunk("cut")[:20]]), "broke off"),
    (Part([chunk("half")], headers={"Content-Type": EVENTS, "Transfer-Encoding": "chunked"}), "broke off"),
    (Part([chunk("half"), "data: {\n\n", STOP]), "no chat completion"),
    (
        Part([chunk("half"), 'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n', STOP]),
        "no chat completion",
    ),
    (Part(['data: {"choices":[]}\n\n', DONE]), "broke off"),
    (Part([DONE]), "broke off"),
    (Part([STOP]), "gave no text"),
    (Part([chunk("half"), 'data: {"error":{"message":"' + SECRET + '"}}\n\n', STOP]), "reported an error"),
    (Part([chunk("half", "length"), DONE]), "longest length"),
    (Part([chunk("half", "content_filter"), DONE]), "content filter"),
    (Part(["data: " + "x" * 2_000_000]), "too large"),
    (Part([chunk("x" * 60_000), chunk("x" * 60_000), STOP]), "more than 100000 bytes"),
]


@pytest.mark.parametrize(("part", "reason"), FAULTS, ids=[reason for _, reason in FAULTS])
def test_a_fault_ends_the_run_as_failed_with_its_reason_and_no_secret(
    server: ModelServer,
    part: Part,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(openai, "FAULT_SECONDS", 0.3)
    caplog.set_level(logging.DEBUG, "dragoman")
    if part.status != 200:
        body = json.dumps({"error": {"message": SECRET, "type": "some_error", "code": KEY}})
        part = Part([body], part.status, part.headers, part.end)
    acts = asked(server, part)
    assert acts[-1].startswith("FAILED The model")
    assert reason in acts[-1]
    assert not [act for act in acts if act.endswith(" last")]
    logged = caplog.text
    assert reason in logged
    assert "task_id" in vars(caplog.records[-1])
    for secret in (KEY, SECRET, server.url):
        assert secret not in logged
        assert secret not in str([act for act in acts if act.startswith("FAILED")])


@pytest.mark.parametrize("steps", [[], [chunk("half")], [": waiting\n\n"]])
def test_silence_ends_the_run_as_failed(server: ModelServer, steps: list[str | float]) -> None:
    began = time.monotonic()
    acts = asked(server, Part(steps, end="hold"), idle=0.5)
    assert acts[-1] == "FAILED The model server was silent for 0.5 s."
    assert 0.4 < time.monotonic() - began < 5
    server.told("gone")


def test_a_server_that_talks_is_not_silent(server: ModelServer) -> None:
    assert (
        whole(asked(server, Part([*[": waiting\n\n", 0.3] * 4, chunk("all", "stop"), DONE]), idle=1.0))
        == "all"
    )


def test_a_server_that_is_not_there_is_tried_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "RETRIES", (0.01, 0.02))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    tries = []
    send = openai.ChatModel._request

    def counted(self: ChatModel, *arguments: Any) -> Any:
        tries.append(1)
        return send(self, *arguments)

    monkeypatch.setattr(openai.ChatModel, "_request", counted)
    acts = done(model(f"http://127.0.0.1:{port}/v1"), begun)
    assert acts == ["FAILED The model server cannot be reached."]
    assert len(tries) == 3


def test_a_server_that_comes_late_is_found(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again only where nothing was sent."""

    class Late(ChatModel):
        def _request(self, client: Any, body: bytes) -> Any:
            request = super()._request(client, body)
            self._url = f"{server.url}/chat/completions"
            return request

    monkeypatch.setattr(openai, "RETRIES", (0.01, 0.02))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    handler = Late(f"http://127.0.0.1:{free}/v1", "tiny", headers={}, idle=10.0, max_output=1000)
    assert whole(done(handler, begun)) == "hello "


def test_a_connection_is_used_again_after_a_whole_answer(server: ModelServer) -> None:
    server.asked()
    headers = {"Content-Type": EVENTS, "Transfer-Encoding": "chunked"}
    part = Part([chunk("all"), STOP], headers=headers, end="keep")
    acts = done(model(server.url), *[lambda: begun(request=message(str(part)))] * 2)
    assert shown(acts) == ["artifact all", "COMPLETED"] * 2
    first, second = server.asked()
    assert first["port"] == second["port"]


def test_nothing_is_asked_twice(server: ModelServer) -> None:
    server.asked()
    for part in (Part(status=503), Part(status=429), Part([chunk("half")])):
        assert asked(server, part)[-1].startswith("FAILED")
        assert len(server.asked()) == 1


def test_a_cancel_closes_the_connection_at_once(server: ModelServer) -> None:
    async def scenario() -> None:
        agent = agent_of(model(server.url))
        await agent.startup()
        attempt = await begun(request=message(str(Part([chunk("half")], end="hold"))))
        task = asyncio.ensure_future(execute(attempt.execution, agent.run))
        while "artifact half" not in [brief(change) for change in attempt.done]:
            await asyncio.sleep(0.01)
        attempt.execution.stop()
        began = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        await asyncio.to_thread(server.told, "gone", 3.0)
        assert time.monotonic() - began < 2
        await agent.shutdown()

    on_loop(scenario)


def test_a_file_that_is_no_text_is_refused_before_anything_is_asked(server: ModelServer) -> None:
    server.asked()
    acts = done(model(server.url), lambda: begun(request=message("", RawPart(raw=b"\xff"))))
    assert acts == ["REJECTED message.parts[0]: this agent takes text, data, and files that hold UTF-8 text."]
    assert server.asked() == []


def test_nothing_is_taken_from_the_environment(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert whole(asked(server, "straight there")) == "straight there "
