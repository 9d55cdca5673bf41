"""Serving: taking a place to listen at, answering until a signal comes, and stopping in order."""

import asyncio
import contextlib
import gc
import logging
import math
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvicorn

from dragoman.agents import Agent
from dragoman.app import Service, check_listen, check_tenants
from dragoman.bindings.connection import HttpConnection
from dragoman.callers import exposed_tokens
from dragoman.config import Config, host_and_port
from dragoman.conformance import Conformance, conformance_agents
from dragoman.protocol.hosts import is_loopback
from dragoman.roster import load_agents
from dragoman.storage import not_shared, place_of
from dragoman.stores.errors import StoreBusy
from dragoman.tables import ConfigError, seconds
from dragoman.telemetry.logs import LogSink
from dragoman.worker import Worker

_LOG = logging.getLogger("dragoman.server")

GC_THRESHOLD = 10_000
"""Allocations between two looks for garbage: requests leave almost no cycles behind."""

WAITING_SECONDS = 30.0
"""Seconds between two log lines about a store that cannot be taken yet."""

KEEP_ALIVE_SECONDS = 75
"""Seconds that an idle connection is kept: longer than proxies usually do, so that they are the ones to close."""

LAST_REQUEST_SECONDS = 0.25
"""How long connections that are open when a server stops may still bring a request."""

LAST_BYTES_SECONDS = 1.0
"""How long the last replies may take to be written."""

EXIT_LOST = 1
"""The exit code of a server whose store another one has taken over."""

Started = Callable[[str, Sequence[Agent], str], None]


async def serve(
    config: Config,
    files: Sequence[Path],
    *,
    conformance: Conformance | None = None,
    data: Path,
    log: LogSink,
    started: Started,
) -> int:
    """Serve until SIGINT or SIGTERM comes or the store is lost; return the exit code.

    Args:
        config: the configuration.
        files: files of agents to serve beside those of the configuration.
        conformance: how to serve the conformance agents, if they are to be served.
        data: the data folder.
        log: where log lines go.
        started: called once requests are answered, with the server's base URL, the agents and where the store is.

    Raises:
        ConfigError, AgentError, StoreError: it cannot start; the message says why.
    """
    host, port = check_listen(config, data)
    check_tenants(config, data)
    agents = load_agents(config, files, data)
    beside = conformance_agents(config, agents) if conformance is not None else []
    listener = _listen(host, port)
    try:
        local_url = f"http://{_shown(host)}:{listener.getsockname()[1]}"
        base_url = (config.server.public_url or local_url) + config.server.base_path
        service = await _when_free(
            lambda: Service(
                config,
                agents,
                beside=beside,
                conformance=conformance,
                data=data,
                base_url=base_url,
                log=log,
            )
        )
        await service.start()
        if service.gate.is_open and not is_loopback(host):
            raise ConfigError("the last tenant was removed while the server started; start it again")
        for warning in (*exposed_tokens(config), *not_shared(config)):
            _LOG.warning("%s", warning)
        url = local_url + config.server.base_path
        everyone = [*agents, *beside]
        notice = seconds(config.server.notice, "server.notice")
        return await _run(
            service, listener, lambda: started(url, everyone, str(place_of(config, data))), notice=notice
        )
    finally:
        listener.close()


async def work(
    config: Config,
    files: Sequence[Path],
    *,
    conformance: bool,
    data: Path,
    started: Callable[[str, Sequence[Agent], str], None],
) -> int:
    """Execute runs of a shared store until SIGINT or SIGTERM comes; return the exit code.

    Args:
        config: the configuration.
        files: files of agents whose runs are executed, beside those of the configuration.
        conformance: whether those of the conformance agents are as well.
        data: the data folder.
        started: called once runs are executed, with the worker's URL, the agents and where the store is.

    Raises:
        ConfigError, AgentError, StoreError: it cannot start; the message says why.
    """
    host, port = host_and_port(config.worker.listen, "worker.listen")
    agents = load_agents(config, files)
    everyone = [*agents, *(conformance_agents(config, agents) if conformance else ())]
    listener = _listen(host, port)
    try:
        worker = Worker(config, everyone, data=data)
        await worker.start()
        url = f"http://{_shown(host)}:{listener.getsockname()[1]}"
        return await _run(worker, listener, lambda: started(url, everyone, str(place_of(config, data))))
    finally:
        listener.close()


