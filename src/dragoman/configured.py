"""The agents that the configuration names: Python, commands, models behind an endpoint, and remote A2A agents."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman import __version__
from dragoman.agents import Agent, AgentError
from dragoman.agents.load import load_attribute
from dragoman.config import AgentTable, ExtensionTable, ModelTable
from dragoman.endpoints import check_longer, check_url, secret_headers
from dragoman.model import Extension
from dragoman.tables import ConfigError, seconds

MAX_OUTPUT = 1024 * 1024
"""Bytes that an agent without code may give, unless its table says otherwise."""

INPUT_MODES = ("text/plain", "text/markdown", "application/json")
"""What an agent without code takes, unless its table says otherwise."""

_SETTINGS = (
    "idempotency",
    "input_modes",
    "strict_input_modes",
    "on_lost_worker",
    "max_attempts",
    "max_runs",
    "max_waiting",
    "legacy_card",
    "extended_card",
    "push",
)
_WITHOUT_CODE = ("name", "description", "version", "output_modes", "max_output")


def configured_agent(
    agent_id: str, table: AgentTable, environment: Mapping[str, str], data: Path | None = None
) -> Agent:
    """Return the agent of a table `[agents.ID]`; secrets are read from where it says that they are.

    What it keeps for a later start is in the folder `data`; without one it keeps nothing.

    Raises:
        ConfigError, AgentError: it cannot be loaded or served.
    """
    if table.command:
        agent = _command(agent_id, table, environment)
    elif table.openai is not None:
        agent = _model(agent_id, table, table.openai, environment)
    elif table.a2a is not None:
        # Only here: a server without remote agents starts without all that calls them.
        from dragoman.mirroring import mirrored_agent  # noqa: PLC0415 - see above

        agent = mirrored_agent(agent_id, table, environment, data)
    else:
        for key in _WITHOUT_CODE:
            if getattr(table, key) is not None:
                raise ConfigError(
                    f"agents.{agent_id}.{key}: an agent in Python says this itself; leave it out"
                )
        # A copy: two tables may name the same object, each with settings of its own.
        agent = copy.copy(load_attribute(table.python))
    if table.command_env and not table.command:
        raise ConfigError(f"agents.{agent_id}.command_env is for an agent that is a command; leave it out")
    agent.id = agent_id
    changes: dict[str, Any] = {
        name: getattr(table, name) for name in _SETTINGS if getattr(table, name) is not None
    }
    if table.extensions is not None:
        changes["extensions"] = [_extension(declared) for declared in table.extensions]
    for name in ("deadline", "parked_deadline"):
        if (text := getattr(table, name)) is not None:
            changes[name] = seconds(text, f"agents.{agent_id}.{name}")
    if table.public:
        # Callers that nobody knows apart: only who asks for it may have a message be the same as an earlier one.
        changes.setdefault("idempotency", "requested")
    try:
        agent.configure(**changes)
    except AgentError as error:
        raise AgentError(f"[agents.{agent_id}] in the configuration: {error.rule}") from error
    return agent


def _extension(declared: str | ExtensionTable) -> str | Extension:
    if isinstance(declared, str):
        return declared
    return Extension.of(
        declared.uri,
        description=declared.description,
        required=declared.required,
        params=declared.params or None,
    )


def _command(agent_id: str, table: AgentTable, environment: Mapping[str, str]) -> Agent:
    # Only here: a server without commands needs none of it.
    from dragoman.agents.command import PASSED_ON, Command, find_program  # noqa: PLC0415 - see above

    path = f"agents.{agent_id}.command"
    if "\0" in "".join(table.command):
        raise ConfigError(f"{path}: no word of a command can hold U+0000")
    try:
        program = find_program(table.command[0], environment.get("PATH", ""))
    except AgentError as error:
        raise ConfigError(f"{path}: {error.rule}") from None
    for name in table.command_env:
        if name.startswith("DRAGOMAN_"):
            raise ConfigError(f"{path}_env: {name} is the server's own")
        if name not in environment:
            raise ConfigError(f"{path}_env: there is no environment variable {name}")
    given = {name: environment[name] for name in (*PASSED_ON, *table.command_env) if name in environment}
    handler = Command((program, *table.command[1:]), given, max_output=_max_output(agent_id, table))
    agent = _without_code(agent_id, table, f"the command {program}")
    agent.handler(handler.answer)
    agent.on_shutdown(handler.shutdown)
    return agent


def _model(agent_id: str, table: AgentTable, model: ModelTable, environment: Mapping[str, str]) -> Agent:
    # Only here: a server without models starts without an HTTP client.
    from dragoman.agents.openai import ChatModel  # noqa: PLC0415 - see above

    path = f"agents.{agent_id}.openai"
    for key in ("base_url", "model"):
        if not getattr(model, key):
            raise ConfigError(f"{path}.{key} is missing")
    check_url(
        f"{path}.base_url", model.base_url, example="https://models.example.com/v1", secrets="api_key_env"
    )
    check_longer(path, idle=model.idle)
    bearer = ("api_key_env", model.api_key_env)
    handler = ChatModel(
        model.base_url,
        model.model,
        headers=secret_headers(path, model.headers_env, bearer, environment),
        system=model.system,
        idle=seconds(model.idle, f"{path}.idle"),
        max_output=_max_output(agent_id, table),
        user_agent=f"dragoman/{__version__}",
    )
    agent = _without_code(agent_id, table, f"the model {model.model} at {model.base_url}")
    agent.handler(handler.answer)
    agent.on_startup(handler.startup)
    agent.on_shutdown(handler.shutdown)
    return agent


def _max_output(agent_id: str, table: AgentTable) -> int:
    if table.max_output is None:
        return MAX_OUTPUT
    if table.max_output < 1:
        raise ConfigError(f"agents.{agent_id}.max_output must be at least 1 byte")
    return table.max_output


def _without_code(agent_id: str, table: AgentTable, place: str) -> Agent:
    """Return an agent without a handler yet, with the card that its table describes; `place` is where it comes from."""
    return Agent(
        id=agent_id,
        name=table.name or "",
        description=table.description or "",
        version=table.version or "1.0.0",
        input_modes=INPUT_MODES,
        output_modes=("text/plain",) if table.output_modes is None else table.output_modes,
        place=place,
    )
