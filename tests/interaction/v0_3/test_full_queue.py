"""An agent that has no room for another message: callers of 0.3 are told, and everything else goes on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.harness.polling import until
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import FULL, Reply, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import send_params, sent, state_of
from tests.interaction.v0_3.requirements import covers


@dataclass(frozen=True)
class Filling:
    """The caller of an agent that works on one message and lets none wait, that message, and its task."""

    caller: Caller
    params: dict[str, Any]
    task_id: str


@pytest.fixture
def filling(caller: Caller) -> Iterator[Filling]:
    """The agent is full meanwhile."""
    narrow = caller.to("narrow")
    params = send_params("wait", configuration={"blocking": False})

    def accepted() -> Reply | None:
        reply = narrow.call("SendMessage", params)
        return None if reply.is_refused else reply

    task_id = until(accepted, what="the agent has room again").value["id"]
    until(lambda: state_of(narrow, task_id) == "working", what="the task is worked on")
    yield Filling(narrow, params, task_id)
    narrow.call("CancelTask", {"id": task_id})


@covers("full.refused")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_a_new_message_is_refused_with_the_time_to_come_back_and_not_stored(
    caller: Caller, filling: Filling, rows: Rows, operation: str
) -> None:
    with rows.unchanged():
        reply = filling.caller.call(operation, send_params())
    refused(reply, FULL, identifier=1)
    assert reply.headers["retry-after"] == "5"
    assert sent(caller)["status"]["state"] == "completed", "other agents have room"


@covers("full.open")
def test_what_was_accepted_is_answered_read_and_cancelled_as_ever(
    caller: Caller, filling: Filling, rows: Rows
) -> None:
    narrow, task_id = filling.caller, filling.task_id
    with rows.unchanged():
        again = narrow.call("SendMessage", filling.params)
        assert again.is_replay and again.value["id"] == task_id
    assert sent(narrow, "more", wait=False, taskId=task_id)["id"] == task_id
    with narrow.open("SubscribeToTask", {"id": task_id}) as stream:
        assert stream.next().value["id"] == task_id
    canceled = narrow.call("CancelTask", {"id": task_id}).value
    assert canceled["status"]["state"] == "canceled"
