"""uvicorn's HTTP protocol with what a server on a network needs before there is a request at all.

A head (request line and headers) has a size and a time within which it must be whole, and an offer to upgrade the
connection is not taken: some clients (Java's, `curl --http2`) make one with every first request and then send its body
as if nothing had been said, which the parser would never hand on.
"""

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 128 * 1024
HEAD_SECONDS = 30.0

_UPGRADE = re.compile(rb"(\r\n)upgrade:", re.IGNORECASE)


class GuardedProtocol(HttpToolsProtocol):
    """For `uvicorn.Config(http=...)`."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._in_head = True
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as asyncio has it
        """Take a connection; its first head is due."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(
            HEAD_SECONDS, self._refuse, 408, "The request was not whole in time."
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a connection go."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, unless they make a head that is too large."""
        if self._in_head:
            end = data.find(b"\r\n\r\n")
            self._size += len(data) if end < 0 else end
            if self._size > MAX_HEAD:
                self._refuse(431, "The headers are too large.")
                return
            if b"pgrade:" in data:
                data = _UPGRADE.sub(rb"\1x-no-upgrade:", data[: end if end >= 0 else None]) + (
                    data[end:] if end >= 0 else b""
                )
        super().data_received(data)
        if self._in_head and self._size and self._timer is None:
            self._timer = self.loop.call_later(
                HEAD_SECONDS, self._refuse, 408, "The request was not whole in time."
            )

    def on_headers_complete(self) -> None:
        """Begin with a request."""
        self._in_head = False
        self._size = 0
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Have a request whole; the next thing is a head again."""
        self._in_head = True
        super().on_message_complete()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, text: str) -> None:
        self._stop_timer()
        reason = {408: b"Request Timeout", 431: b"Request Header Fields Too Large"}[status]
        self.transport.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            % (status, reason)
            + b"content-length: %d\r\n\r\n%s" % (len(text), text.encode())
        )
        self.transport.close()
