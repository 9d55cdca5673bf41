"""The model to A2A 1.0 ProtoJSON (A2A 1.0 §4, §5.5-§5.7): names in camelCase, enums by name, defaults left out."""

from typing import Any

import msgspec

from dragoman.model import (
    Message,
    Part,
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
from dragoman.protocol.results import Results, Spelling
from dragoman.protocol.spec import Codec

_to_json = msgspec.json.Encoder().encode


def encode_answer(answer: Task | Message) -> bytes:
    """Return a SendMessageResponse."""
    if isinstance(answer, Task):
        return b'{"task":' + encode_task(answer) + b"}"
    return b'{"message":' + _to_json(_RESULTS.message(answer)) + b"}"


def encode_task(task: Task) -> bytes:
    """Return a Task."""
    return _to_json(_RESULTS.task(task))


def encode_page(page: TaskPage) -> bytes:
    """Return a ListTasksResponse. Its four members are always there, artifacts only where they were asked for."""
    return pages.encode_page(page, lambda task: _to_json(_RESULTS.task(task, listed=True)))


def encode_item(item: Task | Message | TaskEvent, last: bool = False) -> bytes:
    """Return a StreamResponse. That an item is the last one shows by the end of the stream alone."""
    if isinstance(item, TaskEvent):
        kind, update = _RESULTS.update(item)
        return _to_json({kind: update})
    return encode_answer(item)


CODEC = Codec(name="1.0", answer=encode_answer, task=encode_task, page=encode_page, item=encode_item)
"""The one way of A2A 1.0 to write results."""


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


_RESULTS = Results(
    Spelling(
        states={state: f"TASK_STATE_{state.name}" for state in TaskState},
        roles={role: f"ROLE_{role.name}" for role in Role},
        part=_part,
    )
)
