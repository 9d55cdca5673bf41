"""The workflow of a run. It knows ids and numbers alone: what is said and done stays in the store.

Histories of runs that are under way are replayed against this code by whichever version of Dragoman comes next. A
change of what it does, in which order, needs `workflow.patched` (`tests/unit/engines/temporal/test_replay.py`).
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

RUN = "dragoman-run"
"""The type of the workflow."""

ENTER = "dragoman-enter"
"""The type of the activity: it is given a task's id, and returns at which epoch the run was parked, 0 if it ended."""

RESUME = "resume"
"""The signal that a parked run is to go on, with its epoch from then on."""

TASK = timedelta(seconds=3)
"""How long a step of the workflow's own, of a few milliseconds, may be with a worker that may have just died."""

ENDED = 0


@dataclass(frozen=True)
class Order:
    """What a workflow is given.

    Attributes:
        task_id: the task whose run it is.
        queue: where activities of its agent are taken from.
        lease: seconds without a heartbeat after which an activity is tried elsewhere.
        span: seconds that one entry and the waiting after it can take at most; the store has ended the run by then.
        resumed: the highest epoch that a signal has brought.
    """

    task_id: str
    queue: str
    lease: float
    span: float
    resumed: int = 0


@workflow.defn(name=RUN)
class RunWorkflow:
    """Has a run executed, and again each time it is resumed, until it has ended."""

    @workflow.init
    def __init__(self, order: Order) -> None:
        self._resumed = order.resumed

    @workflow.run
    async def run(self, order: Order) -> None:
        """Execute one entry; if the run was parked, wait, and go on as a new workflow of the same id."""
        parked: int = await workflow.execute_activity(
            ENTER,
            order.task_id,
            result_type=int,
            task_queue=order.queue,
            start_to_close_timeout=timedelta(seconds=order.span),
            heartbeat_timeout=timedelta(seconds=order.lease),
            # The store decides how often a handler is entered; this only finds somebody who does.
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=100),
                maximum_interval=timedelta(seconds=order.lease),
            ),
        )
        if parked == ENDED:
            return
        await workflow.wait_condition(lambda: self._resumed > parked)
        # A history of its own for each entry, and a time of its own.
        workflow.continue_as_new(
            replace(order, resumed=self._resumed),
            run_timeout=timedelta(seconds=order.span),
            task_timeout=TASK,
        )

    @workflow.signal(name=RESUME)
    def resume(self, epoch: int) -> None:
        """Go on, if the run was parked before this epoch; the same signal twice is one."""
        self._resumed = max(self._resumed, epoch)
