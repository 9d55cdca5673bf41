"""The one client for requests to URLs that a caller, a tenant or a remote agent chose.

It follows no redirect, uses no proxy, keeps no cookie, and reads nothing from the environment.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from typing import Any

import httpcore2
from msgspec import Struct

from dragoman.egress.connect import PinnedBackend, Resolve, SystemResolver
from dragoman.egress.policy import EgressPolicy, Refused

CONNECT_SECONDS = 10.0
TOTAL_SECONDS = 30.0
MAX_BYTES = 1024 * 1024
"""Bounds of a request: until a connection stands, until the reply is read, and of the reply."""

DRAINED = 64 * 1024
"""Bytes of a reply that nobody wants that are read so that its connection can be used again."""

IDLE_CONNECTIONS = 64
IDLE_SECONDS = 15.0

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# White space at either end is no part of a value (RFC 9110 §5.5).
_VALUE = re.compile(r"(?![\t ])[\t\x20-\x7e]*(?<![\t ])")

HeaderPairs = Sequence[tuple[str, str]]


class EgressFailed(Exception):
    """A request went out, or was to, and no whole reply came. The message holds nothing of the URL or of a reply."""


class NotSent(EgressFailed):
    """Nothing of a request went out: there was no connection to send it on."""


class Head(Struct, frozen=True):
    """What comes before the body of a reply."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]

    def header(self, name: bytes) -> bytes:
        """Return the first header of a name in lower case; empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), b"")


class Incoming(Head, frozen=True):
    """A reply whose body is still to come: in pieces, as they arrive. Reading them raises EgressFailed."""

    pieces: AsyncIterator[bytes]


class Received(Head, frozen=True):
    """A reply. `body` is empty where it was not asked for."""

    body: bytes = b""


class Egress:
    """Sends requests within a policy. To be used on one loop.

    Attributes:
        policy: where requests may go.
    """

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        user_agent: str,
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        max_bytes: int = MAX_BYTES,
        idle_seconds: float = IDLE_SECONDS,
        resolve: Resolve | None = None,
    ) -> None:
        """Prepare to send.

        Args:
            policy: where requests may go.
            user_agent: what this server calls itself.
            connect_seconds: seconds until a connection stands, the name resolved and TLS agreed on.
            total_seconds: seconds until a reply is read.
            max_bytes: bytes of a reply.
            idle_seconds: seconds that a connection is kept for further requests; with 0 none is used again. One that
                waits may be closed by the other side at the very moment when a request goes out on it, and then nobody
                knows whether that arrived.
            resolve: finds addresses; the system's way if left out.
        """
        self.policy = policy
        self._user_agent = user_agent
        self._seconds = total_seconds
        self._max_bytes = max_bytes
        self._idle_seconds = idle_seconds
        self._timeouts = {
            "connect": connect_seconds,
            "read": total_seconds,
            "write": total_seconds,
            "pool": total_seconds,
        }
        self._system = SystemResolver() if resolve is None else None
        self._backend = PinnedBackend(policy, resolve or self._system or SystemResolver())
        self._pool: asyncio.Task[httpcore2.AsyncConnectionPool] | None = None

    async def send(
        self, method: str, url: str, *, headers: HeaderPairs = (), body: bytes = b"", wants_body: bool = True
    ) -> Received:
        """Send a request and return the reply, whatever its status.

        Without `wants_body` no more of its body is read than it takes to use the connection again.

        Raises:
            Refused: it may not go there, or a header is none; nothing was sent.
            NotSent: there is no connection; nothing was sent.
            EgressFailed: no whole reply came; whether the request arrived is not known.
        """
        progress = _Progress(self._seconds)
        request = self._request(method, url, headers, body, progress)
        with progress.told():
            async with asyncio.timeout(self._seconds):
                return await self._send(request, wants_body)

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, url: str, *, headers: HeaderPairs = (), body: bytes = b""
    ) -> AsyncIterator[Incoming]:
        """Send a request and yield the reply, whatever its status, as soon as its head is there.

        Between two pieces of its body as much time may pass as there is for a whole reply of `send`. Neither their
        number nor the time for all of them is bounded here.

        Raises:
            Refused, NotSent, EgressFailed: as `send`.
        """
        progress = _Progress(self._seconds)
        request = self._request(method, url, headers, body, progress)
        with progress.told():
            async with asyncio.timeout(self._seconds):
                reply = await (await self._opened()).handle_async_request(request)
        pieces = _pieces(reply, progress)
        try:
            yield Incoming(reply.status, reply.headers, pieces)
        finally:
            await pieces.aclose()
            await reply.aclose()

    def _request(
        self, method: str, url: str, headers: HeaderPairs, body: bytes, progress: "_Progress"
    ) -> httpcore2.Request:
        target = self.policy.check(url)
        return httpcore2.Request(
            method,
            httpcore2.URL(
                scheme=target.origin.scheme.encode(),
                host=target.origin.host.encode(),
                port=target.origin.port,
                target=target.path.encode(),
            ),
            headers=self._headers(str(target.origin).partition("://")[2], headers, body),
            content=body,
            extensions={"timeout": self._timeouts, "trace": progress.trace},
        )

    async def _send(self, request: httpcore2.Request, wants_body: bool) -> Received:
        reply = await (await self._opened()).handle_async_request(request)
        try:
            found, most = bytearray(), self._max_bytes if wants_body else DRAINED
            async for chunk in reply.aiter_stream():
                found += chunk
                if len(found) > most:
                    if not wants_body:
                        break
                    raise EgressFailed(f"the reply has more than {most} bytes")
            return Received(reply.status, reply.headers, bytes(found) if wants_body else b"")
        finally:
            await reply.aclose()

    async def _opened(self) -> httpcore2.AsyncConnectionPool:
        if self._pool is None:
            # In a thread: reading the system's certificates takes as long as many requests.
            self._pool = asyncio.create_task(asyncio.to_thread(self._open))
        try:
            return await asyncio.shield(self._pool)
        except OSError as error:
            self._pool = None
            raise NotSent("the certificates that this system trusts cannot be read") from error

    def _headers(self, host: str, headers: HeaderPairs, body: bytes) -> list[tuple[bytes, bytes]]:
        for name, value in headers:
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise Refused(f"would need a header that cannot be sent: {name[:40]!r}")
        # What comes compressed can be far larger than what was counted.
        own = [("Host", host), ("User-Agent", self._user_agent), ("Accept-Encoding", "identity")]
        if body:
            own.append(("Content-Length", str(len(body))))
        return [(name.encode(), value.encode()) for name, value in (*own, *headers)]

    def _open(self) -> httpcore2.AsyncConnectionPool:
        return httpcore2.AsyncConnectionPool(
            ssl_context=httpcore2.default_ssl_context(),
            max_connections=None,
            max_keepalive_connections=IDLE_CONNECTIONS if self._idle_seconds else 0,
            keepalive_expiry=self._idle_seconds,
            network_backend=self._backend,
        )

    async def close(self) -> None:
        """Let go of connections."""
        if self._pool is not None:
            with contextlib.suppress(EgressFailed):
                await (await self._opened()).aclose()
        if self._system is not None:
            self._system.close()


class _Progress:
    """How far a request has come."""

    def __init__(self, seconds: float) -> None:
        """Begin; there are so many seconds for a reply."""
        self._seconds = seconds
        self._began = False

    async def trace(self, step: str, facts: dict[str, Any]) -> None:
        """Take note of a step; httpcore2 calls this."""
        self._began = self._began or step.endswith("send_request_headers.started")

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Have what goes wrong come as EgressFailed, or as NotSent if nothing has gone out yet."""
        try:
            yield
        except (
            httpcore2.TimeoutException,
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            OSError,
        ) as error:
            # Time that is over is an OSError, and so is what is wrong with TLS once it stands.
            over = isinstance(error, TimeoutError)
            words = f"no whole reply within {self._seconds:g} s" if over else _words(error)
            raise (EgressFailed if self._began else NotSent)(words) from error


async def _pieces(reply: httpcore2.Response, progress: _Progress) -> AsyncGenerator[bytes, None]:
    with progress.told():
        async for piece in reply.aiter_stream():
            yield piece


def _words(error: Exception) -> str:
    """Say what failed by the kind of failure: its own text may hold the address, or what the other side sent."""
    if isinstance(error, httpcore2.ConnectTimeout):
        return "no connection within the time for it"
    if isinstance(error, httpcore2.ConnectError):
        return "no connection: refused, without an address, or without a certificate for the name"
    if isinstance(error, httpcore2.TimeoutException):
        return "no whole reply in time"
    if isinstance(error, httpcore2.ProtocolError):
        return "what came is no reply of HTTP/1.1"
    return "the connection broke"
