"""Parsing a body: strictly, and with nothing lost."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model.errors import DragomanError, InvalidParams, MalformedJson
from dragoman.protocol.protojson import MAX_DEPTH, PLAIN, parse
from tests.wire.sameness import exact
from tests.wire.strategies import json_values

properties = settings(max_examples=150, deadline=None)


class NoConstant(Exception):
    """Python's parser takes NaN and Infinity, which are no JSON."""


def refuse(name: str) -> None:
    raise NoConstant(name)


def faults(body: bytes) -> dict[str, str]:
    """Field → what is wrong with it."""
    return {violation.field: violation.description for violation in parse(body).violations}


@properties
@given(json_values)
def test_every_json_value_is_read_as_it_is(value: Any) -> None:
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for text in (plain, json.dumps(value, ensure_ascii=False), json.dumps(value, indent=1)):
        assert exact(parse(text.encode()).check()) == exact(value)


@properties
@given(st.binary(max_size=30))
def test_any_bytes_are_read_or_refused_as_no_json(body: bytes) -> None:
    try:
        json.loads(body.decode(), parse_constant=refuse)
    except (UnicodeDecodeError, json.JSONDecodeError, NoConstant):
        with pytest.raises(MalformedJson, match=r"^The body "):
            parse(body)
    else:
        parse(body)


@properties
@given(st.text(st.sampled_from('{}[]",:\\u0aN1e9.- \n'), max_size=24))
def test_any_punctuation_is_read_as_python_reads_it_or_refused(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=refuse)
    except (json.JSONDecodeError, NoConstant):
        with pytest.raises(DragomanError):
            parse(text.encode()).check()
        return
    parsed = parse(text.encode())
    assert parsed.violations or exact(parsed.value) == exact(expected)


@properties
@given(json_values)
def test_a_body_is_read_alike_however_large_it_is(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    small, large = f"[{text}]".encode(), f'[{text},"{"x" * PLAIN}"]'.encode()
    assert exact(parse(small).check()) == exact(parse(large).check()[:1])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"a":1,"a":1}', "a"),
        (b'{"a":1,"b":2,"a":3}', "a"),
        (b'{"message":{"role":1,"role":2}}', "message.role"),
        (b'{"message":{"parts":[{},{"text":"x","text":"y"}]}}', "message.parts[1].text"),
        (b'{"metadata":{"x":[[{"y":1,"y":1}]]}}', "metadata.x[0][0].y"),
        (b'{"\\u0061":1,"a":2}', "a"),
        (b'{"a":null,"a":null}', "a"),
        ('{"ü":1,"\\u00fc":2}'.encode(), "ü"),
        (b'[{"a":1,"a":2}]', "[0].a"),
    ],
)
def test_a_duplicate_key_is_refused_by_its_path(body: bytes, field: str) -> None:
    assert faults(body) == {field: "is given twice"}
    with pytest.raises(InvalidParams):
        parse(body).check()


def test_every_duplicate_is_named() -> None:
    assert set(faults(b'{"a":{"b":1,"b":2},"c":[{"d":1,"d":2}],"e":1,"e":2}')) == {"a.b", "c[0].d", "e"}


def test_equal_keys_of_different_objects_are_no_duplicates() -> None:
    assert parse(b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}],"A":1,"a ":2}').violations == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":2',
        b'{"a":1,"a":2},',
        b'[{"a":1,"a":2}, 1e]',
        b'{"x":{"a":1,"a":2},"y":NaN}',
        b"[1e999, {]",
        b'[{"a":1,"a":2},' + b"1" * 4301 + b"]",
    ],
)
def test_a_body_that_is_no_json_is_refused_as_such_whatever_came_before(body: bytes) -> None:
    with pytest.raises(MalformedJson):
        parse(body)


@pytest.mark.parametrize(
    "number", ["1e400", "-1e400", "1E+309", "1.8e308", "-2.0e308", "1" + "0" * 400 + ".0"]
)
def test_a_number_beyond_doubles_is_refused_by_its_path(number: str) -> None:
    assert faults(f'{{"a":[1,{{"b":{number}}}]}}'.encode()) == {"a[1].b": "is a number out of range"}
    assert faults(number.encode()) == {"body": "is a number out of range"}


@pytest.mark.parametrize(
    "number", ["1.7976931348623157e308", "-1.7976931348623157E+308", "5e-324", "1e-400", "-0.0"]
)
def test_a_number_within_doubles_is_read(number: str) -> None:
    assert exact(parse(number.encode()).check()) == exact(float(number))


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63) - 1, 2**64, 2**70, 10**4299, -(10**4299)])
def test_an_integer_keeps_every_digit(number: int) -> None:
    value = parse(b'{"a":%d}' % number).check()["a"]
    assert (type(value), value) == (int, number)


