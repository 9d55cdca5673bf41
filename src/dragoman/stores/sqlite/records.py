"""Model values to stored bytes and back: version-neutral JSON by msgspec."""

import msgspec

from dragoman.gateway.ports import RunRequest
from dragoman.model import Change, TaskEvent

encode = msgspec.json.Encoder().encode
decode_change = msgspec.json.Decoder(Change).decode
decode_request = msgspec.json.Decoder(RunRequest).decode

RECEIVED = b'{"c":"received"'
"""How the record of a Received begins."""


def event_from_row(task_id: str, context_id: str, row: tuple[int, int, int, bytes]) -> TaskEvent:
    """Return the event of a row (seq, attempt, at, payload)."""
    seq, attempt, at, payload = row
    return TaskEvent(task_id, context_id, seq, at, attempt, decode_change(payload))
