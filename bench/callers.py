"""Clients that speak HTTP over raw sockets, so that the client costs little beside the server.

`Caller` blocks and has one request under way: for timings of single requests.
`PipelinedConnection` is for many at once on an event loop, `IdleStream` holds one stream open.
"""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable

from bench.replies import Reply, ReplyParser, WrongReply
from bench.wire import EXPECTED, REFUSAL, Operation, with_fresh_id

_READ = 1 << 16
_GOOD_STATUS = b"HTTP/1.1 200"


class Caller:
    """One keep-alive connection with one request under way; reconnects when it was closed."""

    def __init__(self, host: str, port: int, timeout: float = 30.0) -> None:
        self._address = (host, port)
        self._timeout = timeout
        self._socket: socket.socket | None = None

    def call(self, request: bytes, operation: Operation) -> Reply:
        """The good reply to `request`, whose message id is made fresh.

        Raises:
            WrongReply: if the reply is not a good one, or the connection ended early.
            OSError: if there is no connection to be had, or the time is out.
        """
        return self.ask(request).checked(operation)

    def ask(self, request: bytes) -> Reply:
        """Whatever is answered to `request`, whose message id is made fresh.

        Raises:
            WrongReply: if the connection ended early.
            OSError: if there is no connection to be had, or the time is out.
        """
        connected = self._socket is not None
        request = with_fresh_id(request)
        try:
            return self._exchange(request)
        except (ConnectionError, WrongReply):
            if not connected:
                raise
            # A server may close an idle connection at any time: once more on a new one.
            # A message that was taken after all keeps its id, so it is not run twice.
            self.close()
            return self._exchange(request)

    def first_event(self, request: bytes) -> float:
        """Seconds from writing a streaming `request` to its first event; waits for the last one.

        Raises:
            WrongReply: if the stream holds an error or ends before the task does.
            OSError: if there is no connection to be had, or the time is out.
        """
        self.close()
        stream = self._connect()
        request = with_fresh_id(request)
        received = b""
        elapsed: float | None = None
        begun = time.perf_counter()
        stream.sendall(request)
        while EXPECTED[Operation.STREAM] not in received:
            data = stream.recv(_READ)
            received += data
            if elapsed is None and b"data:" in received:
                elapsed = time.perf_counter() - begun
            if not data or REFUSAL in received:
                raise WrongReply(f"stream: {received[-300:]!r}")
        self.close()
        if elapsed is None:
            raise WrongReply(f"not a stream: {received[:300]!r}")
        return elapsed

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, self._timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _exchange(self, request: bytes) -> Reply:
        connection = self._connect()
        connection.sendall(request)
        parser = ReplyParser()
        while data := connection.recv(_READ):
            for reply in parser.feed(data):
                return reply
        raise WrongReply("the connection ended before the reply did")


class PipelinedConnection(asyncio.Protocol):
    """Sends requests without waiting; tells `on_reply` each reply with what was sent along.

    `on_lost` is told how many replies never came when the connection ends.
    """

    def __init__(
        self,
        on_reply: Callable[["PipelinedConnection", float, Reply], None],
        on_lost: Callable[[int], None],
    ) -> None:
        self._on_reply = on_reply
        self._on_lost = on_lost
        self._parser = ReplyParser()
        self._marks: deque[float] = deque()
        self._transport: asyncio.Transport | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._transport is not None

    def send(self, request: bytes, mark: float = 0.0) -> None:
        """Write one request; `mark` comes back with its reply."""
        if self._transport is None:
            raise ConnectionError("not connected")
        self._marks.append(mark)
        self._transport.write(request)

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        for reply in self._parser.feed(data):
            self._on_reply(self, self._marks.popleft(), reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._transport = None
        if self._marks:
            self._on_lost(len(self._marks))
            self._marks.clear()


class IdleStream(asyncio.Protocol):
    """Opens a stream with `request`, notes its first event, and keeps it open."""

    def __init__(self, request: bytes) -> None:
        self._request = with_fresh_id(request)
        self._received: bytearray | None = bytearray()
        self._transport: asyncio.Transport | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended = False

    @property
    def is_open(self) -> bool:
        """Whether the first event has come and the stream has not ended."""
        return self._received is None and not self.ended

    def close(self) -> None:
        """End the stream."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        if self._received is None:
            return  # open already: keep-alive comments and later events do not matter
        self._received += data
        if len(self._received) < len(_GOOD_STATUS):
            return
        if REFUSAL in self._received or not self._received.startswith(_GOOD_STATUS):
            self._fail(f"stream: {bytes(self._received[-300:])!r}")
        elif b"\n" in self._received.partition(b"data:")[2]:
            self._received = None
            self.opened.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._transport = None
        self.ended = True
        self._fail("the stream ended before its first event")

    def _fail(self, reason: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(WrongReply(reason))
