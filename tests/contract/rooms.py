"""Engines under contract, each in a server without its wire.

Another engine joins the suite by one class here and one line in `ROOMS`.
"""

import asyncio
import io
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeVar
from uuid import uuid4

from dragoman.agents import Agent
from dragoman.app import Service
from dragoman.config import Config, Server, Store
from dragoman.engines.embedded import EmbeddedEngine
from dragoman.engines.settings import EngineTable
from dragoman.engines.showing import SHOW_AFTER
from dragoman.engines.temporal.engine import TemporalEngine
from dragoman.engines.temporal.settings import TemporalTable
from dragoman.gateway import Answer, Call, Gateway
from dragoman.model import LOCAL, Change, Decision, Message, Principal, Scope, Task, TaskEvent, TaskState
from dragoman.model.message import text_of
from dragoman.model.operation import CancelTask, GetTask, Operation, SendMessage
from dragoman.stores.postgres import PostgresStore
from dragoman.stores.sqlite import Operator
from dragoman.stores.target import Target
from dragoman.telemetry.logs import LogSink
from tests.contract.samples import message
from tests.harness.postgres import databases, execute, in_thread, rows
from tests.harness.temporal import temporal_address

T = TypeVar("T")


async def eventually(probe: Callable[[], T], *, what: str, seconds: float = 5.0) -> T:
    """The first truthy value of `probe`; the loop goes on meanwhile. Raises TimeoutError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := probe()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        await asyncio.sleep(0.005)
    return value


@dataclass(frozen=True)
class Held:
    """What runs hold: places of their agents, tasks of event loops, leases of the store."""

    places: int
    tasks: int
    leases: int


NOTHING = Held(0, 0, 0)


class EngineRoom(Protocol):
    """A server's inside with one engine. It can crash and be started again on the same store.

    `queues_here`: runs wait in the engine's own process, in an order and within bounds that are under contract too.
    `shows_after`: seconds after which a run that did nothing yet shows as a task.
    """

    name: str
    queues_here = True
    shows_after = SHOW_AFTER

    def __init__(self, folder: Path) -> None:
        """Prepare an empty store in `folder`."""
        ...

    async def start(self, *agents: Agent, max_runs: int = 1000) -> None:
        """Start the engine with these agents, `max_runs` runs at once in all; it takes over what was left."""
        ...

    async def crash(self) -> None:
        """End the engine at once: what runs is left as it stands."""
        ...

    def remove(self) -> None:
        """Give the store's room back, after the last crash."""
        ...

    async def send(self, agent: Agent, sent: str | SendMessage, *, caller: str = LOCAL) -> Task | Message:
        """Send a message and wait for what it is answered with."""
        ...

    async def begin(self, agent: Agent, text: str = "Hello", *, caller: str = LOCAL) -> str:
        """Send a message without waiting and return the id of its task."""
        ...

    async def answer(self, agent: Agent, task_id: str, text: str) -> Task:
        """Send a message to a task that there is, and wait for what comes of it."""
        ...

    async def decide(self, agent: Agent, task_id: str, *, approved: bool, note: str = "") -> Task:
        """Decide the one approval that waits, as `carol`, and wait for what comes of the task."""
        ...

    async def cancel(self, agent: Agent, task_id: str) -> Task:
        """Cancel a task."""
        ...

    def cancel_elsewhere(self, agent: Agent, task_id: str) -> None:
        """Cancel a task as another process does, and have the engine look for such runs."""
        ...

    async def read(self, agent: Agent, task_id: str, *, caller: str = LOCAL) -> Task:
        """Read a task."""
        ...

    async def ended(self, agent: Agent, task_id: str, *, caller: str = LOCAL, seconds: float = 5.0) -> Task:
        """Read a task when it is finished. Raises TimeoutError if that takes longer than `seconds`."""
        ...

    async def events(self, task_id: str) -> tuple[TaskEvent, ...]:
        """Everything that happened to a task."""
        ...

    def held(self) -> Held:
        """What runs hold just now."""
        ...

    def look_again(self) -> None:
        """Have the engine look for runs that another process has stopped."""
        ...

    def counts(self, agent: Agent) -> tuple[int, int]:
        """How many runs of an agent go on, and how many wait."""
        ...

    def stored(self) -> int:
        """How many tasks there are."""
        ...

    def noted(self) -> int:
        """How many runs the store knows to wait: what a run does so that it gets a place comes before that."""
        ...

    def shift_clock(self, milliseconds: int) -> None:
        """Move the store's clock forward."""
        ...


