"""An agent that says nothing for longer than the server leaves a stream without a sign of life."""

import asyncio

from dragoman import Agent, Run

quiet = Agent(id="quiet", name="Quiet", description="Says nothing for 17 seconds.", version="1.0.0")


@quiet.handler
async def wait(run: Run) -> str:
    """Work without a word."""
    await asyncio.sleep(17)
    return "Done at last."
