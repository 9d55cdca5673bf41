"""Fetching an issuer's keys: one small document over HTTP, or two, within fixed bounds (RFC 7517, OIDC Discovery 1.0).

The issuer is an origin that the operator wrote into the configuration, so its address may be any; nothing leads from it
to another origin, no redirect and no link in a document.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from dragoman.egress import EgressPolicy, Refused
from dragoman.egress.client import CONNECT_SECONDS, MAX_BYTES, TOTAL_SECONDS, Egress, EgressFailed
from dragoman.egress.policy import Origin, origin_of

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
        self._egress = Egress(
            EgressPolicy(schemes=(), trusted=frozenset(_origins(issuer, jwks_url))),
            user_agent=user_agent,
            connect_seconds=connect_seconds,
            total_seconds=total_seconds,
            max_bytes=MAX_BYTES,
        )

    async def keys(self) -> Document:
        """Return the JWK Set.

        Raises:
            FetchError: it cannot be had.
        """
        return await self._get(self._jwks_url or await self._discover())

    async def close(self) -> None:
        """Let go of connections."""
        await self._egress.close()

    async def _discover(self) -> str:
        url = self._issuer.rstrip("/") + DISCOVERY_PATH
        found = read_object((await self._get(url)).body, url)
        if found.get("issuer") != self._issuer:
            raise FetchError(f"{url} is about another issuer than auth.oidc.issuer; they must be equal")
        jwks_url = found.get("jwks_uri")
        if not isinstance(jwks_url, str) or not jwks_url:
            raise FetchError(f"{url} names no jwks_uri")
        if [*_origins(jwks_url)] != [*_origins(self._issuer)]:
            raise FetchError(
                f"{url} names a jwks_uri of another origin; if that is right, write it into auth.oidc.jwks_url"
            )
        return jwks_url

    async def _get(self, url: str) -> Document:
        try:
            reply = await self._egress.send("GET", url, headers=[("Accept", "application/json")])
        except Refused as error:
            raise FetchError(f"{url} {error}") from None
        except EgressFailed as error:
            raise FetchError(f"{url} cannot be reached: {error}") from None
        if reply.status != 200:
            raise FetchError(f"{url} answers {reply.status}, which must be 200")
        if reply.header(b"content-encoding").lower() not in (b"", b"identity"):
            raise FetchError(f"{url} answers compressed although it was asked not to")
        named = _MAX_AGE.search(reply.header(b"cache-control").decode("latin-1"))
        return Document(reply.body, float(named[1]) if named else None)


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


def _origins(*urls: str) -> Iterator[Origin]:
    """Yield the origin of each URL that has one, as the client reads it that would go there."""
    for url in urls:
        try:
            yield origin_of(url)
        except Refused:
            continue
