"""A database that restarts, fails over, hangs, or takes no more connections, under two servers and their callers."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from dragoman.stores.postgres import upgrade
from dragoman.stores.target import Target
from tests.durability.test_replicas import ask, begin, ended, opened, sending
from tests.durability.test_workers import health
from tests.harness.database_proxy import DatabaseProxy
from tests.harness.polling import until
from tests.harness.postgres import PostgresServer, execute, rows
from tests.harness.server import ServerProcess

pytestmark = pytest.mark.own_store

BOUND = 25.0
"""Seconds within which any request is answered, whatever the database does: what hangs, and a connection anew."""


@dataclass
class Callers:
    """Callers who send all the time, at two servers in turn, and note what they were told."""

    servers: tuple[ServerProcess, ServerProcess]
    accepted: dict[str, str] = field(default_factory=dict)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    slowest: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    def call(self, name: int) -> None:
        for number in range(100_000):
            if self.over.is_set():
                return
            message_id, began = f"{name}-{number}", time.monotonic()
            try:
                sent = sending("Hello", message_id, at_once=True)
                self.accepted[message_id] = ask(self.servers[number % 2], "/message:send", sent)["task"]["id"]
            except urllib.error.HTTPError as error:
                self.refusals.append(json.load(error) | {"retry": error.headers["Retry-After"]})
                time.sleep(0.05)
            self.slowest = max(self.slowest, time.monotonic() - began)

    def __enter__(self) -> "Callers":
        self._threads = [threading.Thread(target=self.call, args=(name,)) for name in range(4)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def two_servers(processes: ExitStack, folder: Path, url: str) -> tuple[ServerProcess, ServerProcess]:
    config = folder / "dragoman.toml"
    config.write_text(f'[store]\nurl = "{url}"\n[engine]\nlease = "3s"\nsweep = "1s"\n', encoding="utf-8")
    one, two = (
        processes.enter_context(ServerProcess(folder / name, config=config)) for name in ("one", "two")
    )
    return one, two


def database(processes: ExitStack, *settings: str) -> PostgresServer:
    server = PostgresServer("fsync=off", *settings)
    processes.callback(server.remove)
    return server


@pytest.mark.parametrize("what", ["restart", "failover", "hang"])
def test_nothing_acknowledged_is_lost_and_callers_are_told_to_try_again(
    what: str, processes: ExitStack, tmp_path: Path
) -> None:
    first = database(processes, *(["synchronous_standby_names=*"] if what == "failover" else []))
    standby = first.standby() if what == "failover" else first
    processes.callback(standby.remove)
    upgrade(Target(first.url()))
    proxy = processes.enter_context(DatabaseProxy(first.url()))
    servers = two_servers(processes, tmp_path, proxy.url)
    runs = [begin(server, "slow 4") for server in servers]
    with Callers(servers) as callers:
        until(lambda: len(callers.accepted) > 20, what="some to be accepted")
        if what == "restart":
            first.kill()
        elif what == "failover":
            first.kill()
            proxy.lead_to(standby.port)
        else:
            proxy.hang()
        until(lambda: unready(servers[0]) and unready(servers[1]), what="both to be red", seconds=10)
        until(lambda: callers.refusals, what="callers to be told", seconds=BOUND)
        if what == "restart":
            first.start()
        elif what == "failover":
            standby.promote()
        else:
            proxy.cut()
            proxy.flow()
        back = time.monotonic()
        until(lambda: not (unready(servers[0]) or unready(servers[1])), what="both to be ready", seconds=10)
        before = len(callers.accepted)
        until(lambda: len(callers.accepted) > before + 20, what="service to go on", seconds=10)
        took = time.monotonic() - back
    assert took < 10
    assert callers.slowest < BOUND
    for refusal in callers.refusals:
        assert refusal["error"]["code"] == 503, refusal
        assert refusal["error"]["status"] == "UNAVAILABLE"
        assert refusal["error"]["message"].startswith(("The task store ", "The agent has not answered yet"))
        assert refusal["retry"] == "5"
    url = (standby if what == "failover" else first).url()
    kept = dict(rows(url, "SELECT convert_from(message_id, 'UTF8'), task_id FROM identity"))
    assert {message_id: kept.get(message_id) for message_id in callers.accepted} == callers.accepted
    until(
        lambda: not rows(url, "SELECT 1 FROM task WHERE state NOT IN (3, 4, 5, 7)"),
        what="all runs to end",
        seconds=30,
    )
    for server, task_id in zip(servers, runs, strict=True):
        assert ended(server, task_id) == "TASK_STATE_COMPLETED"
    gaps = "SELECT task_id FROM event GROUP BY 1 HAVING max(seq) <> count(*) OR min(seq) <> 1"
    assert rows(url, gaps) == []
    # Whatever the connections did, a handler that was not passed over has written each of its words once.
    doubled = "SELECT task_id FROM event GROUP BY task_id, attempt, payload HAVING count(*) > 1"
    assert [row for row in rows(url, doubled) if row[0] not in runs] == []


def unready(server: ServerProcess) -> bool:
    return health(server, "/readyz")[0] == 503


class Hog:
    """Takes every connection that a database gives, and ends those of servers, until it has all."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._enough = threading.Event()
        self._has_all = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._take()))

    async def _take(self) -> None:
        held = [await asyncpg.connect(self._url)]
        while not self._enough.is_set():
            await held[0].execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dragoman'"
            )
            with suppress(asyncpg.PostgresError):
                while True:
                    held.append(await asyncpg.connect(self._url))
            left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dragoman'"
            if not await held[0].fetchval(left):
                self._has_all.set()
                await asyncio.sleep(0.05)
        for connection in held:
            await connection.close()

    def __enter__(self) -> "Hog":
        self._thread.start()
        assert self._has_all.wait(20)
        return self

    def __exit__(self, *error: object) -> None:
        self._enough.set()
        self._thread.join()


