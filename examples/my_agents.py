"""The agent of docs/tutorial/first-agent.md, as it is at the tutorial's end: it greets, word by word.

Serve it with `dragoman serve my_agents.py`.
"""

import asyncio
from collections.abc import AsyncIterator

from dragoman import Agent, Run

agent = Agent(id="greeter", name="Greeter", description="Greets whoever writes to it.")


@agent.handler
async def greet(run: Run) -> AsyncIterator[str]:
    """Answer one message."""
    for word in f"Hello, {run.text}, and welcome!".split():
        yield word + " "
        await asyncio.sleep(0.2)
