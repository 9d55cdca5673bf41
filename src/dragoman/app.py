"""Building a server: the only place where concrete classes meet."""

import asyncio
import contextlib
import copy
import gc
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import uvicorn
import uvloop
from msgspec import structs

from dragoman import __version__
from dragoman.agents import Agent, AgentError
from dragoman.agents.hosted import HostedAgent
from dragoman.agents.load import load_attribute, load_file
from dragoman.bindings.approvals import ApprovalSurface
from dragoman.bindings.asgi import AsgiApp
from dragoman.bindings.cors import CrossOrigin
from dragoman.bindings.directory import Directory, ServedAgent
from dragoman.bindings.fixed import FixedEndpoints
from dragoman.bindings.guarded import GuardedProtocol
from dragoman.bindings.hosted import PREFIX as HOSTED_PREFIX
from dragoman.bindings.hosted import HostedSurface
from dragoman.bindings.pipeline import Pipeline
from dragoman.callers import verifier_of
from dragoman.cards import CardFile, combined, interfaces
from dragoman.cards.build import JSON_RPC
from dragoman.config import (
    AgentTable,
    Config,
    ConfigError,
    TokenRef,
    durations,
    host_and_port,
    is_loopback,
    seconds,
)
from dragoman.engines import EmbeddedEngine
from dragoman.gateway import Gateway, Hub
from dragoman.gateway.approvals import Approvals, Resumer
from dragoman.gateway.policy import HOSTED
from dragoman.gateway.ports import Commit
from dragoman.gateway.purge import Purger
from dragoman.gateway.watching import ObserverBounds, Watchers
from dragoman.identity import Credential, Failures, Gate, Registry, hash_token
from dragoman.identity.tokens import SHORTEST
from dragoman.model import AgentInterface, Principal, Received, Resumed, TaskState
from dragoman.model.errors import Unavailable
from dragoman.model.principal import rights_of
from dragoman.protocol.negotiation import UNNAMED
from dragoman.protocol.registry import load_versions
from dragoman.protocol.spec import Deployment, ProtocolSpec
from dragoman.stores.sqlite import SqliteStore, StoreBusy
from dragoman.telemetry.logs import LogSink
from dragoman.telemetry.metrics import Metrics

_LOG = logging.getLogger("dragoman.server")

FAILURES_PER_SECOND = 0.2
"""Credentials that are not good, by address: so many a second in the long run."""

DEMO_AGENTS = ("dragoman.agents.demo:demo", "dragoman.agents.digest:digest")

CONFORMANCE_AGENTS: Mapping[str, str] = MappingProxyType({"tck-03": "dragoman.agents.tck_03:tck_03"})
"""Id → where the agent is: those that upstream conformance kits are run on, served where somebody asks for them."""


def load_agents(config: Config, files: Sequence[Path]) -> list[Agent]:
    """Return the agents to serve: those of the configuration and the files, or else the demo agents.

    Raises:
        AgentError: one cannot be loaded or served.
    """
    agents: list[Agent] = []
    for agent_id, table in config.agents.items():
        # A copy: two tables may name the same object, each with settings of its own.
        agent = copy.copy(load_attribute(table.python))
        agent.id = agent_id
        changes = {
            name: getattr(table, name)
            for name in (
                "idempotency",
                "input_modes",
                "strict_input_modes",
                "on_lost_worker",
                "max_attempts",
                "max_runs",
                "max_waiting",
                "legacy_card",
            )
            if getattr(table, name) is not None
        }
        if table.public:
            # Callers that nobody knows apart: only who asks for it may have a message be the same as an earlier one.
            changes.setdefault("idempotency", "requested")
        try:
            agent.configure(**changes, **durations(agent_id, table))
        except AgentError as error:
            raise AgentError(f"[agents.{agent_id}] in the configuration: {error.rule}") from error
        agents.append(agent)
    for file in files:
        agents.extend(load_file(file))
    if not agents:
        agents = [load_attribute(reference) for reference in DEMO_AGENTS]
    _check_ids(agents)
    return agents


