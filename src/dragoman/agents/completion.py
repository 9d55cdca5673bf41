"""What a model server answers to a streamed chat completion, read without input or output.

The form is that of OpenAI's API as its many implementations speak it: events whose data is a chunk in JSON, a last one
that says `[DONE]`. Only an answer that says itself that it is whole counts as one.
"""

import re

import msgspec
from msgspec import Raw, Struct

from dragoman.model.payload import ABSENT

DONE = b"[DONE]"

_CODE = re.compile(r"[a-z_]{1,64}")


class ModelFailed(Exception):
    """A model gave no whole answer.

    Attributes:
        detail: more about it for the log; nothing of what was said, and nothing secret.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        """`message` says what is wrong, to the caller."""
        super().__init__(message)
        self.detail = detail


class _Delta(Struct):
    content: str | None = None


class _Choice(Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(Struct):
    choices: tuple[_Choice, ...] | None = None
    error: Raw = ABSENT


class _Fault(Struct):
    type: str | None = None
    code: str | int | None = None


class _Failed(Struct):
    error: _Fault


_read = msgspec.json.Decoder(_Chunk).decode

_CUT_SHORT = {
    "length": "The model's answer was cut off at its longest length.",
    "content_filter": "The model's answer was stopped by a content filter.",
    "tool_calls": "The model asked for a tool, and this agent has none.",
    "function_call": "The model asked for a tool, and this agent has none.",
}


class Completion:
    """Reads an answer, event by event.

    Attributes:
        finished: whether the model has said that it is through.
    """

    def __init__(self) -> None:
        self.finished = False
        self._done = False
        self._said = False

    def read(self, event: bytes) -> str:
        """Return the text that an event brings, if any.

        Raises:
            ModelFailed: it tells of an error, is none of the kind, or the model stopped before its end.
        """
        if self._done or event.strip() == DONE:
            self._done = True
            return ""
        try:
            chunk = _read(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ModelFailed(
                "The model server answered with something that is no chat completion."
            ) from None
        if bytes(chunk.error) not in (b"", b"null"):
            raise ModelFailed("The model server reported an error while it answered.", fault_of(event))
        text = ""
        for choice in chunk.choices or ():
            if choice.index == 0:
                text += self._take(choice)
        return text

    def end(self) -> None:
        """Make sure that all was said.

        Raises:
            ModelFailed: the stream ended before the answer did, or there is no answer in it.
        """
        if not self.finished:
            raise ModelFailed(
                "The model server broke off its answer.", "the stream ended without a finish_reason"
            )
        if not self._said:
            raise ModelFailed("The model gave no text.")

    def _take(self, choice: _Choice) -> str:
        text = (choice.delta.content if choice.delta is not None else None) or ""
        self._said = self._said or bool(text)
        reason = choice.finish_reason
        # Some servers say "" as long as there is none.
        if reason == "stop":
            self.finished = True
        elif reason:
            raise ModelFailed(
                _CUT_SHORT.get(reason, "The model stopped before its answer was whole."),
                f"finish_reason is {reason}" if _CODE.fullmatch(reason) else "",
            )
        return text


def fault_of(body: bytes) -> str:
    """Return what kind of error a body tells of, for the log, if it says so in a word; never its message.

    Words in which a key could hide are left out.
    """
    try:
        fault = msgspec.json.decode(body, type=_Failed).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    words = [str(word) for word in (fault.type, fault.code) if word is not None]
    return ", ".join(word for word in words if _CODE.fullmatch(word))
