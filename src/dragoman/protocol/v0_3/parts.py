"""What a 0.3 part has no member for, kept in its metadata and taken out of it again.

A text or data part of 0.3 has no file name and no media type, and its data is an object. What is shown to a 0.3
caller therefore carries a note in the part's metadata, and a note that comes back is understood, so that a part
can go to and fro without loss. `differences` names both.
"""

import json
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.model import DataPart, Part, TextPart
from dragoman.model.payload import ABSENT, is_present, pack_parsed
from dragoman.protocol.protojson import Fields, kind_of

NOTE = "urn:dragoman:ext:part:v1"
"""Key of the note that holds `filename` and `mediaType` of a text or data part."""

WRAPPED = "data_part_compat"
"""Key that marks data that was no object and stands in one, under `value`. The official SDKs use the same."""

Notes = tuple[Raw, str, str]
"""A part's metadata without the note, and the file name and media type that were in it."""

_to_json = msgspec.json.Encoder().encode


def text_part(fields: Fields) -> TextPart:
    """Read a text part.

    Raises:
        InvalidParams: a field is wrong.
    """
    metadata, filename, media_type = _notes(fields)
    return TextPart(text=fields.string("text"), filename=filename, media_type=media_type, metadata=metadata)


def data_part(fields: Fields, data: Any, place: str) -> DataPart:
    """Read a data part whose data, found at the member `place`, is `data`.

    Raises:
        InvalidParams: a field is wrong.
    """
    if not isinstance(data, dict):
        raise fields.wrong(place, f"must be an object, not {kind_of(data)}")
    metadata, filename, media_type = _notes(fields)
    marks = fields.get("metadata")
    wrapped = isinstance(marks, dict) and marks.get(WRAPPED) is True and list(data) == ["value"]
    if wrapped and not isinstance(data["value"], dict):
        metadata = _without(marks, WRAPPED, NOTE if filename or media_type else WRAPPED)
        data = data["value"]
    return DataPart(data=pack_parsed(data), filename=filename, media_type=media_type, metadata=metadata)


def metadata_of(part: Part) -> Raw:
    """Return the metadata to show for a part, with a note of what its 0.3 form has no member for."""
    notes: dict[str, Any] = {}
    if isinstance(part, TextPart | DataPart):
        note = {name: value for name, value in _members(part) if value}
        if note:
            notes[NOTE] = note
        if isinstance(part, DataPart) and not is_object(part.data):
            notes[WRAPPED] = True
    return _noted(part.metadata, notes) if notes else part.metadata


def object_of(part: DataPart) -> Raw:
    """Return the data of a part as an object: itself, or wrapped in one."""
    return part.data if is_object(part.data) else Raw(b'{"value":' + bytes(part.data) + b"}")


def is_object(data: Raw) -> bool:
    """Tell whether a payload is a JSON object."""
    return bytes(data).lstrip()[:1] == b"{"


def _members(part: TextPart | DataPart) -> tuple[tuple[str, str], ...]:
    return ("filename", part.filename), ("mediaType", part.media_type)


def _notes(fields: Fields) -> Notes:
    metadata = fields.get("metadata")
    note = metadata.get(NOTE) if isinstance(metadata, dict) else None
    if not isinstance(note, dict) or not note or not all(map(_is_noted, note.items())):
        # Not ours, whatever its name: it stays where it is.
        return fields.payload("metadata"), "", ""
    return _without(metadata, NOTE), note.get("filename", ""), note.get("mediaType", "")


def _is_noted(member: tuple[str, Any]) -> bool:
    name, value = member
    return name in ("filename", "mediaType") and isinstance(value, str) and value != ""


def _without(metadata: Any, *names: str) -> Raw:
    rest = {name: value for name, value in metadata.items() if name not in names}
    return pack_parsed(rest) if rest else ABSENT


def _noted(metadata: Raw, notes: dict[str, Any]) -> Raw:
    """Return metadata with notes added to it as text, so that nothing else in it changes by a byte."""
    if not is_present(metadata):
        return Raw(_to_json(notes))
    text = bytes(metadata).strip()
    # Whether it has a member of that name is looked up only where the name is there at all.
    if any(_to_json(name) in text for name in notes) and not notes.keys().isdisjoint(json.loads(text)):
        # Somebody else's member of that name is not to be repeated or replaced.
        return metadata
    members = text[1:-1].strip()
    return Raw(b"{" + members + b"," + _to_json(notes)[1:]) if members else Raw(_to_json(notes))
