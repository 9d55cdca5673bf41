"""Agents that do what the demo agents do not: keep quiet, ask, want to be authorized."""

import asyncio

from dragoman import Agent, Run

quiet = Agent(id="quiet", name="Quiet", description="Says nothing for 17 seconds.", version="1.0.0")
asking = Agent(id="asking", name="Asking", description="Asks twice before it answers.", version="1.0.0")
guarded = Agent(id="guarded", name="Guarded", description="Wants to be authorized.", version="1.0.0")


@quiet.handler
async def wait(run: Run) -> str:
    """Work without a word, for longer than the server leaves a stream without a sign of life."""
    await asyncio.sleep(17)
    return "Done at last."


@asking.handler
async def book(run: Run) -> str:
    """Ask for what a journey needs."""
    place = (await run.ask("Where to?")).parts[0].text
    day = (await run.ask(f"When to {place}?")).parts[0].text
    return f"To {place} on {day}."


@guarded.handler
async def open_up(run: Run) -> str:
    """Ask for leave."""
    leave = (await run.require_auth("Who are you?")).parts[0].text
    return f"Come in, {leave}."
