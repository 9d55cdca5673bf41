"""Every kind of handler: async or plain, function or generator, and what becomes of what it gives back."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from dragoman.agents import Agent, BlockingRun, Run
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    DataPart,
    Message,
    Reply,
    Role,
    TaskState,
    TextPart,
)
from tests.unit.agents.acted import done, run
from tests.unit.gateway.attempt import begun
from tests.unit.gateway.scripted import play

WORKING, COMPLETED = TaskState.WORKING, TaskState.COMPLETED


async def returned(run: Run) -> str:
    return run.text.upper()


def returned_plainly(run: BlockingRun) -> str:
    return run.text.upper()


async def yielded(run: Run) -> AsyncIterator[str]:
    for letter in run.text[:3]:
        yield letter.upper()


def yielded_plainly(run: BlockingRun) -> Iterator[str]:
    yield from run.text[:3].upper()


@pytest.mark.parametrize("handler", [returned, returned_plainly])
def test_what_a_handler_returns_is_an_artifact(handler: Any) -> None:
    assert done(handler) == ["artifact HELLO last", "COMPLETED"]


@pytest.mark.parametrize("handler", [yielded, yielded_plainly])
def test_what_a_handler_yields_is_one_artifact_in_chunks(handler: Any) -> None:
    assert done(handler) == ["WORKING", "artifact H", "more E", "more L last", "COMPLETED"]


def test_bare_replies_take_every_form() -> None:
    assert done(returned, "message") == ["reply HELLO"]
    assert done(lambda run: run.reply("x"), "message") == ["reply x"]
    assert done(lambda run: run.reply("x"), "either") == ["reply x"]


@pytest.mark.parametrize("replies", ["message", "either"])
def test_a_bare_message_that_a_handler_made_itself_says_its_context(replies: str) -> None:
    made = Message(message_id="r", role=Role.AGENT, parts=(TextPart(text="x"),))
    contexts: list[str] = []

    async def scenario() -> None:
        for handler in (lambda run: run.reply(made), lambda run: made):
            agent = Agent(id="a", replies=replies)
            agent.handler(handler)
            attempt = await begun(replies)
            await run(agent, attempt)
            (reply,) = attempt.done
            assert isinstance(reply, Reply)
            contexts.append(reply.message.context_id)

    play(scenario())
    assert contexts == ["c", "c"]


def test_an_artifact_that_is_yielded_whole_stands_by_itself() -> None:
    def mixed(run: BlockingRun) -> Iterator[Any]:
        yield "a"
        yield Artifact(artifact_id="whole", parts=(TextPart(text="whole"),))
        yield "b"

    assert done(mixed) == ["WORKING", "artifact a", "artifact whole last", "more b last", "COMPLETED"]


@pytest.mark.parametrize("wrong", [lambda run: object(), lambda run: "\ud800", lambda run: {"a": {1}}])
def test_a_handler_that_gives_no_content_fails(wrong: Any) -> None:
    assert done(wrong)[-1] == "FAILED The agent failed while it handled the message."


def test_a_function_of_text_is_given_the_text() -> None:
    async def scenario() -> None:
        agent = Agent.from_function(lambda text: {"length": len(text)}, id="length")
        attempt = await begun()
        await run(agent, attempt)
        chunk = attempt.done[-2]
        assert isinstance(chunk, ArtifactChunk)
        assert chunk.artifact.parts == (DataPart.of({"length": 5}),)

    play(scenario())
