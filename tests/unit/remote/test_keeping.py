"""Which cards of remote agents can be used, and how they are kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.egress.policy import origin_of
from dragoman.protocol.registry import load_clients
from dragoman.remote.card import CardUnusableError, Wanted
from dragoman.remote.keeping import CardSource, Seen, keep, read_kept

URL = "https://agents.example.com/clerk"
CARD = {
    "name": "x",
    "supportedInterfaces": [{"url": f"{URL}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
}


def source(**more: Any) -> CardSource:
    return CardSource(url=URL, clients=load_clients(), wanted=Wanted(origins=[origin_of(URL)]), **more)


def seen(text: str) -> Seen:
    return Seen(URL, 1.0, text)


def test_a_card_that_is_not_valid_in_all_it_says_can_be_used() -> None:
    known = source().judge(seen(json.dumps(CARD)))
    assert known.report.findings
    assert known.choice.place.url == f"{URL}/rpc"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CARD)[:-1] + ', "name": "y"}',
        json.dumps({**CARD, "name": "\ud800"}),
        json.dumps({**CARD, "capabilities": {"extensions": [{"uri": "u", "params": {"n": "\udfff"}}]}}),
    ],
)
def test_a_card_that_readers_can_take_for_different_ones_cannot(text: str) -> None:
    with pytest.raises(CardUnusableError, match="more than one way"):
        source().judge(seen(text))


def test_a_card_without_a_signature_cannot_be_used_where_keys_are_pinned() -> None:
    with pytest.raises(CardUnusableError, match=r"not signed by the pinned keys for what A2A 1\.0 reads"):
        source(jwks=b'{"keys": []}').judge(seen(json.dumps(CARD)))
    with pytest.raises(CardUnusableError, match="the file of keys is no JWK Set"):
        source(jwks=b"{}").judge(seen(json.dumps(CARD)))


def test_a_card_is_kept_for_its_url_alone_and_for_this_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "remotes" / "clerk.json"
    assert read_kept(file, URL) is None
    keep(file, seen("{}"))
    assert read_kept(file, URL) == seen("{}")
    assert read_kept(file, f"{URL}2") is None
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [one.name for one in file.parent.iterdir()] == ["clerk.json"]
    file.write_bytes(b"half")
    assert read_kept(file, URL) is None
