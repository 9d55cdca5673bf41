"""Handlers that stand still where the server is to crash."""

import asyncio

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.model import Task
from tests.contract.rooms import EngineRoom, eventually


class Crash:
    """The place in a handler where the server crashes, on its first `attempts` attempts."""

    def __init__(self, attempts: int = 1) -> None:
        self.attempts = attempts
        self.reached: list[int] = []

    async def here(self, run: Run) -> None:
        """Stand still until the crash; on later attempts go on at once."""
        if run.attempt <= self.attempts:
            self.reached.append(run.attempt)
            await asyncio.sleep(3600)

    def here_in_thread(self, run: BlockingRun) -> None:
        """The same for a plain handler."""
        if run.attempt <= self.attempts:
            self.reached.append(run.attempt)
            run.wait_cancelled(20)
            raise ConnectionAbortedError


async def survived(room: EngineRoom, agent: Agent, crash: Crash) -> Task:
    """Start a run, crash as often as it is to, and return its task when it is finished."""
    await room.start(agent)
    task_id = await room.begin(agent)
    for attempt in range(1, crash.attempts + 1):
        await eventually(lambda attempt=attempt: attempt in crash.reached, what=f"attempt {attempt}")
        await room.crash()
        await room.start(agent)
    return await room.ended(agent, task_id)