def conformance_agents(config: Config, agents: Sequence[Agent]) -> list[Agent]:
    """Return the conformance agents, less those that the configuration serves under their own ids already.

    Args:
        config: the configuration.
        agents: the agents that are served whether or not these are.

    Raises:
        AgentError: another agent has the id of one of them.
    """
    found = [
        load_attribute(reference)
        for agent_id, reference in CONFORMANCE_AGENTS.items()
        if agent_id not in config.agents or config.agents[agent_id].python != reference
    ]
    _check_ids([*agents, *found])
    return found


def _check_ids(agents: Sequence[Agent]) -> None:
    places: dict[str, str] = {}
    for agent in agents:
        if agent.id in places:
            raise AgentError(f"{agent.place}: the agent id {agent.id!r} is taken by {places[agent.id]}")
        places[agent.id] = agent.place


def registry_of(config: Config, environment: Mapping[str, str]) -> Registry:
    """Return who may call by the configuration; tokens are read from where it says they are.

    Raises:
        ConfigError: a token is missing, too short, or given twice.
    """
    tokens: dict[bytes, Credential] = {}
    workspaces: dict[tuple[str, str], tuple[str, ...]] = {}
    sources: dict[tuple[str, str], tuple[str, ...]] = {}
    for tenant, table in config.tenants.items():
        for name, who in table.principals.items():
            workspaces[tenant, name], sources[tenant, name] = who.workspaces, who.sources
            for index, ref in enumerate(who.tokens):
                place = f"tenants.{tenant}.principals.{name}.tokens[{index}]"
                hashed = hash_token(_token(ref, place, environment))
                if hashed in tokens:
                    raise ConfigError(f"{place}: this token is in the configuration already")
                tokens[hashed] = Credential(place, Principal(tenant, name, rights_of(ref.scopes)))
    features = {name: table.features for name, table in config.tenants.items()}
    return Registry(features, tokens, workspaces, sources)


