"""`dragoman agents`: what would be served."""

import json

from dragoman.cli.output import print_table
from dragoman.cli.settings import ConfigOption, FilesArgument, JsonOption, load_config, refuse


def agents(
    files: FilesArgument = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the agents of a configuration and of agent files."""
    from dragoman.agents import AgentError
    from dragoman.roster import load_agents
    from dragoman.tables import ConfigError

    try:
        found = load_agents(load_config(config), files or [])
    except (ConfigError, AgentError) as error:
        refuse(error)
    rows = [
        {
            "id": agent.id,
            "name": agent.name,
            "version": agent.version,
            "replies": agent.settings.replies,
            "input": ", ".join(agent.settings.input_modes),
            "skills": ", ".join(skill.id for skill in agent.skills),
        }
        for agent in found
    ]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        print_table(rows)
