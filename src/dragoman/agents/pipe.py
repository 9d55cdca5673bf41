"""This side of a program's pipes, on a loop: nothing is held by the loop but while somebody waits.

A transport of the loop would keep the pipe for a while after it was closed, or after who opened it was cancelled.
"""

import asyncio
import os
from collections.abc import Callable
from typing import IO

PIECE = 64 * 1024
"""Bytes that are read at once."""


class Pipe:
    """One end of a pipe, which is this object's to close."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._waiting: asyncio.Future[None] | None = None
        os.set_blocking(file.fileno(), False)

    def close(self) -> None:
        """Close it; who waits for it is told."""
        if self._waiting is not None:
            _wake(self._waiting)
        if not self._file.closed:
            loop, number = asyncio.get_running_loop(), self._file.fileno()
            loop.remove_reader(number)
            loop.remove_writer(number)
            # Its own buffer was never used, so nothing is written now that could wait for a reader.
            self._file.close()

    async def read(self) -> bytes:
        """Return the next bytes as they come; none at the end, or when the pipe is closed."""
        loop = asyncio.get_running_loop()
        while not self._file.closed:
            # First of all, so that somebody who writes without end does not have the loop to himself.
            await self._ready(loop.add_reader, loop.remove_reader)
            if not self._file.closed:
                try:
                    return os.read(self._file.fileno(), PIECE)
                except BlockingIOError:
                    continue
        return b""

    async def write(self, data: bytes) -> None:
        """Write all of `data` and close; nobody minds if it is not read to its end."""
        loop, left = asyncio.get_running_loop(), memoryview(data)
        try:
            while left and not self._file.closed:
                await self._ready(loop.add_writer, loop.remove_writer)
                if not self._file.closed:
                    left = left[self._write_some(left) :]
        except BrokenPipeError:
            return
        finally:
            self.close()

    def _write_some(self, data: memoryview) -> int:
        try:
            return os.write(self._file.fileno(), data)
        except BlockingIOError:
            return 0

    async def _ready(self, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        number = self._file.fileno()
        self._waiting = asyncio.get_running_loop().create_future()
        add(number, _wake, self._waiting)
        try:
            await self._waiting
        finally:
            self._waiting = None
            if not self._file.closed:
                remove(number)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
