"""Which agents are served."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.agents import AgentError
from dragoman.config import read_config
from dragoman.conformance import CONFORMANCE_AGENTS, conformance_agents
from dragoman.roster import load_agents

IDS = list(CONFORMANCE_AGENTS)
TAKEN = 'from dragoman import Agent\n\nother = Agent.from_function(str.upper, id="{id}")\n'


def beside(agents: dict[str, Any], files: tuple[Path, ...] = ()) -> list[str]:
    """The ids of the conformance agents that are served beside those of a configuration and of files."""
    config = read_config({"agents": agents}, {}, "dragoman.toml")
    return [agent.id for agent in conformance_agents(config, load_agents(config, files))]


def test_conformance_agents_are_served_beside_the_demo_agents_and_under_their_ids() -> None:
    assert IDS
    assert beside({}) == IDS
    assert not set(IDS) & {agent.id for agent in load_agents(read_config({}, {}, ""), ())}


@pytest.mark.parametrize("agent", IDS)
def test_a_conformance_agent_that_the_configuration_serves_is_not_served_twice(agent: str) -> None:
    table = {"python": CONFORMANCE_AGENTS[agent], "default": True}
    assert beside({agent: table}) == [other for other in IDS if other != agent]
    assert beside({"mine": table}) == IDS


@pytest.mark.parametrize("agent", IDS)
def test_another_agent_cannot_have_the_id_of_a_conformance_agent_beside_it(
    agent: str, tmp_path: Path
) -> None:
    file = tmp_path / "other.py"
    file.write_text(TAKEN.format(id=agent))
    taken = f"the agent id '{agent}' is taken by "
    with pytest.raises(AgentError, match=taken):
        beside({agent: {"python": "dragoman.agents.demo:demo"}})
    with pytest.raises(AgentError, match=taken):
        beside({}, (file,))
