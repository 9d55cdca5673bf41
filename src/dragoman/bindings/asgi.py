"""The server as an ASGI application, for those who run it inside something else than `dragoman serve`.

`serving` hands requests to the same `Edge` without this detour (see `connection`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.bindings.edge import WATCH_AFTER, Edge, check_length, cut_off, too_large, too_late
from dragoman.bindings.exchange import HeaderList, Reply, StreamReply
from dragoman.bindings.framing import BODILESS
from dragoman.protocol.headers import Headers

AsgiMessage = dict[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]


class AsgiApp:
    """An ASGI application of what stands behind an edge.

    Attributes:
        edge: where its requests go.
    """

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    async def __call__(self, scope: AsgiMessage, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        caller = _AsgiCaller(receive, send, self.edge, head_only=scope["method"] == "HEAD")
        request = self.edge.request(
            scope["method"],
            scope.get("raw_path") or scope["path"].encode(),
            scope["query_string"],
            Headers(scope["headers"]),
            scope["client"][0] if scope.get("client") else "",
            caller.read,
        )
        try:
            await self.edge.serve(request, caller)
        finally:
            caller.stop_watching()


class _AsgiCaller:
    """The caller's side of one request: reads the body within its limits, and notices when the caller goes away.

    One timer does both jobs, so that a quick request pays for one timer and nothing else.

    Attributes:
        gone: whether the caller has gone.
    """

    __slots__ = (
        "_began",
        "_head_only",
        "_late",
        "_limit",
        "_receive",
        "_seconds",
        "_send",
        "_task",
        "_timer",
        "_watcher",
        "_whole",
        "gone",
    )

    def __init__(self, receive: Receive, send: Send, edge: Edge, *, head_only: bool) -> None:
        loop = asyncio.get_running_loop()
        self._receive = receive
        self._send = send
        self._head_only = head_only
        self._limit = edge.body_limit
        self._seconds = edge.body_seconds
        self._began = loop.time()
        self._task = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None
        self._whole = False
        self._late = False
        self.gone = False
        self._timer = loop.call_later(min(WATCH_AFTER, self._seconds), self._tick)

    async def read(self, length: bytes | None, limit: int | None = None) -> bytes:
        """Return the body; `length` is the Content-Length header, `limit` a bound below the usual one.

        Raises:
            BodyTooLarge: it is over the limit, or says it will be.
            RequestTimeout: it was not whole in time.
        """
        if limit is not None:
            self._limit = min(self._limit, limit)
        check_length(length, self._limit)
        try:
            return await self._gather()
        except asyncio.CancelledError:
            if not self._late or self._task is None:
                raise
            self._task.uncancel()
            raise too_late(self._seconds) from None

    async def answer(self, reply: Reply) -> None:
        """See `Caller`."""
        self.stop_watching()
        headers = reply.headers
        if reply.status not in BODILESS:
            headers = [*headers, (b"content-length", b"%d" % len(reply.body))]
        await self._start(reply.status, headers)
        await self._body(b"" if self._head_only else reply.body, more=False)

    async def begin(self, reply: StreamReply) -> None:
        """See `Caller`."""
        self.stop_watching()
        self._watcher = asyncio.ensure_future(self._look())
        await self._start(reply.status, reply.headers)

    async def pass_on(self, frame: bytes) -> None:
        """See `Caller`."""
        await self._body(frame, more=True)

    async def finish(self) -> None:
        """See `Caller`."""
        self.stop_watching()
        await self._body(b"", more=False)

    def stop_watching(self) -> None:
        """Look no more whether the caller is there."""
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    async def _start(self, status: int, headers: HeaderList) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _body(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _gather(self) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise cut_off()
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self._limit:
                raise too_large(self._limit)
            chunks.append(chunk)
            if not message.get("more_body", False):
                self._whole = True
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

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
