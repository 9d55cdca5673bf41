"""The agent card in its pure 0.3 form (A2A 0.3 §5.5)."""

from typing import Any

from dragoman.model import AgentCard, AgentInterface, Capabilities
from dragoman.protocol.card import common_members, extensions

VERSION = "0.3"
PREFERRED = "JSONRPC"


def encode_card(card: AgentCard) -> dict[str, Any]:
    """Return an AgentCard. Its URL is that of the preferred interface, and all of this version are listed after it.

    Raises:
        ValueError: it is served over no interface of this version.
    """
    served = [interface for interface in card.interfaces if interface.version == VERSION]
    if not served:
        raise ValueError(f"agent {card.name!r} has no interface of A2A {VERSION}")
    served.sort(key=lambda interface: interface.binding != PREFERRED)
    wire = {
        "protocolVersion": VERSION,
        **common_members(card),
        "url": served[0].url,
        "preferredTransport": served[0].binding,
        "additionalInterfaces": [_interface(interface) for interface in served],
        "capabilities": _capabilities(card.capabilities),
    }
    if card.bearer:
        wire["securitySchemes"] = {"bearer": {"type": "http", "scheme": "Bearer"}}
        wire["security"] = [{"bearer": []}]
    if card.capabilities.extended_card:
        wire["supportsAuthenticatedExtendedCard"] = True
    return wire


def _interface(interface: AgentInterface) -> dict[str, Any]:
    return {"url": interface.url, "transport": interface.binding}


def _capabilities(capabilities: Capabilities) -> dict[str, Any]:
    return {
        "streaming": capabilities.streaming,
        "pushNotifications": capabilities.push_notifications,
        **extensions(capabilities.extensions),
    }
