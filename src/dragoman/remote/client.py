"""Calling a remote agent: requests through the one way out, replies within bounds."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dragoman.agents.event_stream import EventStream, EventTooLarge
from dragoman.egress.client import Egress, EgressFailed, Incoming, NotSent
from dragoman.egress.policy import Refused
from dragoman.model import errors
from dragoman.protocol.client import Call, Item, NotA2AError, RemoteRefusalError
from dragoman.protocol.media import A2A_JSON, EVENT_STREAM, JSON, essence

MAX_FAULT = 64 * 1024
"""Bytes of an error's body that are read."""

_BETWEEN = (502, 504)
"""HTTP statuses by which somebody between us and the remote agent tells that they do not know."""


class UnreachedError(Exception):
    """No connection came to stand: nothing was sent."""


class LostError(Exception):
    """No whole reply came, or none of A2A. Whether the request arrived is not known. The message says what is wrong."""


class TooMuchError(Exception):
    """A reply, or an event, is larger than it may be."""


class RemoteClient:
    """Sends calls to one remote agent. To be used on one loop."""

    def __init__(
        self, egress: Egress, credentials: Sequence[tuple[str, str]], *, idle: float, largest: int
    ) -> None:
        """Prepare to call.

        Args:
            egress: the way out, open to the agent's origins alone.
            credentials: headers of every request; some are secret.
            idle: seconds of silence after which a reply is given up.
            largest: bytes of a reply, or of an event of a stream.
        """
        self._egress = egress
        self._credentials = tuple(credentials)
        self._idle = idle
        self._largest = largest

    async def ask(self, call: Call) -> Item:
        """Send a call and return what is answered.

        Raises:
            RemoteRefusalError: an error is answered.
            UnreachedError, LostError, TooMuchError: nothing is, or nothing that can be read.
        """
        try:
            async with asyncio.timeout(self._idle), self._sent(call) as incoming:
                return call.reply(await self._body(incoming))
        except TimeoutError:
            raise LostError(f"was silent for {self._idle:g} s") from None
        except NotA2AError as error:
            raise LostError(f"answered with something that is not A2A: {error}") from None

    async def follow(self, call: Call) -> AsyncGenerator[Sequence[Item], None]:
        """Send a call and yield what the stream tells, as it comes: what came together, together.

        Raises:
            RemoteRefusalError, UnreachedError, LostError, TooMuchError: as `ask`; also in the middle.
        """
        events = EventStream(self._largest)
        try:
            async with self._sent(call) as incoming:
                if _media_type(incoming) != EVENT_STREAM:
                    async with asyncio.timeout(self._idle):
                        body = await self._body(incoming)
                    yield (call.reply(body),)
                    return
                while True:
                    async with asyncio.timeout(self._idle):
                        found = await self._events(incoming, events)
                    if not found:
                        return
                    items = []
                    try:
                        for data in found:
                            items.append(call.event(data))
                    except (NotA2AError, RemoteRefusalError):
                        if items:
                            yield items
                        raise
                    yield items
        except TimeoutError:
            raise LostError(f"was silent for {self._idle:g} s") from None
        except NotA2AError as error:
            raise LostError(f"answered with something that is not A2A: {error}") from None

    async def fetch(self, url: str) -> bytes:
        """Return what stands at a URL, which ought to be JSON.

        Raises:
            RemoteRefusalError: an error is answered.
            UnreachedError, LostError, TooMuchError: as `ask`.
        """
        try:
            async with (
                asyncio.timeout(self._idle),
                self._open("GET", url, (("Accept", "application/json, */*;q=0.1"),), b"") as incoming,
            ):
                if incoming.status != 200:
                    raise RemoteRefusalError(errors.InvalidAgentResponse, f"status {incoming.status}")
                return await self._read(incoming, self._largest)
        except TimeoutError:
            raise LostError(f"was silent for {self._idle:g} s") from None

    @asynccontextmanager
    async def _sent(self, call: Call) -> AsyncIterator[Incoming]:
        """Send a call, and yield its reply if that is a success."""
        async with self._open(call.method, call.url, call.headers, call.body) as incoming:
            status = incoming.status
            if status in _BETWEEN:
                raise LostError(f"cannot be asked through what stands before it ({status})")
            if 300 <= status < 400:
                raise RemoteRefusalError(errors.Misdirected, "")
            if not 200 <= status < 300:
                raise call.refusal(status, await self._fault(incoming))
            yield incoming

    @asynccontextmanager
    async def _open(
        self, method: str, url: str, headers: tuple[tuple[str, str], ...], body: bytes
    ) -> AsyncIterator[Incoming]:
        try:
            async with self._egress.stream(
                method, url, headers=(*headers, *self._credentials), body=body
            ) as incoming:
                yield incoming
        except NotSent as error:
            raise UnreachedError(str(error)) from None
        except EgressFailed as error:
            raise LostError(f"broke off: {error}") from None
        except Refused as error:
            raise UnreachedError(str(error)) from None

    async def _body(self, incoming: Incoming) -> bytes:
        if _media_type(incoming) not in (JSON, A2A_JSON):
            raise LostError("answered with something that is no JSON")
        return await self._read(incoming, self._largest)

    async def _events(self, incoming: Incoming, events: EventStream) -> Sequence[bytes]:
        """Return the next events of a stream that come together; none at its end."""
        _check_plain(incoming)
        while True:
            piece = await anext(incoming.pieces, None)
            if piece is None:
                return ()
            try:
                found = events.feed(piece)
            except EventTooLarge:
                raise TooMuchError from None
            if found:
                return found

    async def _read(self, incoming: Incoming, most: int) -> bytes:
        _check_plain(incoming)
        body = bytearray()
        async for piece in incoming.pieces:
            body += piece
            if len(body) > most:
                raise TooMuchError
        return bytes(body)

    async def _fault(self, incoming: Incoming) -> bytes:
        """Return the body of an error; whatever is wrong with it, that is none."""
        try:
            async with asyncio.timeout(self._idle):
                return await self._read(incoming, MAX_FAULT)
        except (TimeoutError, LostError, TooMuchError, EgressFailed):
            return b""


def _media_type(incoming: Incoming) -> str:
    return essence(incoming.header(b"content-type"))


def _check_plain(incoming: Incoming) -> None:
    # What comes compressed can be far larger than what was counted.
    if incoming.header(b"content-encoding").strip().lower() not in (b"", b"identity"):
        raise LostError("answered compressed although it was asked not to")
