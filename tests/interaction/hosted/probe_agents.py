"""An agent for these tests: a first word drives it, as the demo agent. Loaded by the server, not by the tests."""

import asyncio
from pathlib import Path

from dragoman.agents import Agent, Run
from dragoman.model import DataPart, RawPart, TextPart, UrlPart

probe = Agent(id="probe", description="Does what its first word says.")
bare = Agent(id="bare", description="Answers with bare messages where it can.", replies="message")
mixed = Agent(id="mixed", description="Answers as it turns out.", replies="either")

OTHERS = {
    "file": RawPart(raw="AAAA", media_type="image/png", filename="a.png"),
    "url": UrlPart(url="https://example.org/file"),
    "data": DataPart.of({"a": 1}),
}


@probe.handler
async def act(run: Run) -> object:
    """Do it."""
    word, _, rest = run.text.partition(" ")
    return await globals()[f"_{word}"](run, rest)


@bare.handler
async def tell(run: Run) -> None:
    """Answer with a message."""
    await run.reply(f"told {run.text}")


@mixed.handler
async def tell_or_work(run: Run) -> str:
    """Answer with the text."""
    return f"told {run.text}"


async def _hold(run: Run, path: str) -> str:
    """Work until a file is there; without one until it is cancelled."""
    await run.working("holding")
    while not (path and Path(path).exists()):
        await asyncio.sleep(0.01 if path else 3600)
    return "released"


async def _said(run: Run, rest: str) -> str:
    """Say something of a length as progress, a number of times, then end."""
    count, length = map(int, rest.split())
    for _ in range(count):
        await run.working("x" * length)
    return "said"


async def _loud(run: Run, count: str) -> str:
    """Say so many characters as progress, and go on until the run is cancelled."""
    await run.working("x" * int(count))
    await asyncio.sleep(3600)
    return "said"


async def _pieces(run: Run, path: str) -> None:
    """Give text in pieces, two artifacts of it; wait for a file in between."""
    first = await run.artifact("one ", last=False)
    await run.append(first, "two ")
    await run.working("halfway")
    while path and not Path(path).exists():
        await asyncio.sleep(0.01)
    await run.append(first, "three", last=True)
    await run.artifact("four")
    await run.complete("five")


async def _escapes(run: Run, count: str) -> str:
    """Give characters that are six bytes each as JSON."""
    return "\x01" * int(count)


async def _text(run: Run, count: str) -> str:
    """Give so many characters."""
    return "x" * int(count)


async def _other(run: Run, kind: str) -> object:
    """Give something that is no text beside something that is."""
    return [TextPart(text="and"), OTHERS[kind]]


async def _shown(run: Run, kind: str) -> str:
    """Show something that is no text as progress."""
    await run.working(OTHERS[kind])
    return "shown"


async def _asked(run: Run, kind: str) -> str:
    """Ask with something that is no text."""
    return (await run.ask(OTHERS[kind])).text


async def _nothing(run: Run, rest: str) -> None:
    """Give nothing."""


async def _steps(run: Run, rest: str) -> str:
    """Give a piece in a step, then ask, then give another one."""
    await run.step("draw", lambda: run.artifact("drawn"))
    answer = await run.ask("Go on?")
    return f"then {answer.text}"


async def _twice(run: Run, rest: str) -> str:
    """Ask twice."""
    return f"{(await run.ask('First?')).text} and {(await run.ask('Second?')).text}"


async def _patient(run: Run, path: str) -> str:
    """Ask, and go on until a file is there."""
    await run.ask("Now?")
    return await _hold(run, path)


async def _uses(run: Run, rest: str) -> str:
    """Use sources, given as a list with commas, and give what comes from them."""
    for source in rest.split(","):
        await run.use_source(source)
    return f"from {rest}"


async def _reads(run: Run, rest: str) -> str:
    """Use a source, say so, and go on until a file is there."""
    source, _, path = rest.partition(" ")
    await run.use_source(source)
    await run.working(f"reading {source}")
    return await _hold(run, path)


async def _approved(run: Run, rest: str) -> str:
    """Use a source if one is named, and have something approved."""
    if rest:
        await run.use_source(rest)
    decision = await run.approve("Delete the backup", {"file": "backup.tar", "of": rest})
    return f"{'approved' if decision.approved else 'denied'} by {decision.by}: {decision.note}"


async def _large(run: Run, rest: str) -> str:
    """Have something approved that takes many words to show."""
    return str((await run.approve("Read this", {"text": "x" * int(rest)})).approved)
