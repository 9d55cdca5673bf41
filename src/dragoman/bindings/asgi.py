"""The ASGI edge: reads requests, writes replies, notices callers that go away."""

import asyncio
import itertools
import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import aclosing, suppress
from typing import Any, Protocol

from dragoman.bindings.exchange import RawRequest, Reply, StreamReply
from dragoman.bindings.sse import FAREWELL
from dragoman.model.errors import BodyTooLarge, RequestTimeout
from dragoman.protocol.forwarded import Network, caller_of
from dragoman.protocol.headers import Headers

AsgiMessage = dict[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]

BODY_SECONDS = 30.0
WATCH_AFTER = 0.5
"""Seconds that a request may wait before it is watched whether its caller is still there."""

FIRST_EVENT_SECONDS = 1.0
"""How long a stream that has told nothing yet may go on when streams are ended."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Handler(Protocol):
    """Whatever answers requests: the pipeline, or something that stands before it."""

    async def handle(self, request: RawRequest) -> Reply | StreamReply:
        """Return the answer to a request. Never raises for what a caller or an agent did."""
        ...


class AsgiApp:
    """The server as an ASGI application.

    Attributes:
        is_leaving: whether its callers are to call another server.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        body_limit: int,
        base_path: str = "",
        body_seconds: float = BODY_SECONDS,
        proxies: Collection[Network] = (),
    ) -> None:
        """Prepare the application.

        Args:
            handler: answers requests.
            body_limit: bytes that a body may have.
            base_path: the path under which everything stands, without a final slash.
            body_seconds: seconds within which a body must be whole.
            proxies: whose word counts for where a request comes from.
        """
        self._handler = handler
        self._body_limit = body_limit
        self._base_path = base_path
        self._body_seconds = body_seconds
        self._proxies = proxies
        self._prefix = os.urandom(5).hex()
        self._numbers = itertools.count(1)
        self._streams: set[asyncio.Task[Any] | None] = set()
        self._silent: set[asyncio.Task[Any] | None] = set()
        self._requests = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.is_leaving = False
        self._closing = False

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        self._requests += 1
        self._idle.clear()
        try:
            await self._serve(scope, receive, send)
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()

    async def _serve(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        address = scope["client"][0] if scope.get("client") else ""
        if self._proxies:
            address = caller_of(address, headers, self._proxies)
        caller = _Connection(receive, self._body_limit, self._body_seconds)
        request = RawRequest(
            scope["method"],
            self._path(scope),
            scope["query_string"],
            headers,
            self._request_id(headers),
            caller.read,
            address,
        )
        try:
            reply = await self._handler.handle(request)
        except asyncio.CancelledError:
            if caller.gone:
                return
            raise
        finally:
            caller.end()
        if self.is_leaving:
            reply.headers.append((b"connection", b"close"))
        if isinstance(reply, StreamReply):
            await self._stream(reply, receive, send, head_only=request.method == "HEAD")
        else:
            await _answer(reply, send, head_only=request.method == "HEAD")

    def leave(self) -> None:
        """Close each connection with its next reply: whoever calls again is to call another server."""
        self.is_leaving = True

    async def answered(self, within: float) -> bool:
        """Wait for all requests to have been answered; return whether they were `within` so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._idle.wait()
        return self._idle.is_set()

    def end_streams(self) -> None:
        """End all open streams; their callers can subscribe again elsewhere, or to the next server.

        One that has told nothing yet ends after its first event, which says what to subscribe to.
        """
        self._closing = True
        _cancel(self._streams - self._silent)
        asyncio.get_running_loop().call_later(FIRST_EVENT_SECONDS, lambda: _cancel(self._streams))

    def open_streams(self) -> int:
        """Return how many streams are open."""
        return len(self._streams)

    def _path(self, scope: AsgiMessage) -> str:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        path = raw.decode("latin-1")
        if self._base_path:
            if path != self._base_path and not path.startswith(self._base_path + "/"):
                return ""
            path = path[len(self._base_path) :]
        return path

    def _request_id(self, headers: Headers) -> str:
        named = headers.get(b"x-request-id")
        if named is not None and _REQUEST_ID.fullmatch(named):
            return named.decode()
        return f"{self._prefix}-{next(self._numbers):x}"

    async def _stream(self, reply: StreamReply, receive: Receive, send: Send, *, head_only: bool) -> None:
        task = asyncio.current_task()
        watcher = asyncio.ensure_future(_cancel_when_gone(receive, task))
        self._streams.add(task)
        self._silent.add(task)
        try:
            await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
            async with aclosing(reply.frames) as frames:
                if not head_only:
                    async for frame in frames:
                        await send({"type": "http.response.body", "body": frame, "more_body": True})
                        self._silent.discard(task)
                        if self._closing:
                            break
        except asyncio.CancelledError:
            if not (self._closing or watcher.done()):
                raise
        finally:
            reply.release()
            self._streams.discard(task)
            self._silent.discard(task)
            watcher.cancel()
        if self._closing:
            await send({"type": "http.response.body", "body": FAREWELL, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _cancel(tasks: Iterable["asyncio.Task[Any] | None"]) -> None:
    for task in tasks:
        if task is not None:
            task.cancel()


async def _answer(reply: Reply, send: Send, *, head_only: bool) -> None:
    headers = (
        [*reply.headers, (b"content-length", str(len(reply.body)).encode())]
        if reply.status not in (204, 304)
        else reply.headers
    )
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head_only else reply.body})


async def _cancel_when_gone(receive: Receive, task: "asyncio.Task[Any] | None") -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            if task is not None:
                task.cancel()
            return


class _Connection:
    """The caller's side of one request: reads the body within its limits, and notices when the caller goes away.

    One timer does both jobs, so that a quick request pays for one timer and nothing else.

    Attributes:
        gone: whether the caller has gone.
    """

    __slots__ = (
        "_began",
        "_late",
        "_limit",
        "_receive",
        "_seconds",
        "_task",
        "_timer",
        "_watcher",
        "_whole",
        "gone",
    )

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._receive = receive
        self._limit = limit
        self._seconds = seconds
        self._began = loop.time()
        self._task = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None
        self._whole = False
        self._late = False
        self.gone = False
        self._timer = loop.call_later(min(WATCH_AFTER, seconds), self._tick)

    async def read(self, length: bytes | None, limit: int | None = None) -> bytes:
        """Return the body; `length` is the Content-Length header, `limit` a bound below the usual one.

        Raises:
            BodyTooLarge: it is over the limit, or says it will be.
            RequestTimeout: it was not whole in time.
        """
        if limit is not None:
            self._limit = min(self._limit, limit)
        if length is not None and length.isdigit() and int(length) > self._limit:
            raise self._too_large()
        try:
            return await self._gather()
        except asyncio.CancelledError:
            if not self._late or self._task is None:
                raise
            self._task.uncancel()
            raise RequestTimeout(
                f"The body was not whole within {self._seconds:g} s; send it again"
            ) from None

    def end(self) -> None:
        """Stop watching."""
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    async def _gather(self) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                # Nobody is there to be answered, and half a body must not be taken for a whole one.
                raise RequestTimeout("The body was cut off")
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self._limit:
                raise self._too_large()
            chunks.append(chunk)
            if not message.get("more_body", False):
                self._whole = True
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"The body is over the limit of {self._limit} bytes")

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        if self._whole:
            self._watcher = asyncio.ensure_future(self._look())
            return
        left = self._began + self._seconds - loop.time()
        if left <= 0 and self._task is not None:
            self._late = True
            self._task.cancel()
        else:
            self._timer = loop.call_later(max(0.001, min(WATCH_AFTER, left)), self._tick)

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
        self.gone = True
        if self._task is not None:
            self._task.cancel()
