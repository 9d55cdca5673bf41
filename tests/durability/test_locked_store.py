"""Another process holds the write lock of a store: callers are refused in time, and told of is who it is."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.durability.callers import Sent, body, client, send, texts
from tests.durability.ledger import LedgerServer, dragoman
from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.server import ServerDidNotStartError
from tests.harness.wire import call

pytestmark = pytest.mark.sqlite

HELD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""

named = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells who holds a lock")


@contextmanager
def locked(data: Path) -> Iterator[int]:
    """Let another process begin to write and stay so; gives its id."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HELD, str(data / "dragoman.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield holder.pid
    finally:
        holder.communicate(timeout=10)


async def test_a_locked_store_refuses_in_time_what_is_new_and_loses_nothing_that_runs(
    server: LedgerServer,
) -> None:
    with server:
        async with client(server.url) as http:
            finished = await send(http, Sent("worker", "quick"))
            running = await send(http, Sent("worker", "slow 1", "at once"))
            await asyncio.to_thread(server.await_note, "entered", task=running.task_id)
            late = [Sent("worker", "quick") for _ in range(20)]
            with locked(server.data) as holder:
                began = time.monotonic()
                posts = (http.post("/agents/worker/message:send", json=body(one)) for one in late)
                replies, unready = await asyncio.gather(asyncio.gather(*posts), http.get("/readyz"))
                assert time.monotonic() - began < 12
                again = time.monotonic()
                replies += [await http.post("/agents/worker/message:send", json=body(late[0]))]
                assert time.monotonic() - again < 2, "who comes later does not wait for the same answer again"
                assert {reply.status_code for reply in replies} == {503}
                assert all("locked by another process" in reply.text for reply in replies)
                assert not [reply for reply in replies if str(holder) in reply.text]
                assert unready.status_code == 503
                assert (await http.get("/healthz")).status_code == 200
                assert server.get("worker", finished.task_id).json() == finished.answer["task"]
                assert server.state("worker", running.task_id) == "WORKING"
            assert (await http.get("/readyz")).status_code == 200
            assert texts(await asyncio.to_thread(server.ended, "worker", running.task_id)) == ["slow done"]
            again = await asyncio.gather(*(send(http, one) for one in late))
            assert {one.state for one in again} == {"COMPLETED"}
        assert len(server.store.messages()) == 22
        server.store.check()


@named
async def test_an_operator_is_told_which_process_holds_the_lock(server: LedgerServer) -> None:
    with server:
        async with client(server.url) as http:
            task = await send(http, Sent("worker", "quick"))
            with locked(server.data) as holder:
                asked = time.monotonic()
                (reason,) = (await http.get("/readyz")).json()["reasons"]
                assert time.monotonic() - asked < 5, "a probe does not wait as long as a write"
                assert f"process {holder} (python" in reason
                refused = await http.post("/agents/worker/message:send", json=body(Sent("worker", "quick")))
                assert refused.status_code == 503
                purged = await asyncio.to_thread(
                    dragoman,
                    *("tasks", "purge", task.task_id, "--yes", "--data", str(server.data)),
                    folder=server.data.parent,
                )
        assert purged.returncode == 1
        assert f"is locked by process {holder} (python" in purged.stderr
        assert "Nothing was written" in purged.stderr
        assert task.task_id in server.store.states()
        told = until(
            lambda: _told(server, "the store can be written to again"), what="it says that all is well"
        )
        assert any(f"is locked by process {holder} (python" in line for line in told)


def _told(server: LedgerServer, last: str) -> list[str]:
    """What the log says of the store, once it ends with `last`."""
    told = [line["message"] for line in server.log_lines() if line.get("logger") == "dragoman.store"]
    return told if told[-1:] == [last] else []


def test_a_server_that_finds_its_store_locked_waits_and_says_for_whom(server: LedgerServer) -> None:
    with server:
        server.terminate()
    with locked(server.data) as holder:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "dragoman",
                "serve",
                "--data",
                str(server.data),
                "--listen",
                "127.0.0.1:0",
            ],
            cwd=server.data.parent,
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert process.stdout is not None
        line = process.stderr.readline()
        assert "waiting: " in line
        assert str(server.data) in line
        if Path("/proc/locks").exists():
            assert f"is locked by process {holder} (python" in line
        assert process.poll() is None
    try:
        assert "listening on" in process.stdout.readline(), "it starts as soon as the lock is free"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_a_server_that_waits_for_a_lock_ends_when_it_is_told_to(server: LedgerServer) -> None:
    with server:
        server.terminate()
    with locked(server.data):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(
                [sys.executable, *"-m dragoman serve --listen 127.0.0.1:0 --data".split(), str(server.data)],
                cwd=server.data.parent,
                env=os.environ | {"PYTHONPATH": str(SOURCE)},
                stderr=subprocess.PIPE,
                text=True,
                # Whoever runs the tests in the background of a shell has it ignored.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - it takes no lock
            )
            try:
                assert process.stderr is not None
                assert "waiting: " in process.stderr.readline()
                process.send_signal(number)
                _, rest = process.communicate(timeout=30)
            finally:
                process.kill()
                process.wait()
            assert process.returncode not in (0, None)
            assert "Traceback" not in rest