async def _when_free(build: Callable[[], Service]) -> Service:
    """Build a server as soon as nobody is writing to its store any more; until then it does not listen.

    Raises:
        StoreError, ConfigError: as `Service` does, but for a store that is locked.
    """
    told_at = -math.inf
    while True:
        try:
            return build()
        except StoreBusy as busy:
            if time.monotonic() - told_at >= WAITING_SECONDS:
                told_at = time.monotonic()
                _LOG.warning("waiting: %s", busy)
            await asyncio.sleep(0.1)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}. Is another server there? --listen names another place"
        ) from error
    return listener


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Uvicorn(uvicorn.Server):
    """uvicorn without its own signal handling, which would stop things in another order than ours.

    Attributes:
        shut: set when no connection can bring a new request any more.
    """

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = started
        self.shut = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and tell."""
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and end those there are with the requests that may be on their way over them.

        A connection that the system has taken, and a request that has arrived, would be answered by a reset if they
        were closed unseen: their callers could not tell whether they were heard.
        """
        loop = asyncio.get_running_loop()
        late = [one for listener in sockets or [] for one in _not_accepted(listener)]
        for server in self.servers:
            server.close()
        for connection in late:
            await loop.connect_accepted_socket(self._protocol, connection)
        if self.server_state.connections:
            await asyncio.sleep(LAST_REQUEST_SECONDS)
        loop.call_soon(self.shut.set)
        await super().shutdown(sockets)

    def _protocol(self) -> HttpConnection:
        return HttpConnection(self.config, self.server_state, self.lifespan.state)


def _not_accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """Give the connections that wait to be accepted."""
    listener.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            yield listener.accept()[0]


async def _run(
    service: Service | Worker, listener: socket.socket, started: Callable[[], None], *, notice: float = 0
) -> int:
    """Answer requests until a signal comes or the store is lost, then stop in order; return the exit code.

    First whoever looks is told to call others, while all is answered as before; then nothing more is taken; then what
    is under way ends.
    """
    # What is there now stays: keep the garbage collector from walking over it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    stop, again = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            again.set()
            service.hurry()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    server = _Uvicorn(
        uvicorn.Config(
            service.asgi,
            http=HttpConnection,
            loop="uvloop",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ),
        started,
    )
    serving = asyncio.create_task(server.serve([listener]))
    reasons = [asyncio.create_task(stop.wait()), asyncio.create_task(service.lost.wait())]
    await asyncio.wait([*reasons, serving], return_when=asyncio.FIRST_COMPLETED)
    service.leave()
    if notice and not service.lost.is_set():
        _LOG.info("stopping: requests are taken for %g s more, and /readyz says 503", notice)
        reasons.append(asyncio.create_task(again.wait()))
        await asyncio.wait([*reasons[1:], serving], timeout=notice, return_when=asyncio.FIRST_COMPLETED)
    running = service.running()
    _LOG.info("stopping: no new requests are taken; %d handlers may end within %s", running, service.drain)
    if running and sys.stderr.isatty():
        print(f"stopping once {running} running handlers have ended; again to stop now", file=sys.stderr)
    server.should_exit = True
    service.asgi.edge.end_streams()
    shut = asyncio.create_task(server.shut.wait())
    await asyncio.wait([shut, serving], return_when=asyncio.FIRST_COMPLETED)
    shut.cancel()
    await service.stop()
    await asyncio.wait([serving], timeout=LAST_BYTES_SECONDS)
    server.force_exit = True
    await serving
    for reason in reasons:
        reason.cancel()
    return EXIT_LOST if service.lost.is_set() else 0
