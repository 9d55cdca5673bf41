"""The conformance agent of A2A 0.3 leaves every task open, and answers as often as it is written to."""

import pytest

from dragoman.agents.tck_03 import tck_03
from dragoman.gateway.extensions import IDEMPOTENCY
from dragoman.model import DataPart, Part, TaskState, TextPart
from tests.unit.agents.acted import run
from tests.unit.gateway.attempt import begun
from tests.unit.gateway.scripted import message, play

ASKED = "INPUT_REQUIRED What else?"


@pytest.mark.parametrize(
    ("parts", "said"),
    [((), "1 part"), ((DataPart.of({"a": 1}), TextPart(text="b")), "2 parts")],
    ids=["one part", "two parts"],
)
def test_any_message_is_answered_with_an_artifact_and_a_question(parts: tuple[Part, ...], said: str) -> None:
    async def scenario() -> None:
        attempt = await begun("task", message("Hello", *parts))
        assert await run(tck_03, attempt) == ["WORKING", f"artifact Message 1 has {said}. last", ASKED]

    play(scenario())


def test_every_further_message_is_answered_once_in_its_turn() -> None:
    async def scenario() -> None:
        attempt = await begun("task")
        seen = len(await run(tck_03, attempt))
        for number in (2, 3, 4):
            attempt = await attempt.answered("More")
            done = await run(tck_03, attempt)
            answer = ["WORKING", f"artifact Message {number} has 1 part. last", ASKED]
            assert done[-3:] == answer
            # The caller's message, and what it is answered with: what was done before is not done again.
            assert len(done) == seen + 4
            seen = len(done)
        assert attempt.store.state(attempt.ref.lease.task_id) is TaskState.INPUT_REQUIRED

    play(scenario())


def test_it_takes_what_the_kit_sends_and_its_card_says_so() -> None:
    assert not tck_03.settings.strict_input_modes
    assert tck_03.settings.idempotency == "requested"
    card = tck_03.card(())
    assert card.capabilities.extensions == (IDEMPOTENCY,)
    assert card.capabilities.streaming and not card.capabilities.push_notifications
