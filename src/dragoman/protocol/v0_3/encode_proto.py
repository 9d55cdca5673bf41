"""The model to the ProtoJSON of the 0.3 proto, as official 0.3 clients parse it: no member that the proto lacks."""

import base64
from typing import Any

import msgspec

from dragoman.model import (
    DataPart,
    Message,
    Part,
    PushConfig,
    PushConfigs,
    RawPart,
    Role,
    Task,
    TaskEvent,
    TaskPage,
    TaskState,
    TextPart,
    UrlPart,
)
from dragoman.model.payload import ABSENT
from dragoman.protocol import pages
from dragoman.protocol.results import STATUS_UPDATE, Results, Spelling
from dragoman.protocol.spec import Codec
from dragoman.protocol.v0_3.parts import metadata_of, object_of
from dragoman.protocol.v0_3.push import push_config

_to_json = msgspec.json.Encoder().encode


class Writer:
    """Writes results for one kind of client (see `decode_proto.Reader`).

    Attributes:
        codec: what it writes.
        results: how it writes what all dialects do.
    """

    def __init__(self, *, doubled: bool) -> None:
        """Write files as they are, or `doubled` as Python SDKs read them."""
        self._doubled = doubled
        self.results = Results(
            Spelling(
                states={state: f"TASK_STATE_{state.name}" for state in TaskState}
                | {TaskState.CANCELED: "TASK_STATE_CANCELLED"},  # so spelt in the 0.3 proto
                roles={role: f"ROLE_{role.name}" for role in Role},
                part=self._part,
                parts="content",
                references=False,
            )
        )
        self.codec = Codec(
            name="0.3 proto, doubled" if doubled else "0.3 proto",
            answer=self.encode_answer,
            task=self.encode_task,
            page=self.encode_page,
            item=self.encode_item,
            push_config=encode_push_config,
            push_configs=encode_push_configs,
            nothing=b"{}",
        )

    def encode_answer(self, answer: Task | Message) -> bytes:
        """Return a SendMessageResponse."""
        if isinstance(answer, Task):
            return b'{"task":' + self.encode_task(answer) + b"}"
        return b'{"message":' + _to_json(self.results.message(answer)) + b"}"

    def encode_task(self, task: Task) -> bytes:
        """Return a Task."""
        return _to_json(self.results.task(task))

    def encode_page(self, page: TaskPage) -> bytes:
        """Return a page of tasks: the 0.3 proto has none, so it is as A2A 1.0 has it, but for the tasks."""
        return pages.encode_page(page, self.encode_task)

    def encode_item(self, item: Task | Message | TaskEvent, last: bool = False) -> bytes:
        """Return a StreamResponse; the last status update of a stream is final."""
        if not isinstance(item, TaskEvent):
            return self.encode_answer(item)
        kind, update = self.results.update(item)
        if last and kind == STATUS_UPDATE:
            update["final"] = True
        return _to_json({kind: update})

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


def encode_push_config(config: PushConfig) -> bytes:
    """Return a TaskPushNotificationConfig, which is named as a resource in the 0.3 proto."""
    return _to_json(_named(config))


def encode_push_configs(found: PushConfigs) -> bytes:
    """Return a ListTaskPushNotificationConfigResponse."""
    return _to_json({"configs": [_named(one) for one in found.configs]})


def _named(config: PushConfig) -> dict[str, Any]:
    return {
        "name": f"tasks/{config.task_id}/pushNotificationConfigs/{config.id}",
        "pushNotificationConfig": push_config(config),
    }
