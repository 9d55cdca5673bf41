"""Building a server: the only place where concrete classes meet."""

import asyncio
import copy
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop
from msgspec import structs

from dragoman import __version__
from dragoman.admin import shapes
from dragoman.admin.surface import AdminSurface
from dragoman.agents import Agent, AgentError
from dragoman.agents.hosted import HostedAgent
from dragoman.agents.load import check_ids, load_attribute, load_file
from dragoman.bindings.approvals import ApprovalSurface
from dragoman.bindings.asgi import AsgiApp
from dragoman.bindings.cors import CrossOrigin
from dragoman.bindings.describing import Descriptions
from dragoman.bindings.directory import Directory, ServedAgent
from dragoman.bindings.fixed import JWKS_PATH, FixedEndpoints
from dragoman.bindings.hosted import PREFIX as HOSTED_PREFIX
from dragoman.bindings.hosted import HostedSurface
from dragoman.bindings.hosts import KnownHosts
from dragoman.bindings.pipeline import Pipeline
from dragoman.callers import declared, registry_of, verifier_of, without_tenant
from dragoman.cards import CardFile
from dragoman.cards.build import JSON_RPC, Signers, combined, interfaces, pure, signed
from dragoman.cards.keyfile import NAME as KEY_FILE
from dragoman.cards.keyfile import KeyFile
from dragoman.cards.keys import KeysError, SigningKey
from dragoman.cards.rotation import KeyKeeper
from dragoman.config import (
    AgentTable,
    Config,
    ConfigError,
    ExtensionTable,
    Server,
    durations,
    host_and_port,
    seconds,
)
from dragoman.conformance import Conformance
from dragoman.engines import EmbeddedEngine
from dragoman.gateway import Gateway, Hub
from dragoman.gateway.approvals import Approvals, Resumer
from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.policy import HOSTED
from dragoman.gateway.ports import Commit
from dragoman.gateway.purge import AuditPurger, Purger
from dragoman.gateway.watching import ObserverBounds, Watchers
from dragoman.identity import Failures, Gate, Keeper
from dragoman.model import AgentInterface, Extension, Received, Resumed, Scope, TaskState, Used
from dragoman.model.errors import Unavailable
from dragoman.protocol.forwarded import networks_of
from dragoman.protocol.hosts import is_loopback
from dragoman.protocol.negotiation import UNNAMED
from dragoman.protocol.registry import load_versions
from dragoman.protocol.spec import Deployment, ProtocolSpec
from dragoman.stores.sqlite import SqliteStore, kept_tenants
from dragoman.telemetry.audit import AuditTrail
from dragoman.telemetry.logs import LogSink
from dragoman.telemetry.metrics import Metrics

FAILURES_PER_SECOND = 0.2
"""Credentials that are not good, by address: so many a second in the long run."""

DEMO_AGENTS = ("dragoman.agents.demo:demo", "dragoman.agents.digest:digest")


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
        changes: dict[str, Any] = {
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
                "extended_card",
                "push",
            )
            if getattr(table, name) is not None
        }
        if table.extensions is not None:
            changes["extensions"] = [_extension(declared) for declared in table.extensions]
        if table.public:
            # Callers that nobody knows apart: only who asks for it may have a message be the same as an earlier one.
            changes.setdefault("idempotency", "requested")
        changes.update(durations(agent_id, table))
        try:
            agent.configure(**changes)
        except AgentError as error:
            raise AgentError(f"[agents.{agent_id}] in the configuration: {error.rule}") from error
        agents.append(agent)
    for file in files:
        agents.extend(load_file(file))
    if not agents:
        agents = [load_attribute(reference) for reference in DEMO_AGENTS]
    check_ids(agents)
    return agents


def _extension(declared: str | ExtensionTable) -> str | Extension:
    if isinstance(declared, str):
        return declared
    return Extension.of(
        declared.uri,
        description=declared.description,
        required=declared.required,
        params=declared.params or None,
    )


def database_path(config: Config, data: Path) -> Path:
    """Return where the SQLite file is: `store.url`, or `dragoman.db` in the data folder."""
    return Path(config.store.url.removeprefix("sqlite:///")) if config.store.url else data / "dragoman.db"


