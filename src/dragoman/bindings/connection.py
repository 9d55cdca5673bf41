"""An HTTP/1.1 connection: its bytes to requests in turn, within the size and time that a head may take.

It stands where uvicorn's own protocol would (`uvicorn.Config(http=...)`), and hands requests to the edge of the
application without the ASGI form, which cost as much as everything else on the way to a card: see decision 0022.
What is a request and where it ends is decided by httptools (llhttp, Node's parser), as it is there.
"""

import asyncio
import logging
from collections import deque
from typing import Any

import httptools
import uvicorn
from uvicorn.server import ServerState

from dragoman.bindings.asgi import AsgiApp
from dragoman.bindings.deadline import Deadline
from dragoman.bindings.edge import Edge
from dragoman.bindings.exchange import RawRequest
from dragoman.bindings.framing import Header, place_of, refusal
from dragoman.bindings.turn import Turn
from dragoman.bindings.wire import Wire
from dragoman.protocol.headers import Headers

_LOG = logging.getLogger("dragoman.http")

MAX_HEAD = 128 * 1024
"""Bytes of a request line and its headers; and of what comes with a body without being one, trailers above all."""

HEAD_SECONDS = 30.0
MAX_WAITING = 8
"""Requests that may wait for their turn before no more is read."""

_NO_REQUEST = "Invalid HTTP request received."
_CHUNKLESS = ("1.0", "0.9")
"""Versions of HTTP that do not know chunks, nor connections that go on by themselves."""


