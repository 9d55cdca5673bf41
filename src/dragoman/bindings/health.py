"""Health, readiness and metrics: for everybody who watches a process of Dragoman, whatever it serves."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from dragoman.bindings.exchange import RawRequest, Reply
from dragoman.telemetry.metrics import Metrics

Check = Callable[[], Awaitable[Sequence[str]]]

PATHS = ("/healthz", "/readyz", "/metrics")

_METRICS = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)
_JSON = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


class Health:
    """Answers at the paths in `PATHS`."""

    def __init__(self, metrics: Metrics, unready: Check) -> None:
        """Prepare to answer.

        Args:
            metrics: what `/metrics` shows.
            unready: gives the reasons for which the process cannot work, none if it can.
        """
        self._metrics = metrics
        self._unready = unready

    async def reply(self, path: str) -> Reply:
        """Return the reply to a reading request for one of the paths."""
        if path == "/healthz":
            return _json(200, {"status": "ok"})
        if path == "/metrics":
            return Reply(200, list(_METRICS), self._metrics.text())
        reasons = await self._unready()
        if reasons:
            return _json(503, {"status": "unready", "reasons": reasons})
        return _json(200, {"status": "ready"})


class HealthSurface:
    """Serves health alone: the whole surface of a worker."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def handle(self, request: RawRequest) -> Reply:
        """Return the answer to a request."""
        if request.path not in PATHS:
            return _json(404, {"status": "not found", "paths": PATHS})
        if request.method not in ("GET", "HEAD"):
            reply = _json(405, {"status": "method not allowed"})
            reply.headers.append((b"allow", b"GET, HEAD"))
            return reply
        return await self._health.reply(request.path)


def _json(status: int, body: object) -> Reply:
    return Reply(status, list(_JSON), msgspec.json.encode(body))
