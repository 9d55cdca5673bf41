"""The model to A2A 0.3 JSON with `kind` members and lower-case enums (A2A 0.3 §6, §7): JSON-RPC and our HTTP alias."""

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
    TextPart,
)
from dragoman.model.payload import ABSENT
from dragoman.protocol import pages
from dragoman.protocol.media import JSON
from dragoman.protocol.results import STATUS_UPDATE, Results, Spelling
from dragoman.protocol.spec import Codec, PushForm
from dragoman.protocol.v0_3.decode import STATE_NAMES
from dragoman.protocol.v0_3.parts import metadata_of, object_of
from dragoman.protocol.v0_3.push import push_config

_to_json = msgspec.json.Encoder().encode


def encode_answer(answer: Task | Message) -> bytes:
    """Return a Task or a Message; its kind tells which."""
    return encode_task(answer) if isinstance(answer, Task) else _to_json(RESULTS.message(answer))


def encode_task(task: Task) -> bytes:
    """Return a Task."""
    return _to_json(RESULTS.task(task))


def encode_page(page: TaskPage) -> bytes:
    """Return a page of tasks: as A2A 1.0 has it, the tasks as 0.3 has them."""
    return pages.encode_page(page, lambda task: _to_json(RESULTS.task(task, listed=True)))


def encode_item(item: Task | Message | TaskEvent, last: bool = False) -> bytes:
    """Return one result of a stream: a Task, a Message, or an event, of which the last one is final."""
    if not isinstance(item, TaskEvent):
        return encode_answer(item)
    kind, update = RESULTS.update(item)
    if kind == STATUS_UPDATE:
        return _to_json({"kind": "status-update", **update, "final": last})
    return _to_json({"kind": "artifact-update", **update})


def encode_push_config(config: PushConfig) -> bytes:
    """Return a TaskPushNotificationConfig."""
    return _to_json(_task_push_config(config))


def encode_push_configs(found: PushConfigs) -> bytes:
    """Return an array of them: 0.3 knows no pages here."""
    return _to_json([_task_push_config(one) for one in found.configs])


def encode_notification(item: Task | TaskEvent) -> bytes:
    """Return a Task: what a notification holds.

    Raises:
        TypeError: it is an event.
    """
    if not isinstance(item, Task):
        raise TypeError("a notification of A2A 0.3 holds the whole task")
    return encode_task(item)


CODEC = Codec(
    name="0.3",
    answer=encode_answer,
    task=encode_task,
    page=encode_page,
    item=encode_item,
    push_config=encode_push_config,
    push_configs=encode_push_configs,
    nothing=b"null",
)
"""The way with kinds to write results."""

PUSH = PushForm(media_type=JSON, whole=True, encode=encode_notification)
"""0.3 leaves open what a notification holds: it is the Task, as its official servers send it."""


def _task_push_config(config: PushConfig) -> dict[str, Any]:
    return {"taskId": config.task_id, "pushNotificationConfig": push_config(config)}


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


RESULTS = Results(
    Spelling(
        states={state: name for name, state in STATE_NAMES.items()},
        roles={Role.USER: "user", Role.AGENT: "agent"},
        part=_part,
        kinds={"task": "task", "message": "message"},
    )
)
"""How this form writes what all dialects do."""
