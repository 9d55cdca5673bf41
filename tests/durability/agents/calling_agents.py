"""Agents that call remote agents."""

import asyncio
import os

from dragoman.agents import Agent, Run
from dragoman.agents.run import BlockingRun

caller = Agent(id="caller", name="Caller", description="Calls.", version="1")
plain = Agent(id="plain", name="Plain", description="Calls from a thread.", version="1")
fickle = Agent(id="fickle", name="Fickle", description="Says something else each time.", version="1")


@caller.handler
async def call(run: Run) -> str:
    """Call the agent `helper`, and then wait for as long as the text says before telling what came."""
    words = run.text.split(" ", 1)
    called = await run.call("helper", words[1])
    await run.working(f"attempt {run.attempt}")
    await asyncio.sleep(float(words[0]))
    return f"{called.status}|{called.text}|{called.remote_task_id}|{called.error}"


@plain.handler
def call_plainly(run: BlockingRun) -> str:
    """Call the agent `helper` twice, with the same words."""
    first, second = run.call("helper", run.text), run.call("helper", run.text)
    return f"{first.status}|{first.message.get('messageId')}|{second.message.get('messageId')}"


@fickle.handler
async def call_differently(run: Run) -> str:
    """Call with words that are others in each process."""
    return (await run.call("helper", f"{run.text} {os.getpid()}")).status
