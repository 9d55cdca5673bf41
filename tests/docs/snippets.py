"""The fenced snippets of a Markdown file, and what their info strings may say (see README.md beside this file)."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.harness.paths import CHECKOUT

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)")


class SnippetError(Exception):
    """A snippet is not what its document says; the message begins with file and line."""


@dataclass(frozen=True)
class Snippet:
    """One fenced snippet. `value` is what follows `=` after the kind; `end` is the line of the closing fence."""

    document: Path
    line: int
    end: int
    language: str
    kind: str
    value: str
    options: Mapping[str, str]
    text: str

    @property
    def place(self) -> str:
        """File and line, as editors understand them."""
        return f"{shown(self.document)}:{self.line}"

    def wrong(self, why: str) -> SnippetError:
        """Return the error that says what is wrong with this snippet."""
        return SnippetError(f"{self.place}: {self.language} {self.kind}: {why}\n{self.text}")


@dataclass(frozen=True)
class Form:
    """What an info string may hold: whether its kind has a value ("no", "may", "must"), and which options."""

    value: str = "no"
    options: tuple[str, ...] = ()


KINDS: Mapping[tuple[str, str], Form] = {
    ("sh", "serve"): Form(),
    ("sh", "kill"): Form(),
    ("sh", "run"): Form(options=("exit",)),
    ("sh", "syntax"): Form(),
    ("python", "agent"): Form("must", ("example",)),
    ("python", "sdk"): Form("may"),
    ("python", "sdk-0.3"): Form("may"),
    ("python", "signature"): Form(),
    ("toml", "config"): Form("may", ("refused",)),
    ("json", "file"): Form("must"),
    ("json", "example"): Form(),
    ("json", "output"): Form(),
    ("text", "file"): Form("must"),
    ("text", "output"): Form(),
    ("text", "stream"): Form(),
    ("text", "help"): Form("must"),
    ("text", "diagram"): Form(),
    ("text", "example"): Form(),
}
"""Language and kind → form. README.md says what is done with each."""

_ALIASES = {"bash": "sh", "shell": "sh", "py": "python", "txt": "text"}


def read(document: Path) -> list[Snippet]:
    """Return the snippets of a document, in order.

    Raises:
        SnippetError: a fence is not closed, or its info string is not known.
    """
    lines = document.read_text(encoding="utf-8").splitlines()
    return [_snippet(document, lines, start, end) for start, end in _fences(document, lines)]


def outside(document: Path) -> list[tuple[int, str]]:
    """Return the lines that are in no snippet, each with its number."""
    lines = document.read_text(encoding="utf-8").splitlines()
    inside: set[int] = set()
    for start, end in _fences(document, lines):
        inside.update(range(start, end + 1))
    return [(number, line) for number, line in enumerate(lines, 1) if number - 1 not in inside]


def shown(path: Path) -> str:
    """Return a path as it is shown: from the checkout where that is possible."""
    return path.relative_to(CHECKOUT).as_posix() if path.is_relative_to(CHECKOUT) else str(path)


def _fences(document: Path, lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last line of each fenced snippet, counted from 0."""
    start, closing = 0, ""
    for number, line in enumerate(lines):
        form = _FENCE.fullmatch(line)
        if form is None:
            continue
        if not closing:
            start, closing = number, form["fence"]
        elif not form["info"].strip() and form["fence"].startswith(closing):
            yield start, number
            closing = ""
    if closing:
        raise SnippetError(f"{shown(document)}:{start + 1}: this snippet has no closing fence")


def _snippet(document: Path, lines: list[str], start: int, end: int) -> Snippet:
    form = _FENCE.fullmatch(lines[start])
    assert form is not None
    place = f"{shown(document)}:{start + 1}"
    words = shlex.split(form["info"])
    language, kind, value = _ALIASES.get(words[0], words[0]) if words else "", "", ""
    if len(words) > 1:
        kind, _, value = words[1].partition("=")
    known = KINDS.get((language, kind))
    if known is None:
        possible = ", ".join(f"{one} {other}" for one, other in KINDS)
        raise SnippetError(f"{place}: the info string {form['info'].strip()!r} is not one of: {possible}")
    if bool(value) != (known.value == "must") and known.value != "may":
        raise SnippetError(f"{place}: {language} {kind} {'needs' if not value else 'takes no'} =VALUE")
    options = dict(_option(word) for word in words[2:])
    unknown = sorted(options.keys() - set(known.options))
    if unknown:
        raise SnippetError(f"{place}: {language} {kind} has no option {unknown[0]!r}")
    indent = len(form["indent"])
    body = [
        line[indent:] if line[:indent].isspace() or not indent else line for line in lines[start + 1 : end]
    ]
    text = "".join(f"{line}\n" for line in body)
    return Snippet(document, start + 1, end + 1, language, kind, value, options, text)


def _option(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value
