"""One raw HTTP request, for what no client library lets a test see."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Reply:
    """Status, headers (names in lower case) and body as they came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body read as JSON."""
        return json.loads(self.body)


def call(
    method: str,
    url: str,
    document: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
) -> Reply:
    """Send `document` as JSON (or nothing) with `A2A-Version: 1.0` and give the reply whatever its status."""
    body = None if document is None else json.dumps(document).encode()
    sent = {"A2A-Version": "1.0", **({"Content-Type": "application/json"} if body is not None else {})}
    request = urllib.request.Request(url, data=body, method=method, headers=sent | dict(headers or {}))
    try:
        with _DIRECT.open(request, timeout=timeout) as answer:
            return Reply(answer.status, _lower(answer.headers), answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return Reply(refused.code, _lower(refused.headers), refused.read())


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
