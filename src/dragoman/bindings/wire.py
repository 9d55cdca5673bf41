"""What is done with a connection's transport, within what both ends can take."""

import asyncio
from collections.abc import Sequence

from uvicorn.server import ServerState

from dragoman.bindings.framing import Header


class Wire:
    """Writes to a connection, waits until its caller has read enough, and lets its caller wait.

    Attributes:
        state: what the server knows of all connections.
        full: whether so much waits to be read by the caller that `room` is to be awaited before more is written.
    """

    __slots__ = ("_paused", "_room", "_transport", "full", "state")

    def __init__(self, transport: asyncio.Transport, state: ServerState) -> None:
        self._transport = transport
        self._paused = False
        self._room: asyncio.Future[None] | None = None
        self.state = state
        self.full = False

    @property
    def headers(self) -> Sequence[Header]:
        """The headers that every reply has: the date."""
        return self.state.default_headers

    def write(self, data: bytes) -> None:
        """Write bytes, whatever is waiting already."""
        self._transport.write(data)

    def close(self) -> None:
        """Let go of the connection once everything is sent."""
        self._transport.close()

    def is_closing(self) -> bool:
        """Tell whether the connection is over, or will be once everything is sent."""
        return self._transport.is_closing()

    async def room(self) -> None:
        """Wait until the wire is not full, or its caller has gone. Only one task does at a time: turns are in order."""
        while self.full:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def stop_writing(self) -> None:
        """Note that the caller has enough to read."""
        self.full = True

    def go_on_writing(self) -> None:
        """Note that there is room again, or nobody to read."""
        self.full = False
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def stop_reading(self) -> None:
        """Let the caller wait with what it sends."""
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def go_on_reading(self) -> None:
        """Take again what the caller sends."""
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
