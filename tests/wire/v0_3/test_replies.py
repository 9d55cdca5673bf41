"""What a remote agent of A2A 0.3 says is read as it means it, over JSON-RPC and in official servers' ProtoJSON."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec import structs

from dragoman.model import ArtifactChunk, Message, RawPart, Role, StatusChange, Task, TaskState, errors
from dragoman.protocol.client import NotA2AError, Outgoing, Place, RemoteRefusalError, Told
from dragoman.protocol.registry import load_clients
from tests.wire.sameness import shape
from tests.wire.v0_3.strategies import Forms, Item, messages, stream_items, tasks

properties = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

CLIENT = load_clients()["0.3"]
RPC, HTTP = CLIENT["JSONRPC"], CLIENT["HTTP+JSON"]
PLACE = Place("https://agents.example.com/clerk")


def wired(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def result(document: Any) -> bytes:
    return wired({"jsonrpc": "2.0", "id": "t", "result": document})


def without_references(value: Any) -> Any:
    """A value as the 0.3 proto has it: without references."""
    if isinstance(value, Task):
        status = structs.replace(value.status, message=without_references(value.status.message))
        return structs.replace(value, status=status, history=tuple(map(without_references, value.history)))
    if isinstance(value, StatusChange):
        return structs.replace(value, message=without_references(value.message))
    return structs.replace(value, reference_task_ids=()) if isinstance(value, Message) else value


@properties
@given(tasks())
def test_a_task_is_read_as_it_means(forms: Forms) -> None:
    assert RPC.get(PLACE, "t", 10).reply(result(forms.kinds)) == forms.model
    # Official servers write base64 of base64.
    assert HTTP.get(PLACE, "t", 10).reply(wired(forms.doubled)) == without_references(forms.model)


@properties
@given(stream_items)
def test_what_a_stream_tells_is_read_as_it_means(item: Item) -> None:
    forms = item.forms
    for read, is_proto in (
        (RPC.subscribe(PLACE, "t").event(result(forms.kinds)), False),
        (HTTP.subscribe(PLACE, "t").event(wired(forms.doubled)), True),
    ):
        wanted = forms.model
        if isinstance(wanted, Task | Message):
            assert read == (without_references(wanted) if is_proto else wanted)
            continue
        assert isinstance(read, Told)
        assert (read.task_id, read.context_id) == (wanted.task_id, wanted.context_id)
        if isinstance(wanted.change, StatusChange | ArtifactChunk):
            assert read.change == (without_references(wanted.change) if is_proto else wanted.change)


@properties
@given(messages(Role.USER))
def test_a_message_is_sent_as_0_3_writes_it(forms: Forms) -> None:
    for send, waits in (("send", False), ("stream", True)):
        sent = json.loads(getattr(RPC, send)(PLACE, Outgoing(message=forms.model)).body)["params"]
        assert shape(sent["message"]) == shape(forms.kinds)
        assert sent["configuration"]["blocking"] is waits
        sent = json.loads(getattr(HTTP, send)(PLACE, Outgoing(message=forms.model)).body)
        assert shape(sent["message"]) == shape(forms.doubled)


def test_a_state_that_nobody_knows_is_one_that_goes_on() -> None:
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "unknown"}}
    read = RPC.get(PLACE, "t", 1).reply(result(task))
    assert isinstance(read, Task) and read.status.state is TaskState.WORKING


def test_bytes_that_are_no_base64_are_those_of_a_server_that_does_not_double() -> None:
    part = {"file": {"fileWithBytes": "AAH/"}}
    artifact = {"artifactId": "a", "parts": [part]}
    task = {"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": [artifact]}
    read = HTTP.get(PLACE, "t", 1).reply(wired(task))
    assert isinstance(read, Task) and read.artifacts
    assert read.artifacts[0].parts == (RawPart(raw=b"\x00\x01\xff"),)


def test_requests_go_where_official_servers_look_for_them() -> None:
    calls = [HTTP.get(PLACE, "t", 5), HTTP.cancel(PLACE, "t"), HTTP.subscribe(PLACE, "t")]
    assert [(call.method, call.url.removeprefix(PLACE.url)) for call in calls] == [
        ("GET", "/v1/tasks/t?historyLength=5"),
        ("POST", "/v1/tasks/t:cancel"),
        ("GET", "/v1/tasks/t:subscribe"),
    ]
    methods = [
        json.loads(call.body)["method"] for call in (RPC.get(PLACE, "t", 5), RPC.subscribe(PLACE, "t"))
    ]
    assert methods == ["tasks/get", "tasks/resubscribe"]


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (404, {"message": "no"}, errors.TaskNotFound, "no"),
        (409, {"message": "no"}, errors.TaskNotCancelable, "no"),
        (422, {"message": "no"}, errors.InvalidParams, "no"),
        (501, {"message": "no"}, errors.UnsupportedOperation, "no"),
        (415, {"message": "no"}, errors.ContentTypeNotSupported, "no"),
        (400, {"type": "TaskNotCancelableError", "detail": "no"}, errors.TaskNotCancelable, "no"),
        (400, {"code": -32005, "message": "no"}, errors.ContentTypeNotSupported, "no"),
        (401, {}, errors.Unauthenticated, ""),
        (500, "boom", errors.InternalError, ""),
    ],
)
def test_errors_over_http_are_those_of_the_tree(
    status: int, body: Any, kind: type[Exception], words: str
) -> None:
    told = HTTP.get(PLACE, "t", 1).refusal(status, wired(body))
    assert (told.kind, told.message) == (kind, words)


def test_errors_over_jsonrpc_are_those_of_the_tree() -> None:
    with pytest.raises(RemoteRefusalError) as caught:
        RPC.get(PLACE, "t", 1).reply(wired({"jsonrpc": "2.0", "id": "t", "error": {"code": -32002}}))
    assert caught.value.kind is errors.TaskNotCancelable


@pytest.mark.parametrize("document", [{}, {"kind": "odd"}, {"kind": "task", "id": "t"}])
def test_what_is_no_result_is_told_from_one(document: Any) -> None:
    with pytest.raises(NotA2AError):
        RPC.get(PLACE, "t", 1).reply(result(document))


def test_extensions_are_activated_by_the_header_of_the_version() -> None:
    outgoing = Outgoing(message=Message(message_id="m", role=Role.USER, parts=()), extensions=("urn:a",))
    for binding in CLIENT.values():
        assert ("X-A2A-Extensions", "urn:a") in binding.stream(PLACE, outgoing).headers
        assert "A2A-Version" not in dict(binding.stream(PLACE, outgoing).headers)
