"""The conformance agents of A2A 1.0: what the upstream 1.0 kit wants of the agents that it tests.

The kit says by the beginning of a message's id what is to become of it. It sends unrelated messages under one id, and
asks of one agent what another must not declare, so there are three: `tck` declares all that there is, `tck_min`
nothing, and `tck_ext` requires an extension as well.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from dragoman.agents.agent import Agent
from dragoman.agents.run import Content, Run
from dragoman.model import DataPart, Extension, Message, RawPart, Skill, TextPart, UrlPart

REQUIRED = Extension(
    uri="urn:a2a:tck:required-extension",
    description="Does nothing. That it is required is what the kit looks for.",
    required=True,
)

DELAY = 2.0
"""Seconds that a task takes of which the kit wants to see that it does not take none."""

_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "version": "1.0.0",
        "replies": "either",
        "input_modes": ["text/plain", "application/json"],
        "output_modes": ["text/plain", "application/json"],
        # The kit sends parts of every kind, and different messages under one id.
        "strict_input_modes": False,
        "idempotency": "requested",
        # It reads the card without naming a version, and takes no member that is not of 1.0.
        "legacy_card": False,
        "skills": [
            Skill(
                id="scenario",
                name="Scenario",
                description="Does what the beginning of the message's id says: tck-artifact-text, tck-input-required …",
                tags=("conformance", "test"),
                examples=("Hello",),
            )
        ],
    }
)

_MORE = (
    Skill(id="more", name="More", description="Stands in the extended card alone.", tags=("conformance",)),
)

tck = Agent(
    id="tck",
    name="TCK",
    description="Declares all that there is. For the A2A 1.0 conformance kit.",
    push=True,
    extended_skills=_MORE,
    **_SETTINGS,
)
tck_min = Agent(
    id="tck-min",
    name="TCK, minimal",
    description="Declares nothing that may be left out. For the A2A 1.0 conformance kit.",
    streaming=False,
    **_SETTINGS,
)
tck_ext = Agent(
    id="tck-ext",
    name="TCK, extension",
    description="Requires an extension. For the A2A 1.0 conformance kit.",
    extensions=[REQUIRED],
    push=True,
    extended_skills=_MORE,
    **_SETTINGS,
)


@tck.handler
@tck_min.handler
@tck_ext.handler
async def perform(run: Run) -> None:
    """Do what the id of the message asks for, and after a question what that of its answer does."""
    message: Message | None = run.message
    while message is not None:
        message = await scenario(message.message_id)(run)


Scenario = Callable[[Run], Awaitable[Message | None]]
"""What is done with a message; it returns the message to go on with, if the task goes on."""


def scenario(message_id: str) -> Scenario:
    """Return what is done with a message of this id: of the longest beginning that it has."""
    known = max((prefix for prefix in SCENARIOS if message_id.startswith(prefix)), key=len, default=None)
    return _completes("Done.") if known is None else SCENARIOS[known]


def _completes(text: str | None = None, *, artifact: Content | None = None, after: float = 0.0) -> Scenario:
    """Complete the task, with a word and an artifact if there are; `after` seconds, and those WORKING."""

    async def complete(run: Run) -> None:
        if after:
            await run.working()
            await asyncio.sleep(after)
        if artifact is not None:
            await run.artifact(artifact)
        await run.complete(text)

    return complete


def _streams(*pieces: Content) -> Scenario:
    """Work, give the pieces of one artifact, complete."""

    async def stream(run: Run) -> None:
        await run.working()
        first, *further = pieces
        artifact_id = await run.artifact(first, last=not further)
        for number, piece in enumerate(further, 1):
            await run.append(artifact_id, piece, last=number == len(further))
        await run.complete()

    return stream


async def _ask(run: Run) -> Message:
    return await run.ask("What else?")


async def _require_auth(run: Run) -> Message:
    return await run.require_auth("Please authorize this.")


async def _reply(run: Run) -> None:
    await run.reply("Direct message response")


async def _reject(run: Run) -> None:
    await run.reject("rejected")


_FILE = RawPart(raw=b"Generated file content\n", filename="output.txt", media_type="text/plain")
_URL = UrlPart(url="https://example.com/output.txt", filename="output.txt", media_type="text/plain")
_DATA = DataPart.of({"key": "value", "count": 42})

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        "tck-complete-task": _completes("Hello from TCK"),
        "tck-input-required": _ask,
        "tck-auth-required": _require_auth,
        "tck-artifact-text": _completes(artifact=TextPart(text="Generated text content")),
        "tck-artifact-file": _completes(artifact=_FILE),
        "tck-artifact-file-url": _completes(artifact=_URL),
        "tck-artifact-data": _completes(artifact=_DATA),
        "tck-message-response": _reply,
        "tck-reject-task": _reject,
        "tck-delayed-complete": _completes("Done after delay", after=DELAY),
        "tck-stream-001": _streams("Stream hello from TCK"),
        "tck-stream-002": _completes(),
        "tck-stream-003": _streams("Stream task lifecycle"),
        "tck-stream-ordering-001": _streams("Ordered output"),
        "tck-stream-artifact-text": _streams("Streamed text content"),
        "tck-stream-artifact-file": _streams(_FILE),
        "tck-stream-artifact-chunked": _streams("chunk-1 ", "chunk-2"),
        "test-resubscribe-message-id": _completes(after=2 * DELAY),
    }
)
"""How a message's id begins → what is done with it."""
