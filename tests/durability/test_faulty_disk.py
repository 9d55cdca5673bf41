"""A disk that is full, read-only or broken for a while: callers are refused, nothing is lost, and then all goes on."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.callers import Sent, body, client, send, texts
from tests.durability.faults import KINDS, Disk
from tests.durability.ledger import LedgerServer, dragoman
from tests.harness.polling import until

pytestmark = [pytest.mark.needs("cc"), pytest.mark.sqlite]

SAID = {
    "full": "has no room left on its disk",
    "read-only": "its disk fails",
    "broken": "its disk fails",
    "unable to sync": "its disk fails",
}
"""What callers and operators are told of it."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    """A disk that can fail."""
    return Disk(tmp_path_factory.mktemp("disk"))


@pytest.fixture
def faulty(disk: Disk, tmp_path: Path) -> Iterator[LedgerServer]:
    """A server on it."""
    with LedgerServer(tmp_path / "data", environment=disk.environment) as server:
        yield server


@pytest.mark.parametrize("kind", KINDS)
async def test_a_disk_that_fails_refuses_what_is_new_and_loses_nothing_that_runs(
    disk: Disk, faulty: LedgerServer, kind: str
) -> None:
    async with client(faulty.url) as http:
        finished = await send(http, Sent("worker", "quick"))
        running = await send(http, Sent("worker", "slow 1", "at once"))
        waiting = asyncio.ensure_future(send(http, Sent("either", "slow 0.8")))
        await asyncio.to_thread(faulty.await_note, "entered", task=running.task_id)
        await asyncio.to_thread(faulty.await_note, "entered", agent="either")
        late = Sent("worker", "quick")
        with disk.failing(kind):
            for _ in range(3):
                refused = await http.post("/agents/worker/message:send", json=body(late))
                assert refused.status_code == 503
                assert int(refused.headers["retry-after"]) >= 1
                error = refused.json()["error"]
                assert error["details"][0]["reason"] == "UNAVAILABLE"
                assert SAID[kind] in error["message"]
                assert not [word for word in ("database", "I/O", str(faulty.data)) if word in refused.text]
            canceled = await http.post(f"/agents/worker/tasks/{running.task_id}:cancel", json={})
            assert canceled.status_code == 503
            unready = await http.get("/readyz")
            assert unready.status_code == 503
            assert SAID[kind] in unready.json()["reasons"][0]
            assert (await http.get("/healthz")).status_code == 200
            assert faulty.get("worker", finished.task_id).json() == finished.answer["task"]
            await asyncio.sleep(1.2)  # longer than the handlers need: they must wait, and not fail
            assert faulty.state("worker", running.task_id) == "WORKING"
            assert not waiting.done()

        assert (await http.get("/readyz")).status_code == 200
        assert texts(await asyncio.to_thread(faulty.ended, "worker", running.task_id)) == ["slow done"]
        assert (await waiting).state == "COMPLETED"
        assert (await send(http, late)).state == "COMPLETED"
    assert [line["attempt"] for line in faulty.noted(what="entered")] == [1] * 4
    assert len(faulty.store.messages()) == 4
    faulty.store.check()
    told = [line["message"] for line in faulty.log_lines() if line.get("logger") == "dragoman.store"]
    assert any(SAID[kind] in line and str(faulty.data) in line for line in told)
    assert told[-1] == "the store can be written to again"
    assert "Traceback" not in faulty.printed_errors()


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_acknowledged_outlives_a_kill_while_the_disk_fails(
    disk: Disk, faulty: LedgerServer, kind: str
) -> None:
    """A message that was refused may be found all the same if its sync failed, but then whole, and with its task."""
    async with client(faulty.url) as http:
        acknowledged = [await send(http, Sent("worker", "slow 0.5", "at once")) for _ in range(10)]
        with disk.failing(kind):
            refused = [Sent("worker", "quick") for _ in range(10)]
            replies = await asyncio.gather(
                *(http.post("/agents/worker/message:send", json=body(one)) for one in refused)
            )
            assert {reply.status_code for reply in replies} == {503}
            faulty.kill()
    faulty.start()
    until(lambda: set(faulty.store.states().values()) == {"COMPLETED"}, what="all runs ended", seconds=15)
    found = faulty.store.messages()
    expected = {one.message_id: one.task_id for one in acknowledged}
    assert {message_id: found.get(message_id) for message_id in expected} == expected
    assert set(found) - set(expected) <= {one.message_id for one in refused}
    if kind != "unable to sync":
        assert found == expected
    faulty.store.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_does_not_start_on_a_disk_that_fails_and_says_why(
    disk: Disk, tmp_path: Path, kind: str
) -> None:
    server = LedgerServer(tmp_path / "data", environment=disk.environment)
    with server:
        server.terminate()
    with disk.failing(kind):
        ended = dragoman(
            *("serve", "--data", str(server.data), "--listen", "127.0.0.1:0"),
            folder=tmp_path,
            prefix=("env", *(f"{name}={value}" for name, value in disk.environment.items())),
        )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("dragoman: ")]
    assert str(server.data) in line
    with server, closing(sqlite3.connect(server.data / "dragoman.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
