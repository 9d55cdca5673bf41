"""`dragoman check`: find out whether a configuration is right, without serving."""

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, FilesArgument, load_config, refuse


def check(
    files: FilesArgument = None,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    show: Annotated[bool, typer.Option("--print", help="Print the resolved configuration as JSON.")] = False,
) -> None:
    """Check a configuration and its agents, and say what would be served."""
    import msgspec

    from dragoman import app, roster
    from dragoman.agents import AgentError
    from dragoman.callers import exposed_tokens, unusable_tokens, without_tenant
    from dragoman.cards.keys import KeysError
    from dragoman.storage import described, kept_tenants, not_shared, place_of
    from dragoman.stores.errors import StoreError
    from dragoman.tables import ConfigError

    try:
        settings = load_config(config)
        app.check_listen(settings, data)
        agents = roster.load_agents(settings, files or [])
        roster.check_agents(settings, agents)
        place = place_of(settings, data)
        if not isinstance(place, Path) or place.is_file():
            app.check_tenants(settings, data)
        kept = kept_tenants(place)
        signing = _signing(app.signing_keys(settings, data), bool(settings.signing.key_file))
    except (ConfigError, AgentError) as error:
        refuse(error)
    except KeysError as error:
        refuse(f"the keys that sign cards: {error}")
    except StoreError as error:
        refuse(error, 1)
    # A store that is not there yet may still get the tenants.
    lacking = without_tenant(settings, {*settings.tenants, *kept})
    for warning in (*lacking, *exposed_tokens(settings), *not_shared(settings)):
        typer.echo(f"dragoman: {warning}", err=True)
    flaws = unusable_tokens(settings, os.environ)
    if flaws:
        refuse("\ndragoman: ".join(flaws))
    if show:
        print(msgspec.json.format(msgspec.json.encode(settings)).decode())
        return
    print(f"configuration: good; listens on {settings.server.listen}")
    print(f"store: {described(place, settings.engine)}")
    print(f"cards: signed with {signing}")
    if settings.tenants:
        print(f"tenants: {', '.join(settings.tenants)}")
        tokens = sum(len(who.tokens) for one in settings.tenants.values() for who in one.principals.values())
        if tokens:
            print(f"tokens: {tokens}, each found where the configuration says")
    oidc = settings.auth.oidc
    if oidc is not None:
        where = f"at {oidc.jwks_url}" if oidc.jwks_url else "found by its discovery document"
        print(f"issuer: {oidc.issuer}, of tokens for {oidc.audience}; its keys are {where}")
    if settings.hosted.enabled:
        hosted = [agent_id for agent_id, table in settings.agents.items() if table.workspace]
        print(
            f"hosted profile: on, for {', '.join(hosted) or 'no agent, because none has a workspace'}; "
            f"{_qualified(isinstance(place, Path), settings.engine.kind)}"
        )
    for agent in agents:
        print(f"agent {agent.id}: {agent.name}, from {agent.place}")
    _remotes(settings, data)


def _remotes(settings: Any, data: Path) -> None:
    """Say how each remote agent is called; end the command if one cannot be, for another reason than its absence."""
    tables = {agent_id: table for agent_id, table in settings.agents.items() if table.a2a}
    if not tables:
        return
    import asyncio

    from dragoman.cli.output import tame
    from dragoman.mirroring import remote_settings
    from dragoman.remote.card import CardMissingError, CardUnusableError
    from dragoman.remote.handler import inspect

    flaws = []
    for agent_id, table in tables.items():
        try:
            told = asyncio.run(inspect(remote_settings(agent_id, table, os.environ, data)))
            print(f"remote agent {agent_id}: {tame(told)}")
        except CardMissingError as error:
            typer.echo(f"dragoman: remote agent {agent_id}: its card {tame(str(error))}", err=True)
        except CardUnusableError as error:
            flaws.append(f"remote agent {agent_id}: its card {tame(str(error))}")
    if flaws:
        refuse("\ndragoman: ".join(flaws), 1)


def _qualified(is_file: bool, kind: str) -> str:
    """Return whether it runs on the set that the profile is meant for in production, in words."""
    store = "SQLite" if is_file else "PostgreSQL"
    if not is_file and kind == "temporal":
        return "on PostgreSQL and Temporal"
    engine = "Temporal" if kind == "temporal" else "the embedded engine"
    return f"on {store} and {engine}, not on PostgreSQL and Temporal"


def _signing(file: Any, is_named: bool) -> str:
    """Return what signs cards, in words.

    Raises:
        KeysError: nothing can.
    """
    from dragoman.cards.keys import live

    if not file.is_there and not is_named:
        return f"a key that the first start makes, in {file.path}"
    keys = live(file.read(), time.time())
    return (
        f"{', '.join(f'{key.algorithm} {key.kid}' for key in keys) or 'no key that counts'}, in {file.path}"
    )
