"""Results of remote agents to the model: the walk that all dialects share, for what each one spells in its own way.

The counterpart of `results`. What a remote agent gives is bounded by bytes before it comes here, not by counts.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, structs

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Message,
    Part,
    Role,
    StatusChange,
    Task,
    TaskState,
    TaskStatus,
)
from dragoman.model.errors import InvalidParams
from dragoman.protocol.client import Told
from dragoman.protocol.protojson import Fields, kind_of


class Heard(Struct, frozen=True, kw_only=True):
    """How a dialect spells what a remote agent says: the counterpart of `results.Spelling`.

    `part` reads one part, `parts` is the member of a message that holds them.
    """

    states: Mapping[str | int, TaskState]
    roles: Mapping[str | int, Role]
    part: Callable[[Fields], Part]
    parts: str = "parts"


class Replies:
    """Reads results in one spelling. Every method raises InvalidParams where something is wrong, naming the field."""

    def __init__(self, heard: Heard) -> None:
        self._states = heard.states
        self._roles = heard.roles
        self._part = heard.part
        self._parts = heard.parts

    def task(self, fields: Fields) -> Task:
        """Return a task."""
        status = fields.fields("status")
        if status is None:
            raise fields.wrong("status", "is required")
        change = self._change(status)
        return Task(
            id=fields.required("id"),
            context_id=fields.string("contextId", "context_id"),
            status=TaskStatus(state=change.state, timestamp=_moment(status), message=change.message),
            artifacts=tuple(self.artifact(one) for one in _objects(fields, "artifacts")),
            history=tuple(self.message(one) for one in _objects(fields, "history")),
            metadata=fields.payload("metadata"),
        )

    def message(self, fields: Fields) -> Message:
        """Return a message, of either side."""
        role = fields.get("role")
        if isinstance(role, bool) or not isinstance(role, str | int) or role not in self._roles:
            raise fields.wrong("role", "is required and must be a role")
        return Message(
            message_id=fields.required("messageId", "message_id"),
            role=self._roles[role],
            parts=self._read_parts(fields, self._parts),
            context_id=fields.string("contextId", "context_id"),
            task_id=fields.string("taskId", "task_id"),
            metadata=fields.payload("metadata"),
            extensions=fields.strings("extensions"),
            reference_task_ids=fields.strings("referenceTaskIds", "reference_task_ids"),
        )

    def artifact(self, fields: Fields) -> Artifact:
        """Return an artifact."""
        return Artifact(
            artifact_id=fields.required("artifactId", "artifact_id"),
            parts=self._read_parts(fields, "parts"),
            name=fields.string("name"),
            description=fields.string("description"),
            metadata=fields.payload("metadata"),
            extensions=fields.strings("extensions"),
        )

    def status_update(self, fields: Fields) -> Told:
        """Return what a status update tells."""
        status = fields.fields("status")
        if status is None:
            raise fields.wrong("status", "is required")
        change = self._change(status)
        change = structs.replace(change, metadata=fields.payload("metadata"))
        return self._told(fields, change, _moment(status))

    def artifact_update(self, fields: Fields) -> Told:
        """Return what an artifact update tells."""
        artifact = fields.fields("artifact")
        if artifact is None:
            raise fields.wrong("artifact", "is required")
        return self._told(
            fields,
            ArtifactChunk(
                self.artifact(artifact),
                append=fields.boolean("append"),
                last_chunk=fields.boolean("lastChunk", "last_chunk"),
                metadata=fields.payload("metadata"),
            ),
        )

    def _told(self, fields: Fields, change: StatusChange | ArtifactChunk, at: int = 0) -> Told:
        return Told(
            fields.required("taskId", "task_id"), fields.string("contextId", "context_id"), change, at
        )

    def _change(self, status: Fields) -> StatusChange:
        state = status.get("state")
        if isinstance(state, bool) or not isinstance(state, str | int) or state not in self._states:
            raise status.wrong("state", "is required and must be a state")
        message = status.fields("message", "update")
        # Official Python servers of 0.3 write an empty message where there is none.
        said = self.message(message) if message is not None and message.members else None
        return StatusChange(self._states[state], said)

    def _read_parts(self, fields: Fields, name: str) -> tuple[Part, ...]:
        return tuple(self._part(one) for one in _objects(fields, name))


def _moment(status: Fields) -> int:
    """Return the time of a status; 0 if there is none that can be read. A time without a zone is one of UTC."""
    value = status.get("timestamp")
    if not isinstance(value, str):
        return 0
    for text in (value, f"{value}Z"):
        try:
            return Fields({"timestamp": text}).timestamp("timestamp") or 0
        except InvalidParams:
            continue
    return 0


def _objects(fields: Fields, name: str) -> list[Fields]:
    value: Any = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise fields.wrong(name, f"must be an array, not {kind_of(value)}")
    path = fields.at(name)
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise Fields({}, f"{path}[{index}]").wrong("", f"must be an object, not {kind_of(item)}")
    return [Fields(item, f"{path}[{index}]") for index, item in enumerate(value)]
