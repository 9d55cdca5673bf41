"""Stopping to listen: what had arrived by then is answered."""

import asyncio
import contextlib
import socket

import uvicorn

from dragoman import serving
from dragoman.bindings.asgi import AsgiApp
from dragoman.bindings.connection import HttpConnection
from dragoman.bindings.edge import Edge
from dragoman.bindings.exchange import RawRequest, Reply

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Yes:
    """Says yes to everything."""

    async def handle(self, request: RawRequest) -> Reply:
        """See `Handler`."""
        return Reply(200, [], b"yes")


def test_connections_that_nobody_accepted_and_requests_that_nobody_read_are_answered_when_it_stops() -> None:
    asyncio.run(_stopped())


async def _stopped() -> None:
    started = asyncio.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        AsgiApp(Edge(Yes(), body_limit=1024)), http=HttpConnection, lifespan="off", log_config=None
    )
    server = serving._Uvicorn(config, started.set)
    serve = asyncio.create_task(server.serve([listener]))
    await started.wait()
    kept = socket.create_connection(listener.getsockname())
    kept.sendall(REQUEST)
    assert (await asyncio.to_thread(kept.recv, 4096)).endswith(b"\r\n\r\nyes")

    # From here on the loop gets no turn to accept or read anything before it stops.
    kept.sendall(REQUEST)
    new = socket.create_connection(listener.getsockname())
    new.sendall(REQUEST)
    await asyncio.wait_for(server.shutdown([listener]), 10)

    assert server.shut.is_set()
    for client in (kept, new):
        with client:
            said = b""
            while more := await asyncio.to_thread(client.recv, 4096):
                said += more
            assert said.startswith(b"HTTP/1.1 200 OK\r\n")
            assert said.endswith(b"\r\n\r\nyes")
    serve.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serve
