"""Where requests come in and replies go out, whatever carries them: our own HTTP connections, or an ASGI server."""

import asyncio
import itertools
import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import aclosing, suppress
from typing import Any, Protocol

from dragoman.bindings.exchange import RawRequest, Reply, StreamReply
from dragoman.bindings.framing import CLOSE
from dragoman.bindings.sse import FAREWELL
from dragoman.model.errors import BodyTooLarge, RequestTimeout
from dragoman.protocol.forwarded import Network, caller_of
from dragoman.protocol.headers import Headers

BODY_SECONDS = 30.0
WATCH_AFTER = 0.5
"""Seconds that a request goes on, whether or not its caller is still there: what is quick is done whatever happens."""

FIRST_EVENT_SECONDS = 1.0
"""How long a stream that has told nothing yet may go on when streams are ended."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

ReadBody = Callable[[bytes | None, int | None], Awaitable[bytes]]
"""Returns the body of a request: see `RawRequest.read_body`; it is given the Content-Length header as well."""


class Handler(Protocol):
    """Whatever answers requests: the pipeline, or something that stands before it."""

    async def handle(self, request: RawRequest) -> Reply | StreamReply:
        """Return the answer to a request. Never raises for what a caller or an agent did."""
        ...


class Caller(Protocol):
    """The side of one request where its caller is.

    Whatever carries it cancels the task that serves it when the caller goes away: at once while a stream is sent,
    and before there is a reply once `WATCH_AFTER` is over.
    """

    @property
    def gone(self) -> bool:
        """Whether the caller has gone; what is sent is dropped then."""
        ...

    async def answer(self, reply: Reply) -> None:
        """Send a whole reply; to HEAD, without its body."""
        ...

    async def begin(self, reply: StreamReply) -> None:
        """Send the head of a stream."""
        ...

    async def pass_on(self, frame: bytes) -> None:
        """Send some of a stream, once the caller has taken enough of what went before."""
        ...

    async def finish(self) -> None:
        """End a stream."""
        ...


class Edge:
    """What becomes of a request between the connection that it came over and the handler that answers it.

    Attributes:
        body_limit: bytes that a body may have.
        body_seconds: seconds within which a body must be whole.
        is_leaving: whether callers are to call another server.
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
        """Stand before a handler.

        Args:
            handler: answers requests.
            body_limit: bytes that a body may have.
            base_path: the path under which everything stands, without a final slash.
            body_seconds: seconds within which a body must be whole.
            proxies: whose word counts for where a request comes from.
        """
        self._handler = handler
        self._base_path = base_path
        self._proxies = proxies
        self._prefix = os.urandom(5).hex()
        self._numbers = itertools.count(1)
        self._streams: set[asyncio.Task[Any] | None] = set()
        self._silent: set[asyncio.Task[Any] | None] = set()
        self._requests = 0
        self._idle: asyncio.Event | None = None
        self._closing = False
        self.body_limit = body_limit
        self.body_seconds = body_seconds
        self.is_leaving = False

    def request(
        self, method: str, path: bytes, query: bytes, headers: Headers, address: str, read: ReadBody
    ) -> RawRequest:
        """Return a request as the handler takes it.

        Args:
            method: the HTTP method, upper case.
            path: the path as it came, percent-encoded.
            query: the query as it came.
            headers: the headers.
            address: the other end of the connection.
            read: returns the body.
        """
        if self._proxies:
            address = caller_of(address, headers, self._proxies)
        return RawRequest(method, self._below(path), query, headers, self._request_id(headers), read, address)

    async def serve(self, request: RawRequest, caller: Caller) -> None:
        """Have a request answered, and send the answer."""
        self._requests += 1
        try:
            reply = await self._handler.handle(request)
            if self.is_leaving:
                reply.headers.append(CLOSE)
            if isinstance(reply, StreamReply):
                await self._stream(reply, caller, head_only=request.method == "HEAD")
            else:
                await caller.answer(reply)
        except asyncio.CancelledError:
            if not caller.gone:
                raise
        finally:
            self._requests -= 1
            if self._idle is not None and not self._requests:
                self._idle.set()

    def leave(self) -> None:
        """Close each connection with its next reply: whoever calls again is to call another server."""
        self.is_leaving = True

    async def answered(self, within: float) -> bool:
        """Wait for all requests to have been answered; return whether they were `within` so many seconds."""
        self._idle = asyncio.Event()
        if self._requests:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._idle.wait()
        return not self._requests

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

    def _below(self, raw: bytes) -> str:
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

    async def _stream(self, reply: StreamReply, caller: Caller, *, head_only: bool) -> None:
        task = asyncio.current_task()
        self._streams.add(task)
        self._silent.add(task)
        try:
            await caller.begin(reply)
            async with aclosing(reply.frames) as frames:
                if not head_only:
                    async for frame in frames:
                        await caller.pass_on(frame)
                        self._silent.discard(task)
                        if self._closing:
                            break
        except asyncio.CancelledError:
            if not (self._closing or caller.gone):
                raise
        finally:
            reply.release()
            self._streams.discard(task)
            self._silent.discard(task)
        if self._closing:
            await caller.pass_on(FAREWELL)
        await caller.finish()


def _cancel(tasks: Iterable["asyncio.Task[Any] | None"]) -> None:
    for task in tasks:
        if task is not None:
            task.cancel()


def check_length(length: bytes | None, most: int) -> None:
    """Refuse a body whose Content-Length header, if there is one, says that it is too large.

    Raises:
        BodyTooLarge: it is.
    """
    if length is not None and length.isdigit() and int(length) > most:
        raise too_large(most)


def too_large(most: int) -> BodyTooLarge:
    """Return the error of a body that has more than `most` bytes."""
    return BodyTooLarge(f"The body is over the limit of {most} bytes")


def too_late(seconds: float) -> RequestTimeout:
    """Return the error of a body that was not whole in time."""
    return RequestTimeout(f"The body was not whole within {seconds:g} s; send it again")


def cut_off() -> RequestTimeout:
    """Return the error of half a body whose caller has gone: it must not be taken for a whole one."""
    return RequestTimeout("The body was cut off")
