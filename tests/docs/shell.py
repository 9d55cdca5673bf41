"""The reader's shell: bash in the reader's folder, with `dragoman`, `./dev` and the official SDK's Python at hand."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs import commands
from tests.harness.clients import ClientEnvironment
from tests.harness.paths import CHECKOUT, SOURCE

SDK = "a2a-sdk-1.3.0"
OLDER_SDK = "a2a-sdk-0.3.26"
COMMAND_SECONDS = 60.0

_STATE = ".variables"
_BEFORE = f"set -a; [ ! -s {_STATE} ] || . ./{_STATE}; trap 'export -p >{_STATE}' EXIT\n"

# `dragoman` as an installed one behaves, except that the usual address and an agent's id mean the document's server.
_DRAGOMAN = """#!{python} -P
import sys
sys.path.insert(0, {source!r})
sys.argv[0] = "dragoman"
words = sys.argv[1:]
if words[:1] in (["send"], ["card"]) and len(words) > 1 and "://" not in words[1] and not words[1].startswith("-"):
    sys.argv[2] = {url!r} + "/agents/" + words[1]
if words[:1] in (["approvals"], ["delegate"]) and "--help" not in words:
    sys.argv += ["--url", {url!r}]
from dragoman.cli import main
main()
"""
_DEV = """#!/bin/sh
[ "$1" = run ] || { echo "dev: only the verb run is known to this test" >&2; exit 2; }
shift
exec dragoman "$@"
"""


class Shell:
    """Runs commands in a folder, with an environment that holds nothing of the tests' own."""

    def __init__(self, folder: Path, address: str) -> None:
        """Make the folder and the programs; `address` is where `dragoman send ID` finds the agents."""
        self._folder = folder
        self._programs = folder.parent / f"{folder.name}-programs"
        folder.mkdir(parents=True)
        self._programs.mkdir()
        (folder / "examples").symlink_to(CHECKOUT / "examples")
        _program(folder / "dev", _DEV)
        self.point_at(address)

    def point_at(self, address: str) -> None:
        """Have `dragoman send ID` mean the server at `address`."""
        text = _DRAGOMAN.format(python=sys.executable, source=str(SOURCE), url=f"http://{address}")
        _program(self._programs / "dragoman", text)

    def bash(self, script: str) -> tuple[int, str]:
        """Run a script, with the variables that earlier ones set; return its exit code and what it printed.

        Raises:
            TimeoutError: it did not end within a minute.
        """
        return self._run(["bash", "-c", _BEFORE + script])

    def python(self, file: str, *, older: bool = False) -> tuple[int, str]:
        """Run a file of the folder with the Python of the SDK, or of the `older` one for A2A 0.3; as `bash`."""
        return self._run([str(_environment(OLDER_SDK if older else SDK) / "bin" / "python"), file])

    def _run(self, command: list[str]) -> tuple[int, str]:
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"no end within {COMMAND_SECONDS} s") from None
        return done.returncode, done.stdout.decode(errors="replace")

    def _environment(self) -> dict[str, str]:
        names = ("HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        path = f"{self._programs}:{_environment(SDK) / 'bin'}:{os.environ['PATH']}"
        return kept | {"PATH": path, "COLUMNS": str(commands.COLUMNS), "PYTHONDONTWRITEBYTECODE": "1"}


def syntax_error(script: str) -> str:
    """Return what bash finds wrong with a script, without running it; empty if it is right."""
    done = subprocess.run(
        ["bash", "-n"], input=script, text=True, capture_output=True, timeout=10, check=False
    )
    return done.stderr if done.returncode else ""


def _environment(name: str) -> Path:
    client = ClientEnvironment(name)
    client.prepare()
    return client.root


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
