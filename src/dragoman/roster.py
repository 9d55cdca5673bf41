"""Which agents are served, by the configuration and the files that are named, and in which versions."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dragoman.agents import Agent
from dragoman.agents.hosted import HostedAgent
from dragoman.agents.load import check_ids, load_attribute, load_file
from dragoman.config import AgentTable, Config
from dragoman.configured import configured_agent
from dragoman.protocol.registry import load_versions
from dragoman.protocol.spec import ProtocolSpec
from dragoman.tables import ConfigError, seconds

DEMO_AGENTS = ("dragoman.agents.demo:demo", "dragoman.agents.digest:digest")


def load_agents(config: Config, files: Sequence[Path], data: Path | None = None) -> list[Agent]:
    """Return the agents to serve: those of the configuration and the files, or else the demo agents.

    What they keep for a later start is in the folder `data`; without one they keep nothing.

    Raises:
        ConfigError, AgentError: one cannot be loaded or served.
    """
    agents = [
        configured_agent(agent_id, table, os.environ, data) for agent_id, table in config.agents.items()
    ]
    for file in files:
        agents.extend(load_file(file))
    if not agents:
        agents = [load_attribute(reference) for reference in DEMO_AGENTS]
    check_ids(agents)
    return agents


def check_agents(config: Config, agents: Sequence[Agent]) -> None:
    """Make sure that the agents can be served as configured.

    Raises:
        ConfigError: they cannot; the message names the key.
    """
    versions = load_versions()
    for agent in agents:
        versions_of(agent, config, versions)


def hosted_agents(agents: Sequence[Agent], config: Config) -> dict[str, HostedAgent]:
    """Return the agents of tenants as the hosted profile serves them, by the id that callers know."""
    if not config.hosted.enabled:
        return {}
    deadline = seconds(config.hosted.deadline, "hosted.deadline")
    tables = {agent.id: config.agents.get(agent.id, AgentTable()) for agent in agents}
    return {agent.id: HostedAgent(agent, deadline=deadline) for agent in agents if tables[agent.id].workspace}


def versions_of(
    agent: Agent, config: Config, versions: Mapping[str, ProtocolSpec]
) -> dict[str, ProtocolSpec]:
    """Return the versions that an agent is served in, newest first."""
    table = config.agents.get(agent.id)
    wanted = table.versions if table is not None else None
    unknown = [version for version in wanted or () if version not in versions]
    if unknown:
        raise ConfigError(
            f"agents.{agent.id}.versions: {unknown[0]} is not in this build, which has {', '.join(versions)}"
        )
    chosen = {version: spec for version, spec in versions.items() if wanted is None or version in wanted}
    if not chosen:
        raise ConfigError(f"agents.{agent.id}.versions must name at least one version")
    return chosen


def default_agent(config: Config, agents: Sequence[Agent]) -> str | None:
    """Return the id of the agent whose card stands at the root: the one that says so, or the only one."""
    for agent_id, table in config.agents.items():
        if table.default:
            return agent_id
    return agents[0].id if len(agents) == 1 else None
