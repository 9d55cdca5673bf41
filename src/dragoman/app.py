"""Building a server: the only place where concrete classes meet."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from dragoman.admin import shapes
from dragoman.admin.surface import AdminSurface
from dragoman.agents import Agent
from dragoman.bindings.approvals import ApprovalSurface
from dragoman.bindings.asgi import AsgiApp
from dragoman.bindings.cors import CrossOrigin
from dragoman.bindings.describing import Descriptions
from dragoman.bindings.directory import Directory, ServedAgent
from dragoman.bindings.edge import Edge
from dragoman.bindings.fixed import FixedEndpoints
from dragoman.bindings.hosted import HostedSurface
from dragoman.bindings.hosts import KnownHosts
from dragoman.bindings.pipeline import Pipeline
from dragoman.callers import declared, gate_of, verifier_of, without_tenant
from dragoman.cards.keyfile import NAME as KEY_FILE
from dragoman.cards.keyfile import KeyFile
from dragoman.cards.keys import KeysError
from dragoman.cards.rotation import KeyKeeper
from dragoman.config import Config, Server, host_and_port
from dragoman.conformance import Conformance
from dragoman.delegating import calling_parts, delegation_surfaces
from dragoman.executing import placing_of, run_gauges, running, serving_engine
from dragoman.gateway import Gateway, Hub
from dragoman.gateway.approvals import Approvals, Resumer
from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.elsewhere import Elsewhere, Spans
from dragoman.gateway.ports import Commit
from dragoman.gateway.purge import AuditPurger, Purger
from dragoman.gateway.watching import ObserverBounds, Watchers
from dragoman.identity import Keeper, RateSharing
from dragoman.model import Scope, TaskState
from dragoman.model.errors import Unavailable
from dragoman.presenting import Presenter
from dragoman.protocol.forwarded import networks_of
from dragoman.protocol.hosts import is_loopback
from dragoman.protocol.registry import load_versions
from dragoman.roster import default_agent, hosted_agents
from dragoman.storage import ServedStore, SharedStore, kept_tenants, place_of, postgres
from dragoman.stores.sqlite import SqliteStore
from dragoman.stores.target import Target
from dragoman.tables import ConfigError, seconds
from dragoman.telemetry.audit import AuditTrail
from dragoman.telemetry.logs import LogSink
from dragoman.telemetry.metrics import Metrics

ANSWER_SECONDS = 2.0
"""How long the last replies of a server that stops may take."""


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
    if not named and not kept_tenants(place_of(config, data)):
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
        lacking = without_tenant(config, {*config.tenants, *kept_tenants(place_of(config, data))})
        if lacking:
            raise ConfigError("; ".join(lacking))


class Work(Protocol):
    """What goes on beside the requests."""

    async def run(self) -> None:
        """Go on until cancelled."""
        ...


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
        everyone = (*agents, *beside)
        self._verifier = verifier_of(config.auth.oidc) if config.auth.oidc is not None else None
        self.gate = gate = gate_of(config, os.environ, self._verifier)
        there = _keys_there(config, data)
        self._hub = Hub()
        self._store, shared = self._open_store(config, data)
        self._signing = there or _first_keys(config, data, self._store)
        hosted = hosted_agents(agents, config)
        presenter = Presenter(config=config, versions=versions, base_url=base_url, conformance=conformance)

        def served() -> dict[str, ServedAgent]:
            return presenter.served(everyone, self._signing.keys, closed=not gate.is_open)

        def served_hosted() -> dict[str, ServedAgent]:
            return presenter.hosted(hosted, self._signing.keys)

        self._calling = calling_parts(config, data, os.environ, self._store, gate)
        self._engine = serving_engine(
            config, [*everyone, *hosted.values()], self._store, shared, self._calling.calls
        )
        self._elsewhere = self._following(shared) if shared is not None else None
        self._store.on_commit(self._committed)
        sending = None
        if any(agent.settings.capabilities.push_notifications for agent in everyone):
            from dragoman.pushing import push_parts  # noqa: PLC0415 - what it needs is for those who push alone

            sending = push_parts(config, data, os.environ, versions, self._store, conformance)
        self._webhooks = sending.webhooks if sending is not None else None
        gateway = Gateway(
            self._store,
            self._engine,
            self._hub,
            heartbeat=seconds(config.server.heartbeat, "server.heartbeat"),
            watchers=_watchers(config, shared),
            hooks=sending.configurer if sending is not None else None,
        )
        directory = Directory(served(), versions, default_agent(config, agents))
        metrics = Metrics(versions, self._gauges, self._counters)
        fixed = FixedEndpoints(
            directory,
            metrics,
            self._unready,
            Descriptions(gate, directory.agents, presenter.described),
            self._signing.public(),
        )
        hosted_directory = Directory(served_hosted(), dict(islice(versions.items(), 1)), None)
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
            HostedSurface(hosted_directory, gate, fixed) if config.hosted.enabled else None,
            approvals,
            self._admin,
            self._trail,
            KnownHosts(_hosts(config.server)),
            delegation_surfaces(self._calling, gate, directory.newest),
        )
        self.asgi = AsgiApp(_edge(config, pipeline))

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

        _on_new_cards(everyone, self._signing, signed_anew)
        self._works: list[Work] = [
            self._signing,
            *_purgers(config, self._store),
            *_watching(self._elsewhere, self._webhooks),
            *([RateSharing(gate, shared.tell_spent)] if shared is not None else ()),
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._keeper = Keeper(gate, names, self._store, changed)

    def _open_store(self, config: Config, data: Path) -> tuple[ServedStore, SharedStore | None]:
        """Return the store, and once more what it is if other servers may write to it too."""
        lease = seconds(config.engine.lease, "engine.lease")
        place = place_of(config, data)
        if not isinstance(place, Target):
            return SqliteStore(
                place, lease=lease, placing=placing_of(config), on_lost=self.lost.set, on_noticed=self._notice
            ), None
        store: SharedStore = postgres().PostgresStore(
            place,
            lease=lease,
            placing=placing_of(config),
            on_noticed=self._renew,
            on_elsewhere=self._hear,
            on_hooked=self._rehook,
            on_missed=self._miss,
            on_orphaned=self._take_up,
            on_offered=self._take_up_offered,
            on_spent=self.gate.rates.hear,
        )
        return store, store

    def _following(self, shared: SharedStore) -> Elsewhere:
        return Elsewhere(shared, self._hub, runs_here=self._engine.knows, stopped=self._engine.look_again)

    async def start(self) -> None:
        """Let in who may call, start the agents, take up what an earlier server left, and begin to purge.

        Raises:
            ConfigError: the store holds secrets that the vault has no key for.
        """
        await self._calling.start(hooks=self._webhooks is not None)
        if self._verifier is not None:
            self._verifier.start()
        await self._keeper.refresh()
        await self._engine.start()
        if self._webhooks is not None:
            await self._webhooks.start()
        if self._elsewhere is not None:
            self._elsewhere.start()
        self._tasks = [asyncio.create_task(work.run()) for work in self._works]

    def running(self) -> int:
        """Return how many handlers run."""
        return running(self._engine)

    def leave(self) -> None:
        """Be ready no more, though every request is answered: others are to be called instead."""
        self.asgi.edge.leave()

    def hurry(self) -> None:
        """Wait for handlers no longer; they are entered again at the next start."""
        self._engine.hurry()
        self._hub.end_waits()

    async def stop(self) -> None:
        """Let what runs end and be answered, within the drain time, and let the store go.

        A lost store is nothing to wait for.
        """
        for task in self._tasks:
            task.cancel()
        ends_at = time.monotonic() + (0 if self.lost.is_set() else self._drain)

        def left() -> float:
            return max(0.0, ends_at - time.monotonic())

        await self._engine.stop_serving(left())
        # What is waited for may run elsewhere; whoever waits longer is told how it stands.
        if not await self.asgi.edge.answered(left()):
            self._hub.end_waits()
            await self.asgi.edge.answered(ANSWER_SECONDS)
        if self._elsewhere is not None:
            self._elsewhere.close()
        # After the handlers, which may delegate to their end.
        await self._calling.close(left())
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
        if commit.offered:
            self._engine.leave(commit.offered)
        self._engine.settle(commit.events)
        self._hub.publish(commit.events)
        if self._webhooks is not None:
            self._webhooks.committed(commit)

    def _notice(self) -> None:
        self._hub.look_again()
        self._engine.look_again()
        self._keeper.look_again()
        if self._webhooks is not None:
            self._webhooks.look_again()

    def _hear(self, spans: Spans) -> None:
        if self._elsewhere is not None:
            self._elsewhere.hear(spans)
        if self._webhooks is not None:
            self._webhooks.happened(spans)

    def _rehook(self, task_ids: Sequence[str]) -> None:
        if self._webhooks is not None:
            self._webhooks.changed(task_ids)

    def _miss(self) -> None:
        if self._elsewhere is not None:
            self._elsewhere.miss()
        self._engine.offered()
        if self._webhooks is not None:
            self._webhooks.look_again()
        self._renew()

    def _renew(self) -> None:
        self._keeper.look_again()

    def _take_up(self) -> None:
        self._engine.sweep_soon()
        if self._webhooks is not None:
            self._webhooks.look_again()

    def _take_up_offered(self) -> None:
        self._engine.offered()

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
        if self.asgi.edge.is_leaving:
            return ["The server is stopping"]
        try:
            await self._store.check()
        except Unavailable as error:
            return [error.message]
        return []

    def _counters(self) -> Iterable[tuple[str, str, dict[str, str], float]]:
        outcomes = self._webhooks.outcomes() if self._webhooks is not None else {}
        for outcome, number in outcomes.items():
            yield "dragoman_webhook_tries", "Push notifications by outcome", {"outcome": outcome}, number
        for outcome, number in self._calling.delegations.outcomes().items():
            yield (
                "dragoman_delegations",
                "Delegations to remote agents by outcome",
                {"outcome": outcome},
                number,
            )

    def _gauges(self) -> Iterable[tuple[str, str, dict[str, str], float]]:
        yield from run_gauges(self._engine)
        yield "dragoman_observers", "Waits and streams that follow a task", {}, self._hub.count()
        yield "dragoman_streams", "Open streams", {}, self.asgi.edge.open_streams()
        if self._webhooks is not None:
            words = "Push notification configurations that may have something to tell"
            yield "dragoman_webhooks_open", words, {}, self._webhooks.count()


def _edge(config: Config, pipeline: Pipeline) -> Edge:
    origins = config.server.cors_origins
    return Edge(
        CrossOrigin(pipeline, origins) if origins else pipeline,
        body_limit=config.limits.body,
        base_path=config.server.base_path,
        body_seconds=seconds(config.limits.body_time, "limits.body_time"),
        proxies=networks_of(config.server.trusted_proxies),
    )


def _watchers(config: Config, shared: SharedStore | None) -> Watchers:
    bounds = config.hosted.observers
    return Watchers(
        ObserverBounds(everybody=bounds.everybody, tenant=bounds.tenant, principal=bounds.principal),
        None if shared is None else shared.places,
    )


def _purgers(config: Config, store: ServedStore) -> Iterator[Work]:
    every, ages = seconds(config.engine.sweep, "engine.sweep"), config.retention.ages()
    yield Purger(
        store, {TaskState[state.upper()]: int(age * 1000) for state, age in ages.items()}, every=every
    )
    audit_age = config.retention.audit_age()
    if audit_age is not None:
        yield AuditPurger(store, int(audit_age * 1000), every=every)


def _watching(elsewhere: Elsewhere | None, webhooks: Work | None) -> Iterator[Work]:
    """What other servers that write to the store leave has to be looked for."""
    if elsewhere is not None and webhooks is not None:
        yield webhooks


def _keys_there(config: Config, data: Path) -> KeyKeeper | None:
    """Return the keys that are there, or must be: they have to be good before anything is opened."""
    file = signing_keys(config, data)
    return _key_keeper(file, config) if file.is_there or config.signing.key_file else None


def _first_keys(config: Config, data: Path, store: ServedStore) -> KeyKeeper:
    """Return new keys, made now that the data folder is ours."""
    try:
        return _key_keeper(signing_keys(config, data), config)
    except ConfigError:
        store.close()
        raise


def _key_keeper(file: KeyFile, config: Config) -> KeyKeeper:
    try:
        if config.signing.key_file and not file.is_there:
            raise KeysError(f"{file.path} is not there; make it with `dragoman keys create`")
        return KeyKeeper(file, config.signing.alg)
    except KeysError as error:
        raise ConfigError(f"the keys that sign cards: {error}") from None


def _on_new_cards(agents: Iterable[Agent], signing: KeyKeeper, publish: Callable[[], None]) -> None:
    """Have cards published when the keys that sign them change, or what an agent says of itself."""
    loop = asyncio.get_running_loop()

    def described_anew(apply: Callable[[], None]) -> None:
        apply()
        publish()

    signing.on_change(publish)
    for agent in agents:
        # They change on loops of their own, and are read on this one.
        agent.on_change(lambda apply: loop.call_soon_threadsafe(described_anew, apply))


def _hosts(server: Server) -> list[str]:
    """Return the names that a server answers to, beside those of this machine."""
    public = urlsplit(server.public_url).hostname
    return [*server.hosts, *([public] if public else [])]
