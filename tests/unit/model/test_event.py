"""A task is the fold of its events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    Message,
    Received,
    Reply,
    Resumed,
    Role,
    RunFacts,
    StatusChange,
    Task,
    TaskEvent,
    TaskFold,
    TaskState,
    TaskStatus,
    TextPart,
    Used,
)
from dragoman.model.event import acts
from dragoman.model.message import text_of
from dragoman.model.payload import pack

SUBMITTED, WORKING, COMPLETED = TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED
ASKING = TaskState.INPUT_REQUIRED


def said(text: str, role: Role = Role.AGENT) -> Message:
    return Message(message_id=f"id of {text}", role=role, parts=(TextPart(text=text),))


def asked(text: str, state: TaskState | None = SUBMITTED) -> Received:
    return Received(said(text, Role.USER), state)


def chunk(artifact_id: str, text: str, *, append: bool = False, name: str = "") -> ArtifactChunk:
    return ArtifactChunk(
        Artifact(artifact_id=artifact_id, parts=(TextPart(text=text),), name=name), append=append
    )


def events(*changes: Change) -> list[TaskEvent]:
    """The changes as a log; event n is committed at n seconds."""
    return [
        TaskEvent("t", "c", number, number * 1000, 1, change)
        for number, change in enumerate(changes, start=1)
    ]


def folded(*changes: Change) -> TaskFold:
    fold = TaskFold("t", "c")
    fold.apply_all(events(*changes))
    return fold


def history(task: Task) -> list[str]:
    return [message.text for message in task.history]


def contents(task: Task) -> dict[str, str]:
    return {artifact.artifact_id: text_of(artifact.parts) for artifact in task.artifacts or ()}


def test_the_first_message_begins_the_task() -> None:
    fold = TaskFold("t", "c", pack({"run": 1}))
    fold.apply_all(events(asked("hello")))
    assert fold.seq == 1
    assert fold.task() == Task(
        id="t",
        context_id="c",
        status=TaskStatus(state=SUBMITTED, timestamp=1000),
        history=(said("hello", Role.USER),),
        metadata=pack({"run": 1}),
        run=RunFacts(sequence=1, attempt=1),
    )


def test_the_run_is_told_with_its_deadline_while_it_runs_and_without_while_it_waits() -> None:
    fold = TaskFold("t", "c", deadline=60_000)
    changes = (
        asked("hello"),
        StatusChange(WORKING),
        StatusChange(TaskState.INPUT_REQUIRED),
        asked("this one", WORKING),
        StatusChange(TaskState.AUTH_REQUIRED),
        StatusChange(WORKING),
        StatusChange(COMPLETED),
    )
    told = []
    for event in events(*changes):
        fold.apply(event)
        told.append((fold.facts.sequence, fold.facts.deadline))
    # Events come a second apart, and each wait has lasted one.
    deadlines = [60_000, 60_000, None, 61_000, None, 62_000, None]
    assert told == list(enumerate(deadlines, 1))


def test_the_attempt_is_that_of_the_last_event() -> None:
    fold = folded(asked("go"))
    fold.apply(structs.replace(events(asked("go"), Resumed(1))[1], attempt=3))
    assert (fold.facts.attempt, fold.task().run) == (3, RunFacts(sequence=2, attempt=3))


def test_a_task_without_events_has_no_form() -> None:
    with pytest.raises(ValueError, match="no status"):
        TaskFold("t", "c").task()


@pytest.mark.parametrize("seq", [-1, 0, 1, 2, 4, 1000])
def test_an_event_that_does_not_follow_the_last_one_is_refused(seq: int) -> None:
    fold = folded(asked("hello"), StatusChange(WORKING))
    before = fold.task()
    with pytest.raises(ValueError, match=f"event {seq} cannot follow event 2"):
        fold.apply(TaskEvent("t", "c", seq, 0, 1, StatusChange(COMPLETED)))
    assert (fold.seq, fold.task()) == (2, before)


def test_a_log_that_does_not_begin_at_one_is_refused() -> None:
    with pytest.raises(ValueError, match="event 2 cannot follow event 0"):
        TaskFold("t", "c").apply_all(events(asked("a"), StatusChange(WORKING))[1:])


def test_the_status_is_that_of_the_newest_change_with_its_time() -> None:
    task = folded(
        asked("hi"), StatusChange(WORKING), StatusChange(WORKING, said("half")), chunk("a", "x")
    ).task()
    assert task.status == TaskStatus(state=WORKING, timestamp=3000, message=said("half"))


def test_a_status_message_joins_the_history_once_when_something_newer_takes_its_place() -> None:
    changes = [
        asked("paint it"),
        StatusChange(WORKING, said("mixing")),
        StatusChange(WORKING),
        StatusChange(ASKING, said("which one?")),
        asked("the red one", WORKING),
        StatusChange(COMPLETED, said("done")),
    ]
    assert history(folded(*changes[:2]).task()) == ["paint it"]
    assert history(folded(*changes[:3]).task()) == ["paint it", "mixing"]
    assert history(folded(*changes[:4]).task()) == ["paint it", "mixing"]
    assert history(folded(*changes[:5]).task()) == ["paint it", "mixing", "which one?", "the red one"]
    whole = folded(*changes).task()
    assert history(whole) == ["paint it", "mixing", "which one?", "the red one"]
    assert whole.status.message == said("done")


def test_a_message_that_moves_nothing_leaves_the_status_and_joins_the_history() -> None:
    changes = [asked("one"), StatusChange(WORKING, said("working")), asked("two", None)]
    task = folded(*changes).task()
    assert task.status == TaskStatus(state=WORKING, timestamp=2000, message=said("working"))
    assert history(task) == ["one", "two"]


def test_the_history_is_in_the_order_in_which_things_were_said() -> None:
    fold = folded(
        asked("one"), StatusChange(WORKING, said("working")), asked("two", None), asked("three", None)
    )
    fold.apply(TaskEvent("t", "c", 5, 5000, 1, StatusChange(COMPLETED, said("done"))))
    assert history(fold.task()) == ["one", "working", "two", "three"]
    assert history(fold.task(history_length=3)) == ["working", "two", "three"]


@pytest.mark.parametrize(
    ("length", "expected"), [(None, "abcd"), (0, ""), (1, "d"), (3, "bcd"), (4, "abcd"), (99, "abcd")]
)
def test_a_bound_keeps_the_newest_messages_in_their_order(length: int | None, expected: str) -> None:
    fold = folded(asked("a"), *(asked(text, None) for text in "bcd"))
    assert "".join(history(fold.task(history_length=length))) == expected
    assert "".join(history(fold.task())) == "abcd"


def test_chunks_add_up_to_one_artifact_that_keeps_the_name_of_the_first() -> None:
    fold = folded(asked("go"), chunk("a", "1", name="first"), chunk("b", "x"), chunk("a", "2", append=True))
    fold.apply(TaskEvent("t", "c", 5, 5000, 1, chunk("a", "3", append=True, name="ignored")))
    first, second = fold.task().artifacts or ()
    assert (first.artifact_id, first.name, text_of(first.parts)) == ("a", "first", "1\n2\n3")
    assert (second.artifact_id, text_of(second.parts)) == ("b", "x")


def test_a_chunk_that_does_not_append_replaces_the_artifact() -> None:
    fold = folded(asked("go"), chunk("a", "1"), chunk("a", "2", append=True), chunk("a", "anew"))
    assert contents(fold.task()) == {"a": "anew"}


def test_appending_to_an_unknown_artifact_begins_it() -> None:
    fold = folded(asked("go"), chunk("a", "1", append=True), chunk("a", "2", append=True))
    assert contents(fold.task()) == {"a": "1\n2"}


def test_artifacts_left_out_are_not_the_same_as_none() -> None:
    fold = folded(asked("go"))
    assert fold.task().artifacts == ()
    assert fold.task(artifacts=False).artifacts is None


def test_a_task_that_was_given_out_does_not_change_with_the_fold() -> None:
    fold = folded(asked("go"), chunk("a", "1"))
    task = fold.task()
    fold.apply(TaskEvent("t", "c", 3, 3000, 1, chunk("a", "2", append=True)))
    assert contents(task) == {"a": "1"}
    assert contents(fold.task()) == {"a": "1\n2"}


def test_a_bare_reply_is_kept_beside_the_task() -> None:
    fold = folded(asked("hi"), Reply(said("hello")))
    assert fold.reply == said("hello")
    assert not fold.acted


@pytest.mark.parametrize(
    ("change", "act", "state", "ends"),
    [
        (asked("x"), False, SUBMITTED, False),
        (asked("x", None), False, None, False),
        (StatusChange(WORKING), True, WORKING, False),
        (StatusChange(ASKING), True, ASKING, False),
        (StatusChange(COMPLETED), True, COMPLETED, True),
        (StatusChange(TaskState.FAILED), True, TaskState.FAILED, True),
        (StatusChange(TaskState.CANCELED), True, TaskState.CANCELED, True),
        (StatusChange(TaskState.REJECTED), True, TaskState.REJECTED, True),
        (chunk("a", "x"), True, None, False),
        (Reply(said("x")), False, None, True),
        (Resumed(1), False, None, False),
        (Used("wiki"), False, None, False),
    ],
)
def test_an_event_says_what_it_did(change: Change, act: bool, state: TaskState | None, ends: bool) -> None:
    event = TaskEvent("t", "c", 1, 0, 1, change)
    assert (acts(change), event.state, event.ends_run) == (act, state, ends)


def test_an_act_is_remembered() -> None:
    assert not folded(asked("x")).acted
    assert folded(asked("x"), chunk("a", "1"), Resumed(1)).acted


def test_a_resumed_run_loses_the_artifacts_that_began_after_the_kept_event() -> None:
    fold = folded(asked("go"), chunk("a", "kept"), chunk("b", "lost"), chunk("c", "lost"), Resumed(2))
    assert contents(fold.task()) == {"a": "kept"}


def test_a_resumed_run_loses_the_chunks_after_the_kept_event() -> None:
    changes = [asked("go"), chunk("a", "1"), chunk("a", "2", append=True), chunk("a", "3", append=True)]
    assert contents(folded(*changes, Resumed(3)).task()) == {"a": "1\n2"}
    assert contents(folded(*changes, Resumed(4)).task()) == {"a": "1\n2\n3"}
    assert contents(folded(*changes, Resumed(1)).task()) == {}


def test_a_resumed_run_has_the_artifact_again_that_was_replaced_after_the_kept_event() -> None:
    fold = folded(asked("go"), chunk("a", "kept"), chunk("a", "lost"), Resumed(2))
    assert contents(fold.task()) == {"a": "kept"}
    longer = folded(
        asked("go"), chunk("a", "1"), chunk("a", "2", append=True), chunk("a", "lost"), Resumed(3)
    )
    assert contents(longer.task()) == {"a": "1\n2"}


def test_a_resumed_run_writes_its_half_written_artifact_anew() -> None:
    lost = [asked("go"), StatusChange(WORKING), chunk("a", "1"), chunk("a", "2", append=True), Resumed(1)]
    fold = folded(*lost, chunk("a", "one"), chunk("a", "two", append=True), StatusChange(COMPLETED))
    assert contents(fold.task()) == {"a": "one\ntwo"}


def test_a_chunk_after_a_replacement_belongs_to_what_replaced() -> None:
    changes = [asked("go"), chunk("a", "1"), chunk("a", "anew", name="new"), chunk("a", "more", append=True)]
    (artifact,) = folded(*changes).task().artifacts or ()
    assert (artifact.name, text_of(artifact.parts)) == ("new", "anew\nmore")
    assert contents(folded(*changes, Resumed(3)).task()) == {"a": "anew"}


def test_a_run_can_be_resumed_again_and_again() -> None:
    lost = [asked("go"), chunk("a", "kept"), chunk("b", "lost"), Resumed(2)]
    fold = folded(*lost, chunk("b", "lost, too"), Resumed(2), chunk("b", "at last"))
    assert contents(fold.task()) == {"a": "kept", "b": "at last"}


def test_resuming_moves_no_status_and_forgets_no_message_of_the_caller() -> None:
    fold = folded(asked("go"), StatusChange(WORKING), asked("and this", None), Resumed(1))
    task = fold.task()
    assert task.status == TaskStatus(state=WORKING, timestamp=2000)
    assert history(task) == ["go", "and this"]
    assert fold.seq == 4


def test_a_source_is_known_from_its_event_on_whatever_became_of_the_attempt() -> None:
    fold = folded(asked("go"), Used("wiki"), chunk("a", "lost"), Used("crm"), Resumed(1))
    assert fold.sources == {"wiki", "crm"}
    assert contents(fold.task()) == {}
    assert folded(asked("go")).sources == set()


_changes = st.one_of(
    st.sampled_from([StatusChange(WORKING), StatusChange(WORKING, said("so far")), asked("more", None)]),
    st.builds(chunk, st.sampled_from("ab"), st.sampled_from("xyz"), append=st.booleans()),
    st.builds(Resumed, st.integers(1, 6)),
    st.builds(Used, st.sampled_from(["wiki", "crm"])),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(_changes, max_size=12), st.integers(0, 12))
def test_looking_at_a_task_on_the_way_changes_nothing(changes: list[Change], stop: int) -> None:
    log = events(asked("go"), *changes)
    whole = TaskFold("t", "c")
    whole.apply_all(log)
    watched = TaskFold("t", "c")
    for event in log:
        watched.apply(event)
        if event.seq <= stop:
            watched.task()
    assert watched.task() == whole.task()
    assert watched.seq == len(log)
