"""Model values to stored bytes and back: version-neutral JSON by msgspec."""

import msgspec

from dragoman.gateway.ports import Acceptance, Accepted, RunRequest
from dragoman.model import Change, TaskEvent
from dragoman.model.errors import MessageIdConflict

encode = msgspec.json.Encoder().encode
decode_change = msgspec.json.Decoder(Change).decode
decode_request = msgspec.json.Decoder(RunRequest).decode

RECEIVED = b'{"c":"received"'
"""How the record of a Received begins."""


def event_from_row(task_id: str, context_id: str, row: tuple[int, int, int, bytes]) -> TaskEvent:
    """Return the event of a row (seq, attempt, at, payload)."""
    seq, attempt, at, payload = row
    return TaskEvent(task_id, context_id, seq, at, attempt, decode_change(payload))


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
