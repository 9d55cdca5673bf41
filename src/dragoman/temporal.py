"""The parts of Temporal as the engine, by the configuration; imported only where that is the engine."""

import os
from collections.abc import Callable, Mapping, Sequence

from dragoman.engines.backlog import Backlog
from dragoman.engines.embedded import EmbeddedEngine
from dragoman.engines.offering import OfferingEngine
from dragoman.engines.settings import EngineTable
from dragoman.engines.taking_up import TakingUp
from dragoman.engines.temporal.client import Connector, CredentialMissingError
from dragoman.engines.temporal.dispatcher import Dispatcher
from dragoman.engines.temporal.engine import TemporalEngine
from dragoman.engines.temporal.entering import Entering
from dragoman.gateway.execute import AgentRuntime
from dragoman.storage import ServedStore
from dragoman.tables import ConfigError, seconds


def told_engine(
    table: EngineTable, agents: Sequence[AgentRuntime], store: ServedStore, handlers: OfferingEngine
) -> TemporalEngine:
    """Return an engine that tells Temporal of runs and executes none.

    Raises:
        ConfigError: what Temporal wants to be shown is missing.
    """
    by_id = {agent.id: agent for agent in agents}
    dispatcher = _dispatcher(table, _connector(table), store, by_id, TakingUp(by_id, store))
    return TemporalEngine(handlers, Backlog(agents, store), dispatcher, None)


def entering_engine(
    table: EngineTable,
    agents: Sequence[AgentRuntime],
    store: ServedStore,
    embedded: Callable[[Callable[[str], object]], EmbeddedEngine],
) -> TemporalEngine:
    """Return an engine that tells Temporal of runs, and executes runs for it.

    `embedded` makes what runs handlers; it is given what to call when a run is not there any more.

    Raises:
        ConfigError: what Temporal wants to be shown is missing.
    """
    by_id = {agent.id: agent for agent in agents}
    connector, taking = _connector(table), TakingUp(by_id, store)

    def left(task_id: str) -> None:
        entering.left(task_id)

    handlers = embedded(left)
    entering = Entering(
        connector,
        store,
        by_id,
        taking,
        handlers,
        task_queue=table.temporal.task_queue,
        lease=seconds(table.lease, "engine.lease"),
    )
    dispatcher = _dispatcher(table, connector, store, by_id, taking)
    return TemporalEngine(handlers, Backlog(agents, store), dispatcher, entering)


def _connector(table: EngineTable) -> Connector:
    try:
        return Connector(table.temporal, os.environ)
    except CredentialMissingError as error:
        raise ConfigError(str(error)) from error


def _dispatcher(
    table: EngineTable,
    connector: Connector,
    store: ServedStore,
    agents: Mapping[str, AgentRuntime],
    taking: TakingUp,
) -> Dispatcher:
    return Dispatcher(
        connector,
        store,
        agents,
        taking,
        task_queue=table.temporal.task_queue,
        lease=seconds(table.lease, "engine.lease"),
        sweep=seconds(table.sweep, "engine.sweep"),
    )
