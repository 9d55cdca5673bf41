"""A fleet in a storm: two servers, two workers and their database, each killed in turn while hundreds of runs go on."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.model import TaskState
from dragoman.stores.postgres import upgrade
from dragoman.stores.target import Target
from tests.durability.callers import VERSION, Frame, Refused, client, followed, texts
from tests.durability.database import check_database
from tests.durability.storms import Ledger, see_no_gap
from tests.durability.test_storm import AGENTS, see_steps_once
from tests.harness.polling import until
from tests.harness.postgres import PostgresServer, ask, rows
from tests.harness.server import ServerProcess, WorkerProcess
from tests.harness.temporal import TemporalServer

pytestmark = pytest.mark.own_store

RUNS = {"embedded": 500, "temporal": 100}
"""How many runs there are: a Temporal server on two cores that it shares with all the others does a few in a second."""

MORE_RUNS = {"embedded": 2000, "temporal": 500}
"""The same with `--soak`."""

CALLERS = 12
PAUSE = 0.3
"""Seconds that a caller waits before it sends again: the storm lasts as long as the strikes."""

AGAIN_SECONDS = 30.0
"""Seconds from the last fault within which every run runs again or has ended."""

KINDS = [
    ("storm", "stream 8"),
    ("storm", "steps 4"),
    ("storm", "slow 10"),
    ("storm-thread", "steps 3"),
    ("storm-once", "slow 6"),
    ("storm", "echo"),
]
"""What runs do; each TICK of it is a tenth of a second."""

CONFIG = """
[store]
url = "{url}"
[engine]
lease = "3s"
sweep = "1s"
runs = "workers"
max_runs = 60
"""
TEMPORAL = """
kind = "temporal"
[engine.temporal]
address = "{address}"
task_queue = "storm"
"""


@dataclass
class Fleet:
    """Two servers, two workers, their database, and Temporal if that is the engine."""

    servers: list[ServerProcess]
    workers: list[WorkerProcess]
    postgres: PostgresServer
    temporal: TemporalServer | None
    ledger: Ledger
    runs: int
    died: dict[int, float] = field(default_factory=dict)
    """When a process was killed, by its id."""

    def kill(self, process: ServerProcess) -> None:
        """kill -9, and start it again at the same address."""
        pid, address = process.pid, process.url.removeprefix("http://")
        process.kill()
        self.died[pid] = time.time()
        process.start(listen=address)

    def storm(self) -> None:
        """Strike at each part in turn, whenever runs are at work again."""
        for number in range(2):
            self._await_work()
            self.kill(self.workers[number])
            self._await_work()
            self.kill(self.servers[number])
            self._await_work()
            if number == 0:
                self.postgres.kill()
                self.postgres.start()
            elif self.temporal is not None:
                self.temporal.kill()
                self.temporal.start()

    def _await_work(self) -> None:
        """Wait until each worker has entered some more runs."""
        self.ledger.read()
        more = self.runs // 100
        before = {worker.pid: len(self.ledger.entered[worker.pid]) for worker in self.workers}

        def are_busy() -> bool:
            self.ledger.read()
            return all(len(self.ledger.entered[pid]) > count + more for pid, count in before.items())

        until(are_busy, what="both workers to be at work", seconds=AGAIN_SECONDS)

    def unfinished(self) -> list[str]:
        """The tasks that have not ended."""
        return [row[0] for row in rows(self.postgres.url(), "SELECT id FROM task WHERE state IN (1, 2)")]

    def see_running_again(self, left: set[str], seconds: float) -> None:
        """See that all of them have ended, or were entered by a worker that lives."""

        def lying() -> set[str]:
            self.ledger.read()
            entered = (self.ledger.entered[worker.pid].keys() for worker in self.workers)
            return left.intersection(self.unfinished()).difference(*entered)

        until(lambda: not lying(), what="all runs to be at work again", seconds=seconds, every=0.1)


@pytest.fixture(
    params=[
        *RUNS.items(),
        *(
            pytest.param(more, marks=[pytest.mark.soak, pytest.mark.timeout(900)])
            for more in MORE_RUNS.items()
        ),
    ],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    engine, runs = request.param
    with ExitStack() as stack:
        postgres = PostgresServer("fsync=off", "max_connections=120")
        stack.callback(postgres.remove)
        upgrade(Target(postgres.url()))
        temporal, config = None, CONFIG.format(url=postgres.url())
        if engine == "temporal":
            temporal = TemporalServer()
            stack.callback(temporal.remove)
            temporal.start()
            config += TEMPORAL.format(address=temporal.address)
        file = tmp_path / "dragoman.toml"
        file.write_text(config, encoding="utf-8")
        ledger = tmp_path / "ledger.jsonl"
        how: dict[str, Any] = {
            "agents": [AGENTS],
            "config": file,
            "environment": {"LEDGER": f"{ledger}", "TICK": "0.1"},
        }
        servers = [stack.enter_context(ServerProcess(tmp_path / name, **how)) for name in ("one", "two")]
        workers = [stack.enter_context(WorkerProcess(tmp_path / name, **how)) for name in ("first", "second")]
        yield Fleet(servers, workers, postgres, temporal, Ledger(ledger), runs)


@dataclass
class Crowd:
    """Callers of both servers: each sends at one, follows at the other, and some cancel at the first."""

    fleet: Fleet
    tasks: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """By message: its task, agent and text, as they were acknowledged."""

    cancelling: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    """What was to be canceled, and what was acknowledged to be: a server may be killed before it has answered."""

    followed: int = 0

    async def hold(self, numbers: Iterator[int]) -> None:
        async with (
            client(self.fleet.servers[0].url, timeout=60.0) as one,
            client(self.fleet.servers[1].url, timeout=60.0) as two,
        ):
            for number in numbers:
                await asyncio.sleep(PAUSE)
                await self._converse(number, *((one, two) if number % 2 else (two, one)))

    async def _converse(self, number: int, here: httpx2.AsyncClient, there: httpx2.AsyncClient) -> None:
        agent, text = KINDS[number % len(KINDS)]
        message = {"messageId": f"m-{number}", "role": "ROLE_USER", "parts": [{"text": text}]}
        body = {"message": message, "configuration": {"returnImmediately": True}}
        sent = await self._insist(here, f"/agents/{agent}/message:send", body)
        task_id = sent["task"]["id"]
        self.tasks[f"m-{number}"] = task_id, agent, text
        if number % 10 == 3:
            self.cancelling.add(task_id)
            reply = await self._insist(here, f"/agents/{agent}/tasks/{task_id}:cancel", {}, over={400, 409})
            if reply.get("status", {}).get("state") == "TASK_STATE_CANCELED":
                self.cancelled.add(task_id)
        elif number % 4 == 0 or self.fleet.temporal is not None:
            # Temporal is the slowest part by far: what it has not begun yet is kept from growing.
            await self._follow(there, agent, task_id)
            self.followed += 1

    async def _insist(
        self,
        http: httpx2.AsyncClient,
        path: str,
        body: dict[str, Any],
        over: frozenset[int] | set[int] = frozenset(),
    ) -> dict[str, Any]:
        """Ask until there is an answer: what was not acknowledged is asked again."""
        while True:
            try:
                reply = await http.post(path, json=body, headers=VERSION)
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
                continue
            if reply.status_code == 200 or reply.status_code in over:
                answer: dict[str, Any] = reply.json()
                return answer
            assert reply.status_code in (429, 503), reply.text
            await asyncio.sleep(0.2)

    async def _follow(self, http: httpx2.AsyncClient, agent: str, task_id: str) -> None:
        """Follow a task to its end, again after every break, and see that no event is missed."""
        last: int | None = None
        broken = True
        while broken:
            frames: list[Frame] = []
            try:
                async for frame in followed(http, agent, task_id, last_event=last):
                    frames.append(frame)
                broken = False
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
            except Refused as refusal:
                # The database is away, or the task has ended before it could be followed.
                broken = refusal.reason != "UNSUPPORTED_OPERATION"
                await asyncio.sleep(0.1)
            see_no_gap(frames, last)
            last = frames[-1].id if frames else last


async def test_each_part_of_a_fleet_is_killed_and_nothing_is_lost_doubled_or_done_twice_at_once(
    fleet: Fleet,
) -> None:
    crowd = Crowd(fleet)
    numbers = iter(range(fleet.runs))
    holding = [asyncio.ensure_future(crowd.hold(numbers)) for _ in range(CALLERS)]
    await asyncio.to_thread(fleet.storm)
    last_fault = time.time()
    left = set(fleet.unfinished())
    assert left, "all was over before the last fault"
    await asyncio.to_thread(fleet.see_running_again, left, AGAIN_SECONDS)
    print(f"{len(left)} runs left by the last fault, at work again within {time.time() - last_fault:.1f} s")
    await asyncio.gather(*holding)
    await asyncio.to_thread(
        until, lambda: not fleet.unfinished(), what="all runs to have ended", seconds=60, every=0.2
    )
    await see_outcomes(fleet, crowd)
    see_one_at_a_time(fleet)


async def see_outcomes(fleet: Fleet, crowd: Crowd) -> None:
    """See that each message is one task, which ended as it should, with every result once."""
    url = fleet.postgres.url()
    kept = dict(rows(url, "SELECT convert_from(message_id, 'UTF8'), task_id FROM identity"))
    assert kept == {message_id: task_id for message_id, (task_id, *_) in crowd.tasks.items()}
    assert len(kept) == fleet.runs == rows(url, "SELECT count(*) FROM task")[0][0]
    assert crowd.followed >= fleet.runs / 5
    ask(url, check_database)
    states = dict(rows(url, "SELECT id, state FROM task"))
    canceled = {task_id for task_id, state in states.items() if state == TaskState.CANCELED}
    assert crowd.cancelled <= canceled <= crowd.cancelling
    assert len(crowd.cancelled) > fleet.runs / 100
    async with client(fleet.servers[0].url, timeout=60.0) as http:
        for task_id, agent, text in crowd.tasks.values():
            if task_id in canceled:
                continue
            if agent == "storm-once" and states[task_id] == TaskState.FAILED:
                assert len([line for line in fleet.ledger.lines if line["task"] == task_id]) <= 2
                continue
            assert states[task_id] == TaskState.COMPLETED, (agent, text, states[task_id])
            if text.startswith("stream"):
                found = texts((await http.get(f"/agents/{agent}/tasks/{task_id}", headers=VERSION)).json())
                assert found == ["".join(f"{number} " for number in range(1, 9)), "stream done"]


def see_one_at_a_time(fleet: Fleet) -> None:
    """See that of each run no two entries overlap: one ends by itself, or with its process, before the next begins."""
    fleet.ledger.read()
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in fleet.ledger.lines:
        by_task[line["task"]].append(line)
    again = sum(line["attempt"] > 1 for line in fleet.ledger.lines)
    # How many depends on how long runs take, and that on the machine.
    assert again, "the kills interrupted nothing"
    for own in by_task.values():
        inside: dict[str, Any] | None = None
        for line in own:
            if line["what"] == "in":
                if inside is not None:
                    assert fleet.died.get(inside["pid"], float("inf")) <= line["at"], (inside, line)
                inside = line
                continue
            assert inside is not None and line["pid"] == inside["pid"], "an earlier entry went on"
            if line["what"] == "out":
                inside = None
        see_steps_once(own)
