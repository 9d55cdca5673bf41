"""What a handler did in an attempt of a run, in a few words an act."""

from collections.abc import Callable
from typing import Any

from dragoman.agents import Agent
from dragoman.gateway.execute import execute
from dragoman.model import ArtifactChunk, Change, Reply, StatusChange
from dragoman.model.message import text_of
from tests.unit.gateway.attempt import Attempt, begun
from tests.unit.gateway.scripted import message, play


def brief(change: Change) -> str:
    """A change in a few words."""
    if isinstance(change, ArtifactChunk):
        words = ["more" if change.append else "artifact", text_of(change.artifact.parts)]
        return " ".join([*words, "last"] if change.last_chunk else words)
    if isinstance(change, StatusChange):
        return f"{change.state.name} {change.message.text}" if change.message else change.state.name
    return f"reply {change.message.text}" if isinstance(change, Reply) else type(change).__name__


async def run(agent: Agent, attempt: Attempt) -> list[str]:
    await execute(attempt.execution, agent.run)
    return [brief(change) for change in attempt.done]


def done(handler: Callable[..., Any], replies: str = "task", text: str = "hello") -> list[str]:
    """What a handler of a Run did in its one attempt."""
    agent = Agent(id="a", replies=replies)
    agent.handler(handler)
    found: list[str] = []

    async def scenario() -> None:
        found.extend(await run(agent, await begun(replies, message(text))))

    play(scenario())
    return found
