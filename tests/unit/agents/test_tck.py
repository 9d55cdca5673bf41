"""The conformance agents of A2A 1.0 do what the id of a message asks for."""

import asyncio
import time

import pytest
from msgspec import structs

from dragoman.agents.tck import REQUIRED, SCENARIOS, scenario, tck, tck_ext, tck_min
from dragoman.gateway.extensions import IDEMPOTENCY
from dragoman.model import ArtifactChunk, DataPart, Part, RawPart, TaskState, TextPart, UrlPart
from dragoman.model.ids import new_id
from tests.unit.agents.acted import run
from tests.unit.gateway.attempt import Attempt, accepting, begun
from tests.unit.gateway.scripted import message, play

ASKED = "INPUT_REQUIRED What else?"


def did(message_id: str) -> list[str]:
    """What the agent does with a message of this id."""
    found: list[str] = []

    async def scenario() -> None:
        found.extend(await run(tck, await begun("either", message(message_id=message_id))))

    play(scenario())
    return found


@pytest.mark.parametrize(
    ("prefix", "acts"),
    [
        ("tck-complete-task", ["COMPLETED Hello from TCK"]),
        ("tck-input-required", [ASKED]),
        ("tck-auth-required", ["AUTH_REQUIRED Please authorize this."]),
        ("tck-artifact-text", ["WORKING", "artifact Generated text content last", "COMPLETED"]),
        ("tck-message-response", ["reply Direct message response"]),
        ("tck-reject-task", ["REJECTED rejected"]),
        ("tck-stream-001", ["WORKING", "artifact Stream hello from TCK last", "COMPLETED"]),
        ("tck-stream-002", ["COMPLETED"]),
        ("tck-stream-003", ["WORKING", "artifact Stream task lifecycle last", "COMPLETED"]),
        ("tck-stream-ordering-001", ["WORKING", "artifact Ordered output last", "COMPLETED"]),
        ("tck-stream-artifact-text", ["WORKING", "artifact Streamed text content last", "COMPLETED"]),
        ("tck-stream-artifact-chunked", ["WORKING", "artifact chunk-1 ", "more chunk-2 last", "COMPLETED"]),
        ("tck-send-003", ["COMPLETED Done."]),
        ("cap-stream", ["COMPLETED Done."]),
    ],
)
def test_a_message_has_the_outcome_that_its_id_asks_for(prefix: str, acts: list[str]) -> None:
    assert did(f"{prefix}-0a1b2c3d") == acts
    assert did(f"{prefix}-http_json-0a1b2c3d") == acts


FILE = RawPart(raw=b"Generated file content\n", filename="output.txt", media_type="text/plain")


@pytest.mark.parametrize(
    ("prefix", "part"),
    [
        ("tck-artifact-file", FILE),
        ("tck-stream-artifact-file", FILE),
        (
            "tck-artifact-file-url",
            UrlPart(url="https://example.com/output.txt", filename="output.txt", media_type="text/plain"),
        ),
        ("tck-artifact-data", DataPart.of({"key": "value", "count": 42})),
    ],
)
def test_an_artifact_is_the_one_part_that_is_asked_for(prefix: str, part: Part) -> None:
    async def outcome() -> None:
        attempt = await begun("either", message(message_id=f"{prefix}-0a1b2c3d"))
        assert (await run(tck, attempt))[-1] == "COMPLETED"
        artifacts = [change.artifact for change in attempt.done if isinstance(change, ArtifactChunk)]
        assert [artifact.parts for artifact in artifacts] == [(part,)]

    play(outcome())


def test_the_longest_beginning_counts() -> None:
    for prefix in SCENARIOS:
        assert scenario(f"{prefix}-0a1b2c3d") is SCENARIOS[prefix]
    assert scenario("tck-artifact-file-0a1b") is not scenario("tck-artifact-file-url-0a1b")


async def answered(attempt: Attempt, message_id: str) -> Attempt:
    """Answer the run with a message of this id, and return what executes it then."""
    sent = message(message_id=message_id)
    sent = structs.replace(sent, message=structs.replace(sent.message, task_id=attempt.ref.lease.task_id))
    await attempt.store.accept(structs.replace(accepting(sent), idempotent=False))
    return Attempt(attempt.store, attempt.store.runs[-1], attempt.settings)


def test_what_answers_a_question_has_the_outcome_that_its_own_id_asks_for() -> None:
    """Also under the id of the question itself: the kit has one id for all messages of a test."""

    async def conversation() -> None:
        attempt = await begun("either", message(message_id="tck-input-required-1"))
        await run(tck, attempt)
        for message_id in ("tck-input-required-1", "tck-input-required-2"):
            attempt = await answered(attempt, message_id)
            assert (await run(tck, attempt))[-1] == ASKED
        attempt = await answered(attempt, f"tck-complete-task-{new_id()}")
        assert (await run(tck, attempt))[-1] == "COMPLETED Hello from TCK"

    play(conversation())


def test_a_task_that_is_to_take_a_while_works_meanwhile() -> None:
    async def outcome(prefix: str) -> tuple[list[str], float]:
        attempt = await begun("either", message(message_id=f"{prefix}-1"))
        began = time.monotonic()
        return await run(tck, attempt), time.monotonic() - began

    async def both() -> None:
        (delayed, short), (resubscribed, long) = await asyncio.gather(
            outcome("tck-delayed-complete"), outcome("test-resubscribe-message-id")
        )
        assert delayed == ["WORKING", "COMPLETED Done after delay"]
        assert resubscribed == ["WORKING", "COMPLETED"]
        assert 2 <= short < 3 and 4 <= long < 5

    play(both())


def test_the_three_differ_in_what_they_declare_alone() -> None:
    full, least, strict = (agent.card(()) for agent in (tck, tck_min, tck_ext))
    assert full.capabilities.streaming and strict.capabilities.streaming
    assert not least.capabilities.streaming
    for card, declares in ((full, True), (strict, True), (least, False)):
        assert card.capabilities.push_notifications is card.capabilities.extended_card is declares
    assert full.capabilities.extensions == least.capabilities.extensions == (IDEMPOTENCY,)
    assert strict.capabilities.extensions == (REQUIRED, IDEMPOTENCY)
    assert REQUIRED.required and REQUIRED.uri == "urn:a2a:tck:required-extension"
    for agent in (tck, tck_min, tck_ext):
        settings = agent.settings
        assert (settings.idempotency, settings.strict_input_modes, settings.legacy_card) == (
            "requested",
            False,
            False,
        )


def test_text_is_what_an_unknown_id_completes_with() -> None:
    async def outcome() -> None:
        attempt = await begun("either", message("Hello", TextPart(text="x"), message_id="anything"))
        assert await run(tck_min, attempt) == ["COMPLETED Done."]
        assert attempt.store.state(attempt.ref.lease.task_id) is TaskState.COMPLETED

    play(outcome())
