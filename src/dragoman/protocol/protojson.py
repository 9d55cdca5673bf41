"""ProtoJSON rules that every version shares: parsing with nothing lost, and reading typed fields with their paths.

A body is parsed once, strictly: UTF-8, no duplicate keys, no NaN, bounded nesting, text that is Unicode. Fields are
then read through `Fields`, which knows both spellings of a name and says where each wrong value stands.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isinf
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.model.errors import FieldViolation, InvalidParams, MalformedJson
from dragoman.model.payload import ABSENT, pack_parsed

MAX_DEPTH = 64
"""Objects and arrays inside each other, in a whole body."""

PLAIN = 64 * 1024
"""Bytes of a body that are read in one go: no other thread gets the interpreter meanwhile."""

INT32 = range(-(2**31), 2**31)


class Parsed:
    """A parsed body.

    Attributes:
        value: the JSON value; of a duplicate key it holds the last one.
        violations: what makes the body invalid although it is JSON: duplicate keys, numbers out of range and text
            that is not Unicode.
    """

    __slots__ = ("value", "violations")

    def __init__(self, value: Any, violations: list[FieldViolation]) -> None:
        self.value = value
        self.violations = violations

    def check(self) -> Any:
        """Return the value.

        Raises:
            InvalidParams: there are violations.
        """
        if self.violations:
            raise InvalidParams(self.violations)
        return self.value


_SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


class _Flawed(Exception):
    """A body is JSON but has a flaw; what and where is looked up only then."""


def _whole_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Flawed
    return members


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise _Flawed
    return number


def _refuse_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not a JSON number", name, 0)


def _whole_number(text: str) -> int:
    # In Python, so that a body full of very long numbers lets other threads have the interpreter between them.
    return int(text)


_STRICT = json.JSONDecoder(
    object_pairs_hook=_whole_object,
    parse_constant=_refuse_constant,
    parse_float=_finite,
    parse_int=_whole_number,
)
_LENIENT = json.JSONDecoder(parse_constant=_refuse_constant)


def parse(body: bytes) -> Parsed:
    """Parse a body.

    Raises:
        MalformedJson: it is no JSON text, no UTF-8, or nested too deeply.
    """
    shallow = body.count(b"[") + body.count(b"{") <= MAX_DEPTH
    if shallow and len(body) <= PLAIN and (plain := _plainly(body)) is not None:
        return plain
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise MalformedJson(f"The body is not UTF-8: byte {error.start} cannot be read") from None
    if not shallow and _depth(text) > MAX_DEPTH:
        raise MalformedJson(f"The body is nested more than {MAX_DEPTH} deep")
    try:
        value, flawed = _STRICT.decode(text), _SURROGATE.search(text) is not None
    except _Flawed:
        value, flawed = _decode(_LENIENT, text), True
    except ValueError as error:
        raise _malformed(error) from None
    return Parsed(value, list(_violations(text)) if flawed else [])


def _plainly(body: bytes) -> Parsed | None:
    """Return a body that is written the plainest way, in a third of the time; `None` for any other.

    What is read is written again. The same bytes come of it only if nothing was lost or changed: no key of two, no
    digit, no text that is not Unicode. Most clients' encoders write just so, without white space and needless escapes.
    """
    if _SPACED in body:
        return None
    try:
        value = _read(body)
        return Parsed(value, []) if _write(value) == body else None
    except ValueError:
        return None


_SPACED = b'": '
_read = msgspec.json.Decoder().decode
_write = msgspec.json.Encoder().encode


def _decode(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        return decoder.decode(text)
    except ValueError as error:
        raise _malformed(error) from None


def _malformed(error: ValueError) -> MalformedJson:
    if isinstance(error, json.JSONDecodeError):
        return MalformedJson(f"The body is not JSON: {error.msg} at line {error.lineno} column {error.colno}")
    return MalformedJson("The body holds a number with more than 4,300 digits")


_OUTSIDE_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?|[^][{}"]+', re.DOTALL)


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in _OUTSIDE_STRINGS.sub("", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, duplicates included."""


def _violations(text: str) -> Iterator[FieldViolation]:
    tree = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_refuse_constant).decode(text)
    yield from _walk(tree, "")


