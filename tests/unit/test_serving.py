"""Stopping to listen: what had arrived by then is answered."""

import asyncio
import contextlib
import socket
from typing import Any

import uvicorn

from dragoman import serving
from dragoman.bindings.guarded import GuardedProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Say yes."""
    headers = [(b"content-length", b"3")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"yes"})


def test_connections_that_nobody_accepted_and_requests_that_nobody_read_are_answered_when_it_stops() -> None:
    asyncio.run(_stopped())


async def _stopped() -> None:
    started = asyncio.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(answer, http=GuardedProtocol, lifespan="off", log_config=None)
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
