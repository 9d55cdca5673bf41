"""What makes up an agent's card: the interfaces that answer (A2A 1.0 §4.4.6), and its signed forms."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.cards.canonical import OLDER, canonical, without_empty
from dragoman.cards.keys import SigningKey
from dragoman.cards.serve import CardFile
from dragoman.cards.sign import signatures
from dragoman.model import AgentCard, AgentInterface
from dragoman.protocol.spec import ProtocolSpec

HTTP_JSON = "HTTP+JSON"
JSON_RPC = "JSONRPC"


class Signers(Struct, frozen=True):
    """What signs cards, the newest key first, and where whoever verifies finds the public halves."""

    keys: Sequence[SigningKey]
    jku: str


def interfaces(base_url: str, versions: Iterable[ProtocolSpec]) -> tuple[AgentInterface, ...]:
    """Return the interfaces of an agent, best first.

    Args:
        base_url: the agent's base URL, without a final slash.
        versions: the protocol versions that it is served in, newest first.
    """
    found = []
    for spec in versions:
        for dialect in spec.http:
            if dialect.advertised:
                url = base_url + dialect.mount
                found.append(AgentInterface(url=url, binding=HTTP_JSON, version=spec.version))
        found.append(AgentInterface(url=f"{base_url}/rpc", binding=JSON_RPC, version=spec.version))
    return tuple(found)


def pure(card: AgentCard, spec: ProtocolSpec) -> dict[str, Any]:
    """Return a card in the form of one version, not signed.

    Verifiers of A2A 1.0 do not agree about members that are empty, so its form has none.
    """
    form: dict[str, Any] = spec.card(card)
    return form if spec.version == OLDER else without_empty(form) or {}


def signed(form: Mapping[str, Any], versions: Sequence[str], signers: Signers, made_at: float) -> CardFile:
    """Return a card, signed so that verifiers of each of some versions accept it.

    Args:
        form: the card, not signed.
        versions: the versions of A2A whose members it has, the newest first.
        signers: what signs it.
        made_at: the time, in seconds since 1970 UTC.

    Raises:
        CanonicalError: it has no canonical form.
    """
    made = [
        signature
        for version in versions
        for signature in signatures(form, version, signers.keys, signers.jku)
    ]
    whole = {**form, "signatures": made} if made else form
    named = "\n".join([*versions, signers.jku, *(key.kid for key in signers.keys)]).encode()
    tagged = b"\n".join([*(canonical(form, version) for version in versions), named])
    return CardFile(msgspec.json.encode(whole), made_at, tagged=tagged)


def combined(newer: Mapping[str, Any], older: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card that callers of two generations can read: what `newer` says, and the members only `older` has.

    Objects inside it are combined alike, and so are the objects of arrays that are in both.
    """
    return {
        **newer,
        **{name: _both(newer[name], value) if name in newer else value for name, value in older.items()},
    }


def _both(newer: Any, older: Any) -> Any:
    if isinstance(newer, Mapping) and isinstance(older, Mapping):
        return combined(newer, older)
    if isinstance(newer, list) and isinstance(older, list) and len(newer) == len(older):
        return [_both(new, old) for new, old in zip(newer, older, strict=True)]
    return newer
