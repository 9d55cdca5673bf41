"""Remote agents by the configuration: how each one is called, and the agent here that mirrors it.

Imported only where the configuration names one: what it needs costs every start memory and time.
"""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dragoman import __version__
from dragoman.agents import Agent, AgentError
from dragoman.config import AgentTable
from dragoman.egress.policy import EgressPolicy, Refused, origin_of
from dragoman.endpoints import check_longer, check_url, secret_headers
from dragoman.protocol.client import HTTP_JSON, JSON_RPC
from dragoman.protocol.registry import load_clients
from dragoman.remote.card import Mirrored, Wanted
from dragoman.remote.conversation import Terms
from dragoman.remote.handler import RemoteAgent, RemoteSettings
from dragoman.remote.keeping import FOLDER, CardSource
from dragoman.remote.settings import RemoteTable
from dragoman.tables import ConfigError, seconds

_LOG = logging.getLogger("dragoman.remote")

MAX_OUTPUT = 1024 * 1024
"""Bytes of a reply, of an event, and of all artifacts of a task, unless the table says otherwise."""

INPUT_MODES = ("text/plain", "text/markdown", "application/json")
OUTPUT_MODES = ("text/plain",)
"""What an agent is said to take and give as long as its card does not tell."""

UNKNOWN = "An agent elsewhere, whose own card could not be had yet."


def mirrored_agent(
    agent_id: str, table: AgentTable, environment: Mapping[str, str], data: Path | None
) -> Agent:
    """Return the agent that mirrors the remote one of a table.

    Raises:
        ConfigError, AgentError: it cannot be served.
    """
    settings = remote_settings(agent_id, table, environment, data)
    agent = Agent(
        id=agent_id,
        name=table.name or "",
        description=table.description or UNKNOWN,
        version=table.version or "1.0.0",
        replies="either",
        input_modes=INPUT_MODES,
        output_modes=OUTPUT_MODES if table.output_modes is None else table.output_modes,
        # It may take more than its card tells, and says best itself what it does not.
        strict_input_modes=False,
        place=f"the remote agent at {settings.source.url}",
    )
    handler = RemoteAgent(settings, lambda found: agent.change(partial(_mirror, agent, table, found)))
    agent.handler(handler.answer)
    agent.on_startup(handler.startup)
    agent.on_shutdown(handler.shutdown)
    return agent


def remote_settings(
    agent_id: str, table: AgentTable, environment: Mapping[str, str], data: Path | None
) -> RemoteSettings:
    """Return how the remote agent of a table is called; its card is kept in the folder `data`, if there is one.

    Raises:
        ConfigError: something of it is wrong; the message names the key.
    """
    path = f"agents.{agent_id}.a2a"
    remote = table.a2a if isinstance(table.a2a, RemoteTable) else RemoteTable(url=table.a2a or "")
    key = f"{path}.url" if isinstance(table.a2a, RemoteTable) else path
    check_url(key, remote.url, example="https://agents.example.com/agents/clerk", secrets="bearer_env")
    check_longer(path, idle=remote.idle, patience=remote.patience, refresh=remote.refresh)
    if table.max_output is not None and table.max_output < 1:
        raise ConfigError(f"agents.{agent_id}.max_output must be at least 1 byte")
    headers = secret_headers(
        path,
        remote.headers_env,
        ("bearer_env", remote.bearer_env),
        environment,
        reserved=("a2a-version", "a2a-extensions", "x-a2a-extensions"),
    )
    clients = load_clients()
    if remote.version and remote.version not in clients:
        raise ConfigError(f'{path}.version: "{remote.version}" is none of {", ".join(clients)}')
    if remote.binding not in ("", JSON_RPC, HTTP_JSON):
        raise ConfigError(f'{path}.binding: "{remote.binding}" is none of {JSON_RPC}, {HTTP_JSON}')
    try:
        origins = tuple(origin_of(url) for url in (remote.url, *remote.origins))
    except Refused as error:
        raise ConfigError(f"{path}: an origin, or the URL, {error}") from None
    wanted = Wanted(
        origins=origins, version=remote.version, binding=remote.binding, idempotent=remote.idempotent
    )
    idle, largest = seconds(remote.idle, f"{path}.idle"), table.max_output or MAX_OUTPUT
    return RemoteSettings(
        name=agent_id,
        source=CardSource(url=remote.url, clients=clients, wanted=wanted, jwks=_keys(path, remote)),
        file=data / FOLDER / f"{agent_id}.json" if data is not None else None,
        policy=EgressPolicy(trusted=origins),
        credentials=tuple(headers.items()),
        terms=Terms(idle, seconds(remote.patience, f"{path}.patience"), largest),
        refresh=seconds(remote.refresh, f"{path}.refresh"),
        user_agent=f"dragoman/{__version__}",
    )


def _keys(path: str, remote: RemoteTable) -> bytes:
    if not remote.jwks_file:
        return b""
    try:
        return Path(remote.jwks_file).read_bytes() or b"{}"
    except OSError as error:
        raise ConfigError(f"{path}.jwks_file: {remote.jwks_file}: {error.strerror}") from None


def _mirror(agent: Agent, table: AgentTable, found: Mirrored) -> None:
    """Have an agent's card say what that of the remote one says, but for what the table says itself."""
    changes: dict[str, Any] = {}
    if table.input_modes is None:
        changes["input_modes"] = found.input_modes or INPUT_MODES
    if table.extensions is None:
        changes["extensions"] = found.extensions
    try:
        agent.configure(**changes)
    except AgentError as error:
        _LOG.warning(
            "the card of a remote agent cannot be mirrored: %s", error.rule, extra={"agent": agent.id}
        )
        return
    agent.describe(
        name=table.name or found.name or agent.id,
        description=table.description or found.description or UNKNOWN,
        version=table.version or found.version or "1.0.0",
        skills=found.skills,
        output_modes=table.output_modes or found.output_modes or OUTPUT_MODES,
        provider=found.provider,
        documentation_url=found.documentation_url,
        icon_url=found.icon_url,
    )
