"""Pages of other origins: which may call this server from a browser, and what they get to see (Fetch §3.2).

Nothing here is on the way of a request unless `server.cors_origins` names somebody. No cookie is ever asked for:
a page sends a bearer token in `Authorization` like any other caller, so `Access-Control-Allow-Credentials` is never
answered, and `*` is safe for agents that anybody may call.
"""

import time
from collections.abc import Collection

from dragoman.bindings.exchange import HeaderList, RawRequest, Reply, StreamReply
from dragoman.bindings.pipeline import Pipeline

ANY = "*"
PREFLIGHT_SECONDS = 600
"""Seconds that a browser may keep the answer to a preflight: a changed configuration is felt after them."""

METHODS = ("GET", "HEAD", "POST", "DELETE")
REQUEST_HEADERS = (
    "A2A-Version",
    "A2A-Extensions",
    "X-A2A-Extensions",
    "Content-Type",
    "Authorization",
    "Last-Event-ID",
    "X-Request-Id",
)
"""What a page may send beside the headers that every page may send."""

REPLY_HEADERS = (
    "A2A-Version",
    "X-Request-Id",
    "Idempotent-Replayed",
    "A2A-Extensions",
    "X-A2A-Extensions",
    "Retry-After",
    "ETag",
)
"""What a page may read beside the headers that every page may read."""

_PREFLIGHT: tuple[tuple[bytes, bytes], ...] = (
    (b"access-control-allow-methods", ", ".join(METHODS).encode()),
    (b"access-control-allow-headers", ", ".join(REQUEST_HEADERS).encode()),
    (b"access-control-max-age", str(PREFLIGHT_SECONDS).encode()),
)
_EXPOSED = (b"access-control-expose-headers", ", ".join(REPLY_HEADERS).encode())


class CrossOrigin:
    """A pipeline that pages of the allowed origins may call from a browser."""

    def __init__(self, pipeline: Pipeline, origins: Collection[str]) -> None:
        """Stand before a pipeline.

        Args:
            pipeline: answers the requests.
            origins: who may call, as browsers write it (`https://app.example.com`); `*` alone is everybody.
        """
        self._pipeline = pipeline
        self._anybody = ANY in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    async def handle(self, request: RawRequest) -> Reply | StreamReply:
        """Answer a preflight, or have the pipeline answer and open its answer to the page. See `Pipeline.handle`."""
        allowed = self._allowed(request.headers.get(b"origin"))
        reply: Reply | StreamReply
        if allowed is not None and _is_preflight(request):
            reply = self._preflight(request)
        else:
            reply = await self._pipeline.handle(request)
            if allowed is not None:
                reply.headers.append(_EXPOSED)
        if allowed is not None:
            reply.headers.append((b"access-control-allow-origin", allowed))
        if not self._anybody:
            # Also without an Origin: a shared cache must not hand that reply to a page.
            _vary_by_origin(reply.headers)
        return reply

    def _allowed(self, origin: bytes | None) -> bytes | None:
        """Return what Access-Control-Allow-Origin has to say to a request's origin, if anything."""
        if origin is None:
            return None
        if self._anybody:
            return ANY.encode()
        return origin if origin in self._origins else None

    def _preflight(self, request: RawRequest) -> Reply:
        # It names neither a version nor a body, so there is nothing to negotiate: the request itself will be.
        began = time.perf_counter()
        exchange = self._pipeline.open(request)
        exchange.route = "preflight"
        reply = Reply(204, list(_PREFLIGHT))
        self._pipeline.close(exchange, reply, began)
        return reply


def _is_preflight(request: RawRequest) -> bool:
    return request.method == "OPTIONS" and request.headers.get(b"access-control-request-method") is not None


def _vary_by_origin(headers: HeaderList) -> None:
    for index, (name, value) in enumerate(headers):
        if name == b"vary":
            headers[index] = (name, value + b", Origin")
            return
    headers.append((b"vary", b"Origin"))
