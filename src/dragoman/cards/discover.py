"""The card of an agent elsewhere, fetched from where its endpoint is: untrusted data, to be shown and no more.

It is looked for at the usual place below the endpoint, beside it, and at the root of its origin. Its signatures are
verified by the keys that stand beside it, which tell that it is whole, and not whose it is.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.cards.validate import CardReport, validate
from dragoman.cards.verify import JwksError, trusted, verify
from dragoman.egress import Refused
from dragoman.egress.client import Egress, EgressFailed
from dragoman.egress.policy import parse_url
from dragoman.gateway.remotes import came_back

CARD_PATH = "/.well-known/agent-card.json"
JWKS_PATH = "/.well-known/jwks.json"
SECONDS = 30.0
"""Until a card is found and judged, wherever it is looked for."""

_WELL_KNOWN = "/.well-known/"


class NoCard(Exception):
    """There is no card where one should be; the message says why, with nothing of any reply in it."""


class Discovered(Struct, frozen=True, kw_only=True):
    """A card, where it was found, and what is to be said of it.

    `signature` is absent, unverified (there are no keys to verify by), good or bad.
    """

    url: str
    report: CardReport
    signature: str
    signatures: tuple[dict[str, str], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return what is shown, as a JSON object."""
        report = self.report
        return {
            "url": self.url,
            "valid": not report.findings,
            "generations": list(report.generations),
            "interfaces": msgspec.to_builtins(report.interfaces),
            "findings": msgspec.to_builtins(report.findings),
            "signature": self.signature,
            "signatures": [dict(one) for one in self.signatures],
            "card": report.card,
        }


async def discover(egress: Egress, endpoint_url: str, token: str) -> Discovered:
    """Fetch and judge the card of the agent at an endpoint; its token is shown only where one is asked for.

    Raises:
        NoCard.
    """
    try:
        async with asyncio.timeout(SECONDS):
            return await _look(egress, endpoint_url, token)
    except TimeoutError:
        raise NoCard(f"no card was found within {SECONDS:g} s") from None


async def _look(egress: Egress, endpoint_url: str, token: str) -> Discovered:
    told = []
    for url in places(endpoint_url):
        try:
            body = await _fetch(egress, url, token)
        except NoCard as error:
            told.append(f"{url}: {error}")
            continue
        report = await asyncio.to_thread(validate, body)
        if not report.card:
            told.append(f"{url}: what is there is no JSON object")
            continue
        state, signatures = await _signature(egress, url, report)
        return Discovered(url=url, report=report, signature=state, signatures=signatures)
    raise NoCard("; ".join(told))


def places(endpoint_url: str) -> Iterator[str]:
    """Yield the URLs at which the card of an endpoint may stand, the most likely first."""
    target = parse_url(endpoint_url)
    path = target.path.partition("?")[0].rstrip("/")
    found = [path.rpartition("/")[0], path, ""]
    for folder in dict.fromkeys(found):
        yield f"{target.origin}{folder}{CARD_PATH}"


async def _fetch(egress: Egress, url: str, token: str = "") -> bytes:
    headers = [("Accept", "application/json")]
    try:
        reply = await egress.send("GET", url, headers=headers)
        if reply.status == 401 and token:
            reply = await egress.send(
                "GET", url, headers=[*headers, ("A2A-Version", "1.0"), ("Authorization", f"Bearer {token}")]
            )
    except Refused:
        raise NoCard("its host stands for an address that requests may not go to") from None
    except EgressFailed as error:
        raise NoCard(str(error)) from error
    if reply.status != 200:
        raise NoCard(f"answers {reply.status}")
    if came_back(token, reply.body):
        raise NoCard("what is there holds the bearer token, so it is not shown")
    return reply.body


async def _signature(egress: Egress, url: str, report: CardReport) -> tuple[str, tuple[dict[str, str], ...]]:
    if not report.is_signed:
        return "absent", ()
    if report.is_ambiguous:
        return "bad", ()
    for place in _key_places(url):
        try:
            trust = trusted(await _fetch(egress, place), time.time())
        except (NoCard, JwksError):
            continue
        verdict = await asyncio.to_thread(verify, report.card, trust)
        missing = [one for one in report.generations if one not in verdict.covered]
        rows = tuple(
            {"kid": one.kid, "alg": one.algorithm, "version": one.version, "flaw": one.flaw}
            for one in verdict.signatures
        )
        return "bad" if missing else "good", rows
    return "unverified", ()


def _key_places(card_url: str) -> Iterator[str]:
    beside = f"{card_url.partition(_WELL_KNOWN)[0]}{JWKS_PATH}"
    yield beside
    root = f"{parse_url(card_url).origin}{JWKS_PATH}"
    if root != beside:
        yield root
