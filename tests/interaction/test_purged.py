"""Tasks that an operator purged beside the running server: as if they had never been."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness import stores
from tests.harness.paths import SOURCE
from tests.harness.server import ServerProcess
from tests.harness.stores import named
from tests.interaction.answers import TASK_NOT_FOUND, refused
from tests.interaction.callers import Caller
from tests.interaction.following import sent
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

NOTICE_SECONDS = 5.0

Operate = Callable[..., None]


@pytest.fixture
def operate(server: ServerProcess) -> Operate:
    """Runs `dragoman tasks …` on the data of the server."""

    def run(*arguments: str) -> None:
        ended = subprocess.run(
            [sys.executable, "-m", "dragoman", "tasks", *arguments, "--data", str(server.data)],
            cwd=server.data.parent,
            env=os.environ | {"PYTHONPATH": str(SOURCE)} | stores.environment(server.data),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, "")

    return run


@covers("purged.not-found")
def test_a_purged_task_is_not_found_whatever_is_asked_of_it(
    caller: Caller, other: Caller, operate: Operate, rows: Rows
) -> None:
    task = sent(caller, "stream 3")
    operate("purge", task["id"], "--yes")
    asked: list[tuple[str, Any]] = [
        ("GetTask", {"id": task["id"]}),
        ("CancelTask", {"id": task["id"]}),
        ("SubscribeToTask", {"id": task["id"]}),
        ("SendMessage", send_params(taskId=task["id"])),
        ("SendStreamingMessage", send_params(taskId=task["id"])),
        ("SendMessage", send_params(taskId=task["id"], contextId=task["contextId"])),
    ]
    with rows.unchanged():
        for way in (caller, other):
            for operation, params in asked:
                metadata = refused(way.call(operation, params), TASK_NOT_FOUND, identifier=1)
                assert metadata == {"taskId": task["id"]}
            again = way.call("SubscribeToTask", {"id": task["id"]}, headers={"Last-Event-ID": "1"})
            refused(again, TASK_NOT_FOUND, identifier=1)


@covers("purged.listing")
def test_a_purged_task_is_in_no_list_and_a_page_token_stays_good(caller: Caller, operate: Operate) -> None:
    context = new_id("ctx")
    tasks = [sent(caller, contextId=context)["id"] for _ in range(5)]
    newest = list(reversed(tasks))
    first = caller.call("ListTasks", {"contextId": context, "pageSize": 2}).result
    operate("purge", newest[1], newest[2], "--yes")
    params = {"contextId": context, "pageSize": 2, "pageToken": first["nextPageToken"]}
    second = caller.call("ListTasks", params).result
    assert [task["id"] for task in first["tasks"] + second["tasks"]] == [*newest[:2], *newest[3:]]
    assert (first["totalSize"], second["totalSize"], second["nextPageToken"]) == (5, 3, "")
    completed = {"contextId": context, "status": "TASK_STATE_COMPLETED"}
    assert caller.call("ListTasks", completed).result["totalSize"] == 3
    operate("purge", newest[0], *newest[3:], "--yes")
    emptied = caller.call("ListTasks", {"contextId": context}).result
    assert (emptied["tasks"], emptied["totalSize"]) == ([], 0)
    assert sent(caller, contextId=context)["contextId"] == context
    assert caller.call("ListTasks", {"contextId": context}).result["totalSize"] == 1


@covers("purged.message")
def test_a_message_that_is_sent_again_after_its_task_was_purged_is_a_new_one(
    caller: Caller, operate: Operate
) -> None:
    params = send_params("hello")
    task = caller.call("SendMessage", params).task
    operate("purge", task["id"], "--yes")
    again = caller.call("SendMessage", params)
    assert "idempotent-replayed" not in again.headers
    assert again.task["id"] != task["id"]
    operate("purge", again.task["id"], "--yes")
    params["message"]["parts"] = [{"text": "something else"}]
    assert caller.call("SendMessage", params).task["status"]["state"] == "TASK_STATE_COMPLETED"


@covers("purged.bare-message")
def test_a_message_that_was_answered_with_a_bare_message_is_new_after_its_run_was_purged(
    caller: Caller, operate: Operate, rows: Rows
) -> None:
    params = send_params("hello")
    talker = caller.to("teller")
    first = talker.call("SendMessage", params)
    assert set(first.result) == {"message"}
    (hidden,) = rows.query(
        "SELECT task_id FROM identity WHERE message_id = ?", named(params["message"]["messageId"])
    )
    assert "idempotent-replayed" in talker.call("SendMessage", params).headers
    operate("purge", *hidden, "--yes")
    again = talker.call("SendMessage", params)
    assert "idempotent-replayed" not in again.headers
    assert again.result["message"]["messageId"] != first.result["message"]["messageId"]


@covers("purged.stream")
def test_who_follows_a_task_that_was_cancelled_and_purged_elsewhere_is_told_in_time(
    caller: Caller, operate: Operate, holding: str
) -> None:
    """Faster than the server looks: the end of the task may never be seen, only that it is gone."""
    with caller.to("hold").open("SubscribeToTask", {"id": holding}) as stream:
        stream.next()
        operate("cancel", holding)
        operate("purge", holding, "--yes")
        purged_at = time.monotonic()
        rest = stream.rest()
        assert time.monotonic() - purged_at < NOTICE_SECONDS
    last = rest[-1]
    assert last.state == "TASK_STATE_CANCELED" or "TASK_NOT_FOUND" in str(last.value)
