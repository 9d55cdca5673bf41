"""Telling Temporal what the store has for it: runs to start, to resume and to end, and asking after the rest.

Whatever comes of a call, the store knows what is still to be told, and it is told again until that is certain. A start
that was sent twice is one: the workflow's id is the saved identity of the run.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from dragoman.engines.taking_up import TakingUp
from dragoman.engines.temporal.client import (
    RPC_SECONDS,
    UNREACHABLE,
    Connector,
    is_silent,
    is_unknown,
    rpc_timeout,
)
from dragoman.engines.temporal.workflow import RESUME, RUN, TASK, Order
from dragoman.gateway.dispatching import DispatchedRun, DispatchStore, Notice
from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import LostRun
from dragoman.model.errors import Unavailable

AT_ONCE = 50
"""Calls under way at a time."""

HOLD_MS = 10_000
"""For so long nobody else tells what this server is about to tell."""

MARGIN = 60.0
"""Seconds that Temporal gives a run beyond its deadline: the store ends it first."""

DOWN_SECONDS = 0.5
"""Seconds between two tries while nobody answers."""

LONGEST_WAIT_MS = 5_000
FORGOTTEN = "The engine does not know this run any more; its outcome is unknown and it was not started again."
"""What a task says whose workflow is gone, or was ended by somebody else."""

_LOG = logging.getLogger("dragoman.engine")


def workflow_id(task_id: str) -> str:
    """Return the id of the workflow of a run."""
    return f"dragoman-{task_id}"


def queue_of(task_queue: str, agent_id: str) -> str:
    """Return the queue that activities of an agent are taken from: those who serve it take them."""
    return f"{task_queue}.{agent_id}"


class Dispatcher:
    """Lives on the serving loop.

    Attributes:
        is_down: whether nobody answered the last call.
    """

    def __init__(
        self,
        connector: Connector,
        store: DispatchStore,
        agents: Mapping[str, AgentRuntime],
        taking: TakingUp,
        *,
        task_queue: str,
        lease: float,
        sweep: float,
    ) -> None:
        """Prepare to tell.

        Args:
            connector: makes a client.
            store: knows what is to be told.
            agents: the agents whose runs may be started here.
            taking: ends runs that are forgotten.
            task_queue: where workflows are taken from.
            lease: seconds without a heartbeat after which an activity is tried elsewhere.
            sweep: seconds between two looks for what others have left.
        """
        self.is_down = False
        self._connector = connector
        self._store = store
        self._agents = agents
        self._taking = taking
        self._task_queue = task_queue
        self._lease = lease
        # Whoever had it may still be taken for living for one lease; the next one gets another to be found.
        self._look_ms = int(lease * 2000)
        self._sweep = sweep
        self._client: Client | None = None
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look at once; called when something was left to be told."""
        self._wake.set()

    async def run(self) -> None:
        """Tell, again and again, until cancelled."""
        while True:
            self._wake.clear()
            more = False
            try:
                more = await self._round()
            except Unavailable as error:
                _LOG.warning("what Temporal is to be told cannot be read: %s", error.message)
            except Exception as error:  # the next round must come, whatever became of this one
                _LOG.warning("a round of telling Temporal failed: %s", type(error).__name__)
            if self.is_down:
                await asyncio.sleep(DOWN_SECONDS)
            elif not more:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._sweep):
                        await self._wake.wait()

    async def _round(self) -> bool:
        """Tell what is due; return whether there may be more."""
        # One call finds out whether somebody answers again: the others would all wait for nothing.
        limit = 1 if self.is_down else AT_ONCE
        due = await self._store.due(limit, HOLD_MS)
        if due:
            await asyncio.gather(*map(self._settle, due))
        return len(due) == limit

    async def _settle(self, one: DispatchedRun) -> None:
        if one.run is not None and one.notice is not Notice.STOP and one.run.scope.agent not in self._agents:
            # How it is to be executed is known to those who serve its agent.
            await self._store.not_told_engine(one, LONGEST_WAIT_MS)
            return
        try:
            async with asyncio.timeout(RPC_SECONDS * 1.5):
                wait = await self._tell(one)
        except (RPCError, *UNREACHABLE) as error:
            self._note_down(error)
            await self._store.not_told_engine(one, min(LONGEST_WAIT_MS, 200 * 2 ** min(one.tries, 10)))
            return
        if wait is not None:
            await self._store.told_engine(one, wait)

    async def _tell(self, one: DispatchedRun) -> int | None:
        """Tell what is to be told of a run; return in how many milliseconds to look again, `None` if it is settled.

        Raises:
            RPCError, UNREACHABLE: it is not certain that it has come.
        """
        client = self._client = self._client or await self._connector.connect(lazy=True)
        handle = client.get_workflow_handle(workflow_id(one.task_id))
        try:
            if one.run is None or one.notice is Notice.STOP:
                await handle.cancel(rpc_timeout=rpc_timeout())
            elif one.notice is Notice.START and not one.run.entered:
                await self._start(client, one.run)
            elif one.notice is Notice.RESUME:
                await handle.signal(RESUME, one.epoch, rpc_timeout=rpc_timeout())
            elif one.notice is Notice.NONE and not one.is_held and not _waits(one):
                found = await handle.describe(rpc_timeout=rpc_timeout())
                if found.status is not WorkflowExecutionStatus.RUNNING:
                    await self._forget(one.run)
            else:
                return self._look_ms
        except RPCError as error:
            if not is_unknown(error) or one.notice is Notice.START:
                raise
            if one.run is not None and one.notice is not Notice.STOP:
                # What nobody knows of may have been executed. It is never started again without a word.
                await self._forget(one.run)
                return None
        self._note_up()
        return self._look_ms

    async def _start(self, client: Client, run: LostRun) -> None:
        agent = self._agents[run.scope.agent]
        settings = agent.settings
        span = settings.deadline + MARGIN + (0 if settings.flat_deadline else settings.parked_deadline)
        order = Order(run.task_id, queue_of(self._task_queue, agent.home), self._lease, span)
        with suppress(WorkflowAlreadyStartedError):
            await client.start_workflow(
                RUN,
                order,
                id=workflow_id(run.task_id),
                task_queue=self._task_queue,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                run_timeout=timedelta(seconds=span),
                task_timeout=TASK,
                rpc_timeout=rpc_timeout(),
            )

    async def _forget(self, run: LostRun) -> None:
        _LOG.error("Temporal does not execute a run that it was told of", extra={"task_id": run.task_id})
        await self._taking.give_up(run, FORGOTTEN)

    def _note_down(self, error: BaseException) -> None:
        if is_silent(error) and not self.is_down:
            self.is_down = True
            _LOG.warning("Temporal does not answer; runs are accepted and wait (%s)", type(error).__name__)
        elif not is_silent(error):
            _LOG.error("Temporal refuses what it is told: %s", error)

    def _note_up(self) -> None:
        if self.is_down:
            self.is_down = False
            _LOG.info("Temporal answers again")


def _waits(one: DispatchedRun) -> bool:
    """Tell whether a run waits for its caller: nothing is to be executed."""
    return one.state is not None and (one.state.is_interrupted or one.state.is_terminal)
