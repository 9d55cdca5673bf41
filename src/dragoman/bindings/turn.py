"""One request and its reply on an HTTP connection."""

import asyncio
import logging
from collections.abc import Callable

from dragoman.bindings.edge import WATCH_AFTER, Edge, check_length, cut_off, too_large, too_late
from dragoman.bindings.exchange import RawRequest, Reply, StreamReply
from dragoman.bindings.framing import BODILESS, CHUNKED, CLOSE, CONTINUE, LAST_CHUNK, Header, chunk, head
from dragoman.bindings.wire import Wire

_LOG = logging.getLogger("dragoman.http")

HELD = 64 * 1024
"""Bytes of a body that are taken before anybody reads it."""

_FAILURE = Reply(500, [(b"content-type", b"text/plain; charset=utf-8"), CLOSE], b"Internal Server Error")


class Turn:
    """The caller of one request: takes its body as it comes, and writes its reply (see `edge.Caller`).

    Attributes:
        gone: whether the caller has gone.
        begun: whether the head of the reply is written.
        over: whether the whole reply is.
        keep_alive: whether the connection may have another turn after this one.
    """

    __slots__ = (
        "_began",
        "_chunked",
        "_chunks",
        "_edge",
        "_expects",
        "_head_only",
        "_most",
        "_on_over",
        "_size",
        "_streams",
        "_task",
        "_waiter",
        "_whole",
        "_wire",
        "begun",
        "gone",
        "keep_alive",
        "over",
    )

    def __init__(
        self,
        wire: Wire,
        edge: Edge,
        on_over: Callable[["Turn"], None],
        *,
        head_only: bool,
        keep_alive: bool,
        chunked: bool,
        expects: bool,
    ) -> None:
        """Take the turn of a request whose head is there.

        Args:
            wire: the connection.
            edge: who serves the request.
            on_over: called once the reply is written.
            head_only: whether the reply has no body, as to HEAD.
            keep_alive: whether the caller lets the connection go on.
            chunked: whether the caller reads chunks; if not, a reply without a length ends with the connection.
            expects: whether the caller waits for `100 Continue` before it sends the body.
        """
        self._wire = wire
        self._edge = edge
        self._on_over = on_over
        self._head_only = head_only
        self._chunked = chunked
        self._expects = expects
        self._began = 0.0
        self._chunks: list[bytes] = []
        self._size = 0
        self._most = HELD
        self._whole = False
        self._waiter: asyncio.Future[None] | None = None
        self._streams = False
        self._task: asyncio.Task[None] | None = None
        self.keep_alive = keep_alive
        self.gone = False
        self.begun = False
        self.over = False

    def start(self, request: RawRequest, loop: asyncio.AbstractEventLoop) -> None:
        """Have the request served."""
        self._began = loop.time()
        self._task = loop.create_task(self._serve(request))

    def take(self, data: bytes) -> None:
        """Take some of the body; once there is a reply, nobody wants it any more."""
        if self.over:
            return
        self._chunks.append(data)
        self._size += len(data)
        if self._size > self._most:
            self._wire.stop_reading()
            self._wake()

    def end_body(self) -> None:
        """Note that the body is whole."""
        self._whole = True
        self._wake()

    def leave(self) -> None:
        """Note that the caller has gone: nothing more comes, and nothing more is read."""
        self.gone = True
        self._wake()
        task = self._task
        if task is None or task.done():
            return
        # The server does not end before what it has begun, and nothing else keeps the task now.
        self._wire.state.tasks.add(task)
        task.add_done_callback(self._wire.state.tasks.discard)
        if self._streams:
            task.cancel()
        else:
            task.get_loop().call_at(self._began + WATCH_AFTER, self._give_up)

    async def read(self, length: bytes | None, limit: int | None = None) -> bytes:
        """Return the body; `length` is the Content-Length header, `limit` a bound below the usual one.

        Raises:
            BodyTooLarge: it is over the limit, or says it will be.
            RequestTimeout: it was not whole in time.
        """
        most = self._edge.body_limit if limit is None else min(self._edge.body_limit, limit)
        if not self._whole:
            check_length(length, most)
            await self._gather(most)
        if self._size > most:
            raise too_large(most)
        chunks, self._chunks = self._chunks, []
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def answer(self, reply: Reply) -> None:
        """See `Caller`."""
        if self._wire.full:
            await self._wire.room()
        if self.gone:
            return
        headers = [*self._wire.headers, *reply.headers]
        if reply.status in BODILESS:
            self._wire.write(self._head(reply.status, headers))
        else:
            headers.append((b"content-length", b"%d" % len(reply.body)))
            body = b"" if self._head_only else reply.body
            self._wire.write(self._head(reply.status, headers) + body)
        self._end()

    async def begin(self, reply: StreamReply) -> None:
        """See `Caller`."""
        self._streams = True
        if self.gone:
            if self._task is not None:
                self._task.cancel()
            return
        headers = [*self._wire.headers, *reply.headers]
        if not self._head_only:
            if self._chunked:
                headers.append(CHUNKED)
            else:
                self.keep_alive = False
        self._wire.write(self._head(reply.status, headers))

    async def pass_on(self, frame: bytes) -> None:
        """See `Caller`."""
        if self._wire.full:
            await self._wire.room()
        if frame and not self.gone and not self._head_only:
            self._wire.write(chunk(frame) if self._chunked else frame)

    async def finish(self) -> None:
        """See `Caller`."""
        if self.gone:
            return
        if self._chunked and not self._head_only:
            self._wire.write(LAST_CHUNK)
        self._end()

    async def _serve(self, request: RawRequest) -> None:
        try:
            await self._edge.serve(request, self)
        except Exception as error:  # the last catch: what is raised below the pipeline ends there
            _LOG.exception("a reply could not be sent", exc_info=error, extra={"request_id": request.id})
        finally:
            if not (self.over or self.gone):
                await self._fail()

    async def _fail(self) -> None:
        if self.begun:
            self._wire.close()  # there is no other way to tell that this is not the whole reply
        else:
            await self.answer(_FAILURE)

    async def _gather(self, most: int) -> None:
        if self._expects and not self.gone:
            self._expects = False
            self._wire.write(CONTINUE)
        self._most = most
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(self._began + self._edge.body_seconds):
                while not (self._whole or self.gone or self._size > most):
                    self._wire.go_on_reading()
                    self._waiter = loop.create_future()
                    await self._waiter
        except TimeoutError:
            raise too_late(self._edge.body_seconds) from None
        if self.gone and not self._whole:
            raise cut_off()

    def _give_up(self) -> None:
        if self._task is not None and not self._streams:
            self._task.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _head(self, status: int, headers: list[Header]) -> bytes:
        if CLOSE in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append(CLOSE)
        written = head(status, headers)
        self.begun = True
        return written

    def _end(self) -> None:
        self.over = True
        self._on_over(self)
