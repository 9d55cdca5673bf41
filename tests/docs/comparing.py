"""Comparing what a document shows with what came, where ids, times and ports differ from run to run.

A document shows real replies. Values that no two runs share (ids, times, tokens) are held against each other by kind
alone, but one that is shown twice must come twice: each shown value is bound to the one that came in its place, for the
rest of the document. Commands are run with the bound values, so a document may use an id that it showed before.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

ANY = "…"
"""Stands for anything on its line; alone on a line, for any number of lines."""

_KINDS = {
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "page token": r"\bk8[A-Za-z0-9_-]{60,}",
    "thumbprint": r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    "date": r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT",
    "request id": r"\b[0-9a-f]{10}-[0-9a-f]+\b",
    "tag": r'"[0-9a-f]{32}"',
    "length": r"(?<=content-length: )\d+",
    "number": r"\b1\d{18}N?\b",
    "measure": r'(?<="time":)\d+\.\d+|(?<="ms":)\d+\.\d+|(?<="time": )\d+\.\d+|(?<="ms": )\d+\.\d+',
    "process": r"(?<=process )\d+",
}
_NAMES = {name.replace(" ", "_"): name for name in _KINDS}
_VARYING = re.compile(
    "|".join(f"(?P<{name.replace(' ', '_')}>{pattern})" for name, pattern in _KINDS.items())
)
_BOUND = {"uuid", "page token", "thumbprint"}
_NUMBERS = {"time", "ms"}


class Mismatch(Exception):
    """What came is not what is shown; the message says where they part."""


class Bindings:
    """Which value came in the place of each shown one."""

    def __init__(self) -> None:
        self._actual: dict[str, str] = {}
        self._shown: dict[str, str] = {}

    def to_actual(self, text: str) -> str:
        """Return a text of the document with the values of this run."""
        return _VARYING.sub(lambda found: self._actual.get(found[0], found[0]), text)

    def to_shown(self, text: str, instead: list[str]) -> str:
        """Return a text of this run with the values that the document shows; new ones are taken from `instead`."""

        def replace(found: re.Match[str]) -> str:
            value = found[0]
            if value in self._shown or found.lastgroup is None or _NAMES[found.lastgroup] not in _BOUND:
                return self._shown.get(value, value)
            shown = instead.pop(0) if instead else value
            self.bind(shown if shown not in self._actual else value, value)
            return self._shown[value]

        return _VARYING.sub(replace, text)

    def bind(self, shown: str, actual: str) -> None:
        """Note that `actual` came where `shown` is shown.

        Raises:
            Mismatch: another value came for it before, or this value was shown otherwise.
        """
        if self._actual.setdefault(shown, actual) != actual or self._shown.setdefault(actual, shown) != shown:
            raise Mismatch(f"{shown} is shown twice, but {self._actual[shown]} and {actual} came")


def varying(text: str) -> list[str]:
    """Return the values in a text that get bound, in order."""
    return [
        found[0]
        for found in _VARYING.finditer(text)
        if found.lastgroup is not None and _NAMES[found.lastgroup] in _BOUND
    ]


def compare_text(shown: str, came: str, bindings: Bindings) -> None:
    """Hold an output against the one that is shown, line by line; white space at the ends is ignored.

    Raises:
        Mismatch: they differ.
    """
    _compare_lines(_lines(shown), _lines(came), bindings)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def _compare_lines(expected: list[str], actual: list[str], bindings: Bindings) -> None:
    for number, line in enumerate(expected):
        if line.strip() == ANY:
            rest = expected[number + 1 :]
            for start in range(number, len(actual) + 1):
                if _fits_all(rest, actual[start:]):
                    _compare_lines(rest, actual[start:], bindings)
                    return
            raise Mismatch(f"after {ANY} this did not come: {rest[:1]}")
        if number >= len(actual):
            raise Mismatch(f"this line did not come: {line}")
        _compare_line(line, actual[number], bindings)
    if len(actual) > len(expected):
        raise Mismatch(f"more came than is shown: {actual[len(expected)]}")


def _fits_all(expected: list[str], actual: list[str]) -> bool:
    try:
        _compare_lines(expected, actual, Bindings())
    except Mismatch:
        return False
    return True


def _compare_line(shown: str, came: str, bindings: Bindings) -> None:
    pattern, kinds = _pattern(shown)
    form = re.fullmatch(pattern, came, re.DOTALL)
    if form is None:
        raise Mismatch(f"shown: {shown}\ncame:  {came}")
    for index, (kind, value) in enumerate(kinds):
        if kind in _BOUND:
            bindings.bind(value, form[f"v{index}"])


def _pattern(shown: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the pattern of a shown line, and the kind and value of each of its groups."""
    kinds: list[tuple[str, str]] = []
    pieces: list[str] = []
    position = 0
    for found in _VARYING.finditer(shown):
        assert found.lastgroup is not None
        kind = _NAMES[found.lastgroup]
        pieces += [_literal(shown[position : found.start()]), f"(?P<v{len(kinds)}>{_KINDS[kind]})"]
        kinds.append((kind, found[0]))
        position = found.end()
    return "".join([*pieces, _literal(shown[position:])]), kinds


