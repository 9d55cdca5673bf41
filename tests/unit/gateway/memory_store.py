"""A task store in memory: the port's promises, and nothing of how a database keeps them."""

from collections.abc import Callable, Sequence

from msgspec import structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.ports import Acceptance, Accepted, ApprovalRequest, Commit, JournalEntry, Lease, RunRef
from dragoman.model import (
    Change,
    Cursor,
    Filters,
    Received,
    Reply,
    Scope,
    StatusChange,
    TaskEvent,
    TaskFold,
    TaskPage,
    TaskState,
)
from dragoman.model.errors import Fenced, MessageIdConflict, TaskNotCancelable, TaskNotFound
from dragoman.model.lifecycle import advance
from dragoman.model.payload import pack


class MemoryStore:
    """Keeps each task's events in a list. Listeners hear of a commit before the writer does, as on the real ones.

    Attributes:
        logs: the events of each task.
        reads: how often the events of a task were read.
        runs: every run that was to be executed.
        failures: errors to raise, one a write, before anything is stored.
    """

    def __init__(self) -> None:
        self.logs: dict[str, list[TaskEvent]] = {}
        self.reads = 0
        self.runs: list[RunRef] = []
        self.failures: list[Exception] = []
        self.acceptances: list[Acceptance] = []
        self._scopes: dict[str, Scope] = {}
        self._visible: set[str] = set()
        self._epochs: dict[str, int] = {}
        self._messages: dict[tuple[Scope, str], tuple[bytes, str]] = {}
        self._journals: dict[str, list[JournalEntry]] = {}
        self._listeners: list[Callable[[Commit], None]] = []

    def on_commit(self, listener: Callable[[Commit], None]) -> None:
        self._listeners.append(listener)

    async def accept(
        self, acceptance: Acceptance, *, decided: Callable[[], object] | None = None
    ) -> Accepted:
        self.acceptances.append(acceptance)
        try:
            known = await self.known(acceptance) if acceptance.idempotent else None
            return known or self._accept(acceptance)
        finally:
            if decided is not None:
                decided()

    async def known(self, acceptance: Acceptance) -> Accepted | None:
        identity = (acceptance.scope, acceptance.message.message_id)
        if identity not in self._messages:
            return None
        digest, task_id = self._messages[identity]
        if digest != acceptance.digest:
            raise MessageIdConflict.of("message.messageId", "was used for another message")
        return Accepted(task_id=task_id, replayed=True, events=())

    def _accept(self, acceptance: Acceptance) -> Accepted:
        if acceptance.message.task_id:
            return self._continue(acceptance)
        identity = (acceptance.scope, acceptance.message.message_id)
        task_id = acceptance.task_id
        self._messages[identity] = (acceptance.digest, task_id)
        self._scopes[task_id] = acceptance.scope
        self._epochs[task_id] = 1
        self.logs[task_id] = []
        if acceptance.visible:
            self._visible.add(task_id)
        received = Received(acceptance.message, TaskState.SUBMITTED)
        events = self._write(task_id, acceptance.context_id, [received])
        run = RunRef(
            scope=acceptance.scope,
            lease=Lease(task_id, 1),
            context_id=acceptance.context_id,
            attempt=1,
            deadline_at=acceptance.deadline,
            request=acceptance.request,
            messages=(acceptance.message,),
            state=TaskState.SUBMITTED,
            visible=acceptance.visible,
        )
        self._tell(Commit(events, (run,)))
        return Accepted(task_id=task_id, replayed=False, events=events)

    def _continue(self, acceptance: Acceptance) -> Accepted:
        message = acceptance.message
        task_id = message.task_id
        self._messages[acceptance.scope, message.message_id] = (acceptance.digest, task_id)
        resumes = self.state(task_id).is_interrupted
        context_id = self.logs[task_id][0].context_id
        received = Received(message, TaskState.WORKING if resumes else None)
        events = self._write(task_id, context_id, [received])
        if not resumes:
            self._tell(Commit(events, ()))
            return Accepted(task_id=task_id, replayed=False, events=events)
        self.fence(task_id)
        told = [change.message for change in self.changes(task_id) if isinstance(change, Received)]
        self._journals[task_id] = [
            entry if bytes(entry.result) else structs.replace(entry, result=pack(len(told) - 1))
            for entry in self._journals.get(task_id, ())
        ]
        run = structs.replace(
            next(run for run in self.runs if run.lease.task_id == task_id),
            lease=Lease(task_id, self._epochs[task_id]),
            messages=tuple(told),
            state=TaskState.WORKING,
            visible=True,
            again=True,
        )
        self._tell(Commit(events, (run,)))
        return Accepted(task_id=task_id, replayed=False, events=events)

    async def append(
        self, lease: Lease, changes: Sequence[Change], *, reveal: bool = False
    ) -> tuple[TaskEvent, ...]:
        if self.failures:
            raise self.failures.pop(0)
        if self._epochs.get(lease.task_id) != lease.epoch:
            raise Fenced("the run is somebody else's")
        state = self.state(lease.task_id)
        for change in changes:
            state = advance(state, change)
        if reveal:
            self._visible.add(lease.task_id)
        events = self._write(lease.task_id, self.logs[lease.task_id][0].context_id, changes)
        self._tell(Commit(events, ()))
        return events

    async def park(
        self,
        lease: Lease,
        change: StatusChange,
        entry: JournalEntry,
        *,
        reveal: bool = False,
        approval: ApprovalRequest | None = None,
    ) -> TaskEvent:
        (event,) = await self.append(lease, [change], reveal=reveal)
        self._journals.setdefault(lease.task_id, []).append(entry)
        self.fence(lease.task_id)
        return event

    async def cancel(self, scope: Scope, task_id: str, *, audit: AuditEntry | None = None) -> TaskEvent:
        await self.read(scope, task_id)
        if self.state(task_id).is_terminal:
            raise TaskNotCancelable("it is finished")
        self.fence(task_id)
        (event,) = self._write(task_id, self.logs[task_id][0].context_id, [StatusChange(TaskState.CANCELED)])
        self._tell(Commit([event], ()))
        return event

    async def read(
        self, scope: Scope, task_id: str, *, hidden: bool = False, until: int | None = None
    ) -> TaskFold:
        if self._scopes.get(task_id) != scope or not (hidden or task_id in self._visible):
            raise TaskNotFound(task_id)
        fold = TaskFold(task_id, self.logs[task_id][0].context_id)
        fold.apply_all(self.logs[task_id][:until])
        return fold

    async def events(self, task_id: str, after: int) -> tuple[TaskEvent, ...]:
        self.reads += 1
        if task_id not in self.logs:
            raise TaskNotFound(task_id)
        return tuple(self.logs[task_id][after:])

    async def page(
        self,
        filters: Filters,
        *,
        size: int,
        cursor: Cursor | None,
        history_length: int,
        artifacts: bool,
        withheld: Callable[[str], bool] | None = None,
    ) -> TaskPage:
        folds = [await self.read(filters.scope, task_id) for task_id in sorted(self._visible)]
        tasks = [fold.task(history_length=history_length, artifacts=artifacts) for fold in folds]
        return TaskPage(
            tasks=tuple(tasks[:size]),
            filters=filters,
            page_size=size,
            total=len(tasks),
            has_more=len(tasks) > size,
        )

    async def journal(self, lease: Lease) -> tuple[JournalEntry, ...]:
        return tuple(self._journals.get(lease.task_id, ()))

    async def record(self, lease: Lease, entry: JournalEntry) -> None:
        if self.failures:
            raise self.failures.pop(0)
        if self._epochs.get(lease.task_id) != lease.epoch:
            raise Fenced("the run is somebody else's")
        self._journals.setdefault(lease.task_id, []).append(entry)

    def fence(self, task_id: str) -> None:
        """Make every lease given for a task so far worthless."""
        self._epochs[task_id] += 1

    def changes(self, task_id: str) -> list[Change]:
        """Return what happened to a task."""
        return [event.change for event in self.logs[task_id]]

    def state(self, task_id: str) -> TaskState:
        """Return where a task stands."""
        state = TaskState.SUBMITTED
        for event in self.logs[task_id]:
            state = TaskState.COMPLETED if isinstance(event.change, Reply) else event.state or state
        return state

    def _write(self, task_id: str, context_id: str, changes: Sequence[Change]) -> tuple[TaskEvent, ...]:
        log = self.logs[task_id]
        before = len(log)
        for change in changes:
            log.append(TaskEvent(task_id, context_id, len(log) + 1, len(log) * 1000, 1, change))
        return tuple(log[before:])

    def _tell(self, commit: Commit) -> None:
        self.runs.extend(commit.runs)
        for listener in self._listeners:
            listener(commit)
