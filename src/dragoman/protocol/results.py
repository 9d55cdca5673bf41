"""Results as JSON objects: the walk that all dialects share, from the model to what each one spells in its own way."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Message,
    Part,
    Received,
    Role,
    StatusChange,
    Task,
    TaskEvent,
    TaskState,
    TaskStatus,
)
from dragoman.model.payload import ABSENT
from dragoman.protocol.protojson import timestamp_text

STATUS_UPDATE, ARTIFACT_UPDATE = "statusUpdate", "artifactUpdate"

NO_MARKS: Mapping[str, str] = MappingProxyType({})


class Spelling(Struct, frozen=True, kw_only=True):
    """How a dialect spells what all of them say.

    `part` writes one part, `parts` is the member of a message that holds them. `kinds` are the values of a member
    `kind` by what has one: "task", "message". `references` tells whether a message names the tasks that it refers to.
    """

    states: Mapping[TaskState, str]
    roles: Mapping[Role, str]
    part: Callable[[Part], dict[str, Any]]
    parts: str = "parts"
    kinds: Mapping[str, str] = NO_MARKS
    references: bool = True


class Results:
    """Writes results in one spelling. Members at their default are left out, required ones never."""

    def __init__(self, spelling: Spelling) -> None:
        self._states = spelling.states
        self._roles = spelling.roles
        self._part = spelling.part
        self._parts = spelling.parts
        self._references = spelling.references
        self._task_mark = {"kind": spelling.kinds["task"]} if "task" in spelling.kinds else {}
        self._message_mark = {"kind": spelling.kinds["message"]} if "message" in spelling.kinds else {}

    def task(self, task: Task, *, listed: bool = False) -> dict[str, Any]:
        """Return a task. A `listed` one has a member for its artifacts, though empty, if they were asked for."""
        wire: dict[str, Any] = {
            **self._task_mark,
            "id": task.id,
            "contextId": task.context_id,
            "status": self.status(task.status),
        }
        if task.artifacts or (listed and task.artifacts is not None):
            wire["artifacts"] = [self.artifact(artifact) for artifact in task.artifacts]
        if task.history:
            wire["history"] = [self.message(message) for message in task.history]
        if task.metadata is not ABSENT:
            wire["metadata"] = task.metadata
        return wire

    def status(self, status: TaskStatus) -> dict[str, Any]:
        """Return a task's status."""
        wire: dict[str, Any] = {
            "state": self._states[status.state],
            "timestamp": timestamp_text(status.timestamp),
        }
        if status.message is not None:
            wire["message"] = self.message(status.message)
        return wire

    def message(self, message: Message) -> dict[str, Any]:
        """Return a message."""
        part = self._part
        wire: dict[str, Any] = {
            **self._message_mark,
            "messageId": message.message_id,
            "role": self._roles[message.role],
            self._parts: [part(one) for one in message.parts],
        }
        if message.context_id:
            wire["contextId"] = message.context_id
        if message.task_id:
            wire["taskId"] = message.task_id
        if message.metadata is not ABSENT:
            wire["metadata"] = message.metadata
        if message.extensions:
            wire["extensions"] = message.extensions
        if message.reference_task_ids and self._references:
            wire["referenceTaskIds"] = message.reference_task_ids
        return wire

    def artifact(self, artifact: Artifact) -> dict[str, Any]:
        """Return an artifact."""
        part = self._part
        wire: dict[str, Any] = {
            "artifactId": artifact.artifact_id,
            "parts": [part(one) for one in artifact.parts],
        }
        if artifact.name:
            wire["name"] = artifact.name
        if artifact.description:
            wire["description"] = artifact.description
        if artifact.metadata is not ABSENT:
            wire["metadata"] = artifact.metadata
        if artifact.extensions:
            wire["extensions"] = artifact.extensions
        return wire

    def update(self, event: TaskEvent) -> tuple[str, dict[str, Any]]:
        """Return what a stream tells of an event: which kind of update (by its name in 1.0), and the update.

        Raises:
            TypeError: the event has no form in a stream.
        """
        change = event.change
        wire: dict[str, Any] = {"taskId": event.task_id, "contextId": event.context_id}
        if isinstance(change, ArtifactChunk):
            wire["artifact"] = self.artifact(change.artifact)
            if change.append:
                wire["append"] = True
            if change.last_chunk:
                wire["lastChunk"] = True
            if change.metadata is not ABSENT:
                wire["metadata"] = change.metadata
            return ARTIFACT_UPDATE, wire
        if isinstance(change, StatusChange):
            wire["status"] = self.status(
                TaskStatus(state=change.state, timestamp=event.at, message=change.message)
            )
            if change.metadata is not ABSENT:
                wire["metadata"] = change.metadata
        elif isinstance(change, Received) and change.state is not None:
            wire["status"] = self.status(TaskStatus(state=change.state, timestamp=event.at))
        else:
            raise TypeError(f"a {type(change).__name__} has no form in a stream")
        return STATUS_UPDATE, wire