def in_mid_write(server: LedgerServer, url: str) -> None:
    """Stop a server's process while it writes, its heartbeat being old at once."""

    def is_frozen() -> bool:
        until(lambda: server.store.shift_clock(20), what="the clock is moved")
        server.stop_process()
        # Unless it wrote its heartbeat just now, by the new clock.
        if _is_locked(server) and _silence(server) > 15:
            return True
        server.continue_process()
        until(lambda: server.store.shift_clock(-20), what="the clock is moved back")
        return False

    senders = [_Sender(url) for _ in range(4)]
    try:
        until(is_frozen, what="the server is frozen while it writes", seconds=30)
    finally:
        for sender in senders:
            sender.end()


class _Sender:
    """Sends messages without a pause, in a process of its own; some of them are never answered."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", SENDING, url])

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


SENDING = """
import http.client, json, sys, uuid
host = sys.argv[1].removeprefix("http://")
headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
connection = http.client.HTTPConnection(host)
while True:
    message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": "quick"}]}
    connection.request("POST", "/agents/worker/message:send", json.dumps({"message": message}), headers)
    connection.getresponse().read()
"""


def _is_locked(server: LedgerServer) -> bool:
    with closing(sqlite3.connect(server.store.path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False


def _silence(server: LedgerServer) -> float:
    ((milliseconds,),) = server.store.rows("SELECT now_ms - heartbeat_at FROM server, store_clock")
    return float(milliseconds) / 1000


@pytest.fixture
def follower(server: LedgerServer, tmp_path: Path) -> Iterator[LedgerServer]:
    """Another server on the same data."""
    made = LedgerServer(server.data)
    made.log_file = tmp_path / "follower.stderr.log"
    yield made
    made.close()


def test_a_server_that_froze_while_it_wrote_is_named_and_passed_over_when_it_is_killed(
    server: LedgerServer, follower: LedgerServer
) -> None:
    with server:
        acknowledged = _begin(server, "slow 3")
        server.await_note("entered", task=acknowledged)
        in_mid_write(server, server.url)
        starting = _Starting(follower)
        line = until(
            lambda: follower.log_file.exists() and follower.printed_errors(),
            what="it says that it waits",
            seconds=30,
        )
        assert "waiting: " in line
        assert str(server.data) in line
        if Path("/proc/locks").exists():
            assert f"process {server.pid} (python" in line
            assert "which is stopped" in line
            assert f"kill -9 {server.pid}" in line
            assert "a Dragoman server that has not been heard of for" in line
        stored = server.store.messages()
        server.kill()
        starting.wait()
        assert follower.ended("worker", acknowledged)["status"]["state"] == "TASK_STATE_COMPLETED"
        assert set(stored) <= set(follower.store.messages())
        until(lambda: set(follower.store.states().values()) == {"COMPLETED"}, what="all runs ended")
        follower.store.check()
        assert call("GET", f"{follower.url}/readyz").status == 200


def test_a_server_that_froze_while_it_wrote_and_wakes_is_the_only_one_or_gives_way(
    server: LedgerServer, follower: LedgerServer
) -> None:
    with server:
        acknowledged = _begin(server, "slow 3")
        server.await_note("entered", task=acknowledged)
        in_mid_write(server, server.url)
        starting = _Starting(follower)
        until(
            lambda: follower.log_file.exists() and "waiting" in follower.printed_errors(),
            what="it waits",
            seconds=30,
        )
        server.continue_process()
        if starting.wait():
            assert server.exit_code(seconds=8.0) != 0
            assert "taken" in server.printed_errors()
            left = follower
        else:
            assert "in use" in follower.printed_errors()
            left = server
        assert left.ended("worker", acknowledged)["status"]["state"] == "TASK_STATE_COMPLETED"
        until(lambda: set(left.store.states().values()) == {"COMPLETED"}, what="all runs ended")
        left.store.check()


class _Starting:
    """A server that is being started in a thread."""

    def __init__(self, server: LedgerServer) -> None:
        self._server = server
        self._thread = threading.Thread(target=self._start)
        self.failed = ""
        self._thread.start()

    def wait(self) -> bool:
        """Whether it serves in the end."""
        self._thread.join(40)
        return not self.failed

    def _start(self) -> None:
        try:
            self._server.start()
        except ServerDidNotStartError as error:
            self.failed = str(error)


def _begin(server: LedgerServer, text: str) -> str:
    message = {"messageId": f"{text}-{time.monotonic_ns()}", "role": "ROLE_USER", "parts": [{"text": text}]}
    document = {"message": message, "configuration": {"returnImmediately": True}}
    task_id: str = call("POST", f"{server.url}/agents/worker/message:send", document).json()["task"]["id"]
    return task_id
