"""What a remote agent of A2A 1.0 says is read as it means it, whatever the payloads hold."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dragoman.model import ArtifactChunk, Message, Role, StatusChange, Task, TaskEvent, TaskState, errors
from dragoman.protocol.client import NotA2AError, Outgoing, Place, RemoteRefusalError, Told
from dragoman.protocol.registry import load_clients
from tests.wire.sameness import shape
from tests.wire.strategies import Pair, messages, stream_items, tasks

properties = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

CLIENT = load_clients()["1.0"]
PLACE = Place("https://agents.example.com/clerk")
SEEN: dict[str, Any] = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}


def wired(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def reply(binding: str, document: Any, identifier: str = "t") -> bytes:
    """A result as a binding wraps it."""
    return wired(
        {"jsonrpc": "2.0", "id": identifier, "result": document} if binding == "JSONRPC" else document
    )


@properties
@given(tasks())
def test_a_task_is_read_as_it_means(pair: Pair) -> None:
    for name, binding in CLIENT.items():
        assert binding.get(PLACE, "t", 10).reply(reply(name, pair.wire)) == pair.model


@properties
@given(stream_items)
def test_what_a_stream_tells_is_read_as_it_means(pair: Pair) -> None:
    for name, binding in CLIENT.items():
        read = binding.subscribe(PLACE, "t").event(reply(name, pair.wire))
        if isinstance(pair.model, Task | Message):
            assert read == pair.model
            continue
        assert isinstance(pair.model, TaskEvent) and isinstance(read, Told)
        assert (read.task_id, read.context_id) == (pair.model.task_id, pair.model.context_id)
        if isinstance(pair.model.change, StatusChange | ArtifactChunk):
            assert read.change == pair.model.change
        if isinstance(read.change, StatusChange):
            assert (read.change.state, read.at) == (pair.model.state, pair.model.at)


@properties
@given(messages(Role.USER))
def test_a_message_is_sent_as_the_standard_writes_it(pair: Pair) -> None:
    for name, binding in CLIENT.items():
        for send, quick in ((binding.send, True), (binding.stream, False)):
            sent = json.loads(send(PLACE, Outgoing(message=pair.model)).body)
            params = sent["params"] if name == "JSONRPC" else sent
            assert shape(params["message"]) == shape(pair.wire)
            assert params.get("configuration", {}).get("returnImmediately", False) is quick


def test_requests_go_where_the_interface_and_its_tenant_say() -> None:
    place = Place("https://a.example/x/", "north sea")
    http = CLIENT["HTTP+JSON"]
    asked = [http.get(place, "a/b", 5), http.cancel(place, "t"), http.subscribe(place, "t")]
    assert [(call.method, call.url) for call in asked] == [
        ("GET", "https://a.example/x/north%20sea/tasks/a%2Fb?historyLength=5"),
        ("POST", "https://a.example/x/north%20sea/tasks/t:cancel"),
        ("POST", "https://a.example/x/north%20sea/tasks/t:subscribe"),
    ]
    rpc = CLIENT["JSONRPC"].get(place, "t", 5)
    assert rpc.url == "https://a.example/x/"
    assert json.loads(rpc.body) == {
        "jsonrpc": "2.0",
        "id": "t",
        "method": "GetTask",
        "params": {"tenant": "north sea", "id": "t", "historyLength": 5},
    }
    for call in (*asked, rpc):
        assert ("A2A-Version", "1.0") in call.headers


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        reply("JSONRPC", SEEN, "another"),
        reply("JSONRPC", {**SEEN, "status": {"state": "TASK_STATE_LOST"}}),
        reply("JSONRPC", {**SEEN, "artifacts": [{"artifactId": "a", "parts": [{"raw": "***"}]}]}),
        reply("JSONRPC", {**SEEN, "artifacts": {}}),
        reply("JSONRPC", []),
        b'{"jsonrpc":"2.0","id":"t","id":"t","result":{}}',
    ],
)
def test_what_is_no_reply_is_told_from_one(body: bytes) -> None:
    with pytest.raises(NotA2AError):
        CLIENT["JSONRPC"].get(PLACE, "t", 1).reply(body)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32001, "message": "gone"}, errors.TaskNotFound),
        ({"code": -32005, "message": "gone"}, errors.ContentTypeNotSupported),
        ({"code": -32602, "message": "gone"}, errors.InvalidParams),
        (
            {"code": -32602, "message": "gone", "data": [{"reason": "MESSAGE_ID_CONFLICT"}]},
            errors.MessageIdConflict,
        ),
        (
            {"code": -32000, "message": "gone", "data": [{"reason": "UNAUTHENTICATED"}]},
            errors.Unauthenticated,
        ),
        ({"code": 17, "message": "gone"}, errors.InternalError),
    ],
)
def test_errors_over_jsonrpc_are_those_of_the_tree(error: Any, kind: type[Exception]) -> None:
    body = wired({"jsonrpc": "2.0", "id": None, "error": error})
    for read in (CLIENT["JSONRPC"].get(PLACE, "t", 1).reply, CLIENT["JSONRPC"].subscribe(PLACE, "t").event):
        with pytest.raises(RemoteRefusalError) as caught:
            read(body)
        assert (caught.value.kind, caught.value.message) == (kind, "gone")


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (
            400,
            {"error": {"code": 400, "message": "no", "details": [{"reason": "TASK_NOT_CANCELABLE"}]}},
            errors.TaskNotCancelable,
            "no",
        ),
        (404, {"error": {"code": 404, "message": "no", "details": []}}, errors.MethodNotFound, "no"),
        (401, "nothing", errors.Unauthenticated, ""),
        (403, {}, errors.Forbidden, ""),
        (429, {}, errors.RateLimited, ""),
        (500, {}, errors.InternalError, ""),
        (503, {}, errors.Unavailable, ""),
        (418, {}, errors.InvalidRequest, ""),
    ],
)
def test_errors_over_http_are_those_of_the_tree(
    status: int, body: Any, kind: type[Exception], words: str
) -> None:
    told = CLIENT["HTTP+JSON"].get(PLACE, "t", 1).refusal(status, wired(body))
    assert (told.kind, told.message) == (kind, words)


def test_an_error_late_in_a_stream_over_http_is_told() -> None:
    with pytest.raises(RemoteRefusalError) as caught:
        CLIENT["HTTP+JSON"].subscribe(PLACE, "t").event(
            wired({"error": {"code": 404, "details": [{"reason": "TASK_NOT_FOUND"}]}})
        )
    assert caught.value.kind is errors.TaskNotFound


def test_extensions_are_activated_by_the_header_of_the_version() -> None:
    message = Message(message_id="m", role=Role.USER, parts=())
    outgoing = Outgoing(message=message, extensions=("urn:a", "urn:b"))
    for binding in CLIENT.values():
        assert ("A2A-Extensions", "urn:a, urn:b") in binding.stream(PLACE, outgoing).headers


def test_a_time_without_a_zone_is_one_of_utc_and_one_that_is_none_is_no_fault() -> None:
    get = CLIENT["HTTP+JSON"].get(PLACE, "t", 1)
    for text, at in (("1970-01-01T00:00:01", 1000), ("yesterday", 0), ("1970-01-01T00:00:01Z", 1000)):
        read = get.reply(wired({**SEEN, "status": {"state": "TASK_STATE_WORKING", "timestamp": text}}))
        assert isinstance(read, Task)
        assert (read.status.state, read.status.timestamp) == (TaskState.WORKING, at)
