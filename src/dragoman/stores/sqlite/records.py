"""Model values to stored bytes and back: version-neutral JSON by msgspec."""

import logging
from collections.abc import Iterable

import msgspec
from msgspec import Raw

from dragoman.gateway.ports import Acceptance, Accepted, RunRequest
from dragoman.model import ArtifactChunk, Change, TaskEvent, TaskFold
from dragoman.model.errors import ArtifactUnverified, MessageIdConflict
from dragoman.model.payload import ABSENT

_LOG = logging.getLogger("dragoman.store")

encode = msgspec.json.Encoder().encode
decode_change = msgspec.json.Decoder(Change).decode
decode_request = msgspec.json.Decoder(RunRequest).decode
decode_given = msgspec.json.Decoder(tuple[ArtifactChunk, ...]).decode

RECEIVED = b'{"c":"received"'
"""How the record of a Received begins."""


def event_from_row(task_id: str, context_id: str, row: tuple[int, int, int, bytes]) -> TaskEvent:
    """Return the event of a row (seq, attempt, at, payload).

    Raises:
        ArtifactUnverified: nothing of ours was ever written like that.
    """
    seq, attempt, at, payload = row
    return TaskEvent(task_id, context_id, seq, at, attempt, change_from_row(task_id, payload))


def accepted_from_row(row: tuple[bytes, str] | None, acceptance: Acceptance) -> Accepted | None:
    """Return what became of a message whose identity has this row (digest, task id), if it has one.

    Raises:
        MessageIdConflict: the row is another message's.
    """
    if row is None:
        return None
    digest, task_id = row
    if digest != acceptance.digest:
        raise MessageIdConflict.of(
            "message.messageId", "was used before for another message; send a new message under a new id"
        )
    return Accepted(task_id=task_id, replayed=True, events=())


def change_from_row(task_id: str, payload: bytes) -> Change:
    """Return the change that an event's payload tells of.

    Raises:
        ArtifactUnverified: nothing of ours was ever written like that.
    """
    try:
        return decode_change(payload)
    except msgspec.DecodeError as error:
        raise _damaged(task_id, error) from error


def folded(
    task_id: str, context_id: str, events: Iterable[TaskEvent], *, metadata: bytes | None, deadline: int
) -> TaskFold:
    """Return the fold of a task's events, and of what its row says of it: its metadata, and its deadline at first.

    Raises:
        ArtifactUnverified: one is missing.
    """
    fold = TaskFold(task_id, context_id, Raw(metadata) if metadata else ABSENT, deadline=deadline)
    try:
        fold.apply_all(events)
    except ValueError as error:
        raise _damaged(task_id, error) from error
    return fold


def _damaged(task_id: str, error: Exception) -> ArtifactUnverified:
    _LOG.error("the events of a task are damaged: %s", error, extra={"task_id": task_id})
    return ArtifactUnverified(task_id)
