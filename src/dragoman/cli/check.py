"""`dragoman check`: find out whether a configuration is right, without serving."""

from pathlib import Path
from typing import Annotated

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

    from dragoman import app
    from dragoman.agents import AgentError
    from dragoman.callers import without_tenant
    from dragoman.config import ConfigError
    from dragoman.stores.sqlite import StoreError, kept_tenants

    try:
        settings = load_config(config)
        app.check_listen(settings, data)
        agents = app.load_agents(settings, files or [])
        app.check_agents(settings, agents)
        kept = kept_tenants(app.database_path(settings, data))
    except (ConfigError, AgentError) as error:
        refuse(error)
    except StoreError as error:
        refuse(error, 1)
    for warning in without_tenant(settings, {*settings.tenants, *kept}):
        typer.echo(f"dragoman: {warning}", err=True)
    if show:
        print(msgspec.json.format(msgspec.json.encode(settings)).decode())
        return
    print(f"configuration: good; listens on {settings.server.listen}")
    print(
        f"store: SQLite at {app.database_path(settings, data)}, with the embedded engine (one server process)"
    )
    if settings.tenants:
        print(f"tenants: {', '.join(settings.tenants)}")
    oidc = settings.auth.oidc
    if oidc is not None:
        where = f"at {oidc.jwks_url}" if oidc.jwks_url else "found by its discovery document"
        print(f"issuer: {oidc.issuer}, of tokens for {oidc.audience}; its keys are {where}")
    if settings.hosted.enabled:
        hosted = [agent_id for agent_id, table in settings.agents.items() if table.workspace]
        print(
            f"hosted profile: on, for {', '.join(hosted) or 'no agent, because none has a workspace'}; "
            "on SQLite and the embedded engine, not on PostgreSQL and Temporal"
        )
    for agent in agents:
        print(f"agent {agent.id}: {agent.name}, from {agent.place}")
