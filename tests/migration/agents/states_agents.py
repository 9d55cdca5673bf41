"""Agents whose runs stay in any state that they are told to stay in."""

import asyncio

from dragoman import Agent, Run


async def act(run: Run) -> None:
    """Do what the first word says: complete, ask, authorize, fail, reject, sleep."""
    word, _, rest = run.text.partition(" ")
    match word:
        case "ask":
            answer = await run.ask("Which one?")
            await run.artifact(f"You chose {answer.text}.")
        case "authorize":
            answer = await run.require_auth("Sign in.")
            await run.artifact(f"Signed in by {answer.text}.")
        case "fail":
            await run.fail("It failed.")
        case "reject":
            await run.reject("It was rejected.")
        case "sleep":
            await run.working("It sleeps.")
            await asyncio.sleep(float(rest))
            await run.artifact("It slept.")
        case "reply":
            await run.reply("A bare message.")
        case _:
            first = await run.artifact("One ", last=False)
            await run.append(first, "two.", last=True)


worker = Agent(
    id="worker", name="Worker", description="Does one thing at a time.", version="1.0.0", max_runs=1
)
worker.handler(act)

free = Agent(id="free", name="Free", description="May reply.", version="1.0.0", replies="either")
free.handler(act)