def signing_keys(config: Config, data: Path) -> KeyFile:
    """Return the file with the keys that sign cards: `signing.key_file`, or one in the data folder."""
    return KeyFile(Path(config.signing.key_file) if config.signing.key_file else data / KEY_FILE)


def check_listen(config: Config, data: Path) -> tuple[str, int]:
    """Return the host and port to listen at; `data` is the data folder, where tenants may be kept.

    Raises:
        ConfigError: others could reach it although nobody would have to prove who they are.
        StoreError: the store cannot be asked for tenants.
    """
    host, port = host_and_port(config.server.listen)
    named = config.authenticates or is_loopback(host)
    if not named and not kept_tenants(database_path(config, data)):
        raise ConfigError(
            f"server.listen = {config.server.listen}: nobody would have to show who they are. Name who may call in "
            "[tenants.NAME.principals.NAME] or with `dragoman tenant create`, or an issuer in [auth.oidc], or listen "
            "on 127.0.0.1"
        )
    return host, port


def check_tenants(config: Config, data: Path) -> None:
    """Make sure that the tenants are there, in the configuration or the store, that it asks for.

    Raises:
        ConfigError: one is in neither, so that nobody could call what is for it.
        StoreError: the store cannot be asked.
    """
    if without_tenant(config, config.tenants):
        lacking = without_tenant(config, {*config.tenants, *kept_tenants(database_path(config, data))})
        if lacking:
            raise ConfigError("; ".join(lacking))


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
        conformance: Conformance | None = None,
        data: Path,
        base_url: str,
        log: LogSink,
    ) -> None:
        """Put the parts together and take the store.

        Args:
            config: the configuration.
            agents: the agents to serve.
            beside: further ones, which do not count where the default agent is the only one.
            conformance: how conformance agents are served, if that was asked for.
            data: the data folder.
            base_url: the origin and base path that cards advertise.
            log: where log lines go.

        Raises:
            StoreError: the store cannot be used.
            ConfigError: a version is switched on that this build has not, or there are no keys to sign with.
        """
        self.lost = asyncio.Event()
        self.drain = config.server.drain
        self._drain = seconds(config.server.drain, "server.drain")
        versions = load_versions()
        if conformance is not None:
            conformance.check(versions)
        everyone = (*agents, *beside)
        self._verifier = verifier_of(config.auth.oidc) if config.auth.oidc is not None else None
        failures = Failures(config.limits.failed_auth, FAILURES_PER_SECOND)
        self.gate = gate = Gate(
            registry_of(config, os.environ),
            failures,
            verifier=self._verifier,
            allowance=config.limits.allowance,
        )

        self._signing = _key_keeper(config, data)
        self._hub = Hub()
        self._store = SqliteStore(
            database_path(config, data),
            lease=seconds(config.engine.lease, "engine.lease"),
            on_lost=self.lost.set,
            on_noticed=self._notice,
        )
        hosted = _hosted_agents(agents, config)

        def served() -> dict[str, ServedAgent]:
            closed, keys = not gate.is_open, self._signing.keys
            return {
                agent.id: _served(agent, config, versions, base_url, closed, keys, conformance)
                for agent in everyone
            }

        def served_hosted() -> dict[str, ServedAgent]:
            return _served_hosted(hosted, config, versions, base_url, self._signing.keys)

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
        audit_age = config.retention.audit_age()
        self._audit_purger = (
            AuditPurger(
                self._store, int(audit_age * 1000), every=seconds(config.engine.sweep, "engine.sweep")
            )
            if audit_age is not None
            else None
        )
        self._store.on_commit(self._committed)
        bounds = config.hosted.observers
        watchers = Watchers(
            ObserverBounds(everybody=bounds.everybody, tenant=bounds.tenant, principal=bounds.principal)
        )
        sending = None
        if any(agent.settings.capabilities.push_notifications for agent in everyone):
            from dragoman.pushing import push_parts  # noqa: PLC0415 - what it needs is for those who push alone

            sending = push_parts(config, data, os.environ, versions, self._store)
        self._webhooks = sending.webhooks if sending is not None else None
        hooks = sending.configurer if sending is not None else None
        gateway = Gateway(self._store, self._engine, self._hub, watchers=watchers, hooks=hooks)
        directory = Directory(served(), versions, _default(config, agents))
        metrics = Metrics(versions, self._gauges, self._counters)
        descriptions = Descriptions(
            gate, directory.agents, lambda agents: _described(agents, versions, base_url)
        )
        fixed = FixedEndpoints(directory, metrics, self._unready, descriptions, self._signing.public())
        newest = next(iter(versions))
        hosted_directory = Directory(served_hosted(), {newest: versions[newest]}, None)
        surface = HostedSurface(hosted_directory, gate, fixed) if config.hosted.enabled else None
        runs = {agent.id: agent for agent in (*directory.agents.values(), *hosted_directory.agents.values())}
        approvals = ApprovalSurface(
            Approvals(self._store, {agent_id: agent.settings for agent_id, agent in runs.items()}),
            Resumer(self._store),
            gate,
            runs,
            directory.newest.jsonrpc.codec,
        )
        self._trail = AuditTrail(self._store.add_to_audit)
        names = declared(config)
        self._admin = AdminSurface(
            gate,
            self._store,
            names,
            agents=lambda: shapes.agents(runs.values(), self._engine.counts()),
            cancel=self._cancel,
            apply=self._apply,
        )
        pipeline = Pipeline(
            gateway,
            directory,
            gate,
            fixed,
            metrics,
            log,
            surface,
            approvals,
            self._admin,
            self._trail,
            KnownHosts(_hosts(config.server)),
        )
        origins = config.server.cors_origins
        self.asgi = AsgiApp(
            CrossOrigin(pipeline, origins) if origins else pipeline,
            body_limit=config.limits.body,
            base_path=config.server.base_path,
            body_seconds=seconds(config.limits.body_time, "limits.body_time"),
            proxies=networks_of(config.server.trusted_proxies),
        )

        was_open = gate.is_open

        def changed() -> None:
            nonlocal was_open
            if was_open and not gate.is_open:
                # From here on callers must show who they are, and cards say what is enforced.
                was_open, directory.agents = False, served()
            self._hub.recheck()

        def signed_anew() -> None:
            directory.agents, hosted_directory.agents = served(), served_hosted()
            fixed.jwks = self._signing.public()

        self._signing.on_change(signed_anew)
        self._tasks: list[asyncio.Task[None]] = []
        self._keeper = Keeper(gate, names, self._store, changed)

    async def start(self) -> None:
        """Let in who may call, start the agents, take up what an earlier server left, and begin to purge."""
        if self._verifier is not None:
            self._verifier.start()
        await self._keeper.refresh()
        await self._engine.start()
        if self._webhooks is not None:
            await self._webhooks.start()
        works = [self._purger.run(), self._signing.run()]
        if self._audit_purger is not None:
            works.append(self._audit_purger.run())
        self._tasks = [asyncio.create_task(work) for work in works]

    def running(self) -> int:
        """Return how many handlers run."""
        return sum(running for running, _ in self._engine.counts().values())

    def hurry(self) -> None:
        """Wait for handlers no longer; they are entered again at the next start."""
        self._engine.hurry()

    async def stop(self) -> None:
        """Let what runs end, within the drain time, and let the store go. A lost store is nothing to wait for."""
        for task in self._tasks:
            task.cancel()
        await self._engine.stop_serving(0 if self.lost.is_set() else self._drain)
        if self._verifier is not None:
            await self._verifier.close()
        if self._webhooks is not None:
            await self._webhooks.close()
        self._keeper.close()
        await self._trail.close()
        await asyncio.to_thread(self._store.close)

    def _committed(self, commit: Commit) -> None:
        if commit.runs:
            self._engine.dispatch(commit.runs)
        for event in commit.events:
            if not isinstance(event.change, Received | Resumed | Used):
                self._engine.settle(event.task_id)
        self._hub.publish(commit.events)
        if self._webhooks is not None:
            self._webhooks.committed(commit)

    def _notice(self) -> None:
        self._hub.look_again()
        self._engine.look_again()
        self._keeper.look_again()
        if self._webhooks is not None:
            self._webhooks.look_again()

    async def _cancel(self, scope: Scope, task_id: str, entry: AuditEntry) -> None:
        await self._store.cancel(scope, task_id, audit=entry)
        self._engine.stop(task_id)

    async def _apply(self) -> None:
        try:
            await self._keeper.refresh()
        except Unavailable:
            # What was changed is kept; it is tried again until it can be read.
            self._keeper.look_again()

    async def _unready(self) -> Sequence[str]:
        try:
            await self._store.check()
        except Unavailable as error:
            return [error.message]
        return []

    def _counters(self) -> Iterable[tuple[str, str, dict[str, str], float]]:
        outcomes = self._webhooks.outcomes() if self._webhooks is not None else {}
        for outcome, number in outcomes.items():
            yield "dragoman_webhook_tries", "Push notifications by outcome", {"outcome": outcome}, number

    def _gauges(self) -> Iterable[tuple[str, str, dict[str, str], float]]:
        for agent, (running, waiting) in self._engine.counts().items():
            labels = {"agent": agent}
            yield "dragoman_runs_running", "Runs being executed", {**labels}, running
            yield "dragoman_runs_waiting", "Runs waiting for room", {**labels}, waiting
        yield "dragoman_observers", "Waits and streams that follow a task", {}, self._hub.count()
        yield "dragoman_streams", "Open streams", {}, self.asgi.open_streams()
        if self._webhooks is not None:
            words = "Push notification configurations that may have something to tell"
            yield "dragoman_webhooks_open", words, {}, self._webhooks.count()


