"""Agents for storms of crashes. They write into a ledger of their own (the file that $LEDGER names) each entry of a
handler and its end, by attempt and epoch, and each step that is performed.

A first word drives them: `echo`, `slow TICKS`, `stream CHUNKS`, `steps COUNT`, `ask COUNT`.
"""

import asyncio
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman import Agent, BlockingRun, Run

FILE = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
TICK = float(os.environ["TICK"])
BLOCKED = 0.05
"""Seconds that a handler blocks the loop of its agent."""


def note(run: Run | BlockingRun, what: str, token: str = "") -> None:
    """Write a line, in one write: nothing of it is lost when the process is killed."""
    line = {"what": what, "message": run.message.message_id, "task": run.task_id, "attempt": run.attempt}
    line |= {"epoch": run._ref.lease.epoch, "token": token, "agent": run._ref.scope.agent}
    line |= {"word": asked(run)[0], "pid": os.getpid(), "at": time.time()}
    os.write(FILE, (json.dumps(line) + "\n").encode())


@contextmanager
def noted(run: Run | BlockingRun) -> Iterator[None]:
    """Note an entry and its end, however it ends."""
    note(run, "in")
    try:
        yield
    finally:
        note(run, "out")


def perform(run: Run | BlockingRun, step: int) -> str:
    """Do something that must be done once, with a result that is never the same."""
    token = secrets.token_hex(4)
    note(run, f"step {step}", token)
    return token


def asked(run: Run | BlockingRun) -> tuple[str, int]:
    word, _, number = run.text.partition(" ")
    return word, int(number or 0)


storm = Agent(id="storm", max_runs=1000, max_attempts=1000)
either = Agent(id="storm-either", replies="either", max_runs=1000, max_attempts=1000)
talker = Agent(id="storm-talker", replies="message", max_runs=1000, max_attempts=1000)
once = Agent(id="storm-once", on_lost_worker="fail", max_runs=1000)
thrice = Agent(id="storm-thrice", max_runs=1000)
thread = Agent(id="storm-thread", max_runs=1000, max_attempts=1000)
blocker = Agent(id="storm-blocker", max_runs=1000, max_attempts=1000)


@storm.handler
@either.handler
@talker.handler
@once.handler
@thrice.handler
async def work(run: Run) -> str:
    word, number = asked(run)
    with noted(run):
        if word == "slow":
            for tick in range(number):
                if run._ref.scope.agent != "storm-talker":
                    await run.working(f"{tick}")
                await asyncio.sleep(TICK)
        elif word == "stream":
            text = await run.artifact("1 ", name="stream", last=False)
            for chunk in range(2, number + 1):
                await asyncio.sleep(TICK)
                await run.append(text, f"{chunk} ", last=chunk == number)
        elif word == "steps":
            report = await run.artifact("tokens: ", name="report", last=False)
            for step in range(number):
                token = await run.step(f"step {step}", lambda step=step: perform(run, step))
                await run.append(report, f"{token} ", last=step == number - 1)
                await asyncio.sleep(TICK)
        elif word == "ask":
            said = []
            for step in range(number):
                token = await run.step(f"step {step}", lambda step=step: perform(run, step))
                answer = await run.ask(f"question {step} {token}")
                said.append(f"{token}:{answer.text}")
            return " ".join(said)
        return f"{word} done"


@thread.handler
def work_in_thread(run: BlockingRun) -> Iterator[str]:
    word, number = asked(run)
    with noted(run):
        for step in range(number):
            if word in ("steps", "ask"):
                piece = run.step(f"step {step}", lambda step=step: perform(run, step))
            else:
                piece = f"{step + 1}"
            time.sleep(TICK)
            if word == "ask":
                piece += ":" + run.ask(f"question {step} {piece}").text
            yield f"{piece} "
        yield f"{word} done"


@blocker.handler
async def block(run: Run) -> str:
    with noted(run):
        time.sleep(BLOCKED)  # noqa: ASYNC251  # what an author should never do, and does
        token = await run.step("step 0", lambda: perform(run, 0))
        time.sleep(BLOCKED)  # noqa: ASYNC251
        return token
