"""`python -m tests.unit.engines.temporal.record`: write down histories, as this version's workflow makes them.

The files in `histories/` stand for the workflows that are under way out there: they are added to, and never made anew.
`ended.json` is that of a run that ended; `parked.json` and `resumed.json` are those of one that asked and was answered.
"""

import asyncio
import re
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from dragoman.engines.temporal.workflow import ENTER, RESUME, RUN, TASK, Order, RunWorkflow
from tests.harness.temporal import TemporalServer

FOLDER = Path(__file__).parent / "histories"
QUEUE = "recorded"
PARKED_AT = 2


class Entries:
    """Stands for handlers: the first entry of `asks` is parked."""

    def __init__(self) -> None:
        self.entered: list[str] = []

    @activity.defn(name=ENTER)
    async def enter(self, task_id: str) -> int:
        """Return at which epoch the run was parked."""
        self.entered.append(task_id)
        return PARKED_AT if task_id == "asks" and self.entered.count(task_id) == 1 else 0


async def written(handle: WorkflowHandle[Any, Any]) -> str:
    """Return the history of a workflow, without the name of the machine that it ran on."""
    return re.sub(r'"\d+@[^"]*"', '"recorder"', (await handle.fetch_history()).to_json())


async def record(client: Client) -> None:
    """Run both, and write their histories."""
    entries = Entries()
    async with Worker(client, task_queue=QUEUE, workflows=[RunWorkflow], activities=[entries.enter]):
        for task_id in ("ends", "asks"):
            order = Order(task_id, QUEUE, lease=15.0, span=3660.0)
            handle = await client.start_workflow(
                RUN, order, id=f"dragoman-{task_id}", task_queue=QUEUE, task_timeout=TASK
            )
            if task_id == "ends":
                await handle.result()
                (FOLDER / "ended.json").write_text(await written(handle))
                continue
            while not entries.entered.count("asks"):
                await asyncio.sleep(0.01)
            await client.get_workflow_handle(handle.id).signal(RESUME, PARKED_AT + 1)
            while entries.entered.count("asks") < 2:
                await asyncio.sleep(0.01)
            await handle.result()
            parked = client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
            (FOLDER / "parked.json").write_text(await written(parked))
            resumed = client.get_workflow_handle(handle.id)
            (FOLDER / "resumed.json").write_text(await written(resumed))


def main() -> None:
    """Write the files."""
    server = TemporalServer()
    server.start()
    try:
        FOLDER.mkdir(exist_ok=True)
        server.ask(record)

    finally:
        server.remove()


if __name__ == "__main__":
    main()
