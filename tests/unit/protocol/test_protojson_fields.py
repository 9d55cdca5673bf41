"""Reading typed fields: both spellings, ProtoJSON's freedoms, and a path for whatever is wrong."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model.errors import InvalidParams
from dragoman.model.payload import ABSENT, Raw
from dragoman.protocol.protojson import Fields, base64_text, kind_of, timestamp_text

properties = settings(max_examples=200, deadline=None)
WRONG_KINDS = [True, 5, 1.5, "text", [], ["x"], {}, {"x": 1}]


def refused(read: Callable[[], Any], field: str) -> str:
    """Make sure that a field is refused by this path; return what is said of it."""
    with pytest.raises(InvalidParams) as refusal:
        read()
    (violation,) = refusal.value.violations
    assert violation.field == field
    return violation.description


def test_a_field_is_read_in_either_spelling() -> None:
    assert Fields({"taskId": "t"}).string("taskId", "task_id") == "t"
    assert Fields({"task_id": "t"}).string("taskId", "task_id") == "t"
    assert Fields({"TaskId": "t", "taskid": "t"}).string("taskId", "task_id") == ""


@pytest.mark.parametrize(("one", "other"), [("t", "t"), ("t", "u"), (None, "t"), ("t", None), (None, None)])
def test_both_spellings_of_a_field_are_refused(one: Any, other: Any) -> None:
    fields = Fields({"taskId": one, "task_id": other}, "message")
    assert "given twice" in refused(lambda: fields.string("taskId", "task_id"), "message.taskId")


def test_paths_lead_from_the_body_to_the_field() -> None:
    assert Fields({}).at("a") == "a"
    assert Fields({}, "a.b[2]").at("c") == "a.b[2].c"
    assert Fields({}, "a.b[2]").at("") == "a.b[2]"
    inner = Fields({"a": {"b": {"c": 5}}}).fields("a")
    assert inner is not None
    deeper = inner.fields("b")
    assert deeper is not None
    refused(lambda: deeper.string("c"), "a.b.c")


def test_an_absent_field_and_null_are_the_same() -> None:
    for members in ({}, {"x": None}):
        fields = Fields(members)
        assert fields.string("x") == ""
        assert fields.strings("x") == ()
        assert fields.integer("x", low=0) is None
        assert fields.boolean("x") is False
        assert fields.fields("x") is None
        assert fields.payload("x") is ABSENT
        assert fields.timestamp("x") is None
        refused(lambda fields=fields: fields.required("x"), "x")


@pytest.mark.parametrize("value", [value for value in WRONG_KINDS if not isinstance(value, str)])
def test_a_text_field_takes_text_alone(value: Any) -> None:
    for read in (Fields({"x": value}, "p").string, Fields({"x": value}, "p").required):
        assert "must be a string, not" in refused(lambda read=read: read("x"), "p.x")


def test_a_required_text_must_not_be_empty_and_a_long_one_not_be_longer() -> None:
    assert Fields({"x": "abc"}).required("x", longest=3) == "abc"
    assert "must not be empty" in refused(lambda: Fields({"x": ""}).required("x"), "x")
    assert "longer than 3" in refused(lambda: Fields({"x": "abcd"}).required("x", longest=3), "x")


def test_a_list_of_texts_names_the_item_that_is_none() -> None:
    assert Fields({"x": ["a", "", "ü"]}).strings("x") == ("a", "", "ü")
    assert Fields({"x": []}).strings("x") == ()
    refused(lambda: Fields({"x": "a"}, "p").strings("x"), "p.x")
    refused(lambda: Fields({"x": {"0": "a"}}, "p").strings("x"), "p.x")
    for wrong in (None, 1, True, ["a"]):
        refused(lambda wrong=wrong: Fields({"x": ["a", wrong]}, "p").strings("x"), "p.x[1]")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0),
        (7, 7),
        (7.0, 7),
        (-0.0, 0),
        ("7", 7),
        ("-0", 0),
        (2**31 - 1, 2**31 - 1),
        ("2147483647", 2**31 - 1),
    ],
)
def test_an_integer_may_be_a_text_or_have_an_empty_fraction(value: Any, number: int) -> None:
    found = Fields({"x": value}).integer("x", low=0)
    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize("text", ["", " 7", "7 ", *"+7 1.5 1e2 seven ٧ 0x7 99999999999".split()])
def test_a_text_that_is_no_whole_number_is_refused(text: str) -> None:
    refused(lambda: Fields({"x": text}, "p").integer("x", low=-(2**31)), "p.x")


@pytest.mark.parametrize("value", [True, False, 1.5, 1e300, float("inf"), 2**31, -(2**31) - 1, 2**70, [], {}])
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    refused(lambda: Fields({"x": value}, "p").integer("x", low=-(2**31)), "p.x")


def test_an_integer_out_of_bounds_is_told_the_bounds() -> None:
    assert (
        refused(lambda: Fields({"x": 0}).integer("x", low=1, high=100), "x") == "must be from 1 to 100, not 0"
    )
    assert refused(lambda: Fields({"x": "101"}).integer("x", low=1, high=100), "x").endswith("not 101")
    assert refused(lambda: Fields({"x": -1}).integer("x", low=0), "x") == "must be 0 or more, not -1"


def test_a_truth_value_is_nothing_else() -> None:
    assert Fields({"x": True}).boolean("x") is True
    assert Fields({"x": False}).boolean("x") is False
    for value in ("true", "", 1, 0, 1.0, [], {}):
        refused(lambda value=value: Fields({"x": value}).boolean("x"), "x")


def test_an_object_is_nothing_else() -> None:
    for value in (True, 5, "{}", []):
        refused(lambda value=value: Fields({"x": value}).fields("x"), "x")
        refused(lambda value=value: Fields({"x": value}).payload("x"), "x")


def test_a_metadata_map_is_kept_as_it_is_and_an_empty_one_is_absent() -> None:
    value = {"z": 2**70, "a": {"kind": None}}
    assert Fields({"x": value}).payload("x") == Raw(b'{"z":1180591620717411303424,"a":{"kind":null}}')
    assert Fields({"x": {}}).payload("x") is ABSENT


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (0, "0"), (False, "false"), ("", '""'), ([], "[]"), ({}, "{}"), (2**70, str(2**70))],
)
def test_a_data_field_may_hold_anything(value: Any, text: str) -> None:
    assert Fields({"x": value}).data("x") == Raw(text.encode())


@properties
@given(st.binary(max_size=20))
def test_base64_is_read_in_both_alphabets_padded_or_not(content: bytes) -> None:
    standard = base64.b64encode(content).decode()
    url_safe = base64.urlsafe_b64encode(content).decode()
    for text in (standard, standard.rstrip("="), url_safe, url_safe.rstrip("=")):
        assert Fields({"x": text}).bytes("x") == content
    assert base64_text(content) == standard


BAD_BASE64 = """
    @@@ QQ==QQ== Q QUJDR Q=Q= =QQQ ==== QQ=== ÄÖ data:text/plain;base64,QUJD QUJD. QU#D
    = == QUJD= QUJD== QUI== QQ=
