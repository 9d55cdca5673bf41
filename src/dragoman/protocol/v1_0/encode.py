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
from dragoman.protocol.protojson import timestamp_text

MAX_PAGE_BYTES = 1024 * 1024
"""A page of tasks is cut to this size, but always holds one task."""

_PAGE_FRAME = 1024
"""Bytes of a page that are no tasks: its other members, and the envelope of a binding."""

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
    texts: list[bytes] = []
    size = _PAGE_FRAME
    for task in page.tasks:
        text = _to_json(_task(task, listed=True))
        size += len(text) + 1
        if texts and size > MAX_PAGE_BYTES:
            break
        texts.append(text)
    page = page.first(len(texts))
    rest = {"nextPageToken": page.next_token, "pageSize": page.page_size, "totalSize": page.total}
    return b'{"tasks":[' + b",".join(texts) + b"]," + _to_json(rest)[1:]


def encode_item(item: Task | Message | TaskEvent) -> bytes:
    """Return a StreamResponse."""
    if isinstance(item, TaskEvent):
        return _to_json(_event(item))
    return encode_answer(item)


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
