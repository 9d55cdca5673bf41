"""`python -m tests.durability.dying_writer FILE OPERATION TASK STATEMENT`: write to a store, and be killed on the way.

OPERATION is `park` or `answer`; the process kills itself (SIGKILL) before the statement of that number, counted from 1.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from dragoman.gateway.ports import JournalEntry, Lease
from dragoman.model import TaskState
from dragoman.model.payload import ABSENT
from dragoman.stores.sqlite import SqliteStore
from tests.contract.samples import acceptance, message, status


async def write(file: str, operation: str, task_id: str, at: int) -> None:
    """Do it, or die."""
    store = SqliteStore(Path(file), lease=15.0, on_lost=lambda: None)
    statements = 0

    def count(_: str) -> None:
        nonlocal statements
        statements += 1
        if statements == at:
            os.kill(os.getpid(), signal.SIGKILL)

    store._connection.set_trace_callback(count)
    if operation == "park":
        point = JournalEntry(ordinal=1, kind="ask", name="which", acts=0, result=ABSENT)
        await store.park(Lease(task_id, 1), status(TaskState.INPUT_REQUIRED, "Which one?"), point)
    else:
        await store.accept(acceptance(message("this", task_id=task_id, message_id="answer")))
    store._connection.set_trace_callback(None)
    store.close()


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
