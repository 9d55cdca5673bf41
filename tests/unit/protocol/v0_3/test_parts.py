"""Notes in a part's metadata: what 0.3 has no member for is kept there, and taken out again."""

import json
from typing import Any

import pytest

from dragoman.model import DataPart, Part, RawPart, TextPart, UrlPart
from dragoman.model.errors import InvalidParams
from dragoman.model.payload import ABSENT, Raw, pack
from dragoman.protocol.protojson import Fields
from dragoman.protocol.v0_3.parts import (
    NOTE,
    WRAPPED,
    data_part,
    is_object,
    metadata_of,
    object_of,
    text_part,
)


def value_of(raw: Raw) -> Any:
    return None if raw is ABSENT else json.loads(bytes(raw))


def test_the_keys_are_kept_for_ever() -> None:
    # They are stored by callers, and one of them is the official SDKs' own.
    assert (NOTE, WRAPPED) == ("urn:dragoman:ext:part:v1", "data_part_compat")


@pytest.mark.parametrize(
    ("part", "metadata"),
    [
        (TextPart(text="x"), None),
        (TextPart(text="x", metadata=pack({"a": 1})), {"a": 1}),
        (TextPart(text="x", filename="f"), {NOTE: {"filename": "f"}}),
        (TextPart(text="x", media_type="a/b"), {NOTE: {"mediaType": "a/b"}}),
        (
            TextPart(text="x", filename="f", media_type="a/b", metadata=pack({"z": 1, "a": 2})),
            {"z": 1, "a": 2, NOTE: {"filename": "f", "mediaType": "a/b"}},
        ),
        (DataPart(data=pack({})), None),
        (DataPart(data=pack({}), filename="f"), {NOTE: {"filename": "f"}}),
        (DataPart(data=pack([])), {WRAPPED: True}),
        (DataPart(data=pack(None), media_type="a/b"), {NOTE: {"mediaType": "a/b"}, WRAPPED: True}),
        (RawPart(raw=b"", filename="f", media_type="a/b"), None),
        (UrlPart(url="u", filename="f", metadata=pack({"a": 1})), {"a": 1}),
    ],
)
def test_what_0_3_has_no_member_for_is_noted_after_the_parts_own_metadata(part: Part, metadata: Any) -> None:
    shown = value_of(metadata_of(part))
    assert json.dumps(shown) == json.dumps(metadata)


@pytest.mark.parametrize(
    "own", ['{"a":1}', ' { "a" : 1 } ', '{"n":18014398509481985,"s":"\\u0000 }"}', "{}", "{ }"]
)
def test_metadata_gets_a_note_without_a_byte_of_it_changing(own: str) -> None:
    text = bytes(metadata_of(TextPart(text="x", filename="f", metadata=Raw(own.encode())))).decode()
    assert own.strip()[1:-1].strip() in text
    assert json.loads(text) == {**json.loads(own), NOTE: {"filename": "f"}}


@pytest.mark.parametrize(
    ("own", "is_taken"),
    [
        ({NOTE: 1}, True),
        ({"a": 1, NOTE: {}}, True),
        ({"a": {NOTE: 1}}, False),
        ({"a": [{NOTE: 1}]}, False),
        ({"a": NOTE}, False),
        ({WRAPPED: True}, False),
    ],
)
def test_a_note_is_left_out_only_where_its_own_key_is_taken(own: dict[str, Any], is_taken: bool) -> None:
    shown = value_of(metadata_of(TextPart(text="x", filename="f", metadata=pack(own))))
    assert shown == (own if is_taken else {**own, NOTE: {"filename": "f"}})


