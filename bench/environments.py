"""Each peer's environment: made once under `.cache/bench/` from its lock file, with hashes checked.

A stamp holds the digest of the lock file and the interpreter; when either
changes, the environment is made anew. An environment half made has no stamp.
"""

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_FOLDERS = Path(__file__).resolve().parent / "peers"
_LIMIT = 900.0  # seconds for one installation step
_STAMP = "made-from"


class Unavailable(Exception):
    """A server cannot be run here; the text says why."""


class Environment(Protocol):
    """How a peer is installed and started."""

    def make(self, folder: Path) -> None:
        """Install into `folder`, unless it holds this environment already.

        Raises:
            Unavailable: if a step fails.
        """

    def command(self, folder: Path) -> list[str]:
        """What starts the peer's server from `folder`."""


@dataclass(frozen=True)
class PythonEnvironment:
    """A virtual environment filled by pip from `requirements.lock`."""

    package: str

    def make(self, folder: Path) -> None:
        """Install into `folder`, unless it is there already."""
        lock = _FOLDERS / self.package / "requirements.lock"
        made_from = _digest(sys.version.encode(), lock.read_bytes())
        if _is_made(folder, made_from):
            return
        shutil.rmtree(folder, ignore_errors=True)
        _step([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        _step([*pip, "--require-hashes", "--only-binary", ":all:", "--requirement", str(lock)])
        (folder / _STAMP).write_text(made_from)

    def command(self, folder: Path) -> list[str]:
        """Its `echo` module, in its own interpreter."""
        return [str(folder / "bin" / "python"), "-m", f"bench.peers.{self.package}.echo"]


@dataclass(frozen=True)
class NodeEnvironment:
    """A folder filled by `npm ci` from `package-lock.json`, the server copied beside it."""

    package: str

    def make(self, folder: Path) -> None:
        """Install into `folder`, unless it is there already."""
        source = _FOLDERS / self.package
        node = shutil.which("node")
        npm = shutil.which("npm")
        if node is None or npm is None:
            raise Unavailable("node and npm are not installed")
        lock = (source / "package-lock.json").read_bytes()
        made_from = _digest(_output([node, "--version"]).encode(), lock)
        if not _is_made(folder, made_from):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(source / name, folder / name)
            install = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            _step([*install, "--prefix", str(folder)])
            (folder / _STAMP).write_text(made_from)
        shutil.copy(source / "echo.mjs", folder / "echo.mjs")

    def command(self, folder: Path) -> list[str]:
        """Its copied server."""
        return ["node", str(folder / "echo.mjs")]


ENVIRONMENTS: dict[str, Environment] = {
    "a2a-sdk": PythonEnvironment("a2a_sdk"),
    "js": NodeEnvironment("js"),
    "fasta2a": PythonEnvironment("fasta2a"),
}


def _digest(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()


def _is_made(folder: Path, made_from: str) -> bool:
    stamp = folder / _STAMP
    return stamp.is_file() and stamp.read_text() == made_from


def _step(command: list[str]) -> None:
    """Run one installation step to its end."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{' '.join(command)}: not done after {_LIMIT:.0f} s") from error
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise Unavailable(f"{' '.join(command)}: exit code {done.returncode}\n{last}")


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
