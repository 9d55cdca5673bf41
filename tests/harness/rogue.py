"""A remote agent in the test's own process that answers as badly as it is told to, step by step."""

import asyncio
import contextlib
import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

from msgspec import Struct

from tests.harness.polling import until

RESET, CLOSE, HANG = "reset", "close", "hang"
"""Steps beside bytes to write and seconds to wait: break the connection, end it, and never go on."""

Step = bytes | float | str


class Asked(Struct, frozen=True):
    """A request that came, as far as it was read: its path, its headers by their names in lower case, and its body."""

    path: str
    headers: dict[str, str]
    body: bytes = b""

    def json(self) -> Any:
        """Return the body as Python values; an empty one is an empty object."""
        return json.loads(self.body or b"{}")

    @property
    def id(self) -> str:
        """The id of the JSON-RPC request."""
        return str(self.json().get("id", ""))

    @property
    def method(self) -> str:
        """The method of the JSON-RPC request."""
        return str(self.json().get("method", ""))


Script = Callable[[Asked], Sequence[Step]]


class Rogue:
    """Listens on 127.0.0.1 in a thread of its own. Use it as a context manager.

    Attributes:
        script: gives the steps that answer a request; may be changed at any time.
        until: how far a request is read before the steps begin: not at all ("connect"), its "head", or all ("body").
        connections: how many were made.
    """

    def __init__(self, script: Script = lambda asked: reply(task(asked)), *, reads: str = "body") -> None:
        self.script = script
        self.until = reads
        self.connections = 0
        self.port = 0
        self._got: list[Asked] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(20)
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, path: str = "/rpc", host: str = "127.0.0.1") -> str:
        """Return a URL that leads here."""
        return f"http://{host}:{self.port}{path}"

    def got(self, method: str | None = None) -> list[Asked]:
        """Return the requests that came so far, of one JSON-RPC method or all."""
        return [one for one in list(self._got) if method is None or one.method == method]

    def wait(self, count: int, *, seconds: float = 20.0) -> list[Asked]:
        """Return the requests once so many have come."""
        until(lambda: len(self._got) >= count, seconds=seconds, what=f"{count} requests")
        return self.got()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        # A connection that was just taken has its turn first, so that none is left open.
        await asyncio.sleep(0.01)
        while self._tasks:
            for one in self._tasks:
                one.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        current = asyncio.current_task()
        assert current is not None
        self._tasks.add(current)
        self.connections += 1
        try:
            asked = await self._read(reader)
            for step in self.script(asked):
                await self._take(writer, step)
            writer.close()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        self._tasks.discard(current)

    async def _read(self, reader: asyncio.StreamReader) -> Asked:
        if self.until == "connect":
            return Asked("", {})
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        body = b""
        if self.until == "body":
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        asked = Asked(head[0].split(" ")[1], headers, body)
        self._got.append(asked)
        return asked

    async def _take(self, writer: asyncio.StreamWriter, step: Step) -> None:
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
        elif isinstance(step, float):
            await asyncio.sleep(step)
        elif step == HANG:
            await asyncio.Event().wait()
        else:
            if step == RESET:
                # A connection that lingers for no time at all is reset.
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            raise ConnectionAbortedError


def task(asked: Asked, state: str = "TASK_STATE_COMPLETED", **more: Any) -> dict[str, Any]:
    """Return the JSON-RPC response of an agent that did what it was asked to."""
    found = {"id": "remote-1", "contextId": "c", "status": {"state": state}, **more}
    # GetTask gives the task itself.
    result = found if asked.method == "GetTask" else {"task": found}
    return {"jsonrpc": "2.0", "id": asked.id, "result": result}


def reply(document: Any, status: int = 200, *headers: str, kind: str = "application/json") -> list[Step]:
    """Return the steps of a whole HTTP reply; `document` is JSON unless it is bytes."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    lines = [
        f"HTTP/1.1 {status} Said",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *headers,
        "",
        "",
    ]
    return ["\r\n".join(lines).encode() + body]


def bomb(megabytes: int) -> bytes:
    """Return so much of nothing, compressed."""
    return gzip.compress(b"0" * megabytes * 1024 * 1024)