def _key_keeper(config: Config, data: Path) -> KeyKeeper:
    file = signing_keys(config, data)
    try:
        if config.signing.key_file and not file.is_there:
            raise KeysError(f"{file.path} is not there; make it with `dragoman keys create`")
        return KeyKeeper(file, config.signing.alg)
    except KeysError as error:
        raise ConfigError(f"the keys that sign cards: {error}") from None


def _served(
    agent: Agent,
    config: Config,
    versions: Mapping[str, ProtocolSpec],
    base_url: str,
    closed: bool,
    keys: Sequence[SigningKey],
    conformance: Conformance | None,
) -> ServedAgent:
    chosen: Mapping[str, ProtocolSpec] = _versions(agent, config, versions)
    if conformance is not None:
        chosen = conformance.versions_of(agent, chosen)
    table = config.agents.get(agent.id, AgentTable())
    base = f"{base_url}/agents/{agent.id}"
    places, bearer = interfaces(base, chosen.values()), closed and not table.public
    card = agent.card(places, bearer=bearer)
    more = agent.card(places, bearer=bearer, extended=True)
    now = time.time()
    signers = Signers(keys, base + JWKS_PATH)
    forms = {version: pure(card, spec) for version, spec in chosen.items()}
    newest = next(iter(chosen))
    unnamed = UNNAMED if agent.settings.legacy_card and UNNAMED in chosen else newest
    cards = {version: signed(form, [version], signers, now) for version, form in forms.items()}
    return ServedAgent(
        id=agent.id,
        settings=agent.settings,
        versions=chosen,
        cards=cards,
        extended={
            version: signed(pure(more, spec), [version], signers, now) for version, spec in chosen.items()
        },
        unnamed=unnamed,
        unnamed_card=cards[newest]
        if unnamed == newest
        else signed(combined(forms[newest], forms[unnamed]), [newest, unnamed], signers, now),
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


def _served_hosted(
    hosted: Mapping[str, HostedAgent],
    config: Config,
    versions: Mapping[str, ProtocolSpec],
    base_url: str,
    keys: Sequence[SigningKey],
) -> dict[str, ServedAgent]:
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
        form = signed(pure(card, spec), [newest], Signers(keys, base_url + JWKS_PATH), now)
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
    return served


def _described(
    agents: Sequence[ServedAgent], versions: Mapping[str, ProtocolSpec], base_url: str
) -> dict[str, CardFile]:
    """Return the OpenAPI document of each version that has one and in which any of these agents is served."""
    now = time.time()
    documents = {}
    for version, spec in versions.items():
        served = tuple(agent.id for agent in agents if version in agent.versions)
        if spec.describe is not None and served:
            body = spec.describe(Deployment(base_url, served, __version__))
            documents[version] = CardFile(body, now)
    return documents


def _hosts(server: Server) -> list[str]:
    """Return the names that a server answers to, beside those of this machine."""
    public = urlsplit(server.public_url).hostname
    return [*server.hosts, *([public] if public else [])]


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
