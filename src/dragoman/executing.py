"""Who executes runs, by the configuration: this process, workers that share its store, or either by Temporal."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import uvloop
from msgspec import structs

from dragoman.config import Config
from dragoman.engines.embedded import EmbeddedEngine
from dragoman.engines.offering import OfferingEngine
from dragoman.engines.settings import HERE, TEMPORAL, WORKERS, check_engine
from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import Engine, Placing, RunRef
from dragoman.gateway.remotes import RemoteCalls
from dragoman.model import TaskEvent
from dragoman.storage import ServedStore, SharedStore
from dragoman.stores.target import is_postgres
from dragoman.tables import ConfigError, seconds


class ServedEngine(Engine, Protocol):
    """What a process needs of its engine. All methods are called on the serving loop."""

    async def start(self) -> None:
        """Begin to work; returns when what an earlier process left has been taken up."""
        ...

    async def stop_serving(self, drain: float) -> None:
        """Let handlers finish for up to `drain` seconds, then end them: others take over what is left."""
        ...

    def hurry(self) -> None:
        """End a drain that is under way."""
        ...

    def look_again(self) -> None:
        """Find out whether a run was stopped by another process; called when one has written to the store."""
        ...

    def sweep_soon(self) -> None:
        """Look for lost runs at once; called when another process has died or left."""
        ...

    def leave(self, runs: Sequence[RunRef]) -> None:
        """Know of runs that were accepted here and are left to others."""
        ...

    def offered(self) -> None:
        """Look for runs that others leave to whoever executes some; called when there may be one."""
        ...

    def knows(self, task_id: str) -> bool:
        """Tell whether a run is executed here, or will be."""
        ...

    def settle(self, events: Sequence[TaskEvent]) -> None:
        """Take in what was committed: runs that have acted need no showing."""
        ...

    async def unready(self) -> Sequence[str]:
        """Return why runs are not executed here though they should be."""
        ...

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return, for each agent, how many runs are running and how many wait."""
        ...


def running(engine: ServedEngine) -> int:
    """Return how many handlers run here."""
    return sum(here for here, _ in engine.counts().values())


def run_gauges(engine: ServedEngine) -> Iterator[tuple[str, str, dict[str, str], float]]:
    """Give what `/metrics` tells of runs: name, help, labels, value."""
    for agent, (here, waiting) in engine.counts().items():
        yield "dragoman_runs_running", "Runs being executed", {"agent": agent}, here
        yield "dragoman_runs_waiting", "Runs waiting for room", {"agent": agent}, waiting


def leaving_runs(config: Config) -> Config:
    """Return a configuration with `engine.runs = "workers"`.

    Raises:
        ConfigError: its store is not one that workers can share.
    """
    engine = structs.replace(config.engine, runs=WORKERS)
    try:
        check_engine(engine, shares_store=is_postgres(config.store.url))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return structs.replace(config, engine=engine)


def placing_of(config: Config) -> Placing:
    """Return who executes the runs of what a server accepts."""
    if config.engine.kind == TEMPORAL:
        return Placing.ENGINE
    return Placing.WORKERS if config.engine.runs == WORKERS else Placing.HERE


def serving_engine(
    config: Config,
    agents: Sequence[AgentRuntime],
    store: ServedStore,
    shared: SharedStore | None,
    calls: RemoteCalls,
) -> ServedEngine:
    """Return the engine of a server; `shared` is its store once more if others may write to it too.

    `calls` reaches remote agents for the handlers that are executed here.

    Raises:
        ConfigError: as `working_engine`.
    """
    if config.engine.runs == HERE or shared is None:
        return working_engine(config, agents, store, shared, calls)
    handlers = OfferingEngine(agents, store, shared, sweep=seconds(config.engine.sweep, "engine.sweep"))
    if config.engine.kind == TEMPORAL:
        told: ServedEngine = _temporal().told_engine(config.engine, agents, store, handlers)
        return told
    return handlers


def working_engine(
    config: Config,
    agents: Sequence[AgentRuntime],
    store: ServedStore,
    shared: SharedStore | None,
    calls: RemoteCalls,
) -> ServedEngine:
    """Return an engine that executes runs in this process.

    Raises:
        ConfigError: what Temporal needs is not installed, or what it wants to be shown is missing.
    """

    def embedded(on_left: Callable[[str], object]) -> EmbeddedEngine:
        return EmbeddedEngine(
            agents,
            store,
            max_runs=config.engine.max_runs,
            sweep=seconds(config.engine.sweep, "engine.sweep"),
            new_loop=uvloop.new_event_loop,
            calls=calls,
            offers=shared,
            on_left=on_left,
        )

    if config.engine.kind == TEMPORAL:
        entering: ServedEngine = _temporal().entering_engine(config.engine, agents, store, embedded)
        return entering
    return embedded(lambda task_id: None)


def _temporal() -> Any:
    """Return the room of what Temporal needs, which is imported for those alone who use it.

    Raises:
        ConfigError: its SDK is not installed.
    """
    try:
        from dragoman import temporal
    except ModuleNotFoundError as error:
        if error.name != "temporalio":
            raise
        raise ConfigError(
            'engine.kind = "temporal" needs the package temporalio; install it with `pip install '
            "'dragoman[temporal]'`"
        ) from error
    return temporal
