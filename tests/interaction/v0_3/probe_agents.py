"""Agents for the 0.3 tests, beside those of all interaction tests. Loaded by the server, not by the tests."""

from dragoman.agents import Agent, Run
from dragoman.model import Artifact, DataPart, RawPart, TextPart, UrlPart
from dragoman.model.payload import pack

asks = Agent(id="asks", description="Asks a question, and echoes what it is answered.")
waits = Agent(id="waits", description="Waits for authorisation until it is told to go on.")
rich = Agent(id="rich", description="Answers with every kind of part, in every place where parts may be.")
loose = Agent(id="loose", description="Takes a message twice unless asked not to.", idempotency="requested")


@asks.handler
async def ask(run: Run) -> str:
    """Ask, and be told."""
    await run.working("thinking")
    return f"thank you for {(await run.ask('How many?')).text}"


@waits.handler
async def wait(run: Run) -> str:
    """Ask for authorisation, and go on."""
    await run.working("thinking")
    await run.require_auth("May I?")
    return "thank you"


PARTS = (
    TextPart(text="plain"),
    TextPart(text="noted", filename="a.md", media_type="text/markdown", metadata=pack({"kind": "x"})),
    RawPart(raw=bytes(range(256)), filename="all.bin", media_type="application/octet-stream"),
    RawPart(raw=b""),
    UrlPart(url="https://example.com/a?b=ü", filename="a", media_type="image/png"),
    DataPart.of({"z": 2**53 + 1, "a": {"kind": "file", "role": 1, "none": None}, "s": "\0"}),
    DataPart.of([1, [None, {"state": "x"}]], media_type="application/json", filename="list.json"),
    DataPart.of(None),
    DataPart.of({}),
)
"""Every kind of part, with all that it may carry."""


@rich.handler
async def show(run: Run) -> None:
    """Say the parts, and give them as an artifact with all members."""
    await run.working(list(PARTS), metadata={"state": "x", "final": False})
    artifact = Artifact(
        artifact_id="everything",
        parts=PARTS,
        name="everything",
        description="All kinds of parts.",
        metadata=pack({"urn:x": {"role": "user"}}),
        extensions=("urn:x",),
    )
    await run.artifact(artifact)


@loose.handler
async def echo(run: Run) -> str:
    """Return the text."""
    return run.text