def test_a_database_that_takes_no_more_connections_is_waited_for(
    processes: ExitStack, tmp_path: Path
) -> None:
    postgres = database(processes, "max_connections=30")
    upgrade(Target(postgres.url()))
    servers = two_servers(processes, tmp_path, postgres.url())
    running = [begin(server, "slow 3") for server in servers]
    with Hog(postgres.url()):
        for server in servers:
            until(lambda server=server: unready(server), what="it to be red", seconds=10)
            reasons = json.loads(health(server, "/readyz")[1])["reasons"]
            assert "takes no more connections" in reasons[0]
            for path, document in (("/message:send", sending("Hello", "m")), ("/tasks", None)):
                with pytest.raises(urllib.error.HTTPError) as refusal:
                    ask(server, path, document)
                told = json.load(refusal.value)["error"]
                assert (refusal.value.code, told["status"]) == (503, "UNAVAILABLE")
                assert refusal.value.headers["Retry-After"] == "5"
                assert told["message"] == "The task store takes no more connections. Try again later"
            told = rpc(server)
            assert (told["code"], "takes no more connections" in told["message"]) == (-32000, True)
    for server in servers:
        until(lambda server=server: not unready(server), what="it to be ready", seconds=10)
    assert len({ask(server, "/message:send", sending("Hello", "m"))["task"]["id"] for server in servers}) == 1
    for server, task_id in zip(servers, running, strict=True):
        assert ended(server, task_id) == "TASK_STATE_COMPLETED"


def rpc(server: ServerProcess) -> dict[str, Any]:
    """The error that a call over JSON-RPC is answered with."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/agents/demo/rpc", json.dumps(call).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as reply:
        error: dict[str, Any] = json.load(reply)["error"]
    return error


def test_whoever_follows_misses_nothing_though_all_that_listens_is_cut_again_and_again(
    processes: ExitStack, tmp_path: Path
) -> None:
    """Ten tasks, each followed at both servers; every second all connections that listen are ended at once."""
    postgres = database(processes)
    upgrade(Target(postgres.url()))
    servers = two_servers(processes, tmp_path, postgres.url())
    tasks = [begin(servers[number % 2], "slow 4") for number in range(10)]
    seen: dict[tuple[str, int], list[str]] = {}

    def follow(task_id: str, at: int) -> None:
        with opened(servers[at], f"/tasks/{task_id}:subscribe", {}) as stream:
            seen[task_id, at] = [line.decode() for line in stream]

    threads = [threading.Thread(target=follow, args=(task, at)) for task in tasks for at in (0, 1)]
    for thread in threads:
        thread.start()
    cut = 0
    while any(thread.is_alive() for thread in threads):
        cut += len(rows(postgres.url(), CUT))
        threads[0].join(1.0)
    assert cut >= 4
    for (task_id, _), lines in seen.items():
        numbers = [int(line[4:]) for line in lines if line.startswith("id: ")]
        last = rows(postgres.url(), "SELECT seq FROM task WHERE id = $1", task_id)[0][0]
        assert numbers == list(range(numbers[0], last + 1))
        assert "TASK_STATE_COMPLETED" in [line for line in lines if line.startswith("data: ")][-1]
    assert len(seen) == 20
    attempts = "SELECT max(attempt), max(r.n) FROM task, (SELECT count(*) AS n FROM replica) r"
    assert [tuple(row) for row in rows(postgres.url(), attempts)] == [(1, 2)], "nobody was taken for dead"


def test_who_does_not_want_to_wait_is_told_soon_when_a_run_was_accepted_and_nothing_else_can_be_written(
    processes: ExitStack, url: str, tmp_path: Path
) -> None:
    """Whether it is a task is not known yet; a full disk takes the message and not what comes after it."""
    execute(url, FULL)
    config = tmp_path / "dragoman.toml"
    config.write_text(f'[store]\nurl = "{url}"\n', encoding="utf-8")
    server = processes.enter_context(ServerProcess(tmp_path / "one", config=config))
    began = time.monotonic()
    with pytest.raises(urllib.error.HTTPError) as refusal:
        ask(server, "/message:send", sending("slow 1", "m", at_once=True))
    assert 9 < time.monotonic() - began < 15
    assert (refusal.value.code, refusal.value.headers["Retry-After"]) == (503, "5")
    assert json.load(refusal.value)["error"]["message"] == (
        "The agent has not answered yet; send the same message again to wait for its answer"
    )
    execute(url, "DROP TRIGGER full_disk ON task")
    accepted = rows(url, "SELECT id FROM task")
    sent = ask(server, "/message:send", sending("slow 1", "m"))["task"]
    assert [(sent["id"],)] == [tuple(row) for row in accepted]
    assert sent["status"]["state"] == "TASK_STATE_COMPLETED"


FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE UPDATE ON task FOR EACH ROW EXECUTE FUNCTION full_disk();
"""

CUT = (
    "SELECT pg_terminate_backend(l.pid) FROM pg_locks l"
    " WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted"
)
"""Ends every session that listens: it holds the lock of its server too."""
