"""Agents that write into a ledger of their own (the file that $LEDGER names) what they do, beside what A2A shows.

A first word drives them: `quick`, `sleep SECONDS`, `slow SECONDS` (telling its progress ten times a second),
`stream CHUNKS`, `steps COUNT`, `whole SECONDS`; in the thread `wait`, `deaf` and `loud SECONDS`; `block` and
`burn SECONDS`; `ask COUNT`, where the answer `hold` lets the first attempt stand still. At the agent `crowded`
`gate NAME` (until that gate is open, for all who wait for it at the same moment), `beat NAME SECONDS` (until then,
telling its progress each SECONDS) and `flood PIECES` (of 128 KiB, 40 a second).
"""

import asyncio
import json
import os
import time
from collections.abc import Iterator

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.model.errors import Fenced

FILE = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def note(run: Run | BlockingRun, what: str) -> None:
    """Write a line, in one write: nothing of it is lost when the process is killed."""
    line = {"what": what, "message": run.message.message_id, "task": run.task_id, "attempt": run.attempt}
    os.write(FILE, (json.dumps(line | {"agent": run._ref.scope.agent, "pid": os.getpid()}) + "\n").encode())


def is_open(gate: str) -> bool:
    """Whether a gate is open: whether there is a file whose name ends so."""
    return os.path.exists(f"{os.environ['LEDGER']}.{gate}")


def asked(run: Run | BlockingRun) -> tuple[str, float]:
    word, number = [*run.text.split()[:2], "0"][:2]
    return word, float(number)


worker = Agent(id="worker", max_runs=500)
either = Agent(id="either", replies="either", max_runs=500)
talker = Agent(id="talker", replies="message", max_runs=500)
thread = Agent(id="thread", max_runs=20)
patient = Agent(id="patient", deadline=3 * 86_400)
hasty = Agent(id="hasty", parked_deadline=12 * 3600)
blocker = Agent(id="blocker")
stubborn = Agent(id="stubborn", max_runs=1)
stubborn_in_thread = Agent(id="stubborn-in-thread", max_runs=1)
crowded = Agent(id="crowded", max_runs=2000)
narrow = Agent(id="narrow", max_runs=1)
once = Agent(id="once", on_lost_worker="fail", max_runs=1)
twice = Agent(id="twice", max_attempts=2)
on_request = Agent(id="on-request", idempotency="requested")
asker = Agent(id="asker", max_runs=500)
asker_in_thread = Agent(id="asker-in-thread", max_runs=10)


@worker.handler
@either.handler
@narrow.handler
@once.handler
@twice.handler
@on_request.handler
@patient.handler
async def work(run: Run) -> str:
    note(run, "entered")
    word, number = asked(run)
    try:
        if word == "slow":
            await slowly(run, number)
        elif word == "stream":
            text = await run.artifact("1 ", name="stream", last=False)
            for chunk in range(2, int(number) + 1):
                await asyncio.sleep(0.05)
                await run.append(text, f"{chunk} ", last=chunk == number)
        elif word == "steps":
            for step in range(int(number)):
                await run.step(f"step {step}", lambda step=step: note(run, f"step {step}"))
                await asyncio.sleep(0.1)
        elif word == "whole":
            await run.artifact(f"made in attempt {run.attempt}", name="whole")
            await asyncio.sleep(number)
        elif word == "sleep":
            await asyncio.sleep(number)
    except (asyncio.CancelledError, Fenced):
        # Cancelled where it waits, or refused where it acts, whichever is first.
        note(run, "stopped")
        raise
    note(run, "left")
    return f"{word} done"


async def slowly(run: Run, seconds: float) -> None:
    for tenth in range(round(seconds * 10)):
        await run.working(f"{tenth}")
        await asyncio.sleep(0.1)


@talker.handler
async def talk(run: Run) -> str:
    note(run, "entered")
    await asyncio.sleep(asked(run)[1])
    note(run, "left")
    return f"You said {run.text}"


@thread.handler
def work_in_thread(run: BlockingRun) -> Iterator[str]:
    note(run, "entered")
    word, number = asked(run)
    yield "begun, "
    if word == "deaf":
        time.sleep(number)
    elif word == "loud":
        for tenth in range(round(number * 10)):
            run.working(f"{tenth}")
            time.sleep(0.1)
    elif run.wait_cancelled(number):
        note(run, "stopped")
        return
    note(run, "left")
    yield "done"


@stubborn.handler
async def be_stubborn(run: Run) -> str:
    note(run, "entered")
    while not is_open(run.text):
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            note(run, "cancelled")
    note(run, "left")
    return "at last"


@stubborn_in_thread.handler
def be_stubborn_in_thread(run: BlockingRun) -> Iterator[str]:
    note(run, "entered")
    yield "begun, "
    while not is_open(run.text):
        time.sleep(0.02)
    note(run, "left")
    yield "at last"


@blocker.handler
async def block(run: Run) -> str:
    note(run, "entered")
    word, number = asked(run)
    if word == "block":
        time.sleep(number)  # noqa: ASYNC251  # what an author should never do, and does
    else:
        until = time.monotonic() + number
        while time.monotonic() < until:
            sum(range(1000))
    note(run, "left")
    return "done"


@asker.handler
@hasty.handler
async def ask(run: Run) -> str:
    note(run, "entered")
    report = await run.artifact("report: ", name="report", last=False)
    for number in range(int(asked(run)[1])):
        await run.step(f"step {number}", lambda number=number: note(run, f"step {number}"))
        answer = await run.ask(f"question {number}")
        note(run, f"answer {number}")
        await run.append(report, f"{answer.text} ")
        if answer.text == "hold" and run.attempt == 1:
            await asyncio.sleep(3600)
    await run.append(report, "end", last=True)
    note(run, "left")
    return "done"


@asker_in_thread.handler
def ask_in_thread(run: BlockingRun) -> Iterator[str]:
    note(run, "entered")
    yield "report: "
    for number in range(int(asked(run)[1])):
        run.step(f"step {number}", lambda number=number: note(run, f"step {number}"))
        answer = run.ask(f"question {number}")
        note(run, f"answer {number}")
        yield f"{answer.text} "
        if answer.text == "hold" and run.attempt == 1:
            run.wait_cancelled(20)
    note(run, "left")
    yield "end"


gates: dict[str, asyncio.Task[None]] = {}


async def opened(name: str) -> None:
    """Wait for a gate; one look for all."""
    while not is_open(name):
        await asyncio.sleep(0.005)


@crowded.handler
async def be_crowded(run: Run) -> str:
    note(run, "entered")
    word, number, *more = run.text.split()
    if word in ("gate", "beat"):
        if number not in gates:
            gates[number] = asyncio.ensure_future(opened(number))
        while not gates[number].done():
            if word == "beat":
                await run.working("on")  # Without a word it would be no event.
            await asyncio.wait([gates[number]], timeout=float(more[0]) if more else None)
    elif word == "flood":
        flood = await run.artifact("begins", name="flood", last=False)
        for piece in range(int(number)):
            await run.append(flood, f"{piece:08}" * 16384)
            await asyncio.sleep(0.025)
    note(run, "left")
    return f"{word} done"