class HttpConnection(asyncio.Protocol):
    """For `uvicorn.Config(app, http=...)`, where `app` is an `AsgiApp`.

    Of what else can be configured there, `timeout_keep_alive` counts, and what is about sockets, TLS and the date.
    """

    __slots__ = (
        "_address",
        "_deadline",
        "_deaf",
        "_edge",
        "_head_due",
        "_in_body",
        "_in_head",
        "_keep_alive",
        "_loop",
        "_pairs",
        "_parser",
        "_refusal",
        "_size",
        "_state",
        "_taken",
        "_target",
        "_turn",
        "_waiting",
        "_wire",
    )

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Prepare for a connection, as uvicorn does for each. A configuration with another app is a TypeError."""
        if not isinstance(config.app, AsgiApp):
            raise TypeError(f"{type(self).__name__} serves an AsgiApp, not {type(config.app).__name__}")
        self._edge: Edge = config.app.edge
        self._state = server_state
        self._keep_alive = config.timeout_keep_alive
        self._loop = _loop or asyncio.get_running_loop()
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._in_head = False
        self._in_body = False
        self._target = b""
        self._pairs: list[Header] = []
        self._size = 0
        # The turn that is served, those that wait, and the one whose body is being read.
        self._turn: Turn | None = None
        self._waiting: deque[tuple[Turn, RawRequest]] = deque()
        self._taken: Turn | None = None
        # Nothing more is read as a request; what is to be said in the end, if anything.
        self._deaf = False
        self._refusal = b""
        self._deadline = Deadline(self._loop, self._on_due)
        self._head_due = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as asyncio has it
        """Take a connection; its first head is due."""
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._wire = Wire(transport, self._state)
        self._state.connections.add(self)  # type: ignore[arg-type]  # uvicorn names its own protocols only
        self._expect(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a connection go, and whoever was served over it."""
        self._state.connections.discard(self)
        self._deaf = True
        self._parser = None  # it refers to this
        self._deadline.end()
        self._waiting.clear()
        if self._turn is not None:
            self._turn.leave()
        self._turn = self._taken = None
        self._wire.go_on_writing()

    def data_received(self, data: bytes) -> None:
        """Take bytes, unless they make a head that is too large."""
        if self._deaf or self._parser is None:
            return
        self._size += len(data)
        if self._size > MAX_HEAD and self._is_too_large(data):
            self._refuse(431, "The headers are too large.")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._go_on_without_upgrade(data[offer.args[0] :])
        except httptools.HttpParserCallbackError:
            raise  # it is none of the caller's
        except httptools.HttpParserError:
            self._refuse(400, _NO_REQUEST)
        if self._in_head and self._turn is None and not self._head_due:
            self._expect(HEAD_SECONDS)

    def pause_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._wire.stop_writing()

    def resume_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self._wire.go_on_writing()

    def shutdown(self) -> None:
        """Let the turn that is served be the last one; called by uvicorn when the server stops."""
        if self._turn is None:
            self._wire.close()
        else:
            self._turn.keep_alive = False

    def on_message_begin(self) -> None:
        """Begin with a head."""
        self._in_head = True
        self._target = b""

    def on_url(self, url: bytes) -> None:
        """Take some of the request's target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. A trailer is dropped: what was decided by the head stays."""
        if self._in_head:
            self._pairs.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Begin with a request whose head is whole."""
        parser = self._parser
        if self._deaf or parser is None or parser.should_upgrade():
            return
        self._in_head = self._head_due = False
        self._size = 0
        headers, self._pairs = Headers(self._pairs), []
        place = place_of(self._target)
        if place is None:
            self._refuse(400, _NO_REQUEST)
            return
        self._in_body = True
        method = parser.get_method().decode("ascii")
        version = parser.get_http_version()
        turn = self._taken = Turn(
            self._wire,
            self._edge,
            self._on_over,
            head_only=method == "HEAD",
            keep_alive=version not in _CHUNKLESS and parser.should_keep_alive(),
            chunked=version not in _CHUNKLESS,
            expects=version not in _CHUNKLESS and (headers.get(b"expect") or b"").lower() == b"100-continue",
        )
        request = self._edge.request(method, *place, headers, self._address, turn.read)
        if self._turn is None:
            self._turn = turn
            turn.start(request, self._loop)
        else:
            self._waiting.append((turn, request))
            if len(self._waiting) >= MAX_WAITING:
                self._wire.stop_reading()

    def on_body(self, body: bytes) -> None:
        """Take some of a body."""
        if self._in_body and self._taken is not None:
            self._size = 0
            self._taken.take(body)

    def on_message_complete(self) -> None:
        """Have a request whole; the next thing is a head again."""
        if not self._in_body or self._taken is None:
            return
        self._in_body = False
        self._size = 0
        self._taken.end_body()
        if not self._taken.keep_alive:
            self._deaf = True
        self._taken = None

    def _is_too_large(self, data: bytes) -> bool:
        before = self._size - len(data)
        if self._in_body:
            return before > MAX_HEAD  # nothing of it was body: chunk extensions or trailers
        end = data.find(b"\r\n\r\n")
        return end < 0 or before + end > MAX_HEAD

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """Read a head again as if it offered no other protocol: the parser would take its body for one.

        Some clients (Java's, `curl --http2`) make an offer with every first request and send its body all the same.
        """
        parser = self._parser
        if self._deaf or parser is None:
            return
        method = parser.get_method()
        if method == b"CONNECT":
            self._refuse(400, _NO_REQUEST)
            return
        head = [b"%b %b HTTP/%b\r\n" % (method, self._target, parser.get_http_version().encode())]
        head += [b"%b: %b\r\n" % pair for pair in self._pairs if pair[0] != b"upgrade"]
        self._parser = httptools.HttpRequestParser(self)
        self._pairs = []
        self._size = 0
        self.data_received(b"%b\r\n%b" % (b"".join(head), rest))

    def _on_over(self, turn: Turn) -> None:
        """Go on with the next turn, or with what is to be said in the end, or wait for more."""
        self._state.total_requests += 1
        if not turn.keep_alive:
            self._turn = None
            self._wire.close()
            return
        if self._waiting:
            self._turn, request = self._waiting.popleft()
            self._turn.start(request, self._loop)
        else:
            self._turn = None
            if self._refusal:
                self._say_last()
                return
            self._expect(HEAD_SECONDS if self._in_head else self._keep_alive)
        if len(self._waiting) < MAX_WAITING:
            self._wire.go_on_reading()

    def _refuse(self, status: int, text: str) -> None:
        """Answer what is no request, after the requests before it, and read nothing more."""
        if status == 400:  # the others are what any caller that is slow or gone looks like
            _LOG.warning("what came over a connection is no HTTP request; it is answered with 400 and closed")
        self._deaf = True
        self._refusal = refusal(status, text, self._wire.headers)
        turn = self._taken if self._in_body else None
        if turn is None:
            pass
        elif turn.over or turn.begun:
            # It has its answer already, or is about to: there is no second one.
            turn.keep_alive = False
            if turn.over:
                self._wire.close()
            return
        elif turn is self._turn:
            turn.leave()
            self._turn = None
        else:
            self._waiting.pop()
        if self._turn is None:
            self._say_last()

    def _say_last(self) -> None:
        self._wire.write(self._refusal)
        self._wire.close()

    def _expect(self, seconds: float) -> None:
        """Have the next request within so many seconds: its head, if one has begun or is the first, or anything."""
        self._head_due = self._head_due or self._in_head
        self._deadline.expect(seconds)

    def _on_due(self) -> None:
        if self._turn is not None:
            return  # when it is over there is another deadline
        if self._head_due:
            self._refuse(408, "The request was not whole in time.")
        else:
            self._wire.close()
