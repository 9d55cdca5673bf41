"""Agents for these tests: each shows one thing that the demo agents do not. Loaded by the server, not by the tests."""

import asyncio
from pathlib import Path

from dragoman.agents import Agent, Run
from dragoman.model import Extension

SECRET = "the-agents-own-secret"

hold = Agent(
    id="hold", description="Runs until it is cancelled, or until the file that the message names is there."
)
loud = Agent(id="loud", description="Fails with an exception whose text nobody outside may see.")
mute = Agent(id="mute", description="Promises a bare message and ends without one.", replies="message")
teller = Agent(id="teller", description="Answers with a bare message.", replies="message")
still = Agent(id="still", description="Cannot stream.", streaming=False)
seen = Agent(id="seen", description="Tells what it was given.", input_modes=["*/*"], strict_input_modes=False)
team = Agent(id="team", description="Works in many tasks of its own, one of which goes on after the end.")
asker = Agent(id="asker", description="Asks for more until it is told to stop.")
strict = Agent(
    id="strict",
    description="Wants two extensions to be named.",
    extensions=[
        Extension(uri="urn:test:first:v1", required=True),
        Extension(uri="urn:test:free:v1"),
        Extension(uri="urn:test:second:v1", required=True),
    ],
)
graph = Agent(
    id="graph",
    description="Asks once, gives one artifact, and writes metadata of its own.",
    extensions=["urn:dragoman:ext:flow-graph:v1", "urn:dragoman:ext:run-facts:v1"],
    push=True,
)


@hold.handler
async def wait(run: Run) -> str:
    """With `beacon PATH`: note in files beside PATH that the handler began, and that it was stopped."""
    word, _, path = run.text.partition(" ")
    await run.working()
    try:
        if word == "beacon":
            Path(f"{path}.began").touch()
        while not (word == "until" and Path(path).exists()):
            await asyncio.sleep(0.01 if word == "until" else 3600)
    finally:
        if word == "beacon":
            Path(f"{path}.stopped").touch()
    return "released"


@loud.handler
async def shout(run: Run) -> str:
    """Raise, with what an exception may hold: a path, SQL, a secret."""
    raise RuntimeError(SECRET, "SELECT state FROM task", __file__)


@mute.handler
async def say_nothing(run: Run) -> None:
    """Return nothing."""


@teller.handler
async def tell(run: Run) -> str:
    """Return the text."""
    return f"you said: {run.text}"


@still.handler
async def echo(run: Run) -> str:
    """Return the text."""
    return run.text


@seen.handler
async def describe(run: Run) -> dict[str, object]:
    """Return a data part about the request."""
    return {
        "text": run.text,
        "parts": [type(part).__name__ for part in run.parts],
        "values": [repr(part.value) for part in run.parts if hasattr(part, "value")],
        "metadata": repr(run.metadata),
        "references": list(run.reference_task_ids),
        "modes": list(run.accepted_output_modes),
        "principal": run.principal,
        "context": run.context_id,
        "history": [message.message_id for message in run.history],
    }


@team.handler
async def work_together(run: Run) -> None:
    """Twenty artifacts at once from tasks of its own, and one act that comes after the handler's end."""

    async def late() -> None:
        await asyncio.sleep(0.05)
        await run.working("too late")

    await asyncio.gather(*(run.artifact(f"piece {number}", name=f"piece {number}") for number in range(20)))
    run.straggler = asyncio.ensure_future(late())  # type: ignore[attr-defined]


@asker.handler
async def ask_for_more(run: Run) -> str:
    """Ask in a loop, and note each answer as an artifact of its own."""
    heard: list[str] = []
    while (answer := await run.ask(f"{len(heard)} so far; more?")).text != "stop":
        await run.artifact(f"heard {len(heard)}")
        heard.append(answer.text)
    return f"said {', '.join(heard)}"


@strict.handler
async def name_extensions(run: Run) -> list[str]:
    """Return the extensions that are active."""
    return list(run.extensions)


@graph.handler
async def visit(run: Run) -> None:
    """Work, ask, and give an artifact."""
    await run.working("at work", metadata={"own": 1})
    answer = await run.ask("Which way?")
    await run.artifact(answer.text)
