"""The conformance agent of A2A 0.3: what the upstream 0.3 kit wants of the agent that it tests.

The kit sends one message and then cancels the task, writes to it again or subscribes to it, so that the task must be
open after any message, whatever that holds.
"""

from dragoman.agents.agent import Agent
from dragoman.agents.run import Run
from dragoman.model import Message, Skill

tck_03 = Agent(
    id="tck-03",
    name="TCK 0.3",
    description="Answers every message with an artifact and asks for the next one. For the A2A 0.3 conformance kit.",
    version="1.0.0",
    input_modes=["text/plain", "application/json"],
    output_modes=["text/plain"],
    # The kit sends parts of every kind, and different messages under one id.
    strict_input_modes=False,
    idempotency="requested",
    skills=[
        Skill(
            id="converse",
            name="Converse",
            description="Tells how many parts a message has, and waits for the next one until it is cancelled.",
            tags=("conformance", "test"),
            examples=("Hello",),
        )
    ],
)


@tck_03.handler
async def converse(run: Run) -> None:
    """Answer one message after the other; only cancelling ends the task."""
    message, number = run.message, 1
    while True:
        await run.working()
        await run.artifact(_answer(number, message), name=f"answer-{number}")
        message, number = await run.ask("What else?"), number + 1


def _answer(number: int, message: Message) -> str:
    count = len(message.parts)
    return f"Message {number} has {count} part{'s' if count != 1 else ''}."
