"""Plain sockets, for requests that no client library would send; replies are read by a real HTTP parser."""

import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httptools

from tests.interaction.answers import Reply


class _Parsed:
    """What the parser has found of the replies on a connection."""

    def __init__(self) -> None:
        self.done: list[tuple[int, dict[str, str], bytes]] = []
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self.parser = httptools.HttpResponseParser(self)

    def on_message_begin(self) -> None:
        """Called by the parser."""
        self._headers, self._body = {}, bytearray()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._body += body

    def on_message_complete(self) -> None:
        """Called by the parser."""
        self.done.append((self.parser.get_status_code(), self._headers, bytes(self._body)))


class Socket:
    """One connection. Every wait has a deadline: a server that hangs fails the test."""

    def __init__(self, url: str, seconds: float = 10.0) -> None:
        place = urlsplit(url)
        self._connection = socket.create_connection((place.hostname, place.port), timeout=seconds)
        self._parsed = _Parsed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection."""
        self._connection.close()

    def send(self, data: bytes) -> None:
        """Write bytes."""
        self._connection.sendall(data)

    def send_what_is_taken(self, data: bytes) -> None:
        """Write bytes until the other side has enough of them."""
        try:
            self._connection.sendall(data)
        except ConnectionError:
            return

    def finish_sending(self) -> None:
        """Say that no more bytes will come."""
        self._connection.shutdown(socket.SHUT_WR)

    def replies(self, binding: str = "http") -> Iterator[Reply]:
        """Whole replies as they come, until the server closes. A silent server ends in TimeoutError."""
        while True:
            while self._parsed.done:
                yield Reply(binding, *self._parsed.done.pop(0))
            try:
                data = self._connection.recv(256 * 1024)
            except ConnectionError:
                return
            if not data:
                return
            self._parsed.parser.feed_data(data)

    def reply(self, binding: str = "http") -> Reply:
        """The next reply."""
        return next(self.replies(binding))

    def is_closed_by_server(self) -> bool:
        """Wait until the server closes the connection; false if another reply comes first."""
        return next(self.replies(), None) is None

    def reply_within(self, seconds: float, binding: str = "http") -> Reply | None:
        """The next reply if it comes soon, otherwise nothing."""
        before = self._connection.gettimeout()
        self._connection.settimeout(seconds)
        try:
            return next(self.replies(binding), None)
        except TimeoutError:
            return None
        finally:
            self._connection.settimeout(before)
