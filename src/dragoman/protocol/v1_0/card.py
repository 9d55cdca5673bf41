"""The agent card in its pure 1.0 form (A2A 1.0 §4.4)."""

from typing import Any

from dragoman.model import AgentCard, AgentInterface, Capabilities, Extension, Skill


def encode_card(card: AgentCard) -> dict[str, Any]:
    """Return an AgentCard."""
    wire: dict[str, Any] = {
        "name": card.name,
        "description": card.description,
        "supportedInterfaces": [_interface(interface) for interface in card.interfaces],
        "version": card.version,
        "capabilities": _capabilities(card.capabilities),
        "defaultInputModes": list(card.input_modes),
        "defaultOutputModes": list(card.output_modes),
        "skills": [_skill(skill) for skill in card.skills],
    }
    if card.provider is not None:
        wire["provider"] = {"organization": card.provider.organization, "url": card.provider.url}
    if card.documentation_url:
        wire["documentationUrl"] = card.documentation_url
    if card.icon_url:
        wire["iconUrl"] = card.icon_url
    return wire


def _interface(interface: AgentInterface) -> dict[str, Any]:
    return {"url": interface.url, "protocolBinding": interface.binding, "protocolVersion": interface.version}


def _capabilities(capabilities: Capabilities) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "streaming": capabilities.streaming,
        "pushNotifications": capabilities.push_notifications,
        "extendedAgentCard": capabilities.extended_card,
    }
    if capabilities.extensions:
        wire["extensions"] = [_extension(extension) for extension in capabilities.extensions]
    return wire


def _extension(extension: Extension) -> dict[str, Any]:
    wire: dict[str, Any] = {"uri": extension.uri}
    if extension.description:
        wire["description"] = extension.description
    if extension.required:
        wire["required"] = True
    return wire


def _skill(skill: Skill) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
    }
    if skill.examples:
        wire["examples"] = list(skill.examples)
    if skill.input_modes:
        wire["inputModes"] = list(skill.input_modes)
    if skill.output_modes:
        wire["outputModes"] = list(skill.output_modes)
    return wire