@pytest.mark.parametrize(
    ("own", "is_taken"), [({WRAPPED: False}, True), ({"a": WRAPPED}, False), ({"a": {WRAPPED: 1}}, False)]
)
def test_a_mark_is_left_out_only_where_its_own_key_is_taken(own: dict[str, Any], is_taken: bool) -> None:
    shown = value_of(metadata_of(DataPart(data=pack([1]), metadata=pack(own))))
    assert shown == (own if is_taken else {**own, WRAPPED: True})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a":1}', '{"a":1}'),
        ("  {}", "  {}"),
        ("[1]", '{"value":[1]}'),
        ("null", '{"value":null}'),
        ("1", '{"value":1}'),
    ],
)
def test_data_is_shown_as_an_object(text: str, shown: str) -> None:
    assert bytes(object_of(DataPart(data=Raw(text.encode())))).decode() == shown
    assert is_object(Raw(text.encode())) == (shown == text)


@pytest.mark.parametrize(
    ("metadata", "filename", "media_type", "rest"),
    [
        (None, "", "", None),
        ({}, "", "", None),
        ({"a": 1}, "", "", {"a": 1}),
        ({NOTE: {"filename": "f"}}, "f", "", None),
        ({NOTE: {"filename": "f", "mediaType": "a/b"}, "a": 1}, "f", "a/b", {"a": 1}),
        # None of these is a note of ours.
        ({NOTE: {}}, "", "", {NOTE: {}}),
        ({NOTE: None}, "", "", {NOTE: None}),
        ({NOTE: "f"}, "", "", {NOTE: "f"}),
        ({NOTE: ["filename"]}, "", "", {NOTE: ["filename"]}),
        ({NOTE: {"filename": ""}}, "", "", {NOTE: {"filename": ""}}),
        ({NOTE: {"filename": 5}}, "", "", {NOTE: {"filename": 5}}),
        ({NOTE: {"filename": "f", "x": "y"}}, "", "", {NOTE: {"filename": "f", "x": "y"}}),
    ],
)
def test_a_note_is_understood_and_taken_out(metadata: Any, filename: str, media_type: str, rest: Any) -> None:
    members = {"text": "x", "data": {"a": 1}, "metadata": metadata}
    text = text_part(Fields(members))
    data = data_part(Fields(members), members["data"], "data")
    for part in (text, data):
        assert (part.filename, part.media_type, value_of(part.metadata)) == (filename, media_type, rest)


@pytest.mark.parametrize(
    ("data", "metadata", "value", "rest"),
    [
        ({"value": [1]}, {WRAPPED: True}, [1], None),
        ({"value": None}, {WRAPPED: True, "a": 1}, None, {"a": 1}),
        ({"value": "x"}, {NOTE: {"filename": "f"}, WRAPPED: True}, "x", None),
        ({"value": 1}, {NOTE: "no note", WRAPPED: True}, 1, {NOTE: "no note"}),
        # Not wrapped by us: an object, more than the value, or no mark that says so.
        ({"value": {"a": 1}}, {WRAPPED: True}, {"value": {"a": 1}}, {WRAPPED: True}),
        ({"value": 1, "x": 2}, {WRAPPED: True}, {"value": 1, "x": 2}, {WRAPPED: True}),
        ({"value": 1}, {WRAPPED: "true"}, {"value": 1}, {WRAPPED: "true"}),
        ({"value": 1}, {WRAPPED: 1}, {"value": 1}, {WRAPPED: 1}),
        ({"value": 1}, None, {"value": 1}, None),
        ({}, {WRAPPED: True}, {}, {WRAPPED: True}),
    ],
)
def test_data_is_unwrapped_where_it_was_wrapped(data: Any, metadata: Any, value: Any, rest: Any) -> None:
    part = data_part(Fields({"data": data, "metadata": metadata}), data, "data")
    assert (json.loads(bytes(part.data)), value_of(part.metadata)) == (value, rest)


@pytest.mark.parametrize("data", [None, [], "x", 1, True])
def test_data_must_be_an_object_and_its_place_is_named(data: Any) -> None:
    with pytest.raises(InvalidParams) as refusal:
        data_part(Fields({"data": data}, "message.parts[0]"), data, "data.data")
    assert refusal.value.violations[0].field == "message.parts[0].data.data"