def _literal(text: str) -> str:
    return re.escape(text).replace(re.escape(ANY), ".*?")


def compare_json(shown: Any, came: Any, bindings: Bindings, path: str = "$") -> None:
    """Hold a JSON value against the one that is shown: same members, same order of items.

    Raises:
        Mismatch: they differ; the message names the path.
    """
    if shown == ANY:
        return
    if isinstance(shown, str) and isinstance(came, str):
        try:
            _compare_line(shown, came, bindings)
        except Mismatch as error:
            raise Mismatch(f"{path}: {error}") from None
    elif isinstance(shown, dict) and isinstance(came, dict):
        if shown.keys() - {ANY} != came.keys() and (
            ANY not in shown or not shown.keys() - {ANY} <= came.keys()
        ):
            raise Mismatch(f"{path}: has {', '.join(came)}, but {', '.join(shown)} is shown")
        for name in shown.keys() - {ANY}:
            both_numbers = isinstance(shown[name], float) and isinstance(came[name], int | float)
            if not (name in _NUMBERS and both_numbers):
                compare_json(shown[name], came[name], bindings, f"{path}.{name}")
    elif isinstance(shown, list) and isinstance(came, list):
        if len(shown) != len(came):
            raise Mismatch(f"{path}: has {len(came)} items, but {len(shown)} are shown")
        for index, (one, other) in enumerate(zip(shown, came, strict=True)):
            compare_json(one, other, bindings, f"{path}[{index}]")
    elif shown != came or isinstance(shown, bool) != isinstance(came, bool):
        raise Mismatch(f"{path}: shown {shown!r}, came {came!r}")


Event = dict[str, Any] | str


def compare_stream(shown: list[Event], came: list[Event], bindings: Bindings) -> None:
    """Hold the events of a stream against those that are shown; `…` as an event stands for any number of them.

    Raises:
        Mismatch: they differ.
    """
    if ANY not in shown:
        compare_json(shown, came, bindings)
        return
    before = shown.index(ANY)
    after = len(shown) - before - 1
    if len(came) < before + after:
        raise Mismatch(f"only {len(came)} events came")
    compare_json(shown[:before], came[:before], bindings)
    compare_json(shown[before + 1 :], came[len(came) - after :], bindings)


def read_stream(text: str) -> Iterator[Event]:
    """Yield the events of an event stream, their data parsed. Data may go on in indented lines, for readers' sake.

    Raises:
        ValueError: data is no JSON.
    """
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.strip() == ANY:
            yield ANY
            continue
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line[:1].isspace() and name:
                fields[name] += line.strip()
                continue
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        if fields:
            yield fields | ({"data": json.loads(fields["data"])} if "data" in fields else {})
