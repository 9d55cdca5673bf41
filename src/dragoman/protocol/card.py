"""Those members of an agent card that both generations write alike (A2A 1.0 §4.4, A2A 0.3 §5.5)."""

from typing import Any

from dragoman.model import AgentCard, Extension, Skill
from dragoman.model.payload import is_present, unpack


def common_members(card: AgentCard) -> dict[str, Any]:
    """Return what a card says in every version: who the agent is, and what it takes, gives and can do."""
    wire: dict[str, Any] = {
        "name": card.name,
        "description": card.description,
        "version": card.version,
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


def extensions(declared: tuple[Extension, ...]) -> dict[str, Any]:
    """Return the member `extensions` of capabilities, if there are any."""
    return {"extensions": [_extension(extension) for extension in declared]} if declared else {}


def _extension(extension: Extension) -> dict[str, Any]:
    wire: dict[str, Any] = {"uri": extension.uri}
    if extension.description:
        wire["description"] = extension.description
    if extension.required:
        wire["required"] = True
    if is_present(extension.params):
        # As objects: whoever signs a card writes it anew, in the order of RFC 8785.
        wire["params"] = unpack(extension.params)
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