def _token(ref: TokenRef, place: str, environment: Mapping[str, str]) -> str:
    if ref.env:
        token = environment.get(ref.env, "").strip()
        where = f"the environment variable {ref.env}"
    else:
        where = ref.file
        try:
            token = Path(ref.file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{place}: {ref.file} cannot be read: {error}") from error
    if len(token) < SHORTEST:
        raise ConfigError(
            f"{place}: {where} holds {'no token' if not token else 'a token that can be guessed'}; "
            f"a token has {SHORTEST} characters or more"
        )
    return token


def database_path(config: Config, data: Path) -> Path:
    """Return where the SQLite file is: `store.url`, or `dragoman.db` in the data folder."""
    return Path(config.store.url.removeprefix("sqlite:///")) if config.store.url else data / "dragoman.db"


def check_listen(config: Config) -> tuple[str, int]:
    """Return the host and port to listen at.

    Raises:
        ConfigError: others could reach it although nobody would have to prove who they are.
    """
    host, port = host_and_port(config.server.listen)
    if not is_loopback(host) and not config.authenticates:
        raise ConfigError(
            f"server.listen = {config.server.listen}: nobody would have to show who they are. Name who may call in "
            "[tenants.NAME.principals.NAME], or an issuer in [auth.oidc], or listen on 127.0.0.1"
        )
    return host, port


def check_agents(config: Config, agents: Sequence[Agent]) -> None:
    """Make sure that the agents can be served as configured.

    Raises:
        ConfigError: they cannot; the message names the key.
    """
    versions = load_versions()
    for agent in agents:
        _versions(agent, config, versions)


class Service:
    """A server made of its parts. Built on the loop that serves."""

    def __init__(
        self,
        config: Config,
        agents: Sequence[Agent],
        *,
        beside: Sequence[Agent] = (),
        data: Path,
        base_url: str,
        log: LogSink,
    ) -> None:
        """Put the parts together and take the store.

        Args:
            config: the configuration.
            agents: the agents to serve.
            beside: further ones, which do not count where the default agent is the only one.
            data: the data folder.
            base_url: the origin and base path that cards advertise.
            log: where log lines go.

        Raises:
            StoreError: the store cannot be used.
            ConfigError: a version is switched on that this build has not.
        """
        self.lost = asyncio.Event()
        self.drain = config.server.drain
        self._drain = seconds(config.server.drain, "server.drain")
        versions = load_versions()
        everyone = (*agents, *beside)
        served = {agent.id: _served(agent, config, versions, base_url) for agent in everyone}
        self._verifier = verifier_of(config.auth.oidc) if config.auth.oidc is not None else None
        failures = Failures(config.limits.failed_auth, FAILURES_PER_SECOND)
        self.gate = gate = Gate(registry_of(config, os.environ), failures, verifier=self._verifier)
        self._hub = Hub()
        self._store = SqliteStore(
            database_path(config, data),
            lease=seconds(config.engine.lease, "engine.lease"),
            on_lost=self.lost.set,
            on_noticed=self._notice,
        )
        hosted = _hosted_agents(agents, config)
        self._engine = EmbeddedEngine(
            [*everyone, *hosted.values()],
            self._store,
            max_runs=config.engine.max_runs,
            sweep=seconds(config.engine.sweep, "engine.sweep"),
            new_loop=uvloop.new_event_loop,
        )
        self._purger = Purger(
            self._store,
            {TaskState[state.upper()]: int(age * 1000) for state, age in config.retention.ages().items()},
            every=seconds(config.engine.sweep, "engine.sweep"),
        )
        self._purging: asyncio.Task[None] | None = None
        self._store.on_commit(self._committed)
        bounds = config.hosted.observers
        watchers = Watchers(
            ObserverBounds(everybody=bounds.everybody, tenant=bounds.tenant, principal=bounds.principal)
        )
        gateway = Gateway(self._store, self._engine, self._hub, watchers=watchers)
        directory = Directory(served, versions, _default(config, agents))
        metrics = Metrics(versions, self._gauges)
        fixed = FixedEndpoints(directory, metrics, self._unready, _descriptions(served, versions, base_url))
        hosted_directory = _hosted_directory(hosted, config, versions, base_url)
        surface = HostedSurface(hosted_directory, gate, fixed) if config.hosted.enabled else None
        runs = {agent.id: agent for agent in (*served.values(), *hosted_directory.agents.values())}
        approvals = ApprovalSurface(
            Approvals(self._store, {agent_id: agent.settings for agent_id, agent in runs.items()}),
            Resumer(self._store),
            gate,
            runs,
            directory.newest.jsonrpc.codec,
        )
        pipeline = Pipeline(gateway, directory, gate, fixed, metrics, log, surface, approvals)
        origins = config.server.cors_origins
        self.asgi = AsgiApp(
            CrossOrigin(pipeline, origins) if origins else pipeline,
            body_limit=config.limits.body,
            base_path=config.server.base_path,
            body_seconds=seconds(config.limits.body_time, "limits.body_time"),
        )

    async def start(self) -> None:
        """Start the agents, take up what an earlier server left, and begin to purge."""
        if self._verifier is not None:
            self._verifier.start()
        await self._engine.start()
        self._purging = asyncio.create_task(self._purger.run())

    def running(self) -> int:
        """Return how many handlers run."""
        return sum(running for running, _ in self._engine.counts().values())

    def hurry(self) -> None:
        """Wait for handlers no longer; they are entered again at the next start."""
        self._engine.hurry()

    async def stop(self) -> None:
        """Let what runs end, within the drain time, and let the store go. A lost store is nothing to wait for."""
        if self._purging is not None:
            self._purging.cancel()
        await self._engine.stop_serving(0 if self.lost.is_set() else self._drain)
        if self._verifier is not None:
            await self._verifier.close()
        await asyncio.to_thread(self._store.close)

    def _committed(self, commit: Commit) -> None:
        if commit.runs:
            self._engine.dispatch(commit.runs)
        for event in commit.events:
            if not isinstance(event.change, Received | Resumed):
                self._engine.settle(event.task_id)
        self._hub.publish(commit.events)

    def _notice(self) -> None:
        self._hub.look_again()
        self._engine.look_again()

    async def _unready(self) -> Sequence[str]:
        try:
            await self._store.check()
        except Unavailable as error:
            return [error.message]
        return []

    def _gauges(self) -> Iterable[tuple[str, str, dict[str, str], float]]:
        for agent, (running, waiting) in self._engine.counts().items():
            labels = {"agent": agent}
            yield "dragoman_runs_running", "Runs being executed", {**labels}, running
            yield "dragoman_runs_waiting", "Runs waiting for room", {**labels}, waiting
        yield "dragoman_observers", "Waits and streams that follow a task", {}, self._hub.count()
        yield "dragoman_streams", "Open streams", {}, self.asgi.open_streams()


def _served(agent: Agent, config: Config, versions: Mapping[str, ProtocolSpec], base_url: str) -> ServedAgent:
    chosen = _versions(agent, config, versions)
    table = config.agents.get(agent.id, AgentTable())
    bearer = config.authenticates and not table.public
    card = agent.card(interfaces(f"{base_url}/agents/{agent.id}", chosen.values()), bearer=bearer)
    now = time.time()
    forms = {version: spec.card(card) for version, spec in chosen.items()}
    newest = next(iter(chosen))
    unnamed = UNNAMED if agent.settings.legacy_card and UNNAMED in chosen else newest
    shared = forms[newest] if unnamed == newest else combined(forms[newest], forms[unnamed])
    return ServedAgent(
        id=agent.id,
        settings=agent.settings,
        versions=chosen,
        cards={version: CardFile(msgspec.json.encode(form), now) for version, form in forms.items()},
        unnamed=unnamed,
        unnamed_card=CardFile(msgspec.json.encode(shared), now),
        tenant=table.tenant,
        public=table.public,
    )


def _hosted_agents(agents: Sequence[Agent], config: Config) -> dict[str, HostedAgent]:
    """Return the agents of tenants as the hosted profile serves them, by the id that callers know."""
    if not config.hosted.enabled:
        return {}
    deadline = seconds(config.hosted.deadline, "hosted.deadline")
    tables = {agent.id: config.agents.get(agent.id, AgentTable()) for agent in agents}
    return {agent.id: HostedAgent(agent, deadline=deadline) for agent in agents if tables[agent.id].workspace}


def _hosted_directory(
    hosted: Mapping[str, HostedAgent],
    config: Config,
    versions: Mapping[str, ProtocolSpec],
    base_url: str,
) -> Directory:
    """Return the agents of the hosted profile, each in the newest version alone."""
    newest = next(iter(versions))
    spec = versions[newest]
    policy = structs.replace(
        HOSTED, window=seconds(config.hosted.observers.window, "hosted.observers.window")
    )
    now = time.time()
    served = {}
    for agent_id, agent in hosted.items():
        url = f"{base_url}{HOSTED_PREFIX}{agent_id}/rpc"
        card = agent.card((AgentInterface(url=url, binding=JSON_RPC, version=newest),))
        form = CardFile(msgspec.json.encode(spec.card(card)), now)
        table = config.agents[agent_id]
        served[agent_id] = ServedAgent(
            id=agent.id,
            settings=agent.settings,
            versions={newest: spec},
            cards={newest: form},
            unnamed=newest,
            unnamed_card=form,
            tenant=table.tenant,
            workspace=table.workspace,
            policy=policy,
        )
    return Directory(served, {newest: spec}, None)


def _descriptions(
    served: Mapping[str, ServedAgent], versions: Mapping[str, ProtocolSpec], base_url: str
) -> dict[str, CardFile]:
    """Return the OpenAPI document of each version that has one and in which an agent is served."""
    now = time.time()
    documents = {}
    for version, spec in versions.items():
        agents = tuple(agent.id for agent in served.values() if version in agent.versions)
        if spec.describe is not None and agents:
            body = spec.describe(Deployment(base_url, agents, __version__))
            documents[version] = CardFile(body, now)
    return documents


def _versions(agent: Agent, config: Config, versions: Mapping[str, ProtocolSpec]) -> dict[str, ProtocolSpec]:
    """Return the versions that an agent is served in, newest first."""
    table = config.agents.get(agent.id)
    wanted = table.versions if table is not None else None
    unknown = [version for version in wanted or () if version not in versions]
    if unknown:
        raise ConfigError(
            f"agents.{agent.id}.versions: {unknown[0]} is not in this build, which has {', '.join(versions)}"
        )
    chosen = {version: spec for version, spec in versions.items() if wanted is None or version in wanted}
    if not chosen:
        raise ConfigError(f"agents.{agent.id}.versions must name at least one version")
    return chosen


def _default(config: Config, agents: Sequence[Agent]) -> str | None:
    for agent_id, table in config.agents.items():
        if table.default:
            return agent_id
    return agents[0].id if len(agents) == 1 else None


Started = Callable[[str, Sequence[Agent], Path], None]


async def serve(
    config: Config,
    files: Sequence[Path],
    *,
    conformance: bool = False,
    data: Path,
    log: LogSink,
    started: Started,
) -> int:
    """Serve until SIGINT or SIGTERM comes or the store is lost; return the exit code.

    Args:
        config: the configuration.
        files: files of agents to serve beside those of the configuration.
        conformance: whether to serve the conformance agents too.
        data: the data folder.
        log: where log lines go.
        started: called once requests are answered, with the server's base URL, the agents and the store's path.

    Raises:
        ConfigError, AgentError, StoreError: it cannot start; the message says why.
    """
    host, port = check_listen(config)
    agents = load_agents(config, files)
    beside = conformance_agents(config, agents) if conformance else []
    listener = _listen(host, port)
    try:
        local_url = f"http://{_shown(host)}:{listener.getsockname()[1]}"
        base_url = (config.server.public_url or local_url) + config.server.base_path
        service = await _when_free(
            lambda: Service(config, agents, beside=beside, data=data, base_url=base_url, log=log)
        )
        await service.start()
        url = local_url + config.server.base_path
        everyone = [*agents, *beside]
        return await _run(service, listener, lambda: started(url, everyone, database_path(config, data)))
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
    """uvicorn without its own signal handling, which would stop things in another order than ours."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and tell."""
        await super().startup(sockets)
        self._on_started()


async def _run(service: Service, listener: socket.socket, started: Callable[[], None]) -> int:
    """Answer requests until a signal comes or the store is lost, then stop in order; return the exit code."""
    # What is there now stays: keep the garbage collector from walking over it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            service.hurry()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    server = _Uvicorn(
        uvicorn.Config(
            service.asgi,
            http=GuardedProtocol,
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
    running = service.running()
    _LOG.info("stopping: no new requests are taken; %d handlers may end within %s", running, service.drain)
    if running and sys.stderr.isatty():
        print(f"stopping once {running} running handlers have ended; again to stop now", file=sys.stderr)
    server.should_exit = True
    service.asgi.end_streams()
    await service.stop()
    server.force_exit = True
    await serving
    for reason in reasons:
        reason.cancel()
    return EXIT_LOST if service.lost.is_set() else 0


GC_THRESHOLD = 10_000
"""Allocations between two looks for garbage: requests leave almost no cycles behind."""

WAITING_SECONDS = 30.0
"""Seconds between two log lines about a store that cannot be taken yet."""

KEEP_ALIVE_SECONDS = 75
"""Seconds that an idle connection is kept: longer than proxies usually do, so that they are the ones to close."""

EXIT_LOST = 1
"""The exit code of a server whose store another one has taken over."""
