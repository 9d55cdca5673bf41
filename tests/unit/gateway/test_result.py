"""The one verified result: what is gathered, what is refused, and what is found out when it is shown."""

import hashlib
import time
from collections.abc import Callable

import msgspec
import pytest
from msgspec import structs

from dragoman.gateway.result import FRAME, MAX_BYTES, verify, verify_artifact
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    DataPart,
    Message,
    Part,
    RawPart,
    Role,
    StatusChange,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
    UrlPart,
)
from dragoman.model.errors import ArtifactUnverified, IllegalChange
from dragoman.model.payload import ABSENT, pack, unpack
from tests.unit.gateway.attempt import Attempt, begun
from tests.unit.gateway.scripted import play, status

S = TaskState


def piece(text: str, name: str = "a", *, append: bool = False) -> ArtifactChunk:
    return ArtifactChunk(Artifact(artifact_id=name, parts=(TextPart(text=text),)), append=append)


def with_part(part: Part) -> ArtifactChunk:
    return ArtifactChunk(Artifact(artifact_id="a", parts=(TextPart(text="and "), part)))


def completed(*parts: Part) -> StatusChange:
    said = Message(message_id="m", role=Role.AGENT, parts=parts) if parts else None
    return StatusChange(S.COMPLETED, said)


def outcome(*acts: Change) -> list[Change]:
    """What is stored of a run with one result that does these acts, one after the other."""
    found: list[Change] = []

    async def scenario() -> None:
        attempt = await begun(one_result=True)
        try:
            for act in acts:
                await attempt.execution.act(act)
        except IllegalChange:
            assert attempt.execution.state is S.FAILED
        found.extend(attempt.done)

    play(scenario())
    return found


def result_of(changes: list[Change]) -> str:
    """The text of the one artifact, which must be whole, verified, and come right before the completion."""
    artifact, completion = changes[-2:]
    assert completion == StatusChange(S.COMPLETED)
    assert isinstance(artifact, ArtifactChunk)
    assert (artifact.append, artifact.last_chunk) == (False, True)
    assert [one for one in changes if isinstance(one, ArtifactChunk)] == [artifact]
    (part,) = artifact.artifact.parts
    assert isinstance(part, TextPart)
    assert part.media_type == "text/markdown"
    content = part.text.encode()
    assert unpack(artifact.artifact.metadata) == {
        "sha256": hashlib.sha256(content).hexdigest(),
        "byteCount": len(content),
    }
    return part.text


def refusal_of(changes: list[Change]) -> str:
    """What the caller is told of a run that was refused, of which nothing else is shown."""
    (failure,) = changes
    assert isinstance(failure, StatusChange)
    assert failure.state is S.FAILED
    assert failure.message is not None
    return failure.message.text


GATHERED = [
    ([piece("one")], "one"),
    ([piece("one "), piece("two", append=True)], "one two"),
    ([piece("draft"), piece("final")], "final"),
    ([piece("first", "a"), piece("second", "b")], "first\n\nsecond"),
    ([piece("first", "a"), piece("second", "b"), piece(" more", "a", append=True)], "first more\n\nsecond"),
    ([completed(TextPart(text="said"))], "said"),
    ([piece("shown"), completed(TextPart(text="said"))], "shown\n\nsaid"),
    ([piece(""), piece("x", "b")], "x"),
    ([piece("é\u2028🕊")], "é\u2028🕊"),
]


@pytest.mark.parametrize(("acts", "text"), GATHERED)
def test_what_an_agent_gives_is_one_text_with_its_checksum_before_the_completion(
    acts: list[Change], text: str
) -> None:
    changes = outcome(*acts) if isinstance(acts[-1], StatusChange) else outcome(*acts, completed())
    assert result_of(changes) == text


def test_progress_is_shown_as_it_comes_and_pieces_are_not() -> None:
    changes = outcome(status(S.WORKING, "begun"), piece("one"), status(S.WORKING, "halfway"), completed())
    assert [type(one).__name__ for one in changes] == [
        "StatusChange",
        "StatusChange",
        "ArtifactChunk",
        "StatusChange",
    ]


NO_TEXT: list[Part] = [
    RawPart(raw="AAAA", media_type="image/png"),
    UrlPart(url="https://example.org/file"),
    DataPart(data=pack({"a": 1})),
]


