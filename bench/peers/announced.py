"""Serves a peer's ASGI application with uvicorn and says on stdout where.

Both Python peers get the fastest settings uvicorn has: httptools, uvloop, no
access log. The announcement is the line that `bench.processes` waits for.
"""

import socket
from typing import Any

import uvicorn


class AnnouncedServer(uvicorn.Server):
    """A uvicorn server that prints `listening on URL` once it accepts connections."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then print the address."""
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            print(f"listening on http://{host}:{port}", flush=True)


def loopback_socket() -> socket.socket:
    """A socket bound to a free port of 127.0.0.1, so that a card can name its own address."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    return listener


def serve(application: Any, listener: socket.socket) -> None:
    """Serve `application`, an ASGI application of either framework, on `listener` until SIGTERM."""
    config = uvicorn.Config(
        application,
        http="httptools",
        loop="uvloop",
        access_log=False,
        log_level="error",
        backlog=16384,
        timeout_graceful_shutdown=1,
    )
    AnnouncedServer(config).run(sockets=[listener])
