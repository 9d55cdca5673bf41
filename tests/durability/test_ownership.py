"""One server process per store: refused beside a living one, taking over from a dead or frozen one."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.ledger import LedgerServer, dragoman
from tests.harness.polling import until
from tests.harness.wire import call

pytestmark = pytest.mark.sqlite

HEARTBEAT_AGE = 20.0
"""Seconds that the store's clock is moved on, so that a heartbeat is too old at once (the bound is 15)."""

WAKING_SECONDS = 8.0
"""Seconds within which a server that was passed over has ended: it finds out at its next heartbeat, 3 s away."""


@pytest.fixture
def other(server: LedgerServer, tmp_path: Path) -> Iterator[LedgerServer]:
    """Another server on the same data."""
    made = LedgerServer(server.data)
    made.log_file = tmp_path / "other.stderr.log"
    yield made
    made.continue_if_frozen()
    made.close()


def begin(server: LedgerServer, text: str, *, agent: str = "worker") -> str:
    """Send a message without waiting and return the id of its task."""
    message = {"messageId": f"{text}-{time.monotonic_ns()}", "role": "ROLE_USER", "parts": [{"text": text}]}
    document = {"message": message, "configuration": {"returnImmediately": True}}
    reply = call("POST", f"{server.url}/agents/{agent}/message:send", document)
    assert reply.status == 200, reply
    task_id: str = reply.json()["task"]["id"]
    return task_id


def freeze(server: LedgerServer, *, age: float = HEARTBEAT_AGE) -> None:
    """Stop a server's process at a moment when it is not writing, and let its heartbeat grow old."""

    def is_frozen() -> bool:
        server.stop_process()
        if server.store.shift_clock(age):
            return True
        server.continue_process()
        return False

    until(is_frozen, what="the server is frozen between two writes")


def refusal(server: LedgerServer) -> str:
    """What another server on the data of a running one prints when it ends with code 1."""
    arguments = ("serve", "--data", str(server.data), "--listen", "127.0.0.1:0")
    try:
        refused = dragoman(*arguments, folder=server.data.parent, seconds=8.0)
    except subprocess.TimeoutExpired as served:
        raise AssertionError(f"a second server serves the same data: {served.stdout!r}") from None
    assert refused.returncode == 1, refused.stderr
    assert "Traceback" not in refused.stderr
    return refused.stderr


def test_a_second_server_on_the_same_data_is_refused_by_name(server: LedgerServer) -> None:
    with server:
        printed = refusal(server)
        assert str(server.data) in printed
        assert str(server.pid) in printed
        assert "--data" in printed
        task_id = begin(server, "quick")
        assert server.ended("worker", task_id)["status"]["state"] == "TASK_STATE_COMPLETED"
        assert server.noted(what="entered")[0]["pid"] == server.pid
        server.kill()
        server.start()  # what a killed server held is free at once, however young its heartbeat
        assert server.store.rows("SELECT epoch FROM server") == [(2,)]


def test_a_frozen_server_is_taken_over_and_ends_itself_when_it_wakes(
    server: LedgerServer, other: LedgerServer
) -> None:
    server.start()
    task_id = begin(server, "slow 3")
    endless = [begin(server, "sleep 60"), begin(server, "loud 60", agent="thread")]
    for run in (task_id, *endless):
        server.await_note("entered", task=run)
    freeze(server)
    other.start()
    entered = until(
        lambda: [line for line in server.noted(what="entered", task=task_id) if line["pid"] == other.pid],
        what="the run is entered again",
        seconds=3.0,
    )
    assert entered[0]["attempt"] == 2
    server.continue_process()
    assert server.exit_code(seconds=WAKING_SECONDS) not in (0, None), "its handlers keep it"
    assert "taken" in server.printed_errors() or "took" in server.printed_errors()
    assert "Traceback" not in server.printed_errors()
    assert "in use" in refusal(other), "a supervisor starts the loser again at once"
    task = other.ended("worker", task_id)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [part["text"] for one in task["artifacts"] for part in one["parts"]] == ["slow done"]
    left = server.noted(what="left", task=task_id)
    assert [line["pid"] for line in left] == [other.pid], "the frozen server's handler went on to its end"
    assert {other.state("worker", endless[0]), other.state("thread", endless[1])} == {"WORKING"}
    other.store.check()


def test_nothing_that_a_woken_server_still_answers_is_stored(
    server: LedgerServer, other: LedgerServer
) -> None:
    """It does not know yet that it was passed over: what it is sent must be refused, not lost."""
    server.start()
    server.ended("worker", begin(server, "quick"))
    freeze(server)
    other.start()
    stored = server.store.messages()
    server.continue_process()
    message = {"messageId": "late", "role": "ROLE_USER", "parts": [{"text": "quick"}]}
    with contextlib.suppress(OSError):  # it may have ended already
        reply = call("POST", f"{server.url}/agents/worker/message:send", {"message": message})
        assert reply.status == 503
        assert reply.json()["error"]["details"][0]["reason"] == "UNAVAILABLE"
    assert server.exit_code(seconds=WAKING_SECONDS) != 0
    assert other.store.messages() == stored
    assert other.state("worker", begin(other, "quick")) in ("SUBMITTED", "WORKING", "COMPLETED")


def test_a_server_that_took_over_keeps_the_store_when_the_frozen_one_is_killed(
    server: LedgerServer, other: LedgerServer
) -> None:
    server.start()
    freeze(server)
    other.start()
    server.kill()
    assert "in use" in refusal(other)
    assert call("GET", f"{other.url}/readyz").status == 200


def test_a_short_freeze_costs_nothing(server: LedgerServer) -> None:
    with server:
        task_id = begin(server, "slow 1")
        server.await_note("entered", task=task_id)
        freeze(server, age=5.0)
        assert "in use" in refusal(server)
        server.continue_process()
        assert server.ended("worker", task_id)["status"]["state"] == "TASK_STATE_COMPLETED"
        assert [line["attempt"] for line in server.noted(what="entered")] == [1]
