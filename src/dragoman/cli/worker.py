"""`dragoman worker`: execute runs apart from the servers that accept them."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dragoman import __version__
from dragoman.agents import Agent
from dragoman.cli.serve import SWITCH_SECONDS
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
    import uvloop
    from msgspec.structs import replace

    from dragoman import serving
    from dragoman.agents import AgentError
    from dragoman.config import host_and_port
    from dragoman.engines.settings import WorkerTable
    from dragoman.stores.errors import StoreError
    from dragoman.tables import ConfigError
    from dragoman.telemetry.logs import LogSink, configure

    sys.setswitchinterval(SWITCH_SECONDS)
    sys.path.insert(0, str(Path.cwd()))
    try:
        settings = load_config(config)
        if listen is not None:
            host_and_port(listen, "--listen")
            settings = replace(settings, worker=WorkerTable(listen))
    except ConfigError as error:
        refuse(error)
    log = LogSink()
    configure(log)
    try:
        code = uvloop.run(
            serving.work(settings, files or [], conformance=conformance, data=data, started=_greet)
        )
    except (ConfigError, AgentError) as error:
        log.close()
        refuse(error)
    except StoreError as error:
        log.close()
        refuse(error, 1)
    log.close()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not by returning: that would wait for the thread of a handler which did not end in the drain time, for ever.
    os._exit(code)


def _greet(url: str, agents: Sequence[Agent], store: str) -> None:
    print(f"Dragoman {__version__} worker listening on {url} for health checks")
    print(f"  runs are taken from {store}")
    for agent in agents:
        print(f"  {agent.name}: {agent.id}")
    sys.stdout.flush()
