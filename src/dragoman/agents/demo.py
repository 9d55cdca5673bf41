"""The demo agent: an echo whose first word drives it, so that every way of answering can be tried at once."""

import asyncio

from dragoman.agents.agent import Agent
from dragoman.agents.run import Run
from dragoman.model import DataPart, RawPart, Skill

demo = Agent(
    id="demo",
    name="Demo",
    description="Echoes what it is sent. A first word makes it do something else: see its skills.",
    version="1.0.0",
    replies="either",
    input_modes=["*/*"],
    output_modes=["text/plain", "application/json", "application/octet-stream"],
    strict_input_modes=False,
    skills=[
        Skill(
            id="echo",
            name="Echo",
            description="Sends back every part of the message as one artifact.",
            tags=("echo", "test"),
            examples=("Hello",),
        ),
        Skill(
            id="words",
            name="Driving words",
            description=(
                "slow [seconds], stream [chunks], big [KiB], ask [question], auth [text], approve [action], fail, "
                "reject, crash, message, file, data: each makes the agent answer in that way. After ask and auth it "
                "waits for your next message to the task, after approve for a decision over the approval API."
            ),
            tags=("demo", "test"),
            examples=("slow 3", "stream 5", "big 64", "ask", "approve", "message hello", "file", "data"),
        ),
    ],
)

PROGRESS_SECONDS = 0.2


@demo.handler
async def answer(run: Run) -> None:
    """Do what the first word says, or echo."""
    word, _, rest = run.text.strip().partition(" ")
    acts = {
        "slow": _slow,
        "stream": _stream,
        "big": _big,
        "ask": _ask,
        "auth": _auth,
        "approve": _approve,
        "fail": _fail,
        "reject": _reject,
        "crash": _crash,
        "message": _message,
        "file": _file,
        "data": _data,
    }
    await acts.get(word.lower(), _echo)(run, rest.strip())


async def _echo(run: Run, rest: str) -> None:
    await run.artifact(list(run.parts), name="echo")


async def _slow(run: Run, rest: str) -> None:
    seconds = min(_number(rest, 2.0), 3600.0)
    steps = max(1, round(seconds / PROGRESS_SECONDS))
    for step in range(steps):
        await run.working(f"{step * 100 // steps} % done")
        await asyncio.sleep(seconds / steps)
    await run.artifact(f"Took {seconds:g} s.", name="slow")


async def _stream(run: Run, rest: str) -> None:
    chunks = min(max(1, int(_number(rest, 5))), 100_000)
    artifact_id = await run.artifact("chunk 1 ", name="stream", last=chunks == 1)
    for number in range(2, chunks + 1):
        await run.append(artifact_id, f"chunk {number} ", last=number == chunks)


async def _big(run: Run, rest: str) -> None:
    kib = min(max(1, int(_number(rest, 64))), 64 * 1024)
    await run.artifact(("0123456789abcdef" * 64) * kib, name="big")


async def _ask(run: Run, rest: str) -> None:
    answer = await run.ask(rest or "What shall I echo?")
    await run.artifact(list(answer.parts), name="answer")


async def _auth(run: Run, rest: str) -> None:
    answer = await run.require_auth(rest or "Sign in, then send any message.")
    await run.artifact(f"Authorized: {answer.text}", name="auth")


async def _approve(run: Run, rest: str) -> None:
    action = rest or "Do what was asked"
    decision = await run.approve(action, {"asked": run.text})
    said = f": {decision.note}" if decision.note else "."
    verdict = "approved" if decision.approved else "denied"
    await run.artifact(f"{action} was {verdict} by {decision.by}{said}", name="approve")


async def _fail(run: Run, rest: str) -> None:
    await run.fail(rest or "Failed, as asked.")


async def _reject(run: Run, rest: str) -> None:
    await run.reject(rest or "Rejected, as asked.")


async def _crash(run: Run, rest: str) -> None:
    raise RuntimeError("crashed, as asked")


async def _message(run: Run, rest: str) -> None:
    await run.reply(rest or "A bare message, no task.")


async def _file(run: Run, rest: str) -> None:
    content = (rest or "A file made by the demo agent.\n").encode()
    await run.artifact(RawPart(raw=content, filename="demo.txt", media_type="text/plain"), name="file")


async def _data(run: Run, rest: str) -> None:
    value = {"text": rest, "words": len(rest.split()), "attempt": run.attempt}
    await run.artifact(DataPart.of(value, media_type="application/json"), name="data")


def _number(text: str, otherwise: float) -> float:
    """Return the first word of `text` as a number; `otherwise` if it is none that makes sense here."""
    try:
        number = float(text.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return otherwise
    return number if 0 <= number < 1e9 else otherwise
