"""The files that the architecture tests read, and what is asked of one Python file again and again."""

import ast
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("bench", "examples", "src", "tests")
"""The folders that hold Python code."""

_NOT_OURS = {".cache", ".git", ".venv", "__pycache__", "node_modules"}


@dataclass(frozen=True)
class Source:
    """One file: its path from the repository's root, with forward slashes, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of a Python file."""
        return ast.parse(self.text, self.path)

    def at(self, line: int, finding: str) -> str:
        """Return a finding in the form that editors turn into a link."""
        return f"{self.path}:{line}: {finding}"

    def imports(self) -> Iterator[tuple[int, str]]:
        """Yield (line, dotted name) of all that the file imports; `from a import b` gives `a.b`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{node.module or '.'}.{alias.name}") for alias in node.names)


def paths() -> list[str]:
    """Return the path of every file that is committed, or would be by `git add --all`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        found = [path for path in listing.stdout.split("\0") if path]
    else:  # a copy of the tree without its history
        found = []
        for folder, folders, files in os.walk(ROOT):
            folders[:] = [name for name in folders if name not in _NOT_OURS]
            found += [(Path(folder) / name).relative_to(ROOT).as_posix() for name in files]
    return sorted(path for path in found if (ROOT / path).is_file())


def texts() -> list[Source]:
    """Return every file that is text."""
    found = []
    for path in paths():
        try:
            found.append(Source(path, (ROOT / path).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def python(*folders: str) -> list[Source]:
    """Return the Python files below the given folders."""
    return [
        Source(path, (ROOT / path).read_text(encoding="utf-8"))
        for path in paths()
        if path.endswith(".py") and path.startswith(tuple(f"{folder}/" for folder in folders))
    ]
