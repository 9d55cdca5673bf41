"""A receiver of webhooks in the test's own process: keeps what it is sent, and answers as it is told to."""

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self

from msgspec import Struct

from tests.harness.polling import until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Notified(Struct, frozen=True):
    """A request that came: its path, its headers by their names in lower case, and its body."""

    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as Python values."""
        return json.loads(self.body)

    @property
    def event(self) -> str:
        """The id of the event that it tells of."""
        return self.headers["dragoman-event-id"]

    @property
    def sequence(self) -> int:
        """The number of the event in its task."""
        return int(self.headers["dragoman-event-sequence"])


Answer = Callable[[Notified], bytes | None]
"""Returns the bytes to answer with; `None` never answers."""


class Receiver:
    """Listens on 127.0.0.1 in a thread of its own. Use it as a context manager.

    Attributes:
        answer: gives the answer to a request; may be changed at any time.
    """

    def __init__(
        self, answer: Answer = lambda notified: OK, *, tls: ssl.SSLContext | None = None, reads: bool = True
    ) -> None:
        self.answer = answer
        self._tls = tls
        self._reads = reads
        self._got: list[Notified] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.connections = 0
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *error: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        """Return a URL that leads here."""
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{path}"

    def got(self, path: str | None = None) -> list[Notified]:
        """Return what came so far, at a path or at all."""
        return [one for one in list(self._got) if path is None or one.path == path]

    def wait(self, count: int, path: str | None = None, *, seconds: float = 20.0) -> list[Notified]:
        """Return what came once so much has come."""
        until(
            lambda: len(self.got(path)) >= count,
            seconds=seconds,
            what=f"{count} requests at {path or 'any path'}, not {len(self.got(path))}",
        )
        return self.got(path)

    def _do(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(20)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        # A connection that was just taken has its turn first, so that none is left open.
        await asyncio.sleep(0.01)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            if not self._reads:
                await asyncio.Event().wait()
            while await self._exchange(reader, writer):
                pass
            writer.close()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in headers.items()}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        notified = Notified(head[0].split(" ")[1], headers, body)
        self._got.append(notified)
        answer = self.answer(notified)
        if answer is None:
            await asyncio.Event().wait()
        writer.write(answer or b"")
        await writer.drain()
        return bool(answer) and b"Connection: close" not in answer


def status(code: int, *headers: str, body: bytes = b"") -> bytes:
    """Return an answer with a status."""
    lines = [f"HTTP/1.1 {code} Said", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body
