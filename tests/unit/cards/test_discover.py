"""Cards of agents elsewhere: where they are looked for, by whose keys they are judged, and that no other is asked."""

import asyncio
import json
import time
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

import pytest

from dragoman.cards.discover import Discovered, NoCard, discover, places
from dragoman.cards.keys import jwks, new_key
from dragoman.cards.sign import signatures
from dragoman.egress import EgressPolicy
from dragoman.egress.client import MAX_BYTES, Egress
from tests.harness.receiver import Notified, Receiver, status
from tests.unit.cards.test_canonical import CARD

LOOPBACK = EgressPolicy(schemes=("http",), ports=None, allowed=(ip_network("127.0.0.0/8"),))
KEY, OTHER = new_key("ES256", time.time() - 60), new_key("ES256", time.time() - 60)
TOKEN = "s3cr3t-of-the-remote-agent"
WELL_KNOWN = "/.well-known/agent-card.json"
KEYS = "/.well-known/jwks.json"


def signed(card: Mapping[str, Any], jku: str = "") -> bytes:
    return json.dumps({**card, "signatures": list(signatures(card, "1.0", (KEY,), jku))}).encode()


def found(
    pages: Mapping[str, bytes], *, path: str = "/a/b/rpc", token: str = ""
) -> tuple[Discovered, list[Notified]]:
    """Have the card of an endpoint discovered at a place that has these pages, and nothing else."""

    def answer(asked: Notified) -> bytes:
        page = pages.get(asked.path)
        return status(404) if page is None else status(200, body=page)

    async def run(url: str) -> Discovered:
        egress = Egress(LOOPBACK, user_agent="test/1", total_seconds=5, idle_seconds=0)
        try:
            return await discover(egress, url, token)
        finally:
            await egress.close()

    with Receiver(answer) as other:
        return asyncio.run(run(other.url(path))), other.got()


@pytest.mark.parametrize(
    ("endpoint", "paths"),
    [
        ("https://a.example/agents/x/rpc", ["/agents/x", "/agents/x/rpc", ""]),
        ("https://a.example/rpc/", ["", "/rpc"]),
        ("https://a.example", [""]),
        ("https://a.example/rpc?to=https://b.example/", ["", "/rpc"]),
    ],
)
def test_a_card_is_looked_for_beside_and_below_the_endpoint_and_at_the_root_of_its_origin(
    endpoint: str, paths: list[str]
) -> None:
    assert [*places(endpoint)] == [f"https://a.example{path}{WELL_KNOWN}" for path in paths]


@pytest.mark.parametrize("place", ["/a/b", "/a/b/rpc", ""])
def test_the_first_that_is_there_is_shown(place: str) -> None:
    card, asked = found({f"{place}{WELL_KNOWN}": json.dumps(CARD).encode()})
    assert card.url.endswith(f"{place}{WELL_KNOWN}")
    assert (card.report.card, card.signature, card.signatures) == (CARD, "absent", ())
    assert "authorization" not in {name for one in asked for name in one.headers}
    document = card.document()
    assert (document["card"], document["valid"]) == (CARD, not card.report.findings)


@pytest.mark.parametrize("place", ["/a/b", ""])
def test_a_signature_is_good_by_keys_beside_the_card_or_at_the_root(place: str) -> None:
    card, _ = found({f"/a/b{WELL_KNOWN}": signed(CARD), f"{place}{KEYS}": jwks((KEY,))})
    assert card.signature == "good"
    assert card.signatures == ({"kid": KEY.kid, "alg": "ES256", "version": "1.0", "flaw": ""},)


def test_a_signature_of_another_key_or_over_another_card_is_bad() -> None:
    card, _ = found({f"/a/b{WELL_KNOWN}": signed(CARD), KEYS: jwks((OTHER,))})
    assert (card.signature, "not among the trusted" in card.signatures[0]["flaw"]) == ("bad", True)
    changed = json.loads(signed(CARD)) | {"description": "Something else."}
    card, _ = found({f"/a/b{WELL_KNOWN}": json.dumps(changed).encode(), KEYS: jwks((KEY,))})
    assert card.signature == "bad"


@pytest.mark.parametrize("keys", [None, b"<html>", b"{}"])
def test_a_signature_without_keys_is_not_verified(keys: bytes | None) -> None:
    pages = {f"/a/b{WELL_KNOWN}": signed(CARD)}
    card, _ = found(pages if keys is None else {**pages, KEYS: keys})
    assert card.signature == "unverified"


def test_keys_are_not_fetched_from_where_a_signature_says() -> None:
    with Receiver(lambda asked: status(200, body=jwks((KEY,)))) as elsewhere:
        card, _ = found({f"/a/b{WELL_KNOWN}": signed(CARD, elsewhere.url(KEYS))})
        assert (card.signature, elsewhere.connections) == ("unverified", 0)


def test_a_card_that_readers_take_for_different_ones_is_worth_no_signature() -> None:
    text = signed(CARD)
    twice = text[:-1] + b', "name": "Another"}'
    card, _ = found({f"/a/b{WELL_KNOWN}": twice, KEYS: jwks((KEY,))})
    assert (card.signature, bool(card.report.findings)) == ("bad", True)


@pytest.mark.parametrize("page", [None, b"", b"[]", b"x" * (MAX_BYTES + 1), TOKEN.encode()])
def test_what_is_no_card_is_told_by_its_place_with_nothing_of_it(page: bytes | None) -> None:
    with pytest.raises(NoCard) as caught:
        found({} if page is None else {WELL_KNOWN: page}, token=TOKEN)
    told = str(caught.value)
    assert told.count(WELL_KNOWN) == 3
    assert TOKEN not in told and "xxx" not in told
