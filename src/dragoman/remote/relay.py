"""What a remote agent tells of its task, as changes of ours. Pure.

A stream tells what happens; a snapshot tells what has become of it all. What was passed on already is known, so that of
a snapshot only what is new is passed on, however often one is taken and whatever was missed between two.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    DataPart,
    Message,
    Part,
    RawPart,
    Role,
    StatusChange,
    Task,
    TaskState,
    TextPart,
)
from dragoman.model.payload import ABSENT
from dragoman.protocol.client import Item, Told


class WrongTaskError(Exception):
    """What came is about another task than the one that was asked for."""


class OverflowingError(Exception):
    """The artifacts together are larger than they may be."""


class Asked(Struct, frozen=True):
    """What tells a question of a remote agent from another one: its state, its message's id, and when it was asked."""

    state: TaskState
    message_id: str = ""
    at: int = 0

    def is_same(self, other: "Asked") -> bool:
        """Tell whether the other one is this one, seen again."""
        if self.state is not other.state or self.message_id != other.message_id:
            return False
        return bool(self.message_id) or not self.at or not other.at or self.at == other.at


class Turn(Struct, frozen=True):
    """The end of a turn: a state that is final, or that waits for the caller."""

    change: StatusChange
    asked: Asked


class _Kept:
    """An artifact as it was passed on: what stands around its parts, the parts, and how many bytes they have."""

    __slots__ = ("head", "parts", "size")

    def __init__(self, artifact: Artifact) -> None:
        self.head = _head(artifact)
        self.parts = list(artifact.parts)
        self.size = sum(map(_size, artifact.parts))

    def add(self, parts: Sequence[Part]) -> None:
        """Take further parts."""
        self.parts += parts
        self.size += sum(map(_size, parts))


