"""The model to A2A 0.3 JSON with `kind` members and lower-case enums (A2A 0.3 §6, §7): JSON-RPC and our HTTP alias."""

from typing import Any

import msgspec

from dragoman.model import DataPart, Message, Part, RawPart, Role, Task, TaskEvent, TaskPage, TextPart
from dragoman.model.payload import ABSENT
from dragoman.protocol import pages
from dragoman.protocol.results import STATUS_UPDATE, Results, Spelling
from dragoman.protocol.spec import Codec
from dragoman.protocol.v0_3.decode import STATE_NAMES
from dragoman.protocol.v0_3.parts import metadata_of, object_of

_to_json = msgspec.json.Encoder().encode


def encode_answer(answer: Task | Message) -> bytes:
    """Return a Task or a Message; its kind tells which."""
    return encode_task(answer) if isinstance(answer, Task) else _to_json(_RESULTS.message(answer))


def encode_task(task: Task) -> bytes:
    """Return a Task."""
    return _to_json(_RESULTS.task(task))


def encode_page(page: TaskPage) -> bytes:
    """Return a page of tasks: as A2A 1.0 has it, the tasks as 0.3 has them."""
    return pages.encode_page(page, lambda task: _to_json(_RESULTS.task(task, listed=True)))


def encode_item(item: Task | Message | TaskEvent, last: bool = False) -> bytes:
    """Return one result of a stream: a Task, a Message, or an event, of which the last one is final."""
    if not isinstance(item, TaskEvent):
        return encode_answer(item)
    kind, update = _RESULTS.update(item)
    if kind == STATUS_UPDATE:
        return _to_json({"kind": "status-update", **update, "final": last})
    return _to_json({"kind": "artifact-update", **update})


CODEC = Codec(name="0.3", answer=encode_answer, task=encode_task, page=encode_page, item=encode_item)
"""The way with kinds to write results."""


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


_RESULTS = Results(
    Spelling(
        states={state: name for name, state in STATE_NAMES.items()},
        roles={Role.USER: "user", Role.AGENT: "agent"},
        part=_part,
        kinds={"task": "task", "message": "message"},
    )
)
