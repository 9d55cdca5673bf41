"""A message that is sent again under its id: the same message in every form of 0.3, another one in 1.0."""

import copy
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.interaction import answers as newer_answers
from tests.interaction.callers import HttpCaller, RpcCaller
from tests.interaction.messages import new_id
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import CONFLICT, refused
from tests.interaction.v0_3.callers import PLACES, Caller, to_json
from tests.interaction.v0_3.messages import data_part, file_part, got, send_params, text_part
from tests.interaction.v0_3.requirements import covers

STREAMED = {"Accept": "text/event-stream"}
IDEMPOTENCY = "urn:dragoman:ext:idempotency:v1"


@covers("idempotency.replay")
@pytest.mark.parametrize("text", ["hello", "fail", "stream 5", "file x", "data y", "message hi"])
def test_the_same_message_twice_is_one_answer(caller: Caller, rows: Rows, text: str) -> None:
    params = send_params(text)
    first = caller.call("SendMessage", params)
    with rows.unchanged():
        second = caller.call("SendMessage", params)
    assert (first.is_replay, second.is_replay) == (False, True)
    assert second.value == first.value


RICH: dict[str, Any] = {
    "parts": [
        text_part("héllo", metadata={"p": 1}),
        data_part({"n": 10**25, "list": [1, 2.5], "s": "x"}),
        file_part(b"\xff\xfe\xfd", name="a.bin", mimeType="application/octet-stream"),
        {"kind": "file", "file": {"uri": "https://example.com/a", "name": "a"}},
    ],
    "metadata": {"k": {"deep": 1}},
    "extensions": ["urn:a"],
    "referenceTaskIds": ["t1"],
}


@covers("idempotency.dialects")
def test_the_same_message_in_any_other_form_is_the_same_task_re_encoded(caller: Caller, rows: Rows) -> None:
    params = send_params(**RICH) | {"metadata": {"m": 1}}
    first = caller.call("SendMessage", params)
    shown = {True: first.value, False: first.value}
    with rows.unchanged():
        for place in PLACES:
            again = caller.at(place).call("SendMessage", params)
            assert again.is_replay
            shown[caller.at(place).has_kinds] = again.value
            assert again.value["id"] == first.value["id"]
            assert again.value["artifacts"] == first.value["artifacts"]
    # The one thing that the proto has no field for.
    assert shown[True]["history"][0].pop("referenceTaskIds") == ["t1"]
    shown[False]["history"][0].pop("referenceTaskIds", None)
    assert shown[True] == shown[False]


@covers("idempotency.replay")
def test_a_replay_shows_the_task_as_it_stands_now(caller: Caller) -> None:
    hold = caller.to("hold")
    params = send_params("wait", configuration={"blocking": False})
    task = hold.call("SendMessage", params).value
    hold.call("CancelTask", {"id": task["id"]})
    again = hold.call("SendMessage", params)
    assert (again.is_replay, again.value["status"]["state"]) == (True, "canceled")


@covers("idempotency.streams")
def test_a_replay_as_a_stream_is_a_snapshot_and_then_what_happens(caller: Caller) -> None:
    hold = caller.to("hold")
    params = send_params("wait", configuration={"blocking": False})
    task = hold.call("SendMessage", params).value
    with hold.open("SendStreamingMessage", params) as stream:
        assert stream.headers["idempotent-replayed"] == "true"
        assert stream.next().value["id"] == task["id"]
        hold.call("CancelTask", {"id": task["id"]})
        rest = stream.rest()
    assert (rest[-1].kind, rest[-1].state, rest[-1].final) == ("status-update", "canceled", True)


@covers("idempotency.streams")
def test_a_replay_of_a_finished_task_as_a_stream_is_that_task_and_ends(caller: Caller, rows: Rows) -> None:
    params = send_params("stream 5")
    task = caller.call("SendMessage", params).value
    with rows.unchanged(), caller.open("SendStreamingMessage", params) as stream:
        items = stream.rest()
    assert [(item.kind, item.value) for item in items] == [("task", task)]


@covers("idempotency.races")
def test_the_same_message_at_every_place_at_once_is_one_task(caller: Caller, rows: Rows) -> None:
    params = send_params("slow 0.1", configuration={"blocking": True})
    tasks = rows.counts()["task"]
    callers = [caller.at(place) for place in PLACES]
    with ThreadPoolExecutor(len(callers)) as pool:
        replies = list(pool.map(lambda one: one.call("SendMessage", params), callers))
    assert [reply.is_replay for reply in replies].count(False) == 1
    assert len({to_json(reply.value["artifacts"]) for reply in replies}) == 1
    assert rows.counts()["task"] == tasks + 1


