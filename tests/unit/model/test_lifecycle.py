"""The lifecycle table, cell by cell."""

from itertools import product

import pytest

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    Message,
    Received,
    Reply,
    Resumed,
    Role,
    StatusChange,
    TaskState,
    TextPart,
    Used,
)
from dragoman.model.errors import IllegalChange
from dragoman.model.lifecycle import NEXT, advance

MESSAGE = Message(message_id="m", role=Role.USER, parts=(TextPart(text="x"),))
ARTIFACT = Artifact(artifact_id="a", parts=MESSAGE.parts)

# Rows: where the task stands; columns: the state it would enter. X: allowed.
COLUMNS = "SUBMITTED WORKING COMPLETED FAILED CANCELED INPUT_REQUIRED REJECTED AUTH_REQUIRED".split()
TABLE = {
    "SUBMITTED": "-XXXXXXX",
    "WORKING": "-XXXXXXX",
    "COMPLETED": "--------",
    "FAILED": "--------",
    "CANCELED": "--------",
    "INPUT_REQUIRED": "-XXXX-X-",
    "REJECTED": "--------",
    "AUTH_REQUIRED": "-XXXX-X-",
}
ALLOWED = {
    (TaskState[state], TaskState[target])
    for state, row in TABLE.items()
    for target, cell in zip(COLUMNS, row, strict=True)
    if cell == "X"
}
FINISHED = {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
WAITING = {TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED}


def test_the_table_of_this_test_has_every_state() -> None:
    assert set(TABLE) == set(COLUMNS) == set(TaskState.__members__)


@pytest.mark.parametrize("state", TaskState)
def test_a_state_is_terminal_interrupted_or_neither(state: TaskState) -> None:
    assert state.is_terminal == (state in FINISHED)
    assert state.is_interrupted == (state in WAITING)


@pytest.mark.parametrize(("state", "target"), list(product(TaskState, TaskState)))
def test_a_state_follows_another_exactly_if_the_table_says_so(state: TaskState, target: TaskState) -> None:
    for change in (StatusChange(target), StatusChange(target, MESSAGE), Received(MESSAGE, target)):
        if (state, target) in ALLOWED:
            assert advance(state, change) is target
        else:
            with pytest.raises(IllegalChange) as refusal:
                advance(state, change)
            assert state.name in refusal.value.message
    assert (target in NEXT[state]) == ((state, target) in ALLOWED)


@pytest.mark.parametrize("state", TaskState)
def test_a_finished_task_takes_nothing_at_all(state: TaskState) -> None:
    others: list[Change] = [
        Received(MESSAGE),
        ArtifactChunk(ARTIFACT),
        Reply(MESSAGE),
        Resumed(1),
        Used("wiki"),
    ]
    for change in others:
        if state in FINISHED:
            with pytest.raises(IllegalChange, match=f"{state.name} and a finished task never changes"):
                advance(state, change)


@pytest.mark.parametrize("state", sorted(set(TaskState) - FINISHED))
def test_a_message_that_moves_nothing_is_taken_in_every_state_but_the_last_ones(state: TaskState) -> None:
    assert advance(state, Received(MESSAGE)) is state


@pytest.mark.parametrize("state", sorted(set(TaskState) - FINISHED))
def test_artifacts_grow_only_while_the_agent_works(state: TaskState) -> None:
    if state in WAITING:
        with pytest.raises(IllegalChange, match="waits for its caller"):
            advance(state, ArtifactChunk(ARTIFACT))
    else:
        assert advance(state, ArtifactChunk(ARTIFACT)) is state


@pytest.mark.parametrize("state", sorted(set(TaskState) - FINISHED))
def test_a_run_that_is_taken_over_stays_where_it_was(state: TaskState) -> None:
    assert advance(state, Resumed(1)) is state
    assert advance(state, Used("wiki")) is state


@pytest.mark.parametrize("state", [TaskState.SUBMITTED, TaskState.WORKING])
def test_a_bare_reply_ends_the_run(state: TaskState) -> None:
    assert advance(state, Reply(MESSAGE)) is TaskState.COMPLETED
