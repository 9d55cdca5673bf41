"""The model to A2A 1.0 ProtoJSON (A2A 1.0 §4, §5.5-§5.7): names in camelCase, enums by name, defaults left out."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.model import (
    Artifact,
    ArtifactChunk,
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
    UrlPart,
)
from dragoman.model.payload import ABSENT
from dragoman.protocol import pages
from dragoman.protocol.protojson import timestamp_text
from dragoman.protocol.spec import Codec

_to_json = msgspec.json.Encoder().encode
_STATES: Mapping[TaskState, str] = MappingProxyType(
    {state: f"TASK_STATE_{state.name}" for state in TaskState}
)
_ROLES: Mapping[Role, str] = MappingProxyType({role: f"ROLE_{role.name}" for role in Role})


def encode_answer(answer: Task | Message) -> bytes:
    """Return a SendMessageResponse."""
    if isinstance(answer, Task):
        return b'{"task":' + encode_task(answer) + b"}"
    return b'{"message":' + _to_json(_message(answer)) + b"}"


def encode_task(task: Task) -> bytes:
    """Return a Task."""
    return _to_json(_task(task))


def encode_page(page: TaskPage) -> bytes:
    """Return a ListTasksResponse. Its four members are always there, artifacts only where they were asked for."""
    return pages.encode_page(page, lambda task: _to_json(_task(task, listed=True)))


def encode_item(item: Task | Message | TaskEvent, last: bool = False) -> bytes:
    """Return a StreamResponse. That an item is the last one shows by the end of the stream alone."""
    if isinstance(item, TaskEvent):
        return _to_json(_event(item))
    return encode_answer(item)


CODEC = Codec(name="1.0", answer=encode_answer, task=encode_task, page=encode_page, item=encode_item)
"""The one way of A2A 1.0 to write results."""


def _event(event: TaskEvent) -> dict[str, Any]:
    change = event.change
    update: dict[str, Any] = {"taskId": event.task_id, "contextId": event.context_id}
    if isinstance(change, ArtifactChunk):
        update["artifact"] = _artifact(change.artifact)
        if change.append:
            update["append"] = True
        if change.last_chunk:
            update["lastChunk"] = True
        if change.metadata is not ABSENT:
            update["metadata"] = change.metadata
        return {"artifactUpdate": update}
    if isinstance(change, StatusChange):
        update["status"] = _status(TaskStatus(state=change.state, timestamp=event.at, message=change.message))
        if change.metadata is not ABSENT:
            update["metadata"] = change.metadata
    elif isinstance(change, Received) and change.state is not None:
        update["status"] = _status(TaskStatus(state=change.state, timestamp=event.at))
    else:
        raise TypeError(f"a {type(change).__name__} has no form in a stream")
    return {"statusUpdate": update}


def _task(task: Task, *, listed: bool = False) -> dict[str, Any]:
    wire: dict[str, Any] = {"id": task.id, "contextId": task.context_id, "status": _status(task.status)}
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
        wire = {"text": part.text}
    elif isinstance(part, RawPart):
        wire = {"raw": part.raw}
    elif isinstance(part, UrlPart):
        wire = {"url": part.url}
    else:
        wire = {"data": part.data}
    if part.filename:
        wire["filename"] = part.filename
    if part.media_type:
        wire["mediaType"] = part.media_type
    if part.metadata is not ABSENT:
        wire["metadata"] = part.metadata
    return wire
