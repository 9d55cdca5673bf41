"""Executing a run: a handler under lease, epoch and journal. Every engine calls `execute`.

The handler's side acts through an `Execution`. Each act is checked against the lifecycle table at the call, then
appended to the event log under the run's lease; an act of a run that was cancelled, expired or taken over is
refused by the store and ends the handler.
"""

import asyncio
import itertools
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw, structs

from dragoman.gateway.journal import Journal, JournalMismatch, JournalPoint
from dragoman.gateway.ports import AgentSettings, ApprovalRequest, JournalEntry, RunRef, TaskStore
from dragoman.gateway.remotes import Outcome, RemoteCalls
from dragoman.gateway.result import Gathered, ResultRefused, check_words
from dragoman.model import (
    ArtifactChunk,
    Change,
    Decision,
    Message,
    Reply,
    StatusChange,
    Task,
    TaskState,
    Used,
)
from dragoman.model.errors import Fenced, IllegalChange, MessageIdConflict, Unavailable
from dragoman.model.ids import new_id
from dragoman.model.lifecycle import advance
from dragoman.model.payload import ABSENT, pack, unpack
from dragoman.model.speech import agent_message

T = TypeVar("T")

_LOG = logging.getLogger("dragoman.run")

RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Waits between attempts to write while the store is unavailable; the last one repeats."""


class Parked(BaseException):
    """Raised in a handler where it asks its caller: the run waits now, and this entry of the handler is over.

    `except Exception` lets it through, and what swallows it meets it again at the handler's next act. It is no
    cancellation, because task groups and timeouts take those for their own and go on; `finally` blocks run.
    """


class Execution:
    """One entry of a handler for one run, as the handler's side sees it.

    Attributes:
        ref: the run.
        state: where the task stands.
        cancelled: whether the run was fenced out; a handler in a thread looks at it.
        ended: whether the run has its last event.
        before: commits what the handler gave earlier and is still held back; called before each act and point.
        on_parked: called on the handler's loop, with the task's id, when the run has come to wait for its caller.
    """

    def __init__(
        self,
        store: TaskStore,
        ref: RunRef,
        settings: AgentSettings,
        *,
        waited: bool = False,
        calls: RemoteCalls | None = None,
    ) -> None:
        """Prepare an attempt; `waited` if the run was noted as waiting for room. `calls` reaches remote agents."""
        self.ref = ref
        self.state = ref.state
        self.cancelled = False
        self.ended = False
        self.before: Callable[[], Awaitable[None]] | None = None
        self.on_parked: Callable[[str], object] | None = None
        self._store = store
        self._settings = settings
        self._waited = waited
        self._calls = calls
        self._shown = ref.visible
        self._artifacts = 0
        self._journal = Journal()
        self._gathered = Gathered(f"{ref.lease.task_id}-1") if settings.one_result else None
        self._sources: set[str] = set()
        self._parking: asyncio.Future[None] | None = None
        self._bell: threading.Event | None = None

    async def prepare(self) -> None:
        """Enter the run, and read what was journaled when it was entered before.

        Raises:
            Fenced: it was stopped while it waited.
        """
        if self._waited:
            await self._persist(lambda: self._store.enter(self.ref.lease))
        if self.ref.again:
            self._journal.load(await self._persist(lambda: self._store.journal(self.ref.lease)))

    async def act(self, *changes: Change) -> None:
        """Commit changes as the handler's next act, all or none.

        An act that was committed before the last journaled point when the handler was entered before is not
        committed again. What a step does is part of the step, and no act of its own in the journal's count.

        Raises:
            IllegalChange: the lifecycle does not allow it, or the run has ended.
            Fenced: the run is not this handler's any more.
            JournalMismatch: the handler has left the way that its journal tells of.
            Parked: the run waits for its caller.
        """
        if self.before is not None:
            await self.before()
        await self.commit(*changes)

    async def commit(self, *changes: Change) -> None:
        """Do what `act` does, past what is held back.

        Raises:
            IllegalChange, Fenced, JournalMismatch, Parked: as `act`.
        """
        if self._parking is not None:
            await asyncio.shield(self._parking)
        self._check_entered()
        is_new = self._journal.next_act()
        if self._gathered is not None:
            given = changes
            try:
                changes = self._gathered.take(given)
            except ResultRefused as refusal:
                raise await self._refused(refusal) from None
            self._journal.give(given)
            if not changes:
                return
        state = self.state
        ends = _is_ending(changes)
        if state is TaskState.SUBMITTED and isinstance(changes[0], ArtifactChunk) and not ends:
            changes = (StatusChange(TaskState.WORKING), *changes)
        for change in changes:
            state = advance(state, change)
        if ends:
            self._journal.check_end()
        if is_new:
            await self._append(changes)
        self.state = state
        self.ended = state.is_terminal

    async def flush(self) -> None:
        """Commit what is held back, so that what comes now comes after it.

        Raises:
            IllegalChange, Fenced, JournalMismatch, Parked: as `act`.
        """
        if self.before is not None:
            await self.before()

    def next_artifact_id(self) -> str:
        """Return an id for the next artifact: the same one in every attempt that does the same."""
        if self._journal.is_performing:
            # The step is not performed again, so what comes after it must not count on having seen this one.
            return new_id()
        self._artifacts += 1
        return f"{self.ref.lease.task_id}-{self._artifacts}"

    @property
    def mismatch(self) -> JournalMismatch | None:
        """How the handler left the way that its journal tells of, if it did."""
        return self._journal.mismatch

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
        """Return the handler's next point in the journal, and what was saved there when it was entered before.

        What its step gave then, where that is gathered, is given again.

        Raises:
            JournalMismatch: the handler did something else there.
            IllegalChange: it is inside of a step, or the run has ended.
            Fenced, Parked: as `act`.
        """
        self._check_entered()
        point = self._journal.next_point(kind, name)
        if self._gathered is not None and point.known is not None:
            self._gathered.take(point.known.given)
        return point

    def performing(self) -> AbstractContextManager[Sequence[ArtifactChunk]]:
        """Have what is done inside belong to the step that performs it; yields what there is to remember beside it."""
        return self._journal.performing()

    async def remember(
        self, point: JournalPoint, result: Any, given: Sequence[ArtifactChunk] = ()
    ) -> JournalEntry:
        """Journal the result of a point at which nothing was known, and return the entry.

        Raises:
            ValueError, TypeError: the result has no JSON form.
            Fenced: the run is not this handler's any more.
        """
        entry = JournalEntry(
            ordinal=point.ordinal,
            kind=point.kind,
            name=point.name,
            acts=point.acts,
            result=pack(result),
            given=tuple(given),
        )
        await self._persist(lambda: self._store.record(self.ref.lease, entry))
        return entry

    async def call(self, name: str, remote: str, message: Message) -> Outcome:
        """Return what became of the handler's next point, at which it delegates to a remote agent, once.

        Raises:
            JournalMismatch: as `recall`, or an earlier attempt delegated something else there.
            IllegalChange, Fenced, Parked: as `act`.
        """
        await self.flush()
        point, calls = self.recall("call", name), self._calls
        if point.known is not None:
            return msgspec.json.decode(point.known.result, type=Outcome)
        if calls is None:
            raise IllegalChange("no remote agent can be called from here")
        try:
            outcome = await self._persist(lambda: calls.call(self.ref, point.ordinal, remote, message))
        except MessageIdConflict:
            raise self._journal.mismatched(
                f"point {point.ordinal} was a call that said something else, and may have been carried out"
            ) from None
        entry = JournalEntry(
            ordinal=point.ordinal,
            kind=point.kind,
            name=point.name,
            acts=point.acts,
            result=Raw(msgspec.json.encode(outcome)),
        )
        await self._persist(lambda: self._store.record(self.ref.lease, entry))
        return outcome

    async def ask(self, kind: str, name: str, question: StatusChange) -> Message:
        """Return what the caller answered to the handler's next point, which moves the task to a state that waits.

        Where there is no answer yet, the run is parked, and this does not return: the handler is entered again when
        the answer is there.

        Raises:
            IllegalChange: as `act`, or nobody sees the task, so that nobody could answer.
            Parked: there is no answer yet.
            Fenced, JournalMismatch: as `act`.
        """
        known = await self._wait(kind, name, question)
        answer: Message = self.ref.messages[unpack(known.result)]
        return answer

    async def approve(self, name: str, question: StatusChange, request: ApprovalRequest) -> Decision:
        """Return what was decided about the handler's next point. Otherwise as `ask`, but no message answers it.

        Raises:
            IllegalChange, Parked, Fenced, JournalMismatch: as `ask`.
        """
        known = await self._wait("approve", name, question, request)
        return msgspec.json.decode(known.result, type=Decision)

    async def _wait(
        self, kind: str, name: str, question: StatusChange, approval: ApprovalRequest | None = None
    ) -> JournalEntry:
        """Return what is known of the handler's next point, or park the run there."""
        await self.flush()
        point = self.recall(kind, name)
        if point.known is not None:
            return point.known
        if self.replies_with_message:
            raise IllegalChange(
                "an agent that replies with bare messages shows no task, so nobody could answer"
            )
        advance(self.state, question)
        if self._gathered is not None:
            try:
                check_words(question)
            except ResultRefused as refusal:
                raise await self._refused(refusal) from None
        # Not to be left half done by a timeout around it, or by a task group that gives up.
        self._parking = asyncio.ensure_future(self._park(point, question, approval))
        self._parking.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(self._parking)
        raise Parked

    async def use_source(self, source: str) -> None:
        """Record that what the run gives from now on comes from a source as well.

        No act and no point of the journal: it may be done anywhere, and again in each attempt.

        Raises:
            IllegalChange, Fenced, JournalMismatch, Parked: as `act`.
        """
        self._check_entered()
        if source not in self._sources:
            await self._persist(lambda: self._store.append(self.ref.lease, (Used(source),)))
            self._sources.add(source)

    async def is_parked(self) -> bool:
        """Tell whether the run waits for its caller, once it is decided if it was about to."""
        parking = self._parking
        if parking is None:
            return False
        await asyncio.wait([parking])
        return not parking.cancelled() and parking.exception() is None

    async def stored(self) -> Task:
        """Return the task as it stands in the store, whoever wrote it."""
        ref = self.ref
        found = await self._persist(lambda: self._store.read(ref.scope, ref.lease.task_id, hidden=True))
        return found.task()

    async def fail(self, text: str) -> None:
        """End the run as FAILED, saying `text`, whatever the journal says.

        Raises:
            IllegalChange, Fenced: as `act`.
        """
        if self._journal.mismatch is None:
            await self.flush()
        if not self.ended:
            await self._append((StatusChange(TaskState.FAILED, self.say(text)),))
            self.state, self.ended = TaskState.FAILED, True

    def say(self, text: str) -> Message:
        """Return a message of the agent about this task."""
        return agent_message(text, task_id=self.ref.lease.task_id, context_id=self.ref.context_id)

    def stop(self) -> None:
        """Tell the handler that the run was fenced out; may be called from any thread."""
        self.cancelled = True
        if self._bell is not None:
            self._bell.set()

    def bell(self) -> threading.Event:
        """Return what is set when the run is fenced out, for a thread to wait for; called on the handler's loop."""
        # Made when it is asked for: few handlers wait.
        bell = self._bell = self._bell or threading.Event()
        if self.cancelled:
            # Whoever stopped the run may not have seen the bell yet.
            bell.set()
        return bell

    def _check_entered(self) -> None:
        """Make sure that the handler may still do something."""
        if self._parking is not None:
            raise Parked
        if self._journal.mismatch is not None:
            raise self._journal.mismatch
        if self.ended:
            raise IllegalChange("the run has ended: nothing can be added to it")
        if self.cancelled:
            raise Fenced("the run was stopped")

    async def _park(
        self, point: JournalPoint, question: StatusChange, approval: ApprovalRequest | None
    ) -> None:
        entry = JournalEntry(
            ordinal=point.ordinal, kind=point.kind, name=point.name, acts=point.acts, result=ABSENT
        )
        reveal = not self._shown
        try:
            await self._persist(
                lambda: self._store.park(self.ref.lease, question, entry, reveal=reveal, approval=approval)
            )
        except BaseException:
            self._parking = None
            raise
        self.state, self._shown = question.state, True
        if self.on_parked is not None:
            self.on_parked(self.ref.lease.task_id)

    async def _refused(self, refusal: ResultRefused) -> IllegalChange:
        """End the run as FAILED, and return what its handler is told: what it gave cannot be a result."""
        await self._append((StatusChange(TaskState.FAILED, self.say(str(refusal))),))
        self.state, self.ended = TaskState.FAILED, True
        return IllegalChange(str(refusal))

    async def _append(self, changes: tuple[Change, ...]) -> None:
        reveal = (
            not self._shown and self._settings.replies != "message" and not isinstance(changes[-1], Reply)
        )
        await self._persist(lambda: self._store.append(self.ref.lease, changes, reveal=reveal))
        self._shown = self._shown or reveal

    async def _persist(self, use: Callable[[], Awaitable[T]]) -> T:
        """Use the store, again and again while it cannot: a full disk must not lose what a handler has done."""
        for attempt in itertools.count():
            try:
                return await use()
            except Unavailable:
                if self.cancelled:
                    raise Fenced("the run was stopped") from None
                await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            except Fenced:
                self.stop()
                raise
        raise AssertionError("unreachable")


