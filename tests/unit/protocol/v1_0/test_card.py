"""The card in its pure 1.0 form: required members always, empty ones never."""

import json

from msgspec import structs

from dragoman.model import AgentCard, AgentInterface, Capabilities, Extension, Skill
from dragoman.protocol.v1_0.card import encode_card

LEAST = AgentCard(
    name="Ä",
    description="d",
    version="1",
    interfaces=(AgentInterface(url="https://a.example", binding="HTTP+JSON", version="1.0"),),
    capabilities=Capabilities(streaming=False),
    skills=(Skill(id="s", name="S", description="d", tags=["t"]),),
    input_modes=("text/plain",),
    output_modes=("text/plain",),
)


def test_the_least_card_has_the_required_members_alone() -> None:
    card = encode_card(LEAST)
    assert card.keys() == {
        "name",
        "description",
        "supportedInterfaces",
        "version",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    }
    assert card["skills"] == [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}]


def test_capabilities_that_are_missing_are_said_to_be() -> None:
    assert encode_card(LEAST)["capabilities"] == {
        "streaming": False,
        "pushNotifications": False,
        "extendedAgentCard": False,
    }


def test_an_extension_has_those_members_that_say_something() -> None:
    declared = (
        Extension.of("urn:a", description="d", required=True, params={"most": 2**53 - 1, "of": ["a"]}),
        Extension(uri="urn:b"),
    )
    card = encode_card(structs.replace(LEAST, capabilities=Capabilities(extensions=declared)))
    assert card["capabilities"]["extensions"] == [
        {"uri": "urn:a", "description": "d", "required": True, "params": {"most": 2**53 - 1, "of": ["a"]}},
        {"uri": "urn:b"},
    ]


def test_a_card_has_no_member_of_another_generation() -> None:
    text = json.dumps(encode_card(LEAST), separators=(",", ":"))
    for member in ('"url":"https://a.example","preferredTransport', "additionalInterfaces", "security"):
        assert member not in text
    assert "kind" not in text
