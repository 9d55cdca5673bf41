"""What a remote agent tells becomes changes of our task, each once, whether it is told by a stream or by a snapshot."""

from collections.abc import Sequence

import pytest

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    Message,
    Part,
    RawPart,
    Role,
    StatusChange,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
)
from dragoman.model.payload import pack
from dragoman.protocol.client import Told
from dragoman.remote.relay import Asked, OverflowingError, Relay, WrongTaskError

WORKING, SUBMITTED, COMPLETED = TaskState.WORKING, TaskState.SUBMITTED, TaskState.COMPLETED
INPUT, AUTH = TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED


def relay(largest: int = 1000) -> Relay:
    return Relay("ours", "our-context", largest=largest)


def said(text: str, name: str = "m") -> Message:
    return Message(
        message_id=name,
        role=Role.AGENT,
        parts=(TextPart(text=text),),
        task_id="far",
        context_id="c",
        reference_task_ids=("far-0",),
    )


def artifact(*parts: str | Part, name: str = "a", title: str = "") -> Artifact:
    made = tuple(TextPart(text=one) if isinstance(one, str) else one for one in parts)
    return Artifact(artifact_id=name, parts=made, name=title)


def task(
    state: TaskState,
    message: Message | None = None,
    *artifacts: Artifact,
    history: Sequence[Message] = (),
    at: int = 0,
) -> Task:
    status = TaskStatus(state=state, timestamp=at, message=message)
    return Task(id="far", context_id="c", status=status, artifacts=artifacts, history=tuple(history))


def status(state: TaskState, message: Message | None = None, at: int = 0) -> Told:
    return Told("far", "c", StatusChange(state, message), at)


def chunk(*parts: str, append: bool = False, name: str = "a") -> Told:
    return Told("far", "c", ArtifactChunk(artifact(*parts, name=name), append=append))


def states(changes: Sequence[Change]) -> list[TaskState]:
    return [change.state for change in changes if isinstance(change, StatusChange)]


def chunks(changes: Sequence[Change]) -> list[tuple[str, bool]]:
    return [
        ("|".join(part.text for part in change.artifact.parts if isinstance(part, TextPart)), change.append)
        for change in changes
        if isinstance(change, ArtifactChunk)
    ]


def test_words_of_the_remote_agent_are_about_our_task() -> None:
    (change,) = relay().take([status(WORKING, said("hello"))])
    assert isinstance(change, StatusChange) and change.message is not None
    assert (change.message.task_id, change.message.context_id) == ("ours", "our-context")
    assert (change.message.message_id, change.message.text) == ("m", "hello")
    assert change.message.reference_task_ids == ()


def test_what_a_stream_tells_is_passed_on_as_it_is() -> None:
    found = relay()
    changes = found.take([status(WORKING), chunk("one"), chunk("two", append=True), status(COMPLETED)])
    assert states(changes) == [WORKING, COMPLETED]
    assert chunks(changes) == [("one", False), ("two", True)]
    assert found.turn is not None and found.turn.change.state is COMPLETED
    assert (found.remote_id, found.remote_context) == ("far", "c")


def test_metadata_of_updates_is_kept() -> None:
    change = StatusChange(WORKING, None, pack({"n": 1}))
    piece = ArtifactChunk(artifact("x"), last_chunk=True, metadata=pack({"m": 2}))
    assert relay().take([Told("far", "c", change), Told("far", "c", piece)]) == (change, piece)


def test_a_task_that_waits_to_be_begun_says_nothing_unless_it_speaks() -> None:
    found = relay()
    assert found.take([task(SUBMITTED), status(SUBMITTED)]) == ()
    (change,) = found.take([status(SUBMITTED, said("soon"))])
    assert isinstance(change, StatusChange) and change.state is WORKING


def test_of_a_snapshot_only_what_is_new_is_passed_on() -> None:
    found = relay()
    found.take([status(WORKING, said("begun", "1")), chunk("one")])
    missed = task(
        WORKING,
        said("third", "3"),
        artifact("one", "two"),
        artifact("b", name="b"),
        history=[said("begun", "1"), said("second", "2")],
    )
    changes = found.take([missed])
    assert [
        change.message.text for change in changes if isinstance(change, StatusChange) and change.message
    ] == [
        "second",
        "third",
    ]
    assert chunks(changes) == [("two", True), ("b", False)]
    assert found.take([missed]) == ()


def test_an_artifact_that_became_another_one_is_replaced() -> None:
    found = relay()
    found.take([chunk("one"), chunk("two", append=True)])
    for other in (artifact("uno"), artifact("one", "zwei"), artifact("one", "two", title="named")):
        assert found.take([task(WORKING, None, other)])[-1] == ArtifactChunk(other)


def test_a_piece_that_is_appended_to_nothing_begins_something() -> None:
    assert chunks(relay().take([chunk("two", append=True)])) == [("two", False)]


def test_what_our_task_shows_already_is_known() -> None:
    found = relay()
    found.know(task(WORKING, said("now", "2"), artifact("one"), history=[said("then", "1")]))
    found.begin("far", "c")
    again = task(WORKING, said("now", "2"), artifact("one", "two"), history=[said("then", "1")])
    assert chunks(found.take([again])) == [("two", True)]
    assert states(found.take([again])) == []


@pytest.mark.parametrize("state", [INPUT, AUTH])
def test_a_question_ends_a_turn_and_is_not_passed_on_as_a_change(state: TaskState) -> None:
    found = relay()
    assert chunks(found.take([chunk("draft"), status(state, said("which?")), chunk("late")])) == [
        ("draft", False)
    ]
    assert found.turn is not None
    assert (found.turn.change.state, found.turn.asked) == (state, Asked(state, "m"))


@pytest.mark.parametrize(
    ("seen", "is_new"),
    [
        (task(INPUT, said("which?", "q1")), False),
        (task(INPUT, said("when?", "q2")), True),
        (task(AUTH, said("which?", "q1")), True),
        (status(INPUT, said("which?", "q1")), True),
    ],
)
def test_a_question_that_was_answered_is_told_from_a_new_one(seen: Task | Told, is_new: bool) -> None:
    found = relay()
    found.begin("far", "c", Asked(INPUT, "q1"))
    found.take([seen])
    assert (found.turn is not None) is is_new


@pytest.mark.parametrize(("at", "is_new"), [(1000, False), (0, False), (2000, True)])
def test_questions_without_words_are_told_apart_by_their_times(at: int, is_new: bool) -> None:
    found = relay()
    found.begin("far", "c", Asked(INPUT, "", 1000))
    found.take([task(INPUT, at=at)])
    assert (found.turn is not None) is is_new


@pytest.mark.parametrize(
    "stray",
    [Told("near", "c", StatusChange(WORKING)), said("bare"), Told("near", "c", ArtifactChunk(artifact("x")))],
)
def test_what_is_about_another_task_is_refused(stray: Told | Message) -> None:
    found = relay()
    found.take([status(WORKING)])
    with pytest.raises(WrongTaskError):
        found.take([stray])


def test_all_artifacts_together_are_bounded() -> None:
    found = relay(largest=10)
    found.take([chunk("12345"), chunk("12345", name="b")])
    # What takes the place of something does not count beside it.
    found.take([chunk("123")])
    found.take([task(WORKING, None, artifact(RawPart(raw=b"12345")))])
    with pytest.raises(OverflowingError):
        found.take([chunk("1", append=True)])


def test_a_message_without_parts_is_none() -> None:
    empty = Message(message_id="m", role=Role.AGENT, parts=())
    assert relay().take([status(WORKING, empty)]) == (StatusChange(WORKING),)