class EmbeddedRoom(EngineRoom):
    """The embedded engine over SQLite, wired by `dragoman.app.Service` itself; only its wire is left aside."""

    name = "embedded"

    def __init__(self, folder: Path) -> None:
        self._data = folder / "data"
        self._service: Service | None = None

    async def start(self, *agents: Agent, max_runs: int = 1000) -> None:
        self._log = LogSink(io.TextIOWrapper(io.BytesIO()))
        config = Config(
            server=Server(drain="0s"),
            engine=self._engine(max_runs),
            store=self._where(),
        )
        self._service = service = Service(
            config, agents, data=self._data, base_url="http://127.0.0.1", log=self._log
        )
        self._store = service._store
        self._gateway = Gateway(service._store, service._engine, service._hub)
        await service.start()

    def _where(self) -> Store:
        """The configuration's store: a file in the data folder."""
        return Store()

    def _engine(self, max_runs: int) -> EngineTable:
        """The configuration's engine."""
        return EngineTable(sweep="100ms", max_runs=max_runs)

    def _handlers(self) -> EmbeddedEngine:
        """What runs handlers."""
        assert self._service is not None
        assert isinstance(self._service._engine, EmbeddedEngine)
        return self._service._engine

    async def crash(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            await service.stop()
            self._log.close()

    def remove(self) -> None:
        """Nothing: the folder is the test's."""

    async def send(self, agent: Agent, sent: str | SendMessage, *, caller: str = LOCAL) -> Task | Message:
        request = sent if isinstance(sent, SendMessage) else _request(sent)
        async with asyncio.timeout(10):
            answer = await self._gateway.perform(_call(agent, caller), Operation.SEND_MESSAGE, request)
        assert isinstance(answer, Answer)
        return answer.result

    async def begin(self, agent: Agent, text: str = "Hello", *, caller: str = LOCAL) -> str:
        task = await self.send(agent, _request(text, at_once=True), caller=caller)
        assert isinstance(task, Task)
        return task.id

    async def answer(self, agent: Agent, task_id: str, text: str) -> Task:
        sent = SendMessage(message=message(text, task_id=task_id), generation="1.0")
        task = await self.send(agent, sent)
        assert isinstance(task, Task)
        return task

    async def decide(self, agent: Agent, task_id: str, *, approved: bool, note: str = "") -> Task:
        (approval,) = await self._store.approvals(LOCAL, after="", limit=2)
        assert approval.task_id == task_id
        decision = Decision(approved=approved, by="carol", note=note)
        await self._store.decide(LOCAL, approval.id, decision, digest=approval.digest, flat=())
        async with asyncio.timeout(10):
            while (task := await self.read(agent, task_id)).status.state in _AT_WORK:
                await asyncio.sleep(0.005)
        return task

    async def cancel(self, agent: Agent, task_id: str) -> Task:
        task = await self._gateway.perform(_call(agent), Operation.CANCEL_TASK, CancelTask(task_id=task_id))
        assert isinstance(task, Task)
        return task

    def cancel_elsewhere(self, agent: Agent, task_id: str) -> None:
        with closing(Operator(self._data / "dragoman.db")) as operator:
            operator.cancel(_call(agent).scope, task_id)
        self.look_again()

    async def read(self, agent: Agent, task_id: str, *, caller: str = LOCAL) -> Task:
        task = await self._gateway.perform(_call(agent, caller), Operation.GET_TASK, GetTask(task_id=task_id))
        assert isinstance(task, Task)
        return task

    async def ended(self, agent: Agent, task_id: str, *, caller: str = LOCAL, seconds: float = 5.0) -> Task:
        deadline = time.monotonic() + seconds
        while not (task := await self.read(agent, task_id, caller=caller)).status.state.is_terminal:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{task_id} is still {task.status.state.name} after {seconds} s")
            await asyncio.sleep(0.005)
        return task

    async def events(self, task_id: str) -> tuple[TaskEvent, ...]:
        return await self._store.events(task_id, 0)

    def held(self) -> Held:
        handlers = self._handlers()
        loops = handlers._loops.values()
        places = sum(sum(counts) for counts in handlers.counts().values())
        tasks = sum(len(asyncio.all_tasks(loop._loop)) for loop in loops)
        leases = "SELECT count(*) FROM task WHERE dispatch <> 'done' AND (owner <> 0 OR lease_until <> 0)"
        return Held(places, tasks, self._count(leases))

    def counts(self, agent: Agent) -> tuple[int, int]:
        assert self._service is not None
        return self._service._engine.counts()[agent.id]

    def stored(self) -> int:
        return self._count("SELECT count(*) FROM task")

    def noted(self) -> int:
        return self._count("SELECT count(*) FROM task WHERE dispatch = 'pending'")

    def _count(self, statement: str) -> int:
        with closing(sqlite3.connect(self._data / "dragoman.db")) as connection:
            number: int = connection.execute(statement).fetchone()[0]
            return number

    def look_again(self) -> None:
        assert self._service is not None
        self._service._engine.look_again()

    def shift_clock(self, milliseconds: int) -> None:
        with closing(
            sqlite3.connect(self._data / "dragoman.db", timeout=10, isolation_level=None)
        ) as connection:
            connection.execute("UPDATE clock SET offset_ms = offset_ms + ?", (milliseconds,))


class PostgresRoom(EmbeddedRoom):
    """The same over PostgreSQL."""

    name = "embedded-postgres"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._url = in_thread(lambda: databases().make())

    def _where(self) -> Store:
        return Store(url=self._url)

    def remove(self) -> None:
        in_thread(lambda: databases().give_back(self._url))

    def cancel_elsewhere(self, agent: Agent, task_id: str) -> None:
        async def cancel() -> None:
            store = PostgresStore(Target(self._url), lease=15.0)
            await store.cancel(_call(agent).scope, task_id)
            await asyncio.to_thread(store.close)

        in_thread(lambda: asyncio.run(cancel()))

    def _count(self, statement: str) -> int:
        if "lease_until" in statement:
            statement = "SELECT count(*) FROM task WHERE dispatch <> 'done' AND owner <> 0"
        number: int = rows(self._url, statement)[0][0]
        return number

    def shift_clock(self, milliseconds: int) -> None:
        execute(self._url, "UPDATE clock SET offset_ms = offset_ms + $1", milliseconds)


class TemporalRoom(EmbeddedRoom):
    """Temporal over SQLite: it has a run executed, in this process."""

    name = "temporal"
    queues_here = False
    # Temporal takes longer to begin than a run may take before it shows.
    shows_after = 2.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._queue = uuid4().hex

    def _engine(self, max_runs: int) -> EngineTable:
        temporal = TemporalTable(address=temporal_address(), task_queue=self._queue)
        return EngineTable(kind="temporal", lease="1s", sweep="100ms", max_runs=max_runs, temporal=temporal)

    async def start(self, *agents: Agent, max_runs: int = 1000) -> None:
        await super().start(*agents, max_runs=max_runs)
        self._handlers()._fresh._after = self.shows_after

    def _handlers(self) -> EmbeddedEngine:
        assert self._service is not None
        assert isinstance(self._service._engine, TemporalEngine)
        assert isinstance(self._service._engine._handlers, EmbeddedEngine)
        return self._service._engine._handlers


class TemporalPostgresRoom(TemporalRoom, PostgresRoom):
    """The same over PostgreSQL."""

    name = "temporal-postgres"


_AT_WORK = (TaskState.SUBMITTED, TaskState.WORKING)

ROOMS: Mapping[tuple[str, str], type[EngineRoom]] = MappingProxyType(
    {
        ("embedded", "sqlite"): EmbeddedRoom,
        ("embedded", "postgres"): PostgresRoom,
        ("temporal", "sqlite"): TemporalRoom,
        ("temporal", "postgres"): TemporalPostgresRoom,
    }
)
"""The engines under contract, by what `--engine` and `--store` name."""


def _request(text: str, *, at_once: bool = False) -> SendMessage:
    return SendMessage(message=message(text), generation="1.0", return_immediately=at_once)


def _call(agent: Agent, caller: str = LOCAL) -> Call:
    return Call(
        principal=Principal(LOCAL, caller), scope=Scope(LOCAL, caller, agent.id), settings=agent.settings
    )


def texts(task: Task | Message) -> list[str]:
    """The text of each artifact of a task, in order."""
    assert isinstance(task, Task)
    return [text_of(artifact.parts).replace("\n", "") for artifact in task.artifacts or ()]


def state(task: Task | Message) -> TaskState:
    """Where a task stands."""
    assert isinstance(task, Task)
    return task.status.state


def said(events: tuple[TaskEvent, ...]) -> list[Change]:
    """What happened after the message was accepted."""
    return [event.change for event in events[1:]]
