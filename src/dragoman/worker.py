"""Building a worker: it executes runs of a store that servers share, and answers to nobody but health checks."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from dragoman.agents import Agent
from dragoman.bindings.asgi import AsgiApp
from dragoman.bindings.edge import Edge
from dragoman.bindings.health import Health, HealthSurface
from dragoman.callers import declared, gate_of, verifier_of
from dragoman.config import Config
from dragoman.delegating import calling_parts
from dragoman.executing import ServedEngine, placing_of, run_gauges, running, working_engine
from dragoman.gateway import Hub
from dragoman.gateway.elsewhere import Elsewhere, Spans
from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import Commit
from dragoman.identity import Keeper
from dragoman.model.errors import Unavailable
from dragoman.roster import hosted_agents
from dragoman.storage import SharedStore, place_of, postgres
from dragoman.stores.target import Target
from dragoman.tables import ConfigError, seconds
from dragoman.telemetry.metrics import Metrics


class Worker:
    """A worker made of its parts. Built on the loop that serves its health.

    Attributes:
        asgi: answers at `/healthz`, `/readyz` and `/metrics`.
        lost: never set: a store that is shared is nobody's to lose.
        drain: how long handlers may go on when the worker is to end, as configured.
    """

    def __init__(self, config: Config, agents: Sequence[Agent], *, data: Path) -> None:
        """Put the parts together and join the servers that share the store.

        Raises:
            ConfigError: the store is no database that can be shared.
            StoreError: it cannot be used.
        """
        place = place_of(config, data)
        if not isinstance(place, Target):
            raise ConfigError(
                f"the store is {place}, a file, which belongs to one server process: that one executes its runs. "
                'Set store.url = "postgresql://..." for workers'
            )
        self.lost = asyncio.Event()
        self.drain = config.server.drain
        self._drain = seconds(config.server.drain, "server.drain")
        self._store: SharedStore = postgres().PostgresStore(
            place,
            lease=seconds(config.engine.lease, "engine.lease"),
            placing=placing_of(config),
            on_noticed=self._renew,
            on_elsewhere=self._hear,
            on_missed=self._miss,
            on_orphaned=self._take_up,
            on_offered=self._take_up_offered,
        )
        verifier = verifier_of(config.auth.oidc) if config.auth.oidc is not None else None
        gate = gate_of(config, None, verifier)
        self._keeper = Keeper(gate, declared(config), self._store, lambda: None)
        self._calling = calling_parts(config, data, os.environ, self._store, gate)
        everyone: list[AgentRuntime] = [*agents, *hosted_agents(agents, config).values()]
        self._engine: ServedEngine = working_engine(
            config, everyone, self._store, self._store, self._calling.calls
        )
        self._store.on_commit(self._committed)
        self._elsewhere = Elsewhere(
            self._store, Hub(), runs_here=self._engine.knows, stopped=self._engine.look_again
        )
        health = HealthSurface(Health(Metrics((), lambda: run_gauges(self._engine)), self._unready))
        self.asgi = AsgiApp(Edge(health, body_limit=config.limits.body))

    async def start(self) -> None:
        """Start the agents, take up what others left, and begin to take runs.

        Raises:
            ConfigError: the store holds secrets that the vault has no key for.
        """
        await self._calling.start(hooks=False)
        await self._keeper.refresh()
        await self._engine.start()
        self._elsewhere.start()

    def running(self) -> int:
        """Return how many handlers run."""
        return running(self._engine)

    def leave(self) -> None:
        """Be ready no more."""
        self.asgi.edge.leave()

    def hurry(self) -> None:
        """Wait for handlers no longer; other workers enter them again."""
        self._engine.hurry()

    async def stop(self) -> None:
        """Let what runs end, within the drain time, and hand the rest back."""
        self._elsewhere.close()
        began = time.monotonic()
        await self._engine.stop_serving(self._drain)
        # After the handlers, which may delegate to their end.
        await self._calling.close(max(0.0, self._drain - (time.monotonic() - began)))
        self._keeper.close()
        await asyncio.to_thread(self._store.close)

    def _committed(self, commit: Commit) -> None:
        if commit.runs:
            self._engine.dispatch(commit.runs)
        if commit.offered:
            self._engine.leave(commit.offered)
        self._engine.settle(commit.events)

    def _hear(self, spans: Spans) -> None:
        self._elsewhere.hear(spans)

    def _miss(self) -> None:
        self._elsewhere.miss()
        self._engine.offered()
        self._renew()

    def _renew(self) -> None:
        self._keeper.look_again()

    def _take_up(self) -> None:
        self._engine.sweep_soon()

    def _take_up_offered(self) -> None:
        self._engine.offered()

    async def _unready(self) -> Sequence[str]:
        if self.asgi.edge.is_leaving:
            return ["The worker is stopping"]
        try:
            await self._store.check()
        except Unavailable as error:
            return [error.message]
        return await self._engine.unready()
