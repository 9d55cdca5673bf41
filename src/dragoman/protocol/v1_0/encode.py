"""The model to A2A 1.0 ProtoJSON (A2A 1.0 §4, §5.5-§5.7): names in camelCase, enums by name, defaults left out."""

from typing import Any

import msgspec

from dragoman.model import (
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
from dragoman.protocol.media import A2A_JSON
from dragoman.protocol.results import Results, Spelling
from dragoman.protocol.spec import Codec, PushForm

_to_json = msgspec.json.Encoder().encode


def encode_answer(answer: Task | Message) -> bytes:
    """Return a SendMessageResponse."""
    if isinstance(answer, Task):
        return b'{"task":' + encode_task(answer) + b"}"
    return b'{"message":' + _to_json(RESULTS.message(answer)) + b"}"


def encode_task(task: Task) -> bytes:
    """Return a Task."""
    return _to_json(RESULTS.task(task))


def encode_page(page: TaskPage) -> bytes:
    """Return a ListTasksResponse. Its four members are always there, artifacts only where they were asked for."""
    return pages.encode_page(page, lambda task: _to_json(RESULTS.task(task, listed=True)))


def encode_item(item: Task | Message | TaskEvent, last: bool = False) -> bytes:
    """Return a StreamResponse. That an item is the last one shows by the end of the stream alone."""
    if isinstance(item, TaskEvent):
        kind, update = RESULTS.update(item)
        return _to_json({kind: update})
    return encode_answer(item)


def encode_push_config(config: PushConfig) -> bytes:
    """Return a TaskPushNotificationConfig."""
    return _to_json(_push_config(config))


def encode_push_configs(found: PushConfigs) -> bytes:
    """Return a ListTaskPushNotificationConfigsResponse."""
    return _to_json(
        {"configs": [_push_config(one) for one in found.configs], "nextPageToken": found.next_token}
    )


CODEC = Codec(
    name="1.0",
    answer=encode_answer,
    task=encode_task,
    page=encode_page,
    item=encode_item,
    push_config=encode_push_config,
    push_configs=encode_push_configs,
    nothing=b"{}",
)
"""The one way of A2A 1.0 to write results."""

PUSH = PushForm(media_type=A2A_JSON, whole=False, encode=encode_item)
"""A notification is a StreamResponse, whichever binding its configuration came by (A2A 1.0 §4.3.3)."""


def _push_config(config: PushConfig) -> dict[str, Any]:
    wire: dict[str, Any] = {"id": config.id, "taskId": config.task_id, "url": config.url}
    if config.scheme:
        wire["authentication"] = {"scheme": config.scheme}
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


RESULTS = Results(
    Spelling(
        states={state: f"TASK_STATE_{state.name}" for state in TaskState},
        roles={role: f"ROLE_{role.name}" for role in Role},
        part=_part,
    )
)
"""How this form writes what all dialects do."""
