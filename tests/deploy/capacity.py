"""`python -m tests.deploy.capacity`: what a send costs over PostgreSQL, and what a server costs that does nothing.

Figures that are counted come first: they are the same on a busy machine. The CPU times are of this one. It prints
the rows of the table in docs/explanation/capacity.md.
"""

import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from dragoman.stores.postgres import upgrade
from dragoman.stores.target import Target
from tests.durability.rolling import Caller, sending
from tests.harness.postgres import PostgresServer, execute, rows
from tests.harness.server import ServerProcess, WorkerProcess

SENDS = 4_000
IDLE_SECONDS = 20.0
CALLERS = (1, 8, 32)
ECHO = """
from dragoman import Agent, Run

agent = Agent(id="demo", description="Echoes.")


@agent.handler
async def answer(run: Run) -> str:
    return run.text
"""


def cpu_seconds(processes: list[int]) -> float:
    """The processor time of processes so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes]
    return sum(int(found[11]) + int(found[12]) for found in fields) / ticks


def backends(url: str) -> list[int]:
    """The processes of PostgreSQL that serve Dragoman."""
    found = rows(url, "SELECT pid FROM pg_stat_activity WHERE application_name = 'dragoman'")
    return [row[0] for row in found]


def counted(url: str) -> tuple[int, int]:
    """Transactions, and bytes of the write-ahead log, so far."""
    execute(url, "SELECT pg_stat_clear_snapshot()")
    statement = (
        "SELECT xact_commit, (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint FROM pg_stat_database"
        " WHERE datname = current_database()"
    )
    commits, log = rows(url, statement)[0]
    return commits, log


def send(server: ServerProcess, callers: int) -> None:
    """Send blocking messages of 100 characters, from so many callers at a time."""
    place = server.url.removeprefix("http://")

    def repeat(number: int) -> None:
        with Caller([place]) as caller:
            for _ in range(SENDS // callers):
                caller.read("/agents/demo/message:send", sending("x" * 100))

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sends(url: str, server: ServerProcess) -> Iterator[dict[str, object]]:
    """What sends cost, by the number of callers."""
    for callers in CALLERS:
        time.sleep(2)
        commits, log = counted(url)
        ours, theirs = cpu_seconds([server.pid]), cpu_seconds(backends(url))
        began = time.monotonic()
        send(server, callers)
        took, done = time.monotonic() - began, SENDS // callers * callers
        ours, theirs = cpu_seconds([server.pid]) - ours, cpu_seconds(backends(url)) - theirs
        time.sleep(2)
        more_commits, more_log = counted(url)
        yield {
            "callers": callers,
            "sends a second": round(done / took),
            "commits a send": round((more_commits - commits) / done, 2),
            "log bytes a send": round((more_log - log) / done),
            "server CPU us": round(ours / done * 1e6),
            "database CPU us": round(theirs / done * 1e6),
        }


def main() -> None:
    """Measure and print."""
    postgres = PostgresServer()
    execute(postgres.url(), "CREATE DATABASE measured")
    url = postgres.url("measured")
    upgrade(Target(url))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        agent, config = folder / "echo.py", folder / "dragoman.toml"
        agent.write_text(ECHO, encoding="utf-8")
        config.write_text(f'\n[store]\nurl = "{url}"\n', encoding="utf-8")
        for number in range(1, 4):
            made = ServerProcess(folder / f"{number}", agents=[agent], config=config)
            stack.callback(made.close)
            made.start()
            time.sleep(3)
            commits, log = counted(url)
            ours = cpu_seconds([made.pid])
            time.sleep(IDLE_SECONDS)
            more_commits, more_log = counted(url)
            facts = {
                "servers": number,
                "connections": len(backends(url)),
                "commits a second": round((more_commits - commits) / IDLE_SECONDS, 1),
                "log bytes a second": round((more_log - log) / IDLE_SECONDS),
                "CPU ms a second of one": round((cpu_seconds([made.pid]) - ours) / IDLE_SECONDS * 1000, 1),
                "RSS MiB of one": round(made.rss_bytes() / 2**20),
            }
            print(json.dumps(facts), flush=True)
        with WorkerProcess(folder / "worker", agents=[agent], config=config) as worker:
            print(json.dumps({"worker RSS MiB": round(worker.rss_bytes() / 2**20)}), flush=True)
        send(made, 8)
        execute(url, "VACUUM ANALYZE")
        size = rows(url, "SELECT pg_database_size(current_database())")[0][0]
        for facts in sends(url, made):
            print(json.dumps(facts), flush=True)
        execute(url, "VACUUM ANALYZE")
        grown = rows(url, "SELECT pg_database_size(current_database())")[0][0] - size
        print(json.dumps({"database bytes a task": round(grown / (SENDS * len(CALLERS)))}))
    postgres.remove()


if __name__ == "__main__":
    main()