class Relay:
    """Follows one task of a remote agent.

    Attributes:
        remote_id: the id that the remote agent has for the task; empty until it is known.
        remote_context: the same of its context.
        turn: how the turn ended, once it did.
    """

    def __init__(self, task_id: str, context_id: str, *, largest: int) -> None:
        """Begin with nothing; `largest` is how many bytes the artifacts together may have."""
        self.remote_id = ""
        self.remote_context = ""
        self.turn: Turn | None = None
        self._ids = {"task_id": task_id, "context_id": context_id}
        self._largest = largest
        self._state = TaskState.SUBMITTED
        self._said: set[str] = set()
        self._artifacts: dict[str, _Kept] = {}
        self._answered: Asked | None = None

    def know(self, task: Task) -> None:
        """Take what our task shows for passed on already."""
        self._state = task.status.state
        messages = [message.message_id for message in task.history if message.role is Role.AGENT]
        if task.status.message is not None:
            messages.append(task.status.message.message_id)
        self._said.update(messages)
        self._artifacts = {one.artifact_id: _Kept(one) for one in task.artifacts or ()}

    def begin(self, remote_id: str, context_id: str, answered: Asked | None = None) -> None:
        """Begin a turn with a task that is known; `answered` is the question that the caller has answered with it."""
        self.remote_id, self.remote_context = remote_id, context_id
        self.turn = None
        self._answered = answered

    def take(self, items: Sequence[Item]) -> tuple[Change, ...]:
        """Return what to pass on of what came together. A state that is final is the last of it.

        Raises:
            WrongTaskError: something is about another task.
            OverflowingError: there are too many bytes of artifacts.
        """
        changes: list[Change] = []
        for item in items:
            if self.turn is not None:
                break
            if isinstance(item, Task):
                self._check(item.id, item.context_id)
                changes += self._of_task(item)
            elif isinstance(item, Told):
                self._check(item.task_id, item.context_id)
                changes += self._of_update(item)
            else:
                raise WrongTaskError
        self._check_size()
        return tuple(changes)

    def words(self, message: Message) -> Message:
        """Return a message of the remote agent as one about our task."""
        return structs.replace(message, role=Role.AGENT, reference_task_ids=(), **self._ids)

    def _check(self, task_id: str, context_id: str) -> None:
        if not self.remote_id:
            self.remote_id = task_id
        if task_id != self.remote_id:
            raise WrongTaskError
        self.remote_context = self.remote_context or context_id

    def _of_task(self, task: Task) -> Iterator[Change]:
        status = task.status
        current = status.message.message_id if status.message is not None else ""
        for message in task.history:
            if message.role is Role.AGENT and message.message_id not in {*self._said, current}:
                yield self._status(StatusChange(TaskState.WORKING, message))
        is_known = status.state is self._state and (not current or current in self._said)
        ends = status.state.is_terminal or status.state.is_interrupted
        if not ends and not is_known:
            yield from self._progress(StatusChange(status.state, status.message))
        for artifact in task.artifacts or ():
            chunk = self._difference(artifact)
            if chunk is not None:
                yield chunk
        if ends:
            asked = Asked(status.state, current, status.timestamp)
            yield from self._end(StatusChange(status.state, status.message), asked, snapshot=True)

    def _of_update(self, told: Told) -> Iterator[Change]:
        change = told.change
        if isinstance(change, ArtifactChunk):
            yield self._chunk(change)
        elif change.state.is_terminal or change.state.is_interrupted:
            said = change.message.message_id if change.message is not None else ""
            yield from self._end(change, Asked(change.state, said, told.at), snapshot=False)
        else:
            yield from self._progress(change)

    def _progress(self, change: StatusChange) -> Iterator[Change]:
        if change.state is not TaskState.SUBMITTED:
            yield self._status(change)
        elif change.message is not None or change.metadata is not ABSENT:
            # What is said of a task that waits to be begun has no place of its own: ours is under way.
            yield self._status(structs.replace(change, state=TaskState.WORKING))

    def _end(self, change: StatusChange, asked: Asked, *, snapshot: bool) -> Iterator[Change]:
        if snapshot and self._answered is not None and self._answered.is_same(asked):
            # The question that was just answered: the remote agent has not begun to work on the answer.
            return
        final = self._status(change)
        self.turn = Turn(final, asked)
        if change.state.is_terminal:
            yield final

    def _status(self, change: StatusChange) -> StatusChange:
        self._state = change.state
        if change.message is None or not change.message.parts:
            return structs.replace(change, message=None)
        self._said.add(change.message.message_id)
        return structs.replace(change, message=self.words(change.message))

    def _chunk(self, chunk: ArtifactChunk) -> ArtifactChunk:
        artifact = chunk.artifact
        known = self._artifacts.get(artifact.artifact_id)
        if chunk.append and known is not None:
            known.add(artifact.parts)
            return chunk
        self._artifacts[artifact.artifact_id] = _Kept(artifact)
        # What is appended to nothing begins something.
        return structs.replace(chunk, append=False)

    def _difference(self, artifact: Artifact) -> ArtifactChunk | None:
        """Return what is new of an artifact: the parts behind those that are known, or all of it."""
        known = self._artifacts.get(artifact.artifact_id)
        if known is not None and known.head == _head(artifact):
            parts = list(artifact.parts)
            if parts == known.parts:
                return None
            have = len(known.parts)
            if parts[:have] == known.parts:
                known.add(parts[have:])
                return ArtifactChunk(structs.replace(artifact, parts=artifact.parts[have:]), append=True)
        self._artifacts[artifact.artifact_id] = _Kept(artifact)
        return ArtifactChunk(artifact)

    def _check_size(self) -> None:
        if sum(one.size for one in self._artifacts.values()) > self._largest:
            raise OverflowingError


def _head(artifact: Artifact) -> Artifact:
    return structs.replace(artifact, parts=())


def _size(part: Part) -> int:
    if isinstance(part, TextPart):
        content = len(part.text.encode())
    elif isinstance(part, RawPart):
        content = len(part.raw)
    elif isinstance(part, DataPart):
        content = len(bytes(part.data))
    else:
        content = len(part.url)
    return content + len(bytes(part.metadata))
