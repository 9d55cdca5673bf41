"""A real PgBouncer before a database, which gives its clients a session for the time of a transaction."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from tests.harness.temporal import free_port

START_SECONDS = 10.0

_CONFIG = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 200
ignore_startup_parameters = {ignored}
"""


class PgBouncer:
    """One before the server of a database. Use it as a context manager."""

    def __init__(self, url: str, *, sessions: int = 8, ignored: str = "") -> None:
        """Prepare it: with so many `sessions` for all its clients, and settings of a session that it leaves alone."""
        self._parts = urlsplit(url)
        self.port = free_port()
        self._sessions = sessions
        self._ignored = ignored
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-pgbouncer-"))

    @property
    def url(self) -> str:
        """The URL of the database, by way of it."""
        return urlunsplit(self._parts._replace(netloc=f"{self._parts.username}@127.0.0.1:{self.port}"))

    def __enter__(self) -> Self:
        config = self._folder / "pgbouncer.ini"
        parts = self._parts
        values = {"host": parts.hostname, "port": parts.port or 5432, "user": parts.username}
        config.write_text(
            _CONFIG.format(**values, own_port=self.port, sessions=self._sessions, ignored=self._ignored),
            encoding="utf-8",
        )
        self._folder.chmod(0o755)
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(shutil.which("pgbouncer")), str(config)],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **identity,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError((self._folder / "log").read_text(errors="replace"))
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True
