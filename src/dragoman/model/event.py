"""What happens to a task, in order: the event log and how it folds into a Task.

A `Change` is what a writer asks for; a `TaskEvent` is a change that was committed, with its sequence number
and time. A task is nothing but the fold of its events.
"""

from bisect import insort
from collections.abc import Iterable
from operator import itemgetter

from msgspec import Raw, Struct, structs

from dragoman.model.message import Artifact, Message, Role
from dragoman.model.payload import ABSENT
from dragoman.model.task import RunFacts, Task, TaskState, TaskStatus


class Received(Struct, frozen=True, omit_defaults=True, tag="received", tag_field="c"):
    """A message of the caller was accepted; `state` is the state that it moved the task to, if any."""

    message: Message
    state: TaskState | None = None


class StatusChange(Struct, frozen=True, omit_defaults=True, tag="status", tag_field="c"):
    """The task entered `state` (or speaks again in the same one)."""

    state: TaskState
    message: Message | None = None
    metadata: Raw = ABSENT


class ArtifactChunk(Struct, frozen=True, omit_defaults=True, tag="artifact", tag_field="c"):
    """An artifact, or a further piece of one: `append` adds the parts, otherwise they replace."""

    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: Raw = ABSENT


class Reply(Struct, frozen=True, omit_defaults=True, tag="reply", tag_field="c"):
    """The run answered with a bare message; its task is never seen by anybody."""

    message: Message


class Resumed(Struct, frozen=True, omit_defaults=True, tag="resumed", tag_field="c"):
    """A lost run is entered again. What its agent did after `kept`, a sequence number, no longer counts.

    All events stay in the log, and what the caller said stays in the history.
    """

    kept: int


class Used(Struct, frozen=True, omit_defaults=True, tag="used", tag_field="c"):
    """The run has used a source of data: what it gives from now on may come from it. Nothing is shown of this."""

    source: str


Change = Received | StatusChange | ArtifactChunk | Reply | Resumed | Used


def acts(change: Change) -> bool:
    """Tell whether a change is an act on a task: what shows an undecided run to be one."""
    return isinstance(change, (StatusChange, ArtifactChunk))


class TaskEvent(Struct, frozen=True):
    """A committed change.

    `seq` counts 1, 2, 3 … within the task, without gaps. `at` is in milliseconds since 1970 UTC by the store's
    clock. `attempt` is the attempt of the run that wrote it, counted from 1.
    """

    task_id: str
    context_id: str
    seq: int
    at: int
    attempt: int
    change: Change

    @property
    def state(self) -> TaskState | None:
        """The state that this event moved the task to, if it did."""
        change = self.change
        return change.state if isinstance(change, (StatusChange, Received)) else None

    @property
    def ends_run(self) -> bool:
        """No event can follow this one."""
        state = self.state
        return isinstance(self.change, Reply) or (state is not None and state.is_terminal)


_SAID_AT = itemgetter(0)


class TaskFold:
    """Folds events, in order, into the task they describe.

    Attributes:
        seq: the sequence number of the last event folded, 0 before the first.
        reply: the bare message that the run answered with, if it did.
        acted: whether there was an act on the task.
        sources: the sources of data that its run has used, in any attempt.
        metadata: what the task was given when it was accepted, and keeps.
    """

    def __init__(
        self, task_id: str, context_id: str, metadata: Raw = ABSENT, *, deadline: int | None = None
    ) -> None:
        """Begin with no event; `deadline` is that of the run at its acceptance, if anybody wants to know."""
        self._deadline = deadline
        self._attempt = 1
        self.task_id = task_id
        self.context_id = context_id
        self.metadata = metadata
        self.seq = 0
        self.reply: Message | None = None
        self.acted = False
        self.sources: set[str] = set()
        self.status: TaskStatus | None = None
        self._history: list[tuple[int, Message]] = []
        self._status_seq = 0
        self._artifacts: dict[str, list[tuple[int, ArtifactChunk]]] = {}

    def apply(self, event: TaskEvent) -> None:
        """Fold one more event in.

        Raises:
            ValueError: the event does not follow the last one.
        """
        if event.seq != self.seq + 1:
            raise ValueError(f"event {event.seq} cannot follow event {self.seq}")
        self.seq = event.seq
        self._attempt = event.attempt
        change = event.change
        self.acted = self.acted or acts(change)
        if isinstance(change, StatusChange):
            self._move(event.seq, TaskStatus(state=change.state, timestamp=event.at, message=change.message))
        elif isinstance(change, ArtifactChunk):
            self._artifacts.setdefault(change.artifact.artifact_id, []).append((event.seq, change))
        elif isinstance(change, Received):
            if change.state is not None:
                self._move(event.seq, TaskStatus(state=change.state, timestamp=event.at))
            self._history.append((event.seq, change.message))
        elif isinstance(change, Reply):
            self.reply = change.message
        elif isinstance(change, Used):
            self.sources.add(change.source)
        else:
            self._rewind(change.kept)

    def apply_all(self, events: Iterable[TaskEvent]) -> None:
        """Fold further events in, in order."""
        for event in events:
            self.apply(event)

    @property
    def facts(self) -> RunFacts:
        """How far the run has come."""
        state = self.status.state if self.status is not None else TaskState.SUBMITTED
        runs = not state.is_terminal and not state.is_interrupted
        return RunFacts(sequence=self.seq, attempt=self._attempt, deadline=self._deadline if runs else None)

    def task(self, *, history_length: int | None = None, artifacts: bool = True) -> Task:
        """Return the task as it stands, with at most the `history_length` newest messages (`None`: all).

        Raises:
            ValueError: nothing was folded yet.
        """
        if self.status is None:
            raise ValueError("a task without events has no status")
        history = (
            self._history
            if history_length is None
            else self._history[-history_length:]
            if history_length
            else []
        )
        return Task(
            id=self.task_id,
            context_id=self.context_id,
            status=self.status,
            artifacts=tuple(map(_gather, self._artifacts.values())) if artifacts else None,
            history=tuple([message for _, message in history]),
            metadata=self.metadata,
            run=self.facts,
        )

    def _move(self, seq: int, status: TaskStatus) -> None:
        if self.status is not None and self.status.message is not None:
            # What the agent said belongs to the history once something newer takes its place: where it was said.
            insort(self._history, (self._status_seq, self.status.message), key=_SAID_AT)
        if self._deadline is not None and self.status is not None and self.status.state.is_interrupted:
            # The time that a run waits for its caller does not count: the store moves its deadline likewise.
            self._deadline += status.timestamp - self.status.timestamp
        self.status = status
        self._status_seq = seq

    def _rewind(self, kept: int) -> None:
        for artifact_id, chunks in list(self._artifacts.items()):
            chunks[:] = [chunk for chunk in chunks if chunk[0] <= kept]
            if not chunks:
                del self._artifacts[artifact_id]
        self._history = [entry for entry in self._history if entry[0] <= kept or entry[1].role is Role.USER]
        if self.status is not None and self._status_seq > kept:
            self.status = structs.replace(self.status, message=None)


def _gather(chunks: list[tuple[int, ArtifactChunk]]) -> Artifact:
    """Put the chunks of an artifact together, from the last one that replaced it on."""
    begins = max((index for index, (_, chunk) in enumerate(chunks) if not chunk.append), default=0)
    first = chunks[begins][1].artifact
    if begins == len(chunks) - 1:
        return first
    parts = [part for _, chunk in chunks[begins:] for part in chunk.artifact.parts]
    return structs.replace(first, parts=tuple(parts))
