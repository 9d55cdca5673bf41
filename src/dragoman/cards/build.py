"""The interfaces that an agent's card lists: exactly those that answer (A2A 1.0 §4.4.6)."""

from collections.abc import Iterable

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