@pytest.mark.parametrize("part", NO_TEXT, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize(
    "act",
    [
        with_part,
        lambda part: completed(TextPart(text="and "), part),
        lambda part: StatusChange(S.WORKING, completed(part).message),
    ],
    ids=["artifact", "completion", "progress"],
)
def test_anything_else_than_text_ends_the_run_as_failed(act: Callable[[Part], Change], part: Part) -> None:
    assert refusal_of(outcome(act(part), completed())) == "The agent gave something else than text."


@pytest.mark.parametrize("part", NO_TEXT, ids=lambda part: type(part).__name__)
def test_so_does_a_question_that_is_no_text(part: Part) -> None:
    async def scenario() -> None:
        attempt = await begun(one_result=True)
        question = StatusChange(S.INPUT_REQUIRED, completed(part).message)
        with pytest.raises(IllegalChange):
            await attempt.execution.ask("ask", "what", question)
        assert refusal_of(attempt.done) == "The agent gave something else than text."

    play(scenario())


@pytest.mark.parametrize("acts", [[], [piece("")], [status(S.WORKING, "busy")]])
def test_a_run_that_ends_without_a_result_has_failed(acts: list[Change]) -> None:
    assert refusal_of(outcome(*acts, completed())[-1:]) == "The agent ended without a result."


def largest(character: str) -> int:
    """How many times a result may hold a character."""
    return (MAX_BYTES - FRAME - 2) // (len(msgspec.json.encode(character)) - 2)


@pytest.mark.parametrize("character", ["a", "é", "🕊", '"', "\n", "\0"])
def test_a_result_may_have_as_much_as_fits_into_a_reply_and_not_a_character_more(character: str) -> None:
    most = largest(character)
    text = result_of(outcome(piece(character * most), completed()))
    assert text == character * most
    assert len(msgspec.json.encode(text)) <= MAX_BYTES - FRAME
    assert refusal_of(outcome(piece(character * (most + 1)), completed())) == (
        f"The agent gave more than fits into a reply of {MAX_BYTES} bytes."
    )


def test_pieces_are_counted_together() -> None:
    half = "x" * (largest("a") // 2)
    assert result_of(outcome(piece(half), piece(half, append=True), completed())) == half * 2
    refused = outcome(
        piece(half, "a"), piece(half, "b"), piece(half, "c"), piece("y", "b", append=True), completed()
    )
    assert "more than fits" in refusal_of(refused)


def test_a_piece_that_replaces_counts_instead_of_what_it_replaces() -> None:
    most = "x" * largest("a")
    again = [piece(most[: len(most) // 2 + 10]) for _ in range(5)]
    assert result_of(outcome(*again, piece(most), completed())) == most


def test_very_many_pieces_cost_no_more_than_their_length() -> None:
    began = time.process_time()
    changes = outcome(piece("begun "), *[piece("chunk ", append=True)] * 100_000, completed())
    assert len(result_of(changes)) == 600_006
    assert time.process_time() - began < 4, "copying all that was gathered with each piece takes longer"


def test_what_steps_give_is_given_again_when_the_handler_is_entered_again() -> None:
    async def play_once(attempt: Attempt) -> bool:
        """Give a piece in each of two steps and one between them; tell whether the steps were performed."""
        performed = False
        for name in ("first", "second"):
            point = attempt.execution.recall("step", name)
            if point.known is None:
                performed = True
                with attempt.execution.performing() as given:
                    await attempt.execution.act(piece(f"{name} ", name))
                    await attempt.execution.act(piece("more", name, append=True))
                await attempt.execution.remember(point, None, given)
            if name == "first":
                await attempt.execution.act(piece("between", "b"))
        return performed

    async def scenario() -> None:
        first = await begun(one_result=True)
        assert await play_once(first)
        again = first.again()
        await again.execution.prepare()
        assert not await play_once(again)
        await again.execution.act(completed())
        assert result_of(again.done) == "first more\n\nbetween\n\nsecond more"

    play(scenario())


def test_what_a_step_gives_of_an_open_result_is_not_journaled_with_it() -> None:
    async def scenario() -> None:
        attempt = await begun()
        point = attempt.execution.recall("step", "draw")
        with attempt.execution.performing() as given:
            await attempt.execution.act(piece("a picture"))
        entry = await attempt.execution.remember(point, None, given)
        assert entry.given == ()

    play(scenario())


def whole(text: str = "the result") -> Artifact:
    content = text.encode()
    return Artifact(
        artifact_id="t-1",
        parts=(TextPart(text=text),),
        metadata=pack({"sha256": hashlib.sha256(content).hexdigest(), "byteCount": len(content)}),
    )


def task_with(artifacts: tuple[Artifact, ...] | None, state: TaskState = S.COMPLETED) -> Task:
    return Task(
        id="t", context_id="c", status=TaskStatus(state=state, timestamp=0), artifacts=artifacts, history=()
    )


@pytest.mark.parametrize(
    "task",
    [
        task_with((whole(),)),
        task_with(None),
        task_with((), S.FAILED),
        task_with((), S.CANCELED),
        task_with((), S.WORKING),
    ],
)
def test_what_was_written_is_shown(task: Task) -> None:
    assert verify(task) is task


DAMAGES: dict[str, Callable[[Artifact], Artifact]] = {
    "another text": lambda one: structs.replace(one, parts=(TextPart(text="the resulT"),)),
    "less text": lambda one: structs.replace(one, parts=(TextPart(text="the resul"),)),
    "no part": lambda one: structs.replace(one, parts=()),
    "a further part": lambda one: structs.replace(one, parts=(*one.parts, TextPart(text=" "))),
    "another part": lambda one: structs.replace(one, parts=(DataPart(data=pack("the result")),)),
    "no metadata": lambda one: structs.replace(one, metadata=ABSENT),
    "other metadata": lambda one: structs.replace(one, metadata=pack([])),
    "another sum": lambda one: structs.replace(
        one, metadata=pack({**unpack(one.metadata), "sha256": "0" * 64})
    ),
    "another count": lambda one: structs.replace(
        one, metadata=pack({**unpack(one.metadata), "byteCount": 9})
    ),
    "no count": lambda one: structs.replace(one, metadata=pack({"sha256": unpack(one.metadata)["sha256"]})),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_is_an_error(damage: Callable[[Artifact], Artifact]) -> None:
    with pytest.raises(ArtifactUnverified) as error:
        verify(task_with((damage(whole()),)))
    assert error.value.metadata == {"taskId": "t", "artifactId": "t-1"}
    with pytest.raises(ArtifactUnverified):
        verify_artifact("t", damage(whole()))


@pytest.mark.parametrize("artifacts", [(), (whole(), whole())])
def test_a_completed_task_without_its_one_result_is_an_error(artifacts: tuple[Artifact, ...]) -> None:
    with pytest.raises(ArtifactUnverified):
        verify(task_with(artifacts))
