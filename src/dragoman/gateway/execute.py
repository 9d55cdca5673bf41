"""Executing a run: a handler under lease, epoch and journal. Every engine calls `execute`.

The handler's side acts through an `Execution`. Each act is checked against the lifecycle table at the call, then
appended to the event log under the run's lease; an act of a run that was cancelled, expired or taken over is
refused by the store and ends the handler.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Struct, structs

from dragoman.gateway.ports import AgentSettings, JournalEntry, RunRef, TaskStore
from dragoman.model import Change, Message, Reply, StatusChange, TaskState
from dragoman.model.errors import Fenced, IllegalChange, Unavailable
from dragoman.model.event import ArtifactChunk
from dragoman.model.lifecycle import advance
from dragoman.model.payload import pack
from dragoman.model.speech import agent_message

_LOG = logging.getLogger("dragoman.run")

RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Waits between attempts to write while the store is unavailable; the last one repeats."""


class JournalPoint(Struct, frozen=True):
    """A point at which a handler does something once, and what is `known` of it from an earlier attempt."""

    ordinal: int
    kind: str
    name: str
    acts: int
    known: JournalEntry | None


class Execution:
    """One attempt of one run, as the handler's side sees it.

    Attributes:
        ref: the run.
        state: where the task stands.
        cancelled: set when the run was fenced out; a handler in a thread looks at it.
        ended: whether the run has its last event.
        before: commits what the handler gave earlier and is still held back; called before each act and point.
    """

    def __init__(
        self, store: TaskStore, ref: RunRef, settings: AgentSettings, *, waited: bool = False
    ) -> None:
        """Prepare an attempt; `waited` if the run was noted as waiting for room."""
        self.ref = ref
        self.state = ref.state
        self.cancelled = threading.Event()
        self.ended = False
        self.before: Callable[[], Awaitable[None]] | None = None
        self._store = store
        self._settings = settings
        self._waited = waited
        self._shown = ref.visible
        self._artifacts = 0
        self._acts = 0
        self._journal: dict[int, JournalEntry] = {}
        self._points = 0
        self._replayed_acts = 0

    async def prepare(self) -> None:
        """Enter the run, and read what an earlier attempt journaled.

        Raises:
            Fenced: it was stopped while it waited.
        """
        if self._waited:
            await self._persist(lambda: self._store.enter(self.ref.lease))
        if self.ref.attempt > 1:
            entries = await self._store.journal(self.ref.lease)
            self._journal = {entry.ordinal: entry for entry in entries}
            self._replayed_acts = max((entry.acts for entry in entries), default=0)

    async def act(self, *changes: Change) -> None:
        """Commit changes as the handler's next act, all or none.

        An act that an earlier attempt committed before its last journaled point is not committed again.

        Raises:
            IllegalChange: the lifecycle does not allow it, or the run has ended.
            Fenced: the run is not this handler's any more.
        """
        await self.flush()
        await self.commit(*changes)

    async def commit(self, *changes: Change) -> None:
        """Do what `act` does, past what is held back.

        Raises:
            IllegalChange, Fenced: as `act`.
        """
        if self.ended:
            raise IllegalChange("the run has ended: nothing can be added to it")
        if self.cancelled.is_set():
            raise Fenced("the run was stopped")
        self._acts += 1
        state = self.state
        if state is TaskState.SUBMITTED and isinstance(changes[0], ArtifactChunk) and not _is_ending(changes):
            changes = (StatusChange(TaskState.WORKING), *changes)
        for change in changes:
            state = advance(state, change)
        if self._acts > self._replayed_acts:
            await self._append(changes)
        self.state = state
        self.ended = state.is_terminal

    async def flush(self) -> None:
        """Commit what is held back, so that what comes now comes after it.

        Raises:
            IllegalChange, Fenced: as `act`.
        """
        if self.before is not None:
            await self.before()

    def next_artifact_id(self) -> str:
        """Return an id for the next artifact: the same one in every attempt that does the same."""
        self._artifacts += 1
        return f"{self.ref.lease.task_id}-{self._artifacts}"

    @property
    def replies_with_message(self) -> bool:
        """Whether the agent answers with bare messages alone."""
        return self._settings.replies == "message"

    async def reply(self, message: Message) -> None:
        """End the run with a bare message; a run that shows as a task is completed with it instead.

        Raises:
            IllegalChange, Fenced: as `act`.
        """
        if self._settings.replies == "task" or self._shown:
            await self.act(StatusChange(TaskState.COMPLETED, message))
        else:
            # Nobody will ever see the task, so the message must not point to it.
            await self.act(Reply(structs.replace(message, task_id="", context_id=self.ref.context_id)))

    def recall(self, kind: str, name: str) -> JournalPoint:
        """Return the handler's next point in the journal, and what an earlier attempt saved there.

        Raises:
            JournalMismatch: an earlier attempt did something else there.
        """
        self._points += 1
        point = JournalPoint(self._points, kind, name, self._acts, self._journal.get(self._points))
        known = point.known
        if known is not None and (known.kind, known.name, known.acts) != (kind, name, self._acts):
            raise JournalMismatch(
                f"point {self._points} of the journal is {known.kind} {known.name!r} after {known.acts} acts, "
                f"but the handler now does {kind} {name!r} after {self._acts}"
            )
        return point

    async def remember(self, point: JournalPoint, result: Any) -> JournalEntry:
        """Journal the result of a point at which nothing was known, and return the entry.

        Raises:
            ValueError, TypeError: the result has no JSON form.
            Fenced: the run is not this handler's any more.
        """
        entry = JournalEntry(
            ordinal=point.ordinal, kind=point.kind, name=point.name, acts=point.acts, result=pack(result)
        )
        await self._persist(lambda: self._store.record(self.ref.lease, entry))
        return entry

    async def fail(self, text: str) -> None:
        """End the run as FAILED, saying `text`."""
        await self.act(StatusChange(TaskState.FAILED, self.say(text)))

    def say(self, text: str) -> Message:
        """Return a message of the agent about this task."""
        return agent_message(text, task_id=self.ref.lease.task_id, context_id=self.ref.context_id)

    def stop(self) -> None:
        """Tell the handler that the run was fenced out; may be called from any thread."""
        self.cancelled.set()

    async def _append(self, changes: tuple[Change, ...]) -> None:
        reveal = (
            not self._shown and self._settings.replies != "message" and not isinstance(changes[-1], Reply)
        )
        await self._persist(lambda: self._store.append(self.ref.lease, changes, reveal=reveal))
        self._shown = self._shown or reveal

    async def _persist(self, write: Callable[[], Awaitable[object]]) -> None:
        """Write, again and again while the store cannot: a full disk must not lose what a handler has done."""
        for attempt in range(1_000_000):
            try:
                await write()
            except Unavailable:
                if self.cancelled.is_set():
                    raise Fenced("the run was stopped") from None
                await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            except Fenced:
                self.cancelled.set()
                raise
            else:
                return


