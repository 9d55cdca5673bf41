"""An agent that works until the file that a message names is there, for a crowd of callers."""

import asyncio
from pathlib import Path

from dragoman.agents import Agent, Run

waiting = Agent(
    id="waiting", description="Works until the file that the message names is there.", max_runs=1000
)


@waiting.handler
async def wait(run: Run) -> str:
    await run.working("begun")
    while not await asyncio.to_thread(Path(run.text).exists):
        await asyncio.sleep(0.5)
    return "over"