class AgentRuntime(Protocol):
    """An agent as the engines see it."""

    @property
    def id(self) -> str:
        """Its id, unique in the server."""
        ...

    @property
    def home(self) -> str:
        """The id of the agent on whose loop it runs: its own, unless it is that agent served in another way."""
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

    def run(self, execution: Execution) -> Awaitable[None]:
        """Run the handler for one attempt of a run; called, and awaited, on the agent's own loop."""
        ...


def _is_ending(changes: tuple[Change, ...]) -> bool:
    last = changes[-1]
    return isinstance(last, Reply) or (isinstance(last, StatusChange) and last.state.is_terminal)


async def execute(execution: Execution, run: Callable[[Execution], Awaitable[None]]) -> None:
    """Run a handler to its end and make sure that its run has one, or waits for its caller.

    Never raises for what the handler did: an exception ends the run as FAILED, and its text goes to the log alone.
    """
    ref, task = execution.ref, asyncio.current_task()
    try:
        await execution.prepare()
        await run(execution)
        if not execution.ended:
            await execution.act(StatusChange(TaskState.COMPLETED))
    except Fenced:
        return
    except BaseException as error:  # whatever a handler raises is the run's failure, not the server's
        if _is_being_stopped(error, execution, task):
            raise
        if await execution.is_parked():
            if not _is_parting(error):
                _LOG.warning(
                    "the handler raised %s on its way out, while its run waits for its caller",
                    type(error).__name__,
                    exc_info=error,
                    extra=_facts(ref),
                )
            return
        if execution.cancelled:
            return
        if execution.mismatch is not None:
            _LOG.error("the journal does not match the handler: %s", execution.mismatch, extra=_facts(ref))
            await _end(execution, "The agent changed while it was interrupted, so this run could not go on.")
        else:
            _LOG.error("the handler raised %s", type(error).__name__, exc_info=error, extra=_facts(ref))
            await _end(execution, "The agent failed while it handled the message.")


def _is_parting(error: BaseException) -> bool:
    """Tell whether a handler was ended by `Parked` and by nothing else; a task group brings it in a group."""
    if isinstance(error, BaseExceptionGroup):
        return error.split((Parked, asyncio.CancelledError))[1] is None
    return isinstance(error, Parked)


def _is_being_stopped(error: BaseException, execution: Execution, task: asyncio.Task[Any] | None) -> bool:
    """Tell a run that was stopped, or the end of the loop, from a handler that brought the same exception on itself.

    It may have raised it, or have cancelled the task that it runs in, or that of another run.
    """
    if not isinstance(error, asyncio.CancelledError | GeneratorExit):
        return False
    try:
        running = asyncio.current_task()
    except RuntimeError:
        return True
    if task is None or running is not task:
        # Thrown in from outside when nobody runs it any more: there is nothing to wait with.
        return True
    return isinstance(error, asyncio.CancelledError) and execution.cancelled


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