class AgentRuntime(Protocol):
    """An agent as the engines see it."""

    @property
    def id(self) -> str:
        """Its id, unique in the server."""
        ...

    @property
    def settings(self) -> AgentSettings:
        """What it declares and how it is to be run."""
        ...

    async def startup(self) -> None:
        """Make ready what the handler needs; called once on the agent's own loop."""
        ...

    async def shutdown(self) -> None:
        """Put away what `startup` made; called once on the agent's own loop."""
        ...

    async def run(self, execution: Execution) -> None:
        """Run the handler for one attempt of a run; called on the agent's own loop."""
        ...


class JournalMismatch(Exception):
    """The handler does not do what its journal says it did: nothing is guessed, the run fails."""


def _is_ending(changes: tuple[Change, ...]) -> bool:
    last = changes[-1]
    return isinstance(last, Reply) or (isinstance(last, StatusChange) and last.state.is_terminal)


async def execute(execution: Execution, run: Callable[[Execution], Awaitable[None]]) -> None:
    """Run a handler to its end and make sure that its run has one.

    Never raises for what the handler did: an exception ends the run as FAILED, and its text goes to the log alone.
    """
    ref = execution.ref
    try:
        await execution.prepare()
        await run(execution)
        if not execution.ended:
            await execution.act(StatusChange(TaskState.COMPLETED))
    except Fenced:
        return
    except JournalMismatch as error:
        _LOG.error("the journal does not match the handler: %s", error, extra=_facts(ref))
        await _end(execution, "The agent changed while it was interrupted, so this run could not go on.")
    except BaseException as error:  # whatever a handler raises is the run's failure, not the server's
        if _is_being_stopped(error):
            raise
        if execution.cancelled.is_set():
            return
        _LOG.error("the handler raised %s", type(error).__name__, exc_info=error, extra=_facts(ref))
        await _end(execution, "The agent failed while it handled the message.")


def _is_being_stopped(error: BaseException) -> bool:
    """Tell a cancellation, or the end of the loop, from a handler that raised the same exception by itself."""
    if not isinstance(error, asyncio.CancelledError | GeneratorExit):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    return task is None or (isinstance(error, asyncio.CancelledError) and task.cancelling() > 0)


async def _end(execution: Execution, text: str) -> None:
    if execution.ended:
        return
    try:
        await execution.fail(text)
    except (Fenced, IllegalChange):
        return


def _facts(ref: RunRef) -> dict[str, object]:
    return {
        "agent": ref.scope.agent,
        "tenant": ref.scope.tenant,
        "task_id": ref.lease.task_id,
        "attempt": ref.attempt,
    }
