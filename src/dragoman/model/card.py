"""AgentCard and what it is made of (A2A 1.0 §4.4), free of any wire form."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw, Struct

from dragoman.model.payload import ABSENT, pack


class Skill(Struct, frozen=True, kw_only=True):
    """Something an agent can do (AgentSkill, A2A 1.0 §4.4.5). `id`, `name`, `description` and a tag are required."""

    id: str
    name: str
    description: str
    tags: Sequence[str]
    examples: Sequence[str] = ()
    input_modes: Sequence[str] = ()
    output_modes: Sequence[str] = ()


class Provider(Struct, frozen=True, kw_only=True):
    """Who offers the agent."""

    organization: str
    url: str


class Extension(Struct, frozen=True, kw_only=True):
    """An extension that the agent declares (A2A 1.0 §4.4.4); a caller must name a required one to be served.

    `params` is a JSON object with whatever the extension has to say in the card.
    """

    uri: str
    description: str = ""
    required: bool = False
    params: Raw = ABSENT

    @classmethod
    def of(
        cls,
        uri: str,
        *,
        description: str = "",
        required: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> "Extension":
        """Return an extension with `params` from Python objects.

        Raises:
            ValueError, TypeError: they have no JSON form (see `payload.pack`).
        """
        packed = ABSENT if params is None else pack(dict(params))
        return cls(uri=uri, description=description, required=required, params=packed)


class AgentInterface(Struct, frozen=True, kw_only=True):
    """Where the agent answers, over which binding and in which protocol version (`Major.Minor`)."""

    url: str
    binding: str
    version: str


class Capabilities(Struct, frozen=True, kw_only=True):
    """What the agent's interfaces offer beyond the plain operations."""

    streaming: bool = True
    push_notifications: bool = False
    extended_card: bool = False
    extensions: tuple[Extension, ...] = ()


class AgentCard(Struct, frozen=True, kw_only=True):
    """What an agent says of itself. Interfaces are in order of preference, best first.

    `bearer`: its callers must show a bearer token.
    """

    name: str
    description: str
    version: str
    interfaces: tuple[AgentInterface, ...]
    capabilities: Capabilities
    skills: tuple[Skill, ...]
    input_modes: tuple[str, ...]
    output_modes: tuple[str, ...]
    provider: Provider | None = None
    documentation_url: str = ""
    icon_url: str = ""
    bearer: bool = False
