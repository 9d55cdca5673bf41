"""`dragoman serve`: run the server."""

import os
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dragoman import __version__
from dragoman.agents import Agent
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, FilesArgument, load_config, refuse


def serve(
    files: FilesArgument = None,
    listen: Annotated[
        str | None, typer.Option("--listen", help="HOST:PORT; port 0 takes a free one.")
    ] = None,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    no_runs: Annotated[
        bool,
        typer.Option("--no-runs", help='Leave runs to workers; the same as engine.runs = "workers".'),
    ] = False,
    conformance: Annotated[
        bool, typer.Option("--conformance", help="Serve the agents for conformance kits too.")
    ] = False,
    tck_table: Annotated[
        str | None,
        typer.Option(
            "--tck-table",
            metavar="REVISION",
            help="With --conformance: the revision of A2A 1.0 whose HTTP statuses of errors these agents answer with.",
        ),
    ] = None,
) -> None:
    """Serve agents over A2A until it is stopped."""
    import msgspec

    from dragoman import serving
    from dragoman.config import host_and_port
    from dragoman.conformance import CONFORMANCE_AGENTS, Conformance
    from dragoman.executing import leaving_runs
    from dragoman.tables import ConfigError

    prepare()
    try:
        settings = load_config(config)
        if no_runs:
            settings = leaving_runs(settings)
        if listen is not None:
            host_and_port(listen)
            settings = msgspec.structs.replace(
                settings, server=msgspec.structs.replace(settings.server, listen=listen)
            )
    except ConfigError as error:
        refuse(error)
    if tck_table is not None and not conformance:
        refuse("--tck-table is about the conformance agents; write --conformance as well")
    run_until_stopped(
        lambda log: serving.serve(
            settings,
            files or [],
            conformance=Conformance(tck_table or "") if conformance else None,
            data=data,
            log=log,
            started=partial(_greet, kits=CONFORMANCE_AGENTS if conformance else ()),
        )
    )


def prepare() -> None:
    """Have this process run handlers: of files and modules in the working folder, too."""
    # They share its interpreter lock: switching often keeps a busy one from stalling the others.
    sys.setswitchinterval(SWITCH_SECONDS)
    sys.path.insert(0, str(Path.cwd()))


def run_until_stopped(work: Callable[[Any], Coroutine[Any, Any, int]]) -> NoReturn:
    """Run what `work` makes, given where log lines go, and end the process with its exit code.

    It says why if that cannot start.
    """
    import uvloop

    from dragoman.agents import AgentError
    from dragoman.stores.errors import StoreError
    from dragoman.tables import ConfigError
    from dragoman.telemetry.logs import LogSink, configure

    log = LogSink()
    configure(log)
    try:
        code = uvloop.run(work(log))
    except (ConfigError, AgentError) as error:
        log.close()
        refuse(error)
    except StoreError as error:
        log.close()
        refuse(error, 1)
    log.close()
    if code:
        typer.echo(
            "dragoman: another server took this one's store over while it did not run; it ends", err=True
        )
    sys.stdout.flush()
    sys.stderr.flush()
    # Not by returning: that would wait for the thread of a handler which did not end in the drain time, for ever.
    os._exit(code)


SWITCH_SECONDS = 0.001
"""Seconds between two offers of the interpreter lock."""

_BODY = '{"message": {"messageId": "\'$(date +%s%N)\'", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}}'


def _greet(url: str, agents: Sequence[Agent], store: str, *, kits: Collection[str]) -> None:
    print(f"Dragoman {__version__} listening on {url}")
    print(f"  tasks are kept in {store}")
    if kits:
        print("  conformance agents may send push notifications to this machine, over http and to any port")
    for agent in agents:
        name = f"{agent.name} (for conformance kits)" if agent.id in kits else agent.name
        print(f"  {name}: {url}/agents/{agent.id}/.well-known/agent-card.json")
    base = f"{url}/agents/{agents[0].id}"
    print("  try it:")
    print(f"    dragoman send {base} Hello     (in a checkout: ./dev run send ...)")
    print(f"    curl -s {base}/message:send -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -d \\")
    print(f"      '{_BODY}'")
    sys.stdout.flush()
