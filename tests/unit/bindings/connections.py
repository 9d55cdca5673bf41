"""An HTTP connection without a socket, and an agentless handler behind it whose replies show what it was asked."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import uvicorn
import uvloop
from uvicorn.server import ServerState

from dragoman.bindings.asgi import AsgiApp
from dragoman.bindings.connection import HttpConnection
from dragoman.bindings.edge import Edge
from dragoman.bindings.exchange import RawRequest, Reply, StreamReply
from dragoman.bindings.framing import CLOSE
from dragoman.model.errors import BodyTooLarge, RequestTimeout

BODY_LIMIT = 300_000
BODY_SECONDS = 5.0
DEADLINE = 10.0


class Showing:
    """Answers with what was asked; some paths have a behaviour of their own."""

    def __init__(self) -> None:
        self.released = 0
        self.passed_on = 0
        self.read: list[bytes] = []
        self.cancelled = asyncio.Event()
        self.go = asyncio.Event()

    async def handle(self, request: RawRequest) -> Reply | StreamReply:
        """See `edge.Handler`."""
        match request.path:
            case "/stream" | "/endless":
                frames = self._frames(endless=request.path == "/endless")
                return StreamReply([(b"content-type", b"text/plain")], frames, self._release)
            case "/nothing":
                return Reply(204, [])
            case "/same":
                return Reply(304, [(b"etag", b'"1"')])
            case "/fault":
                raise RuntimeError("a secret")
            case "/inject":
                return Reply(200, [(b"x-evil", b"1\r\nset-cookie: a=b")])
            case "/unread":
                return Reply(200, [], b"not read")
            case "/held":
                await self._hold()
        try:
            body = await request.read_body()
        except BodyTooLarge:
            return Reply(413, [CLOSE])
        except RequestTimeout as error:
            return Reply(408, [CLOSE], str(error).encode())
        self.read.append(body)
        shown = {
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "x-shown": [value.decode() for value in request.headers.all(b"x-shown")],
            "body": len(body),
            "sum": sum(body),
        }
        return Reply(200, [(b"content-type", b"application/json")], json.dumps(shown).encode())

    async def _hold(self) -> None:
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def _frames(self, *, endless: bool) -> AsyncGenerator[bytes]:
        yield b"one"
        while endless:
            self.passed_on += 1
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            yield b"more"
        yield b""
        yield b"two"

    def _release(self) -> None:
        self.released += 1


class Pipe(asyncio.Transport):
    """The other end of a connection, in memory: what was written, and what the transport was told."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1234)})
        self.written = bytearray()
        self.reading = True
        self.closed = asyncio.Event()
        self._something = asyncio.Event()

    def write(self, data: Any) -> None:
        """See `asyncio.Transport`."""
        assert not self.closed.is_set(), "written after the end"
        self.written += data
        self._something.set()

    def close(self) -> None:
        """See `asyncio.Transport`."""
        self.closed.set()
        self._something.set()

    def is_closing(self) -> bool:
        """See `asyncio.Transport`."""
        return self.closed.is_set()

    def pause_reading(self) -> None:
        """See `asyncio.Transport`."""
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        """See `asyncio.Transport`."""
        assert not self.reading
        self.reading = True

    async def until(self, text: bytes, times: int = 1) -> None:
        """Wait until a text was written so often."""
        async with asyncio.timeout(DEADLINE):
            while self.written.count(text) < times:
                self._something.clear()
                await self._something.wait()


def configuration(app: Any, protocol: Any = HttpConnection) -> uvicorn.Config:
    """What uvicorn needs to serve `app` by a protocol, as `dragoman.serving` has it but without a date."""
    return uvicorn.Config(
        app,
        http=protocol,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )


def application(handler: Any, *, body_seconds: float = BODY_SECONDS) -> AsgiApp:
    """What serves a handler."""
    return AsgiApp(Edge(handler, body_limit=BODY_LIMIT, body_seconds=body_seconds))


class Connected:
    """A connection to a handler.

    Attributes:
        handler: what answers.
        pipe: the caller's end.
        connection: the server's end.
        state: what uvicorn knows of the server.
    """

    def __init__(self, *, body_seconds: float = BODY_SECONDS) -> None:
        self.handler = Showing()
        self.pipe = Pipe()
        self.state = ServerState()
        config = configuration(application(self.handler, body_seconds=body_seconds))
        self.connection = HttpConnection(config, self.state, {})
        self.connection.connection_made(self.pipe)

    async def send(self, *pieces: bytes) -> None:
        """Deliver bytes, and let the server do what it can do now; none after it has closed."""
        for piece in pieces:
            if not self.pipe.is_closing():
                self.connection.data_received(piece)
            await self.settle()

    async def settle(self) -> None:
        """Let the server do what it can do without anything from outside."""
        for _ in range(20):
            await asyncio.sleep(0)

    def hang_up(self) -> None:
        """Go away."""
        self.connection.connection_lost(None)


def on_a_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test on the kind of loop that serves."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())
