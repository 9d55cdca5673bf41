"""A gateway whose runs follow a script: each accepted run is played by a task on the serving loop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dragoman.gateway import Answer, Call, Committed, EventStream, Gateway, Hub, StreamItem
from dragoman.gateway.ports import AgentSettings, Commit, Lease, RunRef
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    Message,
    Part,
    Principal,
    Role,
    Scope,
    StatusChange,
    Task,
    TaskState,
    TextPart,
)
from dragoman.model.operation import Operation, Request, SendMessage
from tests.unit.gateway.memory_store import MemoryStore

SCOPE = Scope("tenant", "principal", "agent")
OTHERS = [
    Scope("other", "principal", "agent"),
    Scope("tenant", "other", "agent"),
    Scope("tenant", "principal", "other"),
]


class RecordingEngine:
    """An engine that executes nothing; it remembers what it was told to stop, and for which tasks it keeps room.

    Attributes:
        room: for how many further tasks it has room.
    """

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.room = 1000
        self.reserved: list[str] = []

    def reserve(self, scope: Scope, task_id: str) -> bool:
        if self.room <= len(self.reserved):
            return False
        self.reserved.append(task_id)
        return True

    def release(self, task_id: str) -> None:
        if task_id in self.reserved:
            self.reserved.remove(task_id)

    def dispatch(self, runs: Sequence[RunRef]) -> None:
        raise AssertionError("runs are played by the script")

    def stop(self, task_id: str) -> None:
        self.stopped.append(task_id)


Script = Callable[["World", Lease], Awaitable[None]]


class World:
    """Store, hub, engine and gateway, put together on the loop that is running."""

    def __init__(
        self, script: Script | None = None, *, window: float = 5.0, heartbeat: float = 15.0, **settings: Any
    ) -> None:
        self.store = MemoryStore()
        self.hub = Hub()
        self.engine = RecordingEngine()
        self.settings = AgentSettings(**settings)
        self.gateway = Gateway(self.store, self.engine, self.hub, window=window, heartbeat=heartbeat)
        self._script = script
        self._playing: set[asyncio.Task[None]] = set()
        self.store.on_commit(self._committed)

    def call(self, *extensions: str, scope: Scope = SCOPE) -> Call:
        return Call(
            principal=Principal(scope.tenant, scope.principal),
            scope=scope,
            settings=self.settings,
            extensions=extensions,
        )

    async def send(self, request: SendMessage, *extensions: str) -> Answer:
        answer = await self.gateway.perform(self.call(*extensions), Operation.SEND_MESSAGE, request)
        assert isinstance(answer, Answer)
        return answer

    async def stream(self, operation: Operation, request: Request) -> EventStream:
        stream = await self.gateway.perform(self.call(), operation, request)
        assert isinstance(stream, EventStream)
        return stream

    async def act(self, lease: Lease, *changes: Change, reveal: bool = True) -> None:
        await self.store.append(lease, changes, reveal=reveal)

    async def settle(self) -> None:
        """Wait until every script has been played to its end."""
        while self._playing:
            await asyncio.gather(*self._playing)

    def _committed(self, commit: Commit) -> None:
        self.hub.publish(commit.events)
        for run in commit.runs:
            if self._script is not None:
                task = asyncio.ensure_future(self._script(self, run.lease))
                self._playing.add(task)
                task.add_done_callback(self._playing.discard)


def play(scenario: Awaitable[None]) -> None:
    """Run a scenario to its end; it has ten seconds."""

    async def bounded() -> None:
        await asyncio.wait_for(scenario, 10)

    asyncio.run(bounded())


def message(
    text: str = "hello", *parts: Part, message_id: str = "m", task_id: str = "", **more: Any
) -> SendMessage:
    return SendMessage(
        message=Message(
            message_id=message_id, role=Role.USER, parts=parts or (TextPart(text=text),), task_id=task_id
        ),
        generation="1.0",
        **more,
    )


def status(state: TaskState, text: str = "") -> StatusChange:
    return StatusChange(state, spoken(text) if text else None)


def spoken(text: str) -> Message:
    return Message(message_id=f"id of {text}", role=Role.AGENT, parts=(TextPart(text=text),), context_id="c")


def chunk(text: str, *, append: bool = False) -> ArtifactChunk:
    return ArtifactChunk(Artifact(artifact_id="a", parts=(TextPart(text=text),)), append=append)


async def told(stream: EventStream) -> list[str]:
    """Read a stream to its end; each item as a short text, after its sequence number."""
    try:
        return [shown(item) async for item in stream.items]
    finally:
        stream.release()


def shown(item: StreamItem | None) -> str:
    if item is None:
        return "nothing"
    value = item.value
    if isinstance(value, Task):
        return f"{item.seq} task {value.status.state.name}"
    if isinstance(value, Message):
        return f"{item.seq} message {value.text}"
    assert isinstance(value, Committed) and value.event.seq == item.seq
    change = value.event.change
    if isinstance(change, ArtifactChunk):
        return f"{item.seq} {'more' if change.append else 'artifact'} {change.artifact.parts[0].text}"
    return f"{item.seq} {value.event.state.name if value.event.state is not None else type(change).__name__}"
