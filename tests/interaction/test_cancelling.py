"""CancelTask: what is cancelled stays cancelled, what is finished stays as it is, and the handler is stopped."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.polling import until
from tests.interaction.answers import NOT_CANCELABLE, PARAMS, refused
from tests.interaction.callers import Caller
from tests.interaction.following import TERMINAL, ended, got, sent
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

CANCELED = "TASK_STATE_CANCELED"


@covers("cancel.running", "voice.49")
def test_cancelling_a_running_task_answers_canceled_and_stores_it(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    before = got(hold, holding)
    task = hold.call("CancelTask", {"id": holding}).result
    assert task["status"]["state"] == CANCELED
    assert task["status"]["timestamp"] >= before["status"]["timestamp"]
    assert (task["id"], task["history"]) == (holding, before["history"])
    assert got(hold, holding) == task


@covers("cancel.metadata")
def test_a_cancel_may_carry_metadata(caller: Caller, holding: str) -> None:
    params = {"id": holding, "metadata": {"reason": {"kind": "tired", "n": 10**30}}}
    assert caller.to("hold").call("CancelTask", params).result["status"]["state"] == CANCELED


@covers("cancel.metadata", "fields.types")
@pytest.mark.parametrize("metadata", [[], "m", 3, True])
def test_cancel_metadata_must_be_an_object(caller: Caller, holding: str, metadata: object) -> None:
    reply = caller.to("hold").call("CancelTask", {"id": holding, "metadata": metadata})
    refused(reply, PARAMS, fields=["metadata"], identifier=1)
    assert got(caller.to("hold"), holding)["status"]["state"] == "TASK_STATE_WORKING"


@covers("cancel.stops", "voice.50")
def test_cancelling_stops_the_handler(caller: Caller, tmp_path: Path) -> None:
    beacon = tmp_path / "beacon"
    hold = caller.to("hold")
    task = sent(hold, f"beacon {beacon}", wait=False)
    until(lambda: Path(f"{beacon}.began").exists(), what="the handler began")
    hold.call("CancelTask", {"id": task["id"]})
    until(lambda: Path(f"{beacon}.stopped").exists(), what="the handler was stopped")
    assert got(hold, task["id"])["status"]["state"] == CANCELED


@covers("cancel.finished")
@pytest.mark.parametrize("text", ["hello", "fail", "reject", "crash"])
def test_a_finished_task_cannot_be_cancelled_and_stays_as_it_is(
    caller: Caller, rows: Rows, text: str
) -> None:
    task = sent(caller, text)
    with rows.unchanged():
        refused(caller.call("CancelTask", {"id": task["id"]}), NOT_CANCELABLE, identifier=1)
    assert got(caller, task["id"]) == task


@covers("cancel.finished", "voice.48")
def test_a_second_cancel_is_refused(caller: Caller, other: Caller, holding: str) -> None:
    caller.to("hold").call("CancelTask", {"id": holding})
    task = got(caller.to("hold"), holding)
    for again in (caller, other):
        refused(again.to("hold").call("CancelTask", {"id": holding}), NOT_CANCELABLE, identifier=1)
    assert got(caller.to("hold"), holding) == task


@covers("cancel.race", "voice.48")
def test_of_many_cancels_at_once_one_wins(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: hold.call("CancelTask", {"id": holding}), range(8)))
    won = [reply for reply in replies if not reply.reason]
    assert len(won) == 1
    for reply in replies:
        if reply is not won[0]:
            refused(reply, NOT_CANCELABLE, identifier=1)


@covers("cancel.race", "voice.48")
def test_of_a_cancel_and_an_end_at_once_exactly_one_is_stored(
    caller: Caller, rows: Rows, tmp_path: Path
) -> None:
    hold = caller.to("hold")
    gate = tmp_path / "open"
    tasks = [sent(hold, f"until {gate}", wait=False)["id"] for _ in range(16)]
    gate.touch()
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda task: hold.call("CancelTask", {"id": task}), tasks))
    for task_id, reply in zip(tasks, replies, strict=True):
        task = ended(hold, task_id)
        if reply.reason:
            refused(reply, NOT_CANCELABLE, identifier=1)
            assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        else:
            assert (reply.result["status"], task["status"]["state"]) == (task["status"], CANCELED)
        assert _endings(rows, task_id) == 1


def _endings(rows: Rows, task_id: str) -> int:
    """How many events of a task moved it to a terminal state."""
    payloads = [
        json.loads(payload)
        for (payload,) in rows.query("SELECT payload FROM event WHERE task_id = ?", task_id)
    ]
    return sum(one["c"] == "status" and one["state"] in (3, 4, 5, 7) for one in payloads)


@covers("cancel.ends-streams")
def test_a_cancel_ends_the_streams_and_waits_of_the_task(caller: Caller, other: Caller, holding: str) -> None:
    with caller.to("hold").open("SubscribeToTask", {"id": holding}) as stream:
        assert stream.next().state == "TASK_STATE_WORKING"
        other.to("hold").call("CancelTask", {"id": holding})
        items = stream.rest()
    assert [item.state for item in items] == [CANCELED]


@covers("cancel.ends-streams")
def test_a_cancel_ends_a_blocking_send(caller: Caller, other: Caller, tmp_path: Path) -> None:
    beacon = tmp_path / "beacon"
    context = f"ctx-{tmp_path.name}-{caller.binding}"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(sent, caller.to("hold"), f"beacon {beacon}", contextId=context)
        until(lambda: Path(f"{beacon}.began").exists(), what="the handler began")
        listed = other.to("hold").call("ListTasks", {"contextId": context}).result["tasks"]
        other.to("hold").call("CancelTask", {"id": listed[0]["id"]})
        task = waiting.result(timeout=10)
    assert task["status"]["state"] == CANCELED
    assert task["status"]["state"] in TERMINAL
