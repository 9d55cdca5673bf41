"""`dragoman worker`: execute runs apart from the servers that accept them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dragoman import __version__
from dragoman.agents import Agent
from dragoman.cli.serve import prepare, run_until_stopped
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, FilesArgument, load_config, refuse


def worker(
    files: FilesArgument = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", help="HOST:PORT for health checks; port 0 takes a free one."),
    ] = None,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    conformance: Annotated[
        bool, typer.Option("--conformance", help="Run the agents for conformance kits too.")
    ] = False,
) -> None:
    """Run handlers for servers that share a PostgreSQL store, until it is stopped.

    Give it the servers' configuration and agent files. It answers at /healthz, /readyz and /metrics alone.
    """
    from msgspec.structs import replace

    from dragoman import serving
    from dragoman.config import host_and_port
    from dragoman.engines.settings import WorkerTable
    from dragoman.tables import ConfigError

    prepare()
    try:
        settings = load_config(config)
        if listen is not None:
            host_and_port(listen, "--listen")
            settings = replace(settings, worker=WorkerTable(listen))
    except ConfigError as error:
        refuse(error)
    run_until_stopped(
        lambda log: serving.work(settings, files or [], conformance=conformance, data=data, started=_greet)
    )


def _greet(url: str, agents: Sequence[Agent], store: str) -> None:
    print(f"Dragoman {__version__} worker listening on {url} for health checks")
    print(f"  runs are taken from {store}")
    for agent in agents:
        print(f"  {agent.name}: {agent.id}")
    sys.stdout.flush()
