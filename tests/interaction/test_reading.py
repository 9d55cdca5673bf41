"""GetTask, and how much history an answer holds."""

from typing import Any

import pytest

from tests.interaction.answers import PARAMS, TASK_NOT_FOUND, refused
from tests.interaction.callers import Caller
from tests.interaction.following import got, sent
from tests.interaction.messages import send_params
from tests.interaction.requirements import covers


@pytest.fixture
def spoken(caller: Caller, holding: str) -> str:
    """A running task with five messages of its caller."""
    for number in range(4):
        params = send_params(f"more {number}", taskId=holding, configuration={"returnImmediately": True})
        caller.to("hold").call("SendMessage", params)
    return holding


def said(task: dict[str, Any]) -> list[str]:
    """The text of each message of a task's history."""
    return [message["parts"][0]["text"] for message in task.get("history", [])]


WHOLE = ["wait", "more 0", "more 1", "more 2", "more 3"]


@covers("history.lengths", "voice.28", "voice.30")
@pytest.mark.parametrize(
    ("length", "expected"),
    [(None, WHOLE), (0, []), (1, WHOLE[-1:]), (3, WHOLE[-3:]), (5, WHOLE), (999_999_999, WHOLE)],
)
def test_get_holds_as_many_of_the_newest_messages_as_were_asked_for(
    caller: Caller, spoken: str, length: int | None, expected: list[str]
) -> None:
    params = {} if length is None else {"historyLength": length}
    task = got(caller.to("hold"), spoken, **params)
    assert said(task) == expected
    assert ("history" in task) == bool(expected)


@covers("history.lengths", "voice.28")
@pytest.mark.parametrize(("length", "kept"), [(None, 1), (0, 0), (1, 1), (999_999_999, 1)])
def test_a_send_holds_as_much_history_as_was_asked_for(caller: Caller, length: int | None, kept: int) -> None:
    configuration = {} if length is None else {"historyLength": length}
    task = caller.call("SendMessage", send_params(configuration=configuration)).task
    assert len(task.get("history", [])) == kept
    assert ("history" in task) == bool(kept)
    with caller.open("SendStreamingMessage", send_params(configuration=configuration)) as stream:
        assert len(stream.next().value.get("history", [])) == kept
        stream.rest()


@covers("history.negative")
@pytest.mark.parametrize("length", [-1, -(2**31), -(2**40), 2**31, 10**20, "x", 1.5])
@pytest.mark.parametrize("operation", ["GetTask", "ListTasks"])
def test_a_history_length_that_is_none_is_refused(caller: Caller, operation: str, length: Any) -> None:
    params = {"historyLength": length} | ({"id": "nope"} if operation == "GetTask" else {})
    refused(caller.call(operation, params), PARAMS, fields=["historyLength"], identifier=1)


@covers("history.lengths")
def test_integers_may_be_written_as_protojson_allows(rpc: Caller) -> None:
    task = sent(rpc)
    for length in ("1", 1.0, 1e0):
        assert len(got(rpc, task["id"], historyLength=length)["history"]) == 1


@covers("history.order")
def test_history_holds_each_message_of_both_sides_once_and_in_order(caller: Caller) -> None:
    task = sent(caller, "slow 0.6")
    lines = [(message["role"], message["parts"][0]["text"]) for message in task["history"]]
    assert lines == [
        ("ROLE_USER", "slow 0.6"),
        ("ROLE_AGENT", "0 % done"),
        ("ROLE_AGENT", "33 % done"),
        ("ROLE_AGENT", "66 % done"),
    ]
    assert len({message["messageId"] for message in task["history"]}) == 4
    assert texts_of_last(task) == "Took 0.6 s."


def texts_of_last(task: dict[str, Any]) -> str:
    """The text of the last artifact: a result is an artifact, not a message."""
    return str(task["artifacts"][-1]["parts"][0]["text"])


@covers("get.unknown")
@pytest.mark.usefixtures("nothing_stored")
def test_a_task_that_does_not_exist_is_not_found(caller: Caller) -> None:
    for operation in ("GetTask", "CancelTask", "SubscribeToTask"):
        metadata = refused(caller.call(operation, {"id": "nope"}), TASK_NOT_FOUND, identifier=1)
        assert metadata == {"taskId": "nope"}


@covers("get.artifacts")
@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("file abc", {"raw": "YWJj", "filename": "demo.txt", "mediaType": "text/plain"}),
        (
            "data a b",
            {"data": {"text": "a b", "words": 2, "attempt": 1}, "mediaType": "application/json"},
        ),
    ],
)
def test_get_holds_artifacts_of_every_kind(caller: Caller, text: str, part: dict[str, Any]) -> None:
    task = got(caller, sent(caller, text)["id"])
    assert task["artifacts"][0]["parts"] == [part]


@covers("get.artifacts")
def test_the_chunks_of_an_artifact_are_put_together(caller: Caller) -> None:
    task = got(caller, sent(caller, "stream 12")["id"])
    assert len(task["artifacts"]) == 1
    parts = [part["text"] for part in task["artifacts"][0]["parts"]]
    assert "".join(parts) == "".join(f"chunk {number} " for number in range(1, 13))