def test_an_integer_that_could_cost_too_much_time_to_read_is_refused() -> None:
    assert sys.get_int_max_str_digits() == 4300
    for body in (b"9" * 4301, b'{"a":-' + b"9" * 4301 + b"}"):
        with pytest.raises(MalformedJson, match="4,300 digits"):
            parse(body)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_words_that_are_no_json_numbers_are_refused(word: str) -> None:
    for text in (word, f'{{"a":{word}}}', f"[1,{word}]"):
        with pytest.raises(MalformedJson, match=f"{word} is not a JSON number"):
            parse(text.encode())
    assert parse(f'"{word}"'.encode()).check() == word


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"a"}',
        b"{a:1}",
        b"{'a':1}",
        b'{"a":1,}',
        b"[1,]",
        b"[1 2]",
        b"{} {}",
        b"// x\n{}",
        b"undefined",
        b"nul",
        b"True",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"0x10",
        b"1e",
        b'"\t"',
        b'"\n"',
        b'"\0"',
        b'"\\x41"',
        b'"\\u12"',
        b'"abc',
        b'\xef\xbb\xbf{"a":1}',
        "{\u00a0}".encode(),
        "[１]".encode(),
    ],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedJson):
        parse(body)


def test_the_refusal_says_where_the_json_goes_wrong() -> None:
    with pytest.raises(MalformedJson, match="line 2 column 5"):
        parse(b'{"a":1,\n"b" 2}')


@pytest.mark.parametrize(
    ("body", "position"),
    [
        (b"\xff", 0),
        (b'{"a":"\xe9"}', 6),
        (b'{"a":"\xc3"}', 6),
        (b'{"a":"\xc0\xaf"}', 6),
        (b'{"a":"\xed\xa0\x80"}', 6),
        (b'{"a":"\xf4\x90\x80\x80"}', 6),
        ('{"a":1}'.encode("utf-16"), 0),
    ],
)
def test_bytes_that_are_not_utf_8_are_refused_with_their_place(body: bytes, position: int) -> None:
    with pytest.raises(MalformedJson, match=f"not UTF-8: byte {position} "):
        parse(body)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (rb'{"a":"\ud800"}', "a"),
        (rb'{"a":"x\udfffy"}', "a"),
        (rb'{"a":["ok","\ude80\ud83d"]}', "a[1]"),
        (rb'{"a":"\ud83d\u0041"}', "a"),
        (rb'"\ud800"', "body"),
        (rb'{"a":{"\ud800":1}}', "a.\ufffd"),
    ],
)
def test_half_a_character_is_refused_by_its_path(body: bytes, field: str) -> None:
    found = faults(body)
    assert list(found) == [field]
    assert "lone surrogate" in found[field]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (rb'"\ud83d\ude80"', "\U0001f680"),
        ('"\U0001f680"'.encode(), "\U0001f680"),
        (rb'"\u0000"', "\0"),
        (rb'"\u2028\u0085"', "\u2028\u0085"),
        (rb'"\\ud800"', r"\ud800"),
        (rb'{"\u0000":1}', {"\0": 1}),
    ],
)
def test_whole_characters_are_read_however_they_are_written(body: bytes, value: Any) -> None:
    assert parse(body).check() == value


def nested(depth: int, pattern: tuple[str, str]) -> bytes:
    return (pattern[0] * depth + "0" + pattern[1] * depth).encode()


@pytest.mark.parametrize(
    "pattern", [("[", "]"), ('{"a":', "}"), ('[ "[", ', "]"), ('{"]]}}":"\\"}","a":', "}")]
)
def test_nesting_is_bounded(pattern: tuple[str, str]) -> None:
    assert parse(nested(MAX_DEPTH, pattern)).violations == []
    for depth in (MAX_DEPTH + 1, 500, 100_000):
        with pytest.raises(MalformedJson, match="more than 64 deep"):
            parse(nested(depth, pattern))


def test_brackets_in_texts_are_not_nesting() -> None:
    for text in ("[" * 500, '"[' * 500, "\\[" * 500, '\\"' * 500 + "{" * 500, "]" * 500 + "[" * 500):
        value = {"a": text, "b" + text: [[]]}
        assert parse(json.dumps(value).encode()).check() == value


def test_many_brackets_side_by_side_are_not_nesting() -> None:
    assert parse(json.dumps([[{}]] * 1000).encode()).check() == [[{}]] * 1000


def test_violations_of_different_kinds_are_told_together() -> None:
    assert faults(rb'{"a":1e999,"b":"\ud800","c":1,"c":2}') == {
        "a": "is a number out of range",
        "b": "holds a lone surrogate, which is not Unicode text",
        "c": "is given twice",
    }
