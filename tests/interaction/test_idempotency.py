"""A message that is sent again under its id is the same message; another message under that id is a conflict."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.interaction.answers import CONFLICT, Reply, refused
from tests.interaction.callers import Caller
from tests.interaction.events import folded
from tests.interaction.following import got
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows


def is_replay(reply: Reply) -> bool:
    """Whether a reply says that the message had been accepted before."""
    assert reply.headers.get("idempotent-replayed") in (None, "true")
    return "idempotent-replayed" in reply.headers


@covers("idempotency.replay")
@pytest.mark.parametrize("text", ["hello", "fail", "crash", "stream 5", "file x"])
def test_the_same_message_twice_is_one_task(caller: Caller, rows: Rows, text: str) -> None:
    params = send_params(text)
    first = caller.call("SendMessage", params)
    with rows.unchanged():
        second = caller.call("SendMessage", params)
    assert (is_replay(first), is_replay(second)) == (False, True)
    assert second.task == first.task


@covers("idempotency.bindings")
def test_the_same_message_over_the_other_binding_is_the_same_task(
    caller: Caller, other: Caller, rows: Rows
) -> None:
    params = send_params()
    first = caller.call("SendMessage", params)
    with rows.unchanged():
        second = other.call("SendMessage", params)
    assert is_replay(second) and second.task == first.task


@covers("idempotency.replay")
def test_a_replay_shows_the_task_as_it_stands_now(caller: Caller) -> None:
    hold = caller.to("hold")
    params = send_params("wait", configuration={"returnImmediately": True})
    task = hold.call("SendMessage", params).task
    hold.call("CancelTask", {"id": task["id"]})
    again = hold.call("SendMessage", params)
    assert is_replay(again) and again.task["status"]["state"] == "TASK_STATE_CANCELED"


@covers("idempotency.streams")
def test_a_replay_as_a_stream_is_a_snapshot_and_then_what_happens(caller: Caller, other: Caller) -> None:
    hold = caller.to("hold")
    params = send_params("wait", configuration={"returnImmediately": True})
    task = hold.call("SendMessage", params).task
    with hold.open("SendStreamingMessage", params) as stream:
        assert stream.headers["idempotent-replayed"] == "true"
        assert stream.next().value["id"] == task["id"]
        other.to("hold").call("CancelTask", {"id": task["id"]})
        assert stream.rest()[-1].state == "TASK_STATE_CANCELED"


@covers("idempotency.streams")
def test_a_replay_of_a_finished_task_as_a_stream_is_that_task_and_ends(caller: Caller, rows: Rows) -> None:
    params = send_params("stream 5")
    task = caller.call("SendMessage", params).task
    with rows.unchanged(), caller.open("SendStreamingMessage", params) as stream:
        items = stream.rest()
    assert [item.kind for item in items] == ["task"]
    assert items[0].value == task


@covers("idempotency.streams")
def test_a_streamed_message_sent_again_blocking_is_its_task(caller: Caller) -> None:
    params = send_params("stream 5")
    with caller.open("SendStreamingMessage", params) as stream:
        assert "idempotent-replayed" not in stream.headers
        whole = folded(stream.rest())
    again = caller.call("SendMessage", params)
    assert is_replay(again) and again.task["artifacts"] == whole["artifacts"]


@covers("idempotency.bare-message")
@pytest.mark.parametrize("agent", ["demo", "teller"])
def test_a_replay_of_a_bare_message_is_that_message(caller: Caller, rows: Rows, agent: str) -> None:
    params = send_params("message hi")
    first = caller.to(agent).call("SendMessage", params)
    with rows.unchanged():
        second = caller.to(agent).call("SendMessage", params)
        with caller.to(agent).open("SendStreamingMessage", params) as stream:
            streamed = stream.rest()
    assert is_replay(second) and second.result == first.result
    assert [(item.kind, item.value) for item in streamed] == [("message", first.result["message"])]


@covers("idempotency.races")
def test_the_same_message_many_times_at_once_is_one_task(caller: Caller, other: Caller, rows: Rows) -> None:
    params = send_params("slow 0.3")
    tasks = rows.counts()["task"]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: (caller, other)[n % 2].call("SendMessage", params), range(16)))
    assert len({reply.task["id"] for reply in replies}) == 1
    assert [is_replay(reply) for reply in replies].count(False) == 1
    assert rows.counts()["task"] == tasks + 1
    assert len({json.dumps(reply.task) for reply in replies}) == 1


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


RICH: dict[str, Any] = {
    "parts": [
        {"text": "héllo", "metadata": {"p": 1}},
        {"data": {"n": 1, "list": [1, 2], "s": "x"}, "mediaType": "application/json"},
        {"raw": "QUJD", "filename": "a.bin"},
        {"url": "https://example.com/a"},
    ],
    "metadata": {"k": {"deep": 1}},
    "extensions": ["urn:a"],
    "referenceTaskIds": ["t1"],
}

CHANGES: list[tuple[str, Any]] = [
    ("message.parts.0.text", "hello"),
    ("message.parts.0.text", "héllo "),
    ("message.parts.0.text", "he\u0301llo"),
    ("message.parts.0.metadata.p", 2),
    ("message.parts.0.metadata.p", 1.0),
    ("message.parts.0.metadata.p", "1"),
    ("message.parts.0.metadata.p", True),
    ("message.parts.1.data.n", 10**30),
    ("message.parts.1.data.n", 1.0),
    ("message.parts.1.data.list", [2, 1]),
    ("message.parts.1.data.s", ...),
    ("message.parts.1.mediaType", "application/JSON"),
    ("message.parts.2.raw", "QUJE"),
    ("message.parts.2.filename", ...),
    ("message.parts.3.url", "https://example.com/a/"),
    ("message.parts", [{"text": "héllo", "metadata": {"p": 1}}]),
    ("message.metadata.k.deep", 2),
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
    caller: Caller, other: Caller, rows: Rows, path: str, value: Any
) -> None:
    params = send_params(**RICH) | {"metadata": {"m": 1}}
    first = caller.call("SendMessage", params)
    with rows.unchanged():
        for again in (caller, other):
            reply = again.call("SendMessage", changed(params, path, value))
            refused(reply, CONFLICT, fields=["message.messageId"], identifier=1)
    assert got(caller, first.task["id"]) == first.task


@covers("idempotency.conflict")
def test_a_conflict_as_a_stream_is_a_plain_error(caller: Caller, rows: Rows) -> None:
    params = send_params("one")
    caller.call("SendMessage", params)
    with (
        rows.unchanged(),
        caller.open("SendStreamingMessage", changed(params, "message.parts.0.text", "two")) as stream,
    ):
        refused(stream.reply(), CONFLICT, fields=["message.messageId"], identifier=1)


def reordered(value: Any) -> str:
    """JSON text with the keys of every object in the opposite order."""

    def turn(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: turn(item[key]) for key in reversed(item)}
        return [turn(one) for one in item] if isinstance(item, list) else item

    return json.dumps(turn(value))


SAME = {
    "key order": reordered,
    "white space": lambda params: json.dumps(params, indent=4, ensure_ascii=False),
    "escapes": lambda params: json.dumps(params, ensure_ascii=True),
    "spelling": lambda params: json.dumps(params).replace('"messageId"', '"message_id"'),
    "enum number": lambda params: json.dumps(params).replace('"ROLE_USER"', "1"),
    "base64 form": lambda params: json.dumps(params).replace('"-_8="', '"+/8"'),
    "nulls": lambda params: json.dumps(changed(params, "message.contextId", None)),
    "unknown field": lambda params: json.dumps(changed(params, "message.future", [1])),
    "history length": lambda params: json.dumps(params | {"configuration": {"historyLength": 0}}),
    "at once": lambda params: json.dumps(params | {"configuration": {"returnImmediately": True}}),
    "modes": lambda params: json.dumps(params | {"configuration": {"acceptedOutputModes": ["a/b"]}}),
    "tenant": lambda params: json.dumps(params | {"tenant": "demo"}),
}


@covers("idempotency.same")
@pytest.mark.parametrize("way", SAME)
def test_what_does_not_change_the_message_does_not_make_another_one(
    caller: Caller, rows: Rows, way: str
) -> None:
    parts = [{"text": "hé", "metadata": {"z": 1, "a": 2}}, {"data": {"b": [1, {"y": 1, "x": 2}], "a": 1}}]
    params = send_params(parts=[*parts, {"raw": "-_8="}], metadata={"z": {"b": 1, "a": 2}, "y": 1})
    params["metadata"] = {"q": 1, "p": {"n": 10**25, "m": 1.5}}
    first = caller.call("SendMessage", params)
    with rows.unchanged():
        second = caller.call("SendMessage", SAME[way](params).encode())
    assert is_replay(second)
    assert second.task["id"] == first.task["id"]


@covers("idempotency.scope")
def test_the_same_id_at_another_agent_is_another_message(caller: Caller) -> None:
    params = send_params()
    first = caller.call("SendMessage", params).task
    second = caller.to("seen").call("SendMessage", params)
    assert not is_replay(second) and second.task["id"] != first["id"]


@covers("idempotency.follow-up")
def test_a_further_message_of_a_task_is_accepted_once_too(caller: Caller, holding: str, rows: Rows) -> None:
    hold = caller.to("hold")
    params = send_params("more", taskId=holding, configuration={"returnImmediately": True})
    hold.call("SendMessage", params)
    with rows.unchanged():
        again = hold.call("SendMessage", params)
        reply = hold.call("SendMessage", changed(params, "message.taskId", ...))
    assert is_replay(again) and again.task["id"] == holding
    refused(reply, CONFLICT, fields=["message.messageId"], identifier=1)
    assert len(got(hold, holding)["history"]) == 2


@covers("idempotency.refused")
def test_a_refused_message_leaves_its_id_free(caller: Caller) -> None:
    identifier = new_id()
    assert caller.call("SendMessage", send_params(messageId=identifier, parts=[])).reason == "INVALID_PARAMS"
    reply = caller.call("SendMessage", send_params("now right", messageId=identifier))
    assert not is_replay(reply)
    assert reply.task["artifacts"][0]["parts"] == [{"text": "now right"}]
