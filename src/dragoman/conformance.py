"""What is served for upstream conformance kits, where somebody asks for it."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from types import MappingProxyType

from msgspec import Struct, structs

from dragoman.agents import Agent
from dragoman.agents.load import check_ids, load_attribute
from dragoman.config import Config
from dragoman.egress import EgressPolicy
from dragoman.protocol.spec import ProtocolSpec
from dragoman.tables import ConfigError

CONFORMANCE_AGENTS: Mapping[str, str] = MappingProxyType(
    {
        "tck": "dragoman.agents.tck:tck",
        "tck-min": "dragoman.agents.tck:tck_min",
        "tck-ext": "dragoman.agents.tck:tck_ext",
        "tck-03": "dragoman.agents.tck_03:tck_03",
    }
)
"""Id → where the agent is: those that upstream conformance kits are run on."""


LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


class Conformance(Struct, frozen=True):
    """How conformance agents are served; this is the one place for what is open to them alone.

    `table` is the revision of the newest version whose error statuses they answer with over HTTP, if it is not the
    newest one: kits may be older than the standard.
    """

    table: str = ""

    def check(self, versions: Mapping[str, ProtocolSpec]) -> None:
        """Make sure that there is such a table.

        Raises:
            ConfigError: there is none; those that there are are named.
        """
        known = [revision for spec in versions.values() for revision in spec.revisions]
        if self.table and self.table not in known:
            raise ConfigError(
                f"--tck-table {self.table}: there is no such table; there is {', '.join(known)}"
            )

    def policy(self, usual: EgressPolicy) -> EgressPolicy:
        """Return where notifications of conformance agents may go: to receivers on this machine as well."""
        return structs.replace(
            usual, schemes=("https", "http"), ports=None, allowed=(*usual.allowed, *LOOPBACK)
        )

    def versions_of(self, agent: Agent, versions: Mapping[str, ProtocolSpec]) -> Mapping[str, ProtocolSpec]:
        """Return the versions that an agent is served in, with the table if it is a conformance agent."""
        if agent.id not in CONFORMANCE_AGENTS:
            return versions
        return {version: _revised(spec, self.table) for version, spec in versions.items()}


def _revised(spec: ProtocolSpec, table: str) -> ProtocolSpec:
    return structs.replace(spec, http=spec.revisions[table]) if table in spec.revisions else spec


def conformance_agents(config: Config, agents: Sequence[Agent]) -> list[Agent]:
    """Return the conformance agents, less those that the configuration serves under their own ids already.

    Args:
        config: the configuration.
        agents: the agents that are served whether or not these are.

    Raises:
        AgentError: another agent has the id of one of them.
    """
    found = [
        load_attribute(reference)
        for agent_id, reference in CONFORMANCE_AGENTS.items()
        if agent_id not in config.agents or config.agents[agent_id].python != reference
    ]
    check_ids([*agents, *found])
    return found
