"""Starts a server's process, waits until it listens, and ends it by its id.

Every server prints `listening on http://127.0.0.1:PORT` on stdout. Both its
streams go to files in its folder, so that no full pipe can ever stall it.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.callers import Caller
from bench.environments import Unavailable
from bench.servers import CACHE, REPOSITORY, Server
from bench.wire import Binding, Operation, Wire

DATA = "data"
"""Where Dragoman keeps its tasks, in the folder that a server is started with."""

_ANNOUNCED = re.compile(r"listening on http://([\d.]+):(\d+)")
_START_LIMIT = 30.0  # seconds until a server must listen
_STOP_LIMIT = 45.0  # seconds for a graceful end, more than Dragoman's own drain of 30
_POLL = 0.001


@dataclass(frozen=True)
class Running:
    """A server that listens."""

    server: Server
    process: subprocess.Popen[bytes]
    host: str
    port: int
    ready: float
    """Seconds from the start of its process to its first good agent card."""

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self.process.pid

    def wire(self, binding: Binding) -> Wire:
        """Requests to its agent."""
        return Wire(self.host, self.port, self.server.routes, binding)

    def caller(self) -> Caller:
        """A new connection to it."""
        return Caller(self.host, self.port)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End its process and wait for that; SIGKILL if the time is out."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(_STOP_LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(_STOP_LIMIT)


def start(server: Server, folder: Path) -> Running:
    """Start `server` with its files in `folder`; it has answered its card on return.

    Raises:
        Unavailable: if it ends or does not listen in time; its last words are in the text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stdout, stderr = folder / "stdout.log", folder / "stderr.log"
    path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
    environment = {**os.environ, "PYTHONPATH": path, "NODE_ENV": "production"}
    if server.store_url:
        environment["DRAGOMAN_STORE_URL"] = server.store_url
    command = server.command(folder / DATA)
    begun = time.perf_counter()
    with stdout.open("wb") as out, stderr.open("ab") as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=folder,
            env=environment,
        )
    try:
        host, port = _announced(process, stdout, begun + _START_LIMIT)
        caller = Caller(host, port)
        caller.call(Wire(host, port, server.routes, Binding.JSONRPC).card(), Operation.CARD)
        ready = time.perf_counter() - begun
        caller.close()
    except BaseException as error:
        process.kill()
        process.wait(_STOP_LIMIT)
        if isinstance(error, TimeoutError | ChildProcessError):
            words = stderr.read_bytes()[-2000:].decode(errors="replace").strip()
            raise Unavailable(f"{' '.join(command)}: {error}\n{words}") from error
        raise
    return Running(server, process, host, port, ready)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for servers' files, on the repository's disk: /tmp may be memory and sync at once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="run-", dir=CACHE, ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def running(server: Server) -> Iterator[Running]:
    """`server`, new and empty, until the block ends."""
    with scratch_folder() as folder:
        served = start(server, folder)
        try:
            yield served
        finally:
            served.stop()


def _announced(process: subprocess.Popen[bytes], stdout: Path, deadline: float) -> tuple[str, int]:
    """The address that a server prints, polled for."""
    while time.perf_counter() < deadline:
        found = _ANNOUNCED.search(stdout.read_text(errors="replace"))
        if found is not None:
            return found[1], int(found[2])
        if process.poll() is not None:
            raise ChildProcessError(f"ended with exit code {process.returncode}")
        time.sleep(_POLL)
    raise TimeoutError(f"does not listen after {_START_LIMIT:.0f} s")
