"""What makes up an agent's card: the interfaces that answer (A2A 1.0 §4.4.6), and one form for every generation."""

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.model import AgentInterface
from dragoman.protocol.spec import ProtocolSpec

HTTP_JSON = "HTTP+JSON"
JSON_RPC = "JSONRPC"


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
