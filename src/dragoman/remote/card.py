"""What a remote agent's card says: how to call it, and what our card of it is to say. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from dragoman.cards.validate import CardReport, ShownInterface
from dragoman.egress.policy import Origin, Refused, origin_of
from dragoman.model import Extension, Provider, Skill
from dragoman.protocol.client import ClientBinding, Place

CARD_PATH = "/.well-known/agent-card.json"
OLDER_CARD_PATH = "/.well-known/agent.json"
"""Where a card stands below an agent's URL, and where it stood before A2A 0.3."""

OURS = "urn:dragoman:ext:"
"""What the URIs of the extensions that come with Dragoman begin with."""

IDEMPOTENCY = f"{OURS}idempotency:v1"

Clients = Mapping[str, Mapping[str, ClientBinding]]

_Candidate = tuple[int, bool, ShownInterface]
"""An interface, after how new its version is (0 is the newest) and whether it is a last resort."""


class CardUnusableError(Exception):
    """A remote agent cannot be called by what its card says, or by what came instead of one; the message says why."""


class CardMissingError(CardUnusableError):
    """There is no card to be had just now."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What the operator says of how to call a remote agent.

    `origins` are those that requests may go to, and with them the credential. `version` and `binding` are the only ones
    to use, if they are not empty. `idempotent`: a message sent again under its id is the same message there.
    """

    origins: Collection[Origin]
    version: str = ""
    binding: str = ""
    idempotent: bool = False


class Choice(Struct, frozen=True, kw_only=True):
    """How a remote agent is called. `activated` are the URIs of extensions that are to be active in every send."""

    version: str
    binding: str
    place: Place
    streams: bool
    idempotent: bool
    activated: tuple[str, ...] = ()


class Mirrored(Struct, frozen=True, kw_only=True):
    """What our card says of a remote agent, in its words."""

    name: str
    description: str
    version: str
    skills: tuple[Skill, ...]
    input_modes: tuple[str, ...]
    output_modes: tuple[str, ...]
    extensions: tuple[Extension, ...]
    provider: Provider | None
    documentation_url: str
    icon_url: str


def card_urls(url: str) -> Sequence[str]:
    """Return where the card of an agent may be: the URL itself if it is a card's, else the usual places below it."""
    parts = urlsplit(url)
    if parts.path.endswith(".json"):
        return (url,)
    below = parts.path.rstrip("/")
    return tuple(urlunsplit(parts._replace(path=below + path)) for path in (CARD_PATH, OLDER_CARD_PATH))


def choose(report: CardReport, clients: Clients, wanted: Wanted) -> Choice:
    """Return how to call the agent: in the newest version that both sides speak, over what the card prefers.

    Raises:
        CardUnusableError: there is no way.
    """
    found: list[_Candidate] = []
    elsewhere: list[_Candidate] = []
    for shown in report.interfaces:
        version = _version(shown)
        binding = clients.get(version, {}).get(shown.binding)
        if (
            binding is None
            or wanted.version not in ("", version)
            or wanted.binding not in ("", shown.binding)
        ):
            continue
        try:
            is_near = origin_of(shown.url) in wanted.origins
        except Refused:
            continue
        (found if is_near else elsewhere).append((list(clients).index(version), binding.last_resort, shown))
    if not found:
        raise CardUnusableError(_no_way(report, elsewhere, wanted))
    _, _, best = min(found, key=lambda one: one[:2])
    declared = {_text(one.get("uri")) for one in _objects(_capabilities(report.card).get("extensions"))}
    return Choice(
        version=_version(best),
        binding=best.binding,
        place=Place(best.url, best.tenant),
        streams=_capabilities(report.card).get("streaming") is True,
        idempotent=wanted.idempotent or IDEMPOTENCY in declared,
        activated=(IDEMPOTENCY,) if IDEMPOTENCY in declared else (),
    )


def _no_way(report: CardReport, elsewhere: Sequence[_Candidate], wanted: Wanted) -> str:
    if elsewhere:
        origin = origin_of(elsewhere[0][2].url)
        return (
            f"its card leads to {origin}, which the configuration does not name; name it in origins if the "
            "credential may go there"
        )
    if not report.card:
        return "what stands at the place of its card is no card"
    only = " ".join(one for one in (wanted.version, wanted.binding) if one)
    return f"its card lists no interface of A2A 1.0 or 0.3 over JSONRPC or HTTP+JSON{only and f' ({only})'}"


def _version(shown: ShownInterface) -> str:
    """Return a version as Major.Minor. A card that does not say one is of A2A 0.3."""
    return ".".join((shown.version or "0.3").split(".")[:2])


def mirrored(card: Mapping[str, Any]) -> Mirrored:
    """Return what our card of an agent is to say, as far as its own can be read."""
    provider = _object(card.get("provider"))
    organization, url = _text(provider.get("organization")), _text(provider.get("url"))
    return Mirrored(
        name=_text(card.get("name")),
        description=_text(card.get("description")),
        version=_text(card.get("version")),
        skills=tuple(_skill(one) for one in _objects(card.get("skills")) if _text(one.get("id"))),
        input_modes=_modes(card.get("defaultInputModes")),
        output_modes=_modes(card.get("defaultOutputModes")),
        extensions=tuple(_extensions(card)),
        provider=Provider(organization=organization, url=url) if organization and url else None,
        documentation_url=_text(card.get("documentationUrl")),
        icon_url=_text(card.get("iconUrl")),
    )


def drift(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the members in which two cards differ, signatures aside."""
    names = sorted({*before, *after} - {"signatures"})
    return tuple(name for name in names if before.get(name) != after.get(name))


def _extensions(card: Mapping[str, Any]) -> Iterator[Extension]:
    """Yield the extensions that callers can activate through us. Those of Dragoman are each server's own matter."""
    seen = set()
    for one in _objects(_capabilities(card).get("extensions")):
        uri, params = _text(one.get("uri")), _object(one.get("params"))
        if uri and uri not in seen and not uri.startswith(OURS):
            seen.add(uri)
            yield Extension.of(
                uri,
                description=_text(one.get("description")),
                required=one.get("required") is True,
                params=params or None,
            )


def _skill(skill: Mapping[str, Any]) -> Skill:
    return Skill(
        id=_text(skill.get("id")),
        name=_text(skill.get("name")),
        description=_text(skill.get("description")),
        tags=_texts(skill.get("tags")),
        examples=_texts(skill.get("examples")),
        input_modes=_modes(skill.get("inputModes")),
        output_modes=_modes(skill.get("outputModes")),
    )


def _modes(value: Any) -> tuple[str, ...]:
    """Return media types. Many cards say `text`, which is none, for `text/plain`."""
    texts = ("text/plain" if text == "text" else text for text in _texts(value))
    return tuple(dict.fromkeys(text for text in texts if "/" in text))


def _capabilities(card: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(card.get("capabilities"))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in (value if isinstance(value, list) else ()) if isinstance(one, str) and one)
