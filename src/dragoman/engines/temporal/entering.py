"""Executing runs for Temporal: a worker whose activities take runs in the store and wait for their handlers."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError
from temporalio.worker import Worker

from dragoman.engines.taking_up import TakingUp
from dragoman.engines.temporal.client import UNREACHABLE, Connector
from dragoman.engines.temporal.dispatcher import queue_of
from dragoman.engines.temporal.workflow import ENDED, ENTER, RunWorkflow
from dragoman.gateway.dispatching import DispatchStore
from dragoman.gateway.execute import AgentRuntime
from dragoman.model.errors import Unavailable

THROTTLE = timedelta(milliseconds=200)
"""How late a heartbeat may be sent: a cancellation comes back with it."""

STICKY = timedelta(seconds=1)
"""How long a workflow waits for the worker that has it in memory before any other may have it."""

PATIENCE = timedelta(hours=24)
"""How long a worker that takes no more waits for its runs: `hand_back` ends that sooner."""

CHECK_SECONDS = 2.0
"""How long a check waits for an answer: whoever asks whether a worker is ready does not wait long."""

RETRY_SECONDS = 1.0
"""Seconds between two tries to reach Temporal, and to take a run that somebody else still holds."""

_LOG = logging.getLogger("dragoman.engine")


class Handlers(Protocol):
    """What runs handlers here."""

    def knows(self, task_id: str) -> bool:
        """Tell whether a run is executed here, or will be."""
        ...

    def look_again(self) -> None:
        """Find out whether runs were stopped elsewhere."""
        ...


class Entering:
    """Lives on the serving loop."""

    def __init__(
        self,
        connector: Connector,
        store: DispatchStore,
        agents: Mapping[str, AgentRuntime],
        taking: TakingUp,
        handlers: Handlers,
        *,
        task_queue: str,
        lease: float,
    ) -> None:
        """Prepare to execute.

        Args:
            connector: makes a client.
            store: where runs are taken.
            agents: the agents whose runs are executed here.
            taking: takes runs, or ends those that must not be entered again.
            handlers: executes what was taken.
            task_queue: where workflows are taken from.
            lease: seconds without a heartbeat after which Temporal has an activity tried elsewhere.
        """
        self._client: Client | None = None
        self._connector = connector
        self._store = store
        self._agents = agents
        self._taking = taking
        self._handlers = handlers
        self._task_queue = task_queue
        self._beat = min(lease / 5, 1.0)
        self._left: dict[str, asyncio.Event] = {}
        self._closing = asyncio.Event()
        self._is_over = False
        self._serving = asyncio.get_running_loop()

    def left(self, task_id: str) -> None:
        """Know that a run is not here any more; may be called on any thread."""
        with suppress(RuntimeError):
            self._serving.call_soon_threadsafe(self._note_left, task_id)

    async def is_reachable(self) -> bool:
        """Tell whether Temporal answers, so that runs can come from it."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                return self._client is not None and await self._client.service_client.check_health()
        except (RPCError, *UNREACHABLE):
            return False

    def close(self) -> None:
        """Take no more runs; those that are here are waited for no longer than they are here."""
        self._closing.set()

    def hand_back(self) -> None:
        """Wait for no run any more: Temporal finds somebody else for those that are left."""
        self._is_over = True
        for event in self._left.values():
            event.set()

    async def run(self) -> None:
        """Work until closed; what Temporal or the network does is only waited for."""
        while not self._closing.is_set():
            try:
                await self._work()
            except (RPCError, *UNREACHABLE) as error:
                _LOG.warning("no runs come from Temporal: %s", type(error).__name__)
            self._client = None
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await self._closing.wait()

    async def _work(self) -> None:
        client = await self._connector.connect(lazy=False)
        workers = [
            Worker(
                client,
                task_queue=self._task_queue,
                workflows=[RunWorkflow],
                sticky_queue_schedule_to_start_timeout=STICKY,
            ),
            *(self._activities(client, agent) for agent in self._agents.values() if agent.home == agent.id),
        ]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        closing = asyncio.create_task(self._closing.wait())
        self._client = client
        try:
            await asyncio.wait([closing, *running], return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
            # All at once: none of them takes anything while another one waits for the end of its runs.
            await asyncio.gather(*(worker.shutdown() for worker in workers if worker.is_running))
        await asyncio.gather(*running)

    def _activities(self, client: Client, agent: AgentRuntime) -> Worker:
        return Worker(
            client,
            task_queue=queue_of(self._task_queue, agent.id),
            activities=[self.enter],
            max_concurrent_activities=agent.settings.max_runs,
            max_heartbeat_throttle_interval=THROTTLE,
            default_heartbeat_throttle_interval=THROTTLE,
            graceful_shutdown_timeout=PATIENCE,
        )

    @activity.defn(name=ENTER)
    async def enter(self, task_id: str) -> int:
        """Have a run executed here until it ends or is parked; return the epoch at which it was parked."""
        try:
            while True:
                await self._until_left(task_id)
                parked = await self._take(task_id)
                if parked is not None:
                    return parked
        except Unavailable:
            # Nothing of the store's own words goes into a history.
            raise ApplicationError("the store cannot be used just now") from None
        except asyncio.CancelledError:
            self._handlers.look_again()
            raise

    async def _until_left(self, task_id: str) -> None:
        """Wait for the end of a run that is here, and tell Temporal meanwhile that somebody is there."""
        left = self._left.setdefault(task_id, asyncio.Event())
        try:
            while self._handlers.knows(task_id) and not self._is_over:
                activity.heartbeat()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._beat):
                        await left.wait()
        finally:
            if self._left.get(task_id) is left:
                del self._left[task_id]

    async def _take(self, task_id: str) -> int | None:
        """Take a run, or tell why there is nothing to take: it has ended, or is parked since an epoch."""
        found = await self._store.standing(task_id)
        if found is None or found.run is None or found.state is None or found.state.is_terminal:
            return ENDED
        if found.state.is_interrupted:
            return found.run.epoch
        if found.is_held or self._closing.is_set():
            raise ApplicationError(
                "this server cannot have the run just now",
                next_retry_delay=timedelta(seconds=RETRY_SECONDS),
                category=ApplicationErrorCategory.BENIGN,
            )
        await self._taking.take_up(found.run, is_new=not found.run.entered)
        return None

    def _note_left(self, task_id: str) -> None:
        if (event := self._left.get(task_id)) is not None:
            event.set()
