"""A TCP proxy before a database: it can lead elsewhere, hang, cut connections, and swallow the answer to a commit."""

import contextlib
import re
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

COMMIT = b"COMMIT"
COMMITS_ITSELF = re.compile(rb"(__asyncpg_stmt_\w+)\x00WITH .*pg_current_xact_id\(\)::xid", re.DOTALL)
"""The preparing of a statement that writes a batch by itself, under a name."""


class DatabaseProxy:
    """The address of a database, which may change what is behind it. Use it as a context manager."""

    def __init__(self, url: str) -> None:
        """Listen, before the server of a database."""
        self._parts = urlsplit(url)
        self._target = self._parts.port or 5432
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._commits_to_lose = 0
        self._requests_to_lose = 0
        self.lost_commits = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The URL of the database, by way of it."""
        port = self._listener.getsockname()[1]
        return urlunsplit(self._parts._replace(netloc=f"{self._parts.username}@127.0.0.1:{port}"))

    def lead_to(self, port: int) -> None:
        """From now on new connections go to another server; those that there are stay where they are."""
        self._target = port

    def hang(self) -> None:
        """Pass nothing on any more, either way, and close nothing: as a network does that is gone."""
        self._flows.clear()

    def flow(self) -> None:
        """Pass on what comes again, also what was held back."""
        self._flows.set()

    def cut(self) -> None:
        """Close all connections."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def lose_commits(self, number: int) -> None:
        """Let that many commits come through, and close their connections instead of passing on the answers."""
        self._commits_to_lose += number

    def lose_requests(self, number: int) -> None:
        """Close the connections on which that many commits are asked for, instead of passing them on."""
        self._requests_to_lose += number

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flows.set()
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            try:
                there = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                here.close()
                continue
            with self._lock:
                self._sockets |= {here, there}
            answers = threading.Event()
            answers.set()
            for source, target, asks in ((here, there, True), (there, here, False)):
                threading.Thread(target=self._pump, args=(source, target, asks, answers), daemon=True).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, asks: bool, answers: threading.Event
    ) -> None:
        names: list[bytes] = []
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                names += COMMITS_ITSELF.findall(data) if asks else ()
                if asks and _commits(data, names):
                    if self._stops():
                        break
                    if self._loses():
                        answers.clear()
                elif not asks and not answers.is_set():
                    # The database has answered: it is committed, and nobody learns.
                    self.lost_commits += 1
                    break
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _stops(self) -> bool:
        with self._lock:
            if not self._requests_to_lose:
                return False
            self._requests_to_lose -= 1
            return True

    def _loses(self) -> bool:
        with self._lock:
            if not self._commits_to_lose:
                return False
            self._commits_to_lose -= 1
            return True


def _commits(data: bytes, names: list[bytes]) -> bool:
    """Whether what is sent to a database commits: by that word, or by binding one of the statements that do."""
    return COMMIT in data or (data[:1] == b"B" and any(b"\0%b\0" % name in data[:100] for name in names))
