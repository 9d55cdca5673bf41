"""The agent card in its pure 1.0 form (A2A 1.0 §4.4)."""

from typing import Any

from dragoman.model import AgentCard, AgentInterface, Capabilities, Right
from dragoman.protocol.card import common_members, extensions


def encode_card(card: AgentCard) -> dict[str, Any]:
    """Return an AgentCard."""
    wire = {
        **common_members(card),
        "supportedInterfaces": [_interface(interface) for interface in card.interfaces],
        "capabilities": _capabilities(card.capabilities),
    }
    if card.bearer:
        wire["securitySchemes"] = {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}
        # Named, although every call needs it: with an empty list verifiers do not agree about what is signed.
        wire["securityRequirements"] = [{"schemes": {"bearer": {"list": [Right.ANSWER.value]}}}]
    return wire


def _interface(interface: AgentInterface) -> dict[str, Any]:
    return {"url": interface.url, "protocolBinding": interface.binding, "protocolVersion": interface.version}


def _capabilities(capabilities: Capabilities) -> dict[str, Any]:
    return {
        "streaming": capabilities.streaming,
        "pushNotifications": capabilities.push_notifications,
        "extendedAgentCard": capabilities.extended_card,
        **extensions(capabilities.extensions),
    }
