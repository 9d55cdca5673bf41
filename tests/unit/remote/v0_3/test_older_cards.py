"""How a remote agent of A2A 0.3 is called by its card."""

import json
from typing import Any

import pytest

from dragoman.cards.validate import validate
from dragoman.egress.policy import origin_of
from dragoman.protocol.registry import load_clients
from dragoman.remote.card import Choice, Wanted, choose

HERE = "https://agents.example.com"
WANTED = Wanted(origins=[origin_of(HERE)])


def chosen(card: Any, wanted: Wanted = WANTED) -> Choice:
    return choose(validate(json.dumps(card).encode()), load_clients(), wanted)


@pytest.mark.parametrize(
    ("members", "binding"),
    [
        ({}, "JSONRPC"),
        ({"preferredTransport": "JSONRPC"}, "JSONRPC"),
        ({"preferredTransport": "HTTP+JSON"}, "HTTP+JSON"),
        ({"protocolVersion": "0.3.0", "preferredTransport": "HTTP+JSON"}, "HTTP+JSON"),
        (
            # Over HTTP nobody can tell how its files are written.
            {"preferredTransport": "HTTP+JSON", "additionalInterfaces": [{"transport": "JSONRPC", "url": f"{HERE}/r"}]},
            "JSONRPC",
        ),
    ],
)  # fmt: skip
def test_a_card_of_0_3_is_read_as_its_callers_do(members: dict[str, Any], binding: str) -> None:
    choice = chosen({"name": "x", "url": f"{HERE}/x", **members})
    assert (choice.version, choice.binding) == ("0.3", binding)


def test_the_newer_version_of_a_card_of_both_is_taken_unless_the_other_is_wanted() -> None:
    card = {
        "url": f"{HERE}/old",
        "preferredTransport": "JSONRPC",
        "supportedInterfaces": [
            {"url": f"{HERE}/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": f"{HERE}/new", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
    }
    assert chosen(card).place.url == f"{HERE}/new"
    assert chosen(card, Wanted(origins=WANTED.origins, version="0.3")).place.url == f"{HERE}/old"
