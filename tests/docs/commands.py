"""The `dragoman` command as documents show it: `serve` lines taken apart, and the text of `--help`."""

import contextlib
import io
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import typer.main

from dragoman.cli import app
from tests.docs.snippets import Snippet

COLUMNS = 100
"""The width of the terminal that help texts are made for."""

SWITCHES = ("--conformance",)
"""Options of `dragoman serve` without a value."""

_VARIABLE = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")


@dataclass(frozen=True)
class ServeCommand:
    """What a reader's `dragoman serve …` line asks for. Empty means left out."""

    agents: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    config: str = ""
    data: str = ""
    log: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def serve_command(snippet: Snippet) -> ServeCommand:
    """Take a `sh serve` snippet apart: `[NAME=value …] dragoman serve …` or `./dev serve …`, perhaps `2> FILE`.

    Raises:
        SnippetError: it is no such command.
    """
    words = shlex.split(snippet.text.replace("\\\n", " "), comments=True)
    environment: dict[str, str] = {}
    while words and (variable := _VARIABLE.fullmatch(words[0])):
        environment[variable[1]] = variable[2]
        words.pop(0)
    if words[:2] not in (["dragoman", "serve"], ["./dev", "serve"]):
        raise snippet.wrong("must be `dragoman serve …` or `./dev serve …`")
    agents: list[str] = []
    switches: list[str] = []
    named = {"--config": "", "-c": "", "--data": "", "--listen": "", "2>": "", "2>>": ""}
    rest = iter(words[2:])
    for word in rest:
        if word in named:
            named[word] = next(rest, "")
        elif word in SWITCHES:
            switches.append(word)
        elif word.startswith("-"):
            raise snippet.wrong(f"this test does not know {word}")
        else:
            agents.append(word)
    return ServeCommand(
        agents=agents,
        switches=switches,
        config=named["--config"] or named["-c"],
        data=named["--data"],
        log=named["2>"] or named["2>>"],
        environment=environment,
    )


def paths() -> list[str]:
    """Return the name of every command, such as `tasks list`, in the order of the help text; "" is `dragoman`."""
    return list(_walk(typer.main.get_command(app), ""))


def _walk(command: Any, path: str) -> list[str]:
    inner = getattr(command, "commands", {})
    return [path, *(name for key, one in inner.items() for name in _walk(one, f"{path} {key}".strip()))]


def help_text(path: str) -> str:
    """Return what `dragoman PATH --help` prints on a terminal of `COLUMNS` columns."""
    printed = io.StringIO()
    words = [] if path in ("", "dragoman") else path.split()
    with contextlib.redirect_stdout(printed):
        typer.main.get_command(app).main(
            [*words, "--help"],
            prog_name="dragoman",
            standalone_mode=False,
            terminal_width=COLUMNS,
            max_content_width=COLUMNS,
        )
    return "\n".join(line.rstrip() for line in printed.getvalue().strip("\n").splitlines()) + "\n"
