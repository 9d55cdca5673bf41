"""The model to A2A 0.3 JSON with `kind` members and lower-case enums (A2A 0.3 §6, §7): JSON-RPC and our HTTP alias."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    DataPart,
    Message,
    Part,
    RawPart,
    Received,
    Role,
    StatusChange,
    Task,
    TaskEvent,
    TaskPage,
    TaskState,
    TaskStatus,
    TextPart,
)
from dragoman.model.payload import ABSENT
from dragoman.protocol import pages
from dragoman.protocol.protojson import timestamp_text
from dragoman.protocol.spec import Codec
from dragoman.protocol.v0_3.decode import STATE_NAMES
from dragoman.protocol.v0_3.parts import metadata_of, object_of

_to_json = msgspec.json.Encoder().encode
_STATES: Mapping[TaskState, str] = MappingProxyType({state: name for name, state in STATE_NAMES.items()})
_ROLES: Mapping[Role, str] = MappingProxyType({Role.USER: "user", Role.AGENT: "agent"})


def encode_answer(answer: Task | Message) -> bytes:
    """Return a Task or a Message; its kind tells which."""
    return encode_task(answer) if isinstance(answer, Task) else _to_json(_message(answer))


def encode_task(task: Task) -> bytes:
    """Return a Task."""
    return _to_json(_task(task))


def encode_page(page: TaskPage) -> bytes:
    """Return a page of tasks: as A2A 1.0 has it, the tasks as 0.3 has them."""
    return pages.encode_page(page, lambda task: _to_json(_task(task, listed=True)))


def encode_item(item: Task | Message | TaskEvent, last: bool = False) -> bytes:
    """Return one result of a stream: a Task, a Message, or an event, of which the last one is final."""
    return _to_json(_event(item, last)) if isinstance(item, TaskEvent) else encode_answer(item)


CODEC = Codec(name="0.3", answer=encode_answer, task=encode_task, page=encode_page, item=encode_item)
"""The way with kinds to write results."""


def _event(event: TaskEvent, last: bool) -> dict[str, Any]:
    change = event.change
    update: dict[str, Any] = {"taskId": event.task_id, "contextId": event.context_id}
    if isinstance(change, ArtifactChunk):
        update["kind"] = "artifact-update"
        update["artifact"] = _artifact(change.artifact)
        if change.append:
            update["append"] = True
        if change.last_chunk:
            update["lastChunk"] = True
        if change.metadata is not ABSENT:
            update["metadata"] = change.metadata
        return update
    update["kind"] = "status-update"
    if isinstance(change, StatusChange):
        update["status"] = _status(TaskStatus(state=change.state, timestamp=event.at, message=change.message))
        if change.metadata is not ABSENT:
            update["metadata"] = change.metadata
    elif isinstance(change, Received) and change.state is not None:
        update["status"] = _status(TaskStatus(state=change.state, timestamp=event.at))
    else:
        raise TypeError(f"a {type(change).__name__} has no form in a stream")
    update["final"] = last
    return update


def _task(task: Task, *, listed: bool = False) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "kind": "task",
        "id": task.id,
        "contextId": task.context_id,
        "status": _status(task.status),
    }
    if task.artifacts or (listed and task.artifacts is not None):
        wire["artifacts"] = [_artifact(artifact) for artifact in task.artifacts]
    if task.history:
        wire["history"] = [_message(message) for message in task.history]
    if task.metadata is not ABSENT:
        wire["metadata"] = task.metadata
    return wire


def _status(status: TaskStatus) -> dict[str, Any]:
    wire: dict[str, Any] = {"state": _STATES[status.state], "timestamp": timestamp_text(status.timestamp)}
    if status.message is not None:
        wire["message"] = _message(status.message)
    return wire


def _message(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "kind": "message",
        "messageId": message.message_id,
        "role": _ROLES[message.role],
        "parts": [_part(part) for part in message.parts],
    }
    if message.context_id:
        wire["contextId"] = message.context_id
    if message.task_id:
        wire["taskId"] = message.task_id
    if message.metadata is not ABSENT:
        wire["metadata"] = message.metadata
    if message.extensions:
        wire["extensions"] = message.extensions
    if message.reference_task_ids:
        wire["referenceTaskIds"] = message.reference_task_ids
    return wire


def _artifact(artifact: Artifact) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "artifactId": artifact.artifact_id,
        "parts": [_part(part) for part in artifact.parts],
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


def _part(part: Part) -> dict[str, Any]:
    wire: dict[str, Any]
    if isinstance(part, TextPart):
        wire = {"kind": "text", "text": part.text}
    elif isinstance(part, DataPart):
        wire = {"kind": "data", "data": object_of(part)}
    else:
        file: dict[str, Any] = {"bytes": part.raw} if isinstance(part, RawPart) else {"uri": part.url}
        if part.filename:
            file["name"] = part.filename
        if part.media_type:
            file["mimeType"] = part.media_type
        wire = {"kind": "file", "file": file}
    metadata = metadata_of(part)
    if metadata is not ABSENT:
        wire["metadata"] = metadata
    return wire
