"""The agent that is measured: it answers with the caller's text.

The text `hold` is kept working for an hour, for the scenarios that need a task
with idle streams. The peers' agents in `bench/peers` do the same.
"""

import asyncio

from dragoman import Agent, Run, Skill

agent = Agent(
    id="echo",
    name="Echo",
    description="Echoes its text.",
    version="1.0",
    skills=[Skill(id="echo", name="Echo", description="Echoes its text.", tags=["echo"])],
    max_waiting=100_000,  # `idle-streams --own-tasks` holds a task for each of its streams
)


@agent.handler
async def echo(run: Run) -> str:
    """Answer one message."""
    if run.text == "hold":
        await asyncio.sleep(3600)
    return run.text
