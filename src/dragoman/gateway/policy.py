"""What a surface lets its callers send and shows them, as data: operations follow it and never ask whose it is."""

from msgspec import Struct

from dragoman.model import DataPart, Part, RawPart, TextPart
from dragoman.model.errors import FieldViolation, InvalidParams, UnsupportedOperation
from dragoman.model.operation import SendMessage
from dragoman.model.payload import is_present


class TextOnly(Struct, frozen=True):
    """Bounds of a message that may hold text alone: parts, and Unicode code points in all of them together."""

    parts: int
    characters: int


class Policy(Struct, frozen=True, kw_only=True):
    """One surface's rules.

    `text_only` bounds messages and forbids everything in them but text, `continues` lets them name a task to go on
    with, and `names_contexts` a context. `resumes_streams` lets a stream begin after a given event.
    `verifies` checks every result that is shown against what was written of it, and `result_bytes` bounds a reply.
    `window` ends waits and streams after so many seconds, without an error, and `watches` counts them.
    """

    name: str
    text_only: TextOnly | None = None
    continues: bool = True
    names_contexts: bool = True
    resumes_streams: bool = True
    verifies: bool = False
    result_bytes: int | None = None
    window: float | None = None
    watches: bool = False

    def check(self, request: SendMessage) -> None:
        """Refuse a message that this surface does not take.

        Raises:
            UnsupportedOperation: it continues a task.
            InvalidParams: it holds something else than it may; every field is named.
        """
        message = request.message
        if message.task_id and not self.continues:
            raise UnsupportedOperation(
                "message.taskId: tasks are not continued here; send a new message without it"
            )
        wrong: list[FieldViolation] = []
        if message.context_id and not self.names_contexts:
            wrong.append(FieldViolation("message.contextId", "is given out by the server; leave it out"))
        if self.text_only is not None:
            wrong += _beyond_text(request, self.text_only)
        if wrong:
            raise InvalidParams(wrong)


OPEN = Policy(name="open")
"""Everything that the standard allows."""

HOSTED = Policy(
    name="hosted",
    text_only=TextOnly(parts=16, characters=32_000),
    continues=False,
    names_contexts=False,
    resumes_streams=False,
    verifies=True,
    result_bytes=1024 * 1024,
    window=110.0,
    watches=True,
)
"""Text in, one verified text out, for many tenants' callers."""


def _beyond_text(request: SendMessage, bounds: TextOnly) -> list[FieldViolation]:
    message = request.message
    wrong: list[FieldViolation] = []
    if is_present(request.metadata):
        wrong.append(_left_out("metadata"))
    if is_present(message.metadata):
        wrong.append(_left_out("message.metadata"))
    if message.extensions:
        wrong.append(_left_out("message.extensions"))
    if message.reference_task_ids:
        wrong.append(_left_out("message.referenceTaskIds"))
    characters = 0
    for index, part in enumerate(message.parts):
        if isinstance(part, TextPart):
            characters += len(part.text)
            if part.text and not is_present(part.metadata):
                continue
        wrong += _beyond_text_part(part, f"message.parts[{index}]")
    if len(message.parts) > bounds.parts:
        wrong.append(FieldViolation("message.parts", f"must not hold more than {bounds.parts} parts"))
    if characters > bounds.characters:
        wrong.append(
            FieldViolation("message.parts", f"must not hold more than {bounds.characters} characters in all")
        )
    return wrong


def _beyond_text_part(part: Part, path: str) -> list[FieldViolation]:
    wrong = []
    if not isinstance(part, TextPart):
        kind = "data" if isinstance(part, DataPart) else "raw" if isinstance(part, RawPart) else "url"
        wrong.append(FieldViolation(f"{path}.{kind}", "is not taken here; send text"))
    elif not part.text:
        wrong.append(FieldViolation(f"{path}.text", "must not be empty"))
    if is_present(part.metadata):
        wrong.append(_left_out(f"{path}.metadata"))
    return wrong


def _left_out(field: str) -> FieldViolation:
    return FieldViolation(field, "is not taken here; leave it out")