"""


@pytest.mark.parametrize("text", [*BAD_BASE64.split(), "QU JD", "QUJD\n", " QUJD", "QUI\0", "QU\u2028"])
def test_bad_base64_is_refused(text: str) -> None:
    assert refused(
        lambda: Fields({"raw": text}, "message.parts[0]").bytes("raw"), "message.parts[0].raw"
    ) == ("is not base64")


@pytest.mark.parametrize("value", [None, True, 5, ["QUJD"], {}])
def test_bytes_that_are_no_text_are_refused(value: Any) -> None:
    refused(lambda: Fields({"raw": value}).bytes("raw"), "raw")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T00:00:00.5Z", 1_767_225_600_500),
        ("2026-01-01T00:00:00.123Z", 1_767_225_600_123),
        ("2026-01-01T00:00:00.123999999Z", 1_767_225_600_124),
        ("2026-01-01T00:00:00.000000Z", 1_767_225_600_000),
        ("2026-01-01t00:00:00z", 1_767_225_600_000),
        ("2026-01-01T02:00:00+02:00", 1_767_225_600_000),
        ("2025-12-31T18:30:00-05:30", 1_767_225_600_000),
        ("2026-01-01T00:00:00-00:00", 1_767_225_600_000),
        ("2025-12-31T23:59:59.999+00:00", 1_767_225_599_999),
        ("2024-02-29T12:00:00Z", 1_709_208_000_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_a_timestamp_is_read_in_utc(text: str, expected: int) -> None:
    assert Fields({"x": text}).timestamp("x") == expected


NO_TIMESTAMPS = """
    now 2026-01-01 2026-01-01T00:00:00 2026-01-01T00:00Z 20260101T000000Z 2026-1-1T00:00:00Z
    2026-01-01T00:00:00.Z 2026-01-01T00:00:00,5Z 2026-01-01T00:00:00.1234567890Z ２０２６-01-01T00:00:00Z
    2026-02-29T00:00:00Z 2026-13-01T00:00:00Z 2026-00-01T00:00:00Z 2026-04-31T00:00:00Z
    2026-01-01T24:00:00Z 2026-01-01T00:60:00Z 2026-01-01T00:00:60Z 0000-01-01T00:00:00Z
    2026-01-01T00:00:00+2 2026-01-01T00:00:00+0200
    2026-01-01T00:00:00+24:00 2026-01-01T00:00:00+99:99 2026-01-01T00:00:00+00:60
    0001-01-01T00:00:00+01:00 9999-12-31T23:59:59-01:00 -2026-01-01T00:00:00Z 12026-01-01T00:00:00Z
"""
SPACED = [
    "",
    "2026-01-01 00:00:00Z",
    "2026-01-01T00:00:00 Z",
    " 2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\n",
]


@pytest.mark.parametrize("value", [*NO_TIMESTAMPS.split(), *SPACED, 1_767_225_600, 1.5, True, [], {}])
def test_what_is_no_timestamp_is_refused(value: Any) -> None:
    refused(lambda: Fields({"x": value}, "p").timestamp("x"), "p.x")


@properties
@given(st.integers(0, 253_402_300_799_999))
def test_a_time_is_written_in_utc_with_milliseconds_and_read_back(milliseconds: int) -> None:
    text = timestamp_text(milliseconds)
    assert len(text) == len("2026-01-01T00:00:00.000Z")
    assert Fields({"x": text}).timestamp("x") == milliseconds


@properties
@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))
def test_a_written_time_is_the_one_of_the_calendar(moment: datetime) -> None:
    milliseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution * 1000)
    assert timestamp_text(milliseconds) == f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


KINDS = [
    ({}, "an object"),
    ([], "an array"),
    ("", "a string"),
    (True, "a truth value"),
    (None, "null"),
    (1, "a number"),
    (1.5, "a number"),
]


@pytest.mark.parametrize(("value", "kind"), KINDS)
def test_messages_name_the_kind_of_a_value(value: Any, kind: str) -> None:
    assert kind_of(value) == kind
