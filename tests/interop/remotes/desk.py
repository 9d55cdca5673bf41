"""What both SDK servers share: a desk that shows what came in, and lets go what waits. Runs in their environments."""

import asyncio
import json
import socket
from typing import Any

import uvicorn


class Desk:
    """Stands before the application: notes every request, and answers below /desk itself."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.released = asyncio.Semaphore(0)
        self.app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] == "/desk":
            seen = {"requests": self.requests, "messages": self.messages, "cancelled": self.cancelled}
            await _answer(send, json.dumps(seen).encode())
        elif scope["path"] == "/desk/release":
            self.released.release()
            await _answer(send, b"{}")
        else:
            headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
            self.requests.append({"method": scope["method"], "path": scope["path"], "headers": headers})
            await self.app(scope, receive, send)


async def _answer(send: Any, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Announced(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(json.dumps({"listening": True}), flush=True)


def serve(desk: Desk, listener: socket.socket) -> None:
    """Serve on a socket until the process is ended."""
    config = uvicorn.Config(desk, access_log=False, log_level="error", timeout_graceful_shutdown=1)
    _Announced(config).run(sockets=[listener])


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0 takes a free one."""
    # By its protocol asyncio knows that it is TCP, and sends small pieces at once.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener
