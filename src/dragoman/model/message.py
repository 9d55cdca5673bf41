"""Message, Part and Artifact (A2A 1.0 §4.1.4-§4.1.7), free of any wire form."""

from enum import IntEnum
from typing import Any

from msgspec import Raw, Struct

from dragoman.model import payload
from dragoman.model.payload import ABSENT


class Role(IntEnum):
    """Who speaks. The numbers are the standard's."""

    USER = 1
    AGENT = 2


class _PartFields(Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="t"):
    """What every kind of part may carry beside its content."""

    filename: str = ""
    media_type: str = ""
    metadata: Raw = ABSENT


class TextPart(_PartFields, frozen=True, omit_defaults=True, tag="text"):
    """A piece of text."""

    text: str


class RawPart(_PartFields, frozen=True, omit_defaults=True, tag="raw"):
    """The bytes of a file."""

    raw: bytes


class UrlPart(_PartFields, frozen=True, omit_defaults=True, tag="url"):
    """A file that lies elsewhere. Dragoman itself never fetches it."""

    url: str


class DataPart(_PartFields, frozen=True, omit_defaults=True, tag="data"):
    """A JSON value of any kind, `null` included."""

    data: Raw

    @classmethod
    def of(cls, value: Any, *, media_type: str = "", filename: str = "") -> "DataPart":
        """Return a part that holds `value`.

        Raises:
            ValueError, TypeError: `value` has no JSON form (see `payload.pack`).
        """
        return cls(data=payload.pack(value), media_type=media_type, filename=filename)

    @property
    def value(self) -> Any:
        """The data as Python objects, parsed anew at each call."""
        return payload.unpack(self.data)


Part = TextPart | RawPart | UrlPart | DataPart
"""One piece of content: exactly one of text, raw bytes, a URL or data."""


class Message(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One turn of a conversation. A caller's message has role USER; at least one part is present."""

    message_id: str
    role: Role
    parts: tuple[Part, ...]
    context_id: str = ""
    task_id: str = ""
    metadata: Raw = ABSENT
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined by newlines; empty if there are none."""
        return text_of(self.parts)


class Artifact(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A result of a task. `artifact_id` is unique in its task."""

    artifact_id: str
    parts: tuple[Part, ...]
    name: str = ""
    description: str = ""
    metadata: Raw = ABSENT
    extensions: tuple[str, ...] = ()


def text_of(parts: tuple[Part, ...]) -> str:
    """Return the text parts among `parts`, joined by newlines."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))
