"""The card in its pure 0.3 form: required members always, empty ones never, 1.0's never."""

import pytest
from msgspec import structs

from dragoman.model import AgentCard, AgentInterface, Capabilities, Skill
from dragoman.protocol.v0_3.card import encode_card

HTTP = AgentInterface(url="https://a.example/v1", binding="HTTP+JSON", version="0.3")
RPC = AgentInterface(url="https://a.example/rpc", binding="JSONRPC", version="0.3")
NEWER = AgentInterface(url="https://a.example", binding="HTTP+JSON", version="1.0")

LEAST = AgentCard(
    name="Ä",
    description="d",
    version="1",
    interfaces=(NEWER, HTTP, RPC),
    capabilities=Capabilities(streaming=False),
    skills=(Skill(id="s", name="S", description="d", tags=["t"]),),
    input_modes=("text/plain",),
    output_modes=("text/plain",),
)


def test_the_least_card_has_the_required_members_alone() -> None:
    card = encode_card(LEAST)
    assert card.keys() == {
        "protocolVersion",
        "name",
        "description",
        "version",
        "url",
        "preferredTransport",
        "additionalInterfaces",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    }
    assert card["skills"] == [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}]
    assert card["capabilities"] == {"streaming": False, "pushNotifications": False}


def test_the_url_is_that_of_jsonrpc_and_every_interface_of_0_3_is_listed() -> None:
    # a2a-sdk 0.3 posts JSON-RPC to the URL whatever transport is preferred.
    card = encode_card(LEAST)
    assert (card["url"], card["preferredTransport"]) == ("https://a.example/rpc", "JSONRPC")
    assert card["additionalInterfaces"] == [
        {"url": "https://a.example/rpc", "transport": "JSONRPC"},
        {"url": "https://a.example/v1", "transport": "HTTP+JSON"},
    ]


def test_without_jsonrpc_the_url_is_that_of_what_there_is() -> None:
    card = encode_card(structs.replace(LEAST, interfaces=(HTTP,)))
    assert (card["url"], card["preferredTransport"]) == ("https://a.example/v1", "HTTP+JSON")


def test_an_agent_that_is_not_served_in_0_3_has_no_such_card() -> None:
    with pytest.raises(ValueError, match=r"no interface of A2A 0\.3"):
        encode_card(structs.replace(LEAST, interfaces=(NEWER,)))


def test_an_extended_card_is_called_as_0_3_calls_it() -> None:
    card = encode_card(structs.replace(LEAST, capabilities=Capabilities(extended_card=True)))
    assert card["supportsAuthenticatedExtendedCard"] is True
    assert "extendedAgentCard" not in card["capabilities"]
