"""Fetching an issuer's keys: one small document over HTTP, or two, within fixed bounds (RFC 7517, OIDC Discovery 1.0).

The issuer is an origin that the operator wrote into the configuration, so no address is checked here; nothing leads
from it to another origin, no redirect and no link in a document.
"""

import asyncio
import re
from collections.abc import Mapping

import httpx2
import msgspec
from msgspec import Struct

MAX_BYTES = 1024 * 1024
"""Bytes of a document."""

CONNECT_SECONDS = 10.0
TOTAL_SECONDS = 30.0
"""Seconds for a document, from the first byte sent to the last one read."""

DISCOVERY_PATH = "/.well-known/openid-configuration"

_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)


class FetchError(Exception):
    """The keys could not be had. The message is for the operator and holds nothing of a reply's body."""


class Document(Struct, frozen=True):
    """A document as it came, and for how many seconds its server lets it be kept, if it says so."""

    body: bytes
    max_age: float | None = None


class Issuer:
    """Fetches the keys of one issuer."""

    def __init__(
        self,
        issuer: str,
        jwks_url: str = "",
        *,
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
        user_agent: str = "dragoman",
    ) -> None:
        """Prepare to fetch.

        Args:
            issuer: the issuer's URL, exactly as its tokens say it.
            jwks_url: where its keys are; if empty, its discovery document says it.
            connect_seconds: seconds for a connection to stand.
            total_seconds: seconds for a document.
            user_agent: what this server calls itself.
        """
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._seconds = total_seconds
        self._user_agent = user_agent
        self._timeout = httpx2.Timeout(total_seconds, connect=connect_seconds)
        self._client: httpx2.AsyncClient | None = None

    async def keys(self) -> Document:
        """Return the JWK Set.

        Raises:
            FetchError: it cannot be had.
        """
        return await self._get(self._jwks_url or await self._discover())

    async def close(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _discover(self) -> str:
        url = self._issuer.rstrip("/") + DISCOVERY_PATH
        found = read_object((await self._get(url)).body, url)
        if found.get("issuer") != self._issuer:
            raise FetchError(f"{url} is about another issuer than auth.oidc.issuer; they must be equal")
        jwks_url = found.get("jwks_uri")
        if not isinstance(jwks_url, str) or not jwks_url:
            raise FetchError(f"{url} names no jwks_uri")
        if _origin(jwks_url) != _origin(self._issuer):
            raise FetchError(
                f"{url} names a jwks_uri of another origin; if that is right, write it into auth.oidc.jwks_url"
            )
        return jwks_url

    async def _get(self, url: str) -> Document:
        if self._client is None:
            # In a thread: reading the system's certificates takes as long as many requests.
            self._client = await asyncio.to_thread(self._open)
        try:
            async with asyncio.timeout(self._seconds), self._client.stream("GET", url) as reply:
                if reply.status_code != 200:
                    raise FetchError(f"{url} answers {reply.status_code}, which must be 200")
                if reply.headers.get("content-encoding", "identity").lower() != "identity":
                    raise FetchError(f"{url} answers compressed although it was asked not to")
                body = bytearray()
                async for chunk in reply.aiter_raw():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise FetchError(f"{url} answers with more than {MAX_BYTES} bytes")
                named = _MAX_AGE.search(reply.headers.get("cache-control", ""))
                return Document(bytes(body), float(named[1]) if named else None)
        except TimeoutError:
            raise FetchError(f"{url} did not answer within {self._seconds:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise FetchError(f"{url} cannot be reached: {type(error).__name__}: {error}") from None

    def _open(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={
                "Accept": "application/json",
                # What comes compressed can be far larger than what was counted.
                "Accept-Encoding": "identity",
                "User-Agent": self._user_agent,
            },
            timeout=self._timeout,
            follow_redirects=False,
            trust_env=False,
        )


def read_object(body: bytes, url: str) -> Mapping[str, object]:
    """Return the JSON object in a document.

    Raises:
        FetchError: it holds none.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise FetchError(f"{url} answers with something else than a JSON object")
    return value


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Return scheme, host and port of a URL, as the client reads it that would go there; `None` if it is none."""
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        return None
    return parts.scheme, parts.host, parts.port
