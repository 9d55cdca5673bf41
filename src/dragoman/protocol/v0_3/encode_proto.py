"""The model to the ProtoJSON of the 0.3 proto, as official 0.3 clients parse it: no member that the proto lacks."""

import base64
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
    UrlPart,
)
from dragoman.model.payload import ABSENT
from dragoman.protocol import pages
from dragoman.protocol.protojson import timestamp_text
from dragoman.protocol.spec import Codec
from dragoman.protocol.v0_3.parts import metadata_of, object_of

_to_json = msgspec.json.Encoder().encode
_STATES: Mapping[TaskState, str] = MappingProxyType(
    {state: f"TASK_STATE_{state.name}" for state in TaskState}
    | {TaskState.CANCELED: "TASK_STATE_CANCELLED"}  # so spelt in the 0.3 proto
)
_ROLES: Mapping[Role, str] = MappingProxyType({role: f"ROLE_{role.name}" for role in Role})


class Writer:
    """Writes results for one kind of client (see `decode_proto.Reader`)."""

    def __init__(self, *, doubled: bool) -> None:
        """Write files as they are, or `doubled` as Python SDKs read them."""
        self._doubled = doubled
        self.codec = Codec(
            name="0.3 proto, doubled" if doubled else "0.3 proto",
            answer=self.encode_answer,
            task=self.encode_task,
            page=self.encode_page,
            item=self.encode_item,
        )

    def encode_answer(self, answer: Task | Message) -> bytes:
        """Return a SendMessageResponse."""
        if isinstance(answer, Task):
            return b'{"task":' + self.encode_task(answer) + b"}"
        return b'{"message":' + _to_json(self._message(answer)) + b"}"

    def encode_task(self, task: Task) -> bytes:
        """Return a Task."""
        return _to_json(self._task(task))

    def encode_page(self, page: TaskPage) -> bytes:
        """Return a page of tasks: the 0.3 proto has none, so it is as A2A 1.0 has it, but for the tasks."""
        return pages.encode_page(page, self.encode_task)

    def encode_item(self, item: Task | Message | TaskEvent, last: bool = False) -> bytes:
        """Return a StreamResponse; the last status update of a stream is final."""
        return _to_json(self._event(item, last)) if isinstance(item, TaskEvent) else self.encode_answer(item)

    def _event(self, event: TaskEvent, last: bool) -> dict[str, Any]:
        change = event.change
        update: dict[str, Any] = {"taskId": event.task_id, "contextId": event.context_id}
        if isinstance(change, ArtifactChunk):
            update["artifact"] = self._artifact(change.artifact)
            if change.append:
                update["append"] = True
            if change.last_chunk:
                update["lastChunk"] = True
            if change.metadata is not ABSENT:
                update["metadata"] = change.metadata
            return {"artifactUpdate": update}
        if isinstance(change, StatusChange):
            status = TaskStatus(state=change.state, timestamp=event.at, message=change.message)
            if change.metadata is not ABSENT:
                update["metadata"] = change.metadata
        elif isinstance(change, Received) and change.state is not None:
            status = TaskStatus(state=change.state, timestamp=event.at)
        else:
            raise TypeError(f"a {type(change).__name__} has no form in a stream")
        update["status"] = self._status(status)
        if last:
            update["final"] = True
        return {"statusUpdate": update}

    def _task(self, task: Task) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "id": task.id,
            "contextId": task.context_id,
            "status": self._status(task.status),
        }
        if task.artifacts:
            wire["artifacts"] = [self._artifact(artifact) for artifact in task.artifacts]
        if task.history:
            wire["history"] = [self._message(message) for message in task.history]
        if task.metadata is not ABSENT:
            wire["metadata"] = task.metadata
        return wire

    def _status(self, status: TaskStatus) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "state": _STATES[status.state],
            "timestamp": timestamp_text(status.timestamp),
        }
        if status.message is not None:
            wire["message"] = self._message(status.message)
        return wire

    def _message(self, message: Message) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "messageId": message.message_id,
            "role": _ROLES[message.role],
            "content": [self._part(part) for part in message.parts],
        }
        if message.context_id:
            wire["contextId"] = message.context_id
        if message.task_id:
            wire["taskId"] = message.task_id
        if message.metadata is not ABSENT:
            wire["metadata"] = message.metadata
        if message.extensions:
            wire["extensions"] = message.extensions
        return wire

    def _artifact(self, artifact: Artifact) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "artifactId": artifact.artifact_id,
            "parts": [self._part(part) for part in artifact.parts],
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

    def _part(self, part: Part) -> dict[str, Any]:
        wire: dict[str, Any]
        if isinstance(part, TextPart):
            wire = {"text": part.text}
        elif isinstance(part, DataPart):
            wire = {"data": {"data": object_of(part)}}
        else:
            wire = {"file": self._file(part)}
        metadata = metadata_of(part)
        if metadata is not ABSENT:
            wire["metadata"] = metadata
        return wire

    def _file(self, part: RawPart | UrlPart) -> dict[str, Any]:
        if isinstance(part, RawPart):
            raw = base64.b64encode(part.raw) if self._doubled else part.raw
            file: dict[str, Any] = {"fileWithBytes": raw}
        else:
            file = {"fileWithUri": part.url}
        if part.filename:
            file["name"] = part.filename
        if part.media_type:
            file["mimeType"] = part.media_type
        return file