def changed(params: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Parameters with one value put in another's place; `...` takes it out."""
    made = copy.deepcopy(params)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = made
    for step in steps:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made


CHANGES: list[tuple[str, Any]] = [
    ("message.parts.0.text", "hello"),
    ("message.parts.0.metadata.p", 1.0),
    ("message.parts.0.metadata.p", True),
    ("message.parts.1.data.n", 10**25 + 1),
    ("message.parts.1.data.list", [2.5, 1]),
    ("message.parts.2.file.bytes", "//79AA=="),
    ("message.parts.2.file.name", ...),
    ("message.parts.2.file.mimeType", "a/b"),
    ("message.parts.3.file.uri", "https://example.com/b"),
    ("message.metadata", ...),
    ("message.extensions", ["urn:b"]),
    ("message.referenceTaskIds", ...),
    ("message.contextId", "another"),
    ("metadata.m", 2),
    ("metadata", ...),
]


@covers("idempotency.conflict")
@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda value: str(value)[:30])
def test_one_change_under_the_same_id_is_a_conflict_and_nothing_is_stored(
    form: Caller, rows: Rows, path: str, value: Any
) -> None:
    params = send_params(**RICH) | {"metadata": {"m": 1}}
    first = form.call("SendMessage", params)
    with rows.unchanged():
        reply = form.call("SendMessage", changed(params, path, value))
        refused(reply, CONFLICT, fields=["message.messageId"], identifier=1)
    assert got(form, first.value["id"]) == first.value


@covers("idempotency.conflict")
def test_a_conflict_as_a_stream_is_refused_as_streams_are(caller: Caller, rows: Rows) -> None:
    params = send_params("one")
    caller.call("SendMessage", params)
    with rows.unchanged():
        reply = caller.call("SendStreamingMessage", changed(params, "message.parts.0.text", "two"))
        refused(reply, CONFLICT, fields=["message.messageId"], identifier=1)


def newer_params(params: dict[str, Any]) -> dict[str, Any]:
    """A message of text as 1.0 spells it."""
    message = {name: value for name, value in params["message"].items() if name != "kind"}
    message["parts"] = [{"text": part["text"]} for part in message["parts"]]
    return {"message": message | {"role": "ROLE_USER"}}


@covers("idempotency.generations")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_the_same_message_in_1_0_is_a_conflict_and_nothing_is_stored(
    form: Caller, newer: HttpCaller | RpcCaller, rows: Rows, operation: str
) -> None:
    params = send_params()
    first = form.call("SendMessage", params).value
    with rows.unchanged():
        reply = newer.call(operation, newer_params(params))
        newer_answers.refused(reply, newer_answers.CONFLICT, fields=["message.messageId"], identifier=1)
    assert got(form, first["id"]) == first


@covers("idempotency.generations")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_the_same_message_after_1_0_is_a_conflict_and_nothing_is_stored(
    form: Caller, newer: HttpCaller | RpcCaller, rows: Rows, operation: str
) -> None:
    params = send_params()
    first = newer.call("SendMessage", newer_params(params)).task
    with rows.unchanged():
        reply = form.call(operation, params)
        refused(reply, CONFLICT, fields=["message.messageId"], identifier=1)
    assert newer.call("GetTask", {"id": first["id"]}).result == first


def _reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reordered(value[key]) for key in reversed(value)}
    return [_reordered(one) for one in value] if isinstance(value, list) else value


SAME: dict[str, Callable[[Any, Caller], str]] = {
    "key order": lambda params, caller: json.dumps(_reordered(params)),
    "white space": lambda params, caller: json.dumps(params, indent=4, ensure_ascii=False),
    "escapes": lambda params, caller: json.dumps(params, ensure_ascii=True),
    "unknown": lambda params, caller: json.dumps(changed(params, "message.future", [1])),
    "history": lambda params, caller: json.dumps(params | {"configuration": {"blocking": True}}),
    "modes": lambda params, caller: json.dumps(
        params | {"configuration": {"blocking": True, "acceptedOutputModes": ["a/b"]}}
    ),
    "nulls": lambda params, caller: json.dumps(changed(params, "message.taskId", None)),
}


@covers("idempotency.same")
@pytest.mark.parametrize("way", SAME)
def test_what_does_not_change_the_message_does_not_make_another_one(
    form: Caller, rows: Rows, way: str
) -> None:
    params = send_params(**RICH)
    first = form.call("SendMessage", params)
    written = form.place.dialect.write("SendMessage", params)
    with rows.unchanged():
        second = form.call("SendMessage", SAME[way](written, form).encode())
    assert second.is_replay and second.value["id"] == first.value["id"]


@covers("idempotency.refused")
def test_a_refused_message_leaves_its_id_free(caller: Caller) -> None:
    identifier = new_id()
    assert caller.call("SendMessage", send_params(messageId=identifier, parts=[])).is_refused
    reply = caller.call("SendMessage", send_params("now right", messageId=identifier))
    assert not reply.is_replay
    assert reply.value["artifacts"][0]["parts"] == [text_part("now right")]


@covers("idempotency.requested", "extensions.echo")
@pytest.mark.parametrize("header", ["X-A2A-Extensions", "A2A-Extensions"])
def test_an_agent_that_wants_to_be_asked_replays_only_if_it_was(caller: Caller, header: str) -> None:
    loose = caller.to("loose")
    params = send_params()
    first, again = loose.call("SendMessage", params), loose.call("SendMessage", params)
    assert not again.is_replay and again.value["id"] != first.value["id"]
    assert "x-a2a-extensions" not in again.headers
    params = send_params()
    asked = {header: f"urn:other, {IDEMPOTENCY}"}
    first = loose.call("SendMessage", params, headers=asked)
    again = loose.call("SendMessage", params, headers=asked)
    assert again.is_replay and again.value == first.value
    assert (first.headers["x-a2a-extensions"], again.headers["x-a2a-extensions"]) == (IDEMPOTENCY,) * 2
    assert "a2a-extensions" not in again.headers