def _walk(value: Any, path: str) -> Iterator[FieldViolation]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, member in value:
            shown = key if _is_unicode(key) else "\N{REPLACEMENT CHARACTER}"
            inner = f"{path}.{shown}" if path else shown
            if key in seen:
                yield FieldViolation(inner, "is given twice")
            elif not _is_unicode(key):
                yield FieldViolation(inner, "its name holds a lone surrogate, which is not Unicode text")
            seen.add(key)
            yield from _walk(member, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]")
    elif isinstance(value, float) and isinf(value):
        yield FieldViolation(path or "body", "is a number out of range")
    elif isinstance(value, str) and not _is_unicode(value):
        yield FieldViolation(path or "body", "holds a lone surrogate, which is not Unicode text")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Fields:
    """A JSON object, read field by field. `null` counts as absent, as ProtoJSON has it."""

    __slots__ = ("members", "path")

    def __init__(self, members: dict[str, Any], path: str = "") -> None:
        self.members = members
        self.path = path

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path and name else name or self.path

    def wrong(self, name: str, description: str) -> InvalidParams:
        """Return the error for a field."""
        return InvalidParams.of(self.at(name), description)

    def get(self, name: str, other: str | None = None) -> Any:
        """Return a field by its name or its `other` (snake_case) spelling; `None` if it is absent.

        Raises:
            InvalidParams: both spellings are there.
        """
        members = self.members
        if other is not None and other in members:
            if name in members:
                raise self.wrong(name, f"is given twice, the second time as {other}")
            return members[other]
        return members.get(name)

    def string(self, name: str, other: str | None = None, *, longest: int | None = None) -> str:
        """Return a text field; empty if it is absent."""
        value = self.get(name, other)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(name, f"must be a string, not {kind_of(value)}")
        if longest is not None and len(value) > longest:
            raise self.wrong(name, f"must not be longer than {longest} characters")
        return value

    def required(self, name: str, other: str | None = None, *, longest: int | None = None) -> str:
        """Return a text field that must be there and not be empty."""
        value = self.string(name, other, longest=longest)
        if not value:
            raise self.wrong(name, "is required and must not be empty")
        return value

    def strings(self, name: str, other: str | None = None) -> tuple[str, ...]:
        """Return a list of texts; empty if it is absent."""
        value = self.get(name, other)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.wrong(name, f"must be an array of strings, not {kind_of(value)}")
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise self.wrong(f"{name}[{index}]", f"must be a string, not {kind_of(item)}")
        return tuple(value)

    def integer(self, name: str, other: str | None = None, *, low: int, high: int = 2**31 - 1) -> int | None:
        """Return a 32-bit integer field within bounds; `None` if it is absent.

        ProtoJSON allows an integer as a string and with an empty fraction.
        """
        value = self.get(name, other)
        if value is None:
            return None
        number = _integer(value)
        if number is None or number not in INT32:
            raise self.wrong(name, "must be a whole number")
        if not low <= number <= high:
            bounds = f"from {low} to {high}" if high < 2**31 - 1 else f"{low} or more"
            raise self.wrong(name, f"must be {bounds}, not {number}")
        return number

    def boolean(self, name: str, other: str | None = None) -> bool:
        """Return a truth value; false if it is absent."""
        value = self.get(name, other)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.wrong(name, f"must be true or false, not {kind_of(value)}")
        return value

    def fields(self, name: str, other: str | None = None) -> "Fields | None":
        """Return an object, to be read further; `None` if it is absent."""
        value = self.get(name, other)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(name, f"must be an object, not {kind_of(value)}")
        return Fields(value, self.at(name))

    def payload(self, name: str) -> Raw:
        """Return a metadata map as a payload; absent and empty are the same."""
        value = self.get(name)
        if value is None:
            return ABSENT
        if not isinstance(value, dict):
            raise self.wrong(name, f"must be an object, not {kind_of(value)}")
        return pack_parsed(value) if value else ABSENT

    def data(self, name: str) -> Raw:
        """Return a field that may hold any JSON value, `null` included."""
        return pack_parsed(self.members[name])

    def bytes(self, name: str) -> bytes:
        """Return a bytes field: base64 in either alphabet, padded or not."""
        value = self.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, f"must be a base64 string, not {kind_of(value)}")
        content = value.rstrip("=").translate(_URL_SAFE)
        padding = len(value) - len(content)
        if len(content) % 4 == 1 or (padding and (padding > 2 or len(value) % 4)):
            raise self.wrong(name, "is not base64")
        try:
            return binascii.a2b_base64(content + "=" * (-len(content) % 4), strict_mode=True)
        except (binascii.Error, ValueError):
            raise self.wrong(name, "is not base64") from None

    def timestamp(self, name: str, other: str | None = None) -> int | None:
        """Return a timestamp as milliseconds since 1970 UTC, rounded up; `None` if it is absent.

        An offset is converted.
        """
        value = self.get(name, other)
        if value is None:
            return None
        form = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
        if form is None:
            raise self.wrong(name, "must be a timestamp such as 2026-01-31T12:00:00.000Z")
        try:
            return _milliseconds(form)
        except (ValueError, OverflowError):
            raise self.wrong(name, "is not a date and time that exists") from None


_URL_SAFE = str.maketrans("-_", "+/")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


def _milliseconds(form: "re.Match[str]") -> int:
    date, clock, fraction, zone = form.groups()
    moment = datetime.fromisoformat(f"{date}T{clock}+00:00")
    if zone not in "Zz":
        hours, minutes = zone[1:].split(":")
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        moment = moment - offset if zone[0] == "+" else moment + offset
    since = moment - _EPOCH
    digits = (fraction or "").ljust(9, "0")
    return (since.days * 86_400 + since.seconds) * 1000 + int(digits[:3]) + (digits[3:] > "000000")


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,10}", value, re.ASCII):
        return int(value)
    return None


def kind_of(value: Any) -> str:
    """Return what kind of JSON value this is, for messages."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def timestamp_text(milliseconds: int) -> str:
    """Return a time as ProtoJSON writes it, in UTC with milliseconds."""
    return f"{_second_text(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=4096)
def _second_text(seconds: int) -> str:
    # Formatting a date costs more than encoding the rest of a small task; most replies share a few seconds.
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def base64_text(content: bytes) -> str:
    """Return bytes as ProtoJSON writes them."""
    return base64.b64encode(content).decode()
