"""What a handler gives back becomes parts, messages, artifacts and the end of its run."""

from typing import Any

import pytest

from dragoman.agents.outcome import as_artifact, as_changes, as_message, as_parts
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    DataPart,
    Message,
    RawPart,
    Role,
    StatusChange,
    TaskState,
    TextPart,
    UrlPart,
)

TEXT = TextPart(text="x", media_type="text/markdown")
ARTIFACT = Artifact(artifact_id="a", parts=(TEXT,))
DONE = StatusChange(TaskState.COMPLETED)


def new_id() -> str:
    return "new"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("hello", (TextPart(text="hello"),)),
        ("", (TextPart(text=""),)),
        (TEXT, (TEXT,)),
        (b"\0\xff", (RawPart(raw=b"\0\xff", media_type="application/octet-stream"),)),
        ([TEXT, UrlPart(url="u")], (TEXT, UrlPart(url="u"))),
        ((TEXT,), (TEXT,)),
        ({"a": 2**70}, (DataPart.of({"a": 2**70}),)),
        ({}, (DataPart.of({}),)),
        ([], (DataPart.of([]),)),
        ([1, "two", None], (DataPart.of([1, "two", None]),)),
        (["a", "b"], (DataPart.of(["a", "b"]),)),
        (5, (DataPart.of(5),)),
        (1.5, (DataPart.of(1.5),)),
        (False, (DataPart.of(False),)),
    ],
)
def test_content_becomes_parts(content: Any, parts: tuple[Any, ...]) -> None:
    assert as_parts(content) == parts


@pytest.mark.parametrize("content", [object(), 1j, {1, 2}, as_parts, None, bytearray(b"x")])
def test_what_is_no_content_is_refused_with_its_name(content: Any) -> None:
    with pytest.raises(TypeError, match=type(content).__name__):
        as_parts(content)


@pytest.mark.parametrize("content", [[TEXT, "text"], {"a": TEXT}, [b"x"], {"a": {1}}])
def test_a_value_that_json_has_no_form_for_is_refused(content: Any) -> None:
    with pytest.raises(TypeError):
        as_parts(content)


@pytest.mark.parametrize("content", ["\ud800", ["\ud800"], float("nan"), {"a": float("inf")}])
def test_a_value_that_no_wire_can_carry_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match=r"surrogate|JSON compliant"):
        as_parts(content)


def test_a_message_is_the_agents_and_about_its_task() -> None:
    message = as_message("hi", task_id="t", context_id="c")
    assert (message.role, message.text, message.task_id, message.context_id) == (Role.AGENT, "hi", "t", "c")
    assert message.message_id != as_message("hi", task_id="t", context_id="c").message_id


def test_a_message_that_is_one_already_keeps_what_it_says() -> None:
    whole = Message(
        message_id="m", role=Role.AGENT, parts=(TEXT,), context_id="c", task_id="t", extensions=("urn:e",)
    )
    assert as_message(whole, task_id="t", context_id="c") == whole


def test_an_artifact_has_an_id_of_its_own_unless_it_is_given_one() -> None:
    one, other = as_artifact("x"), as_artifact("x")
    assert one.artifact_id and one.artifact_id != other.artifact_id
    named = as_artifact("x", artifact_id="a", name="n", description="d")
    assert named == Artifact(artifact_id="a", parts=(TextPart(text="x"),), name="n", description="d")
    assert as_artifact(ARTIFACT, name="ignored") is ARTIFACT


def test_a_handler_that_returns_nothing_has_completed() -> None:
    assert as_changes(None, new_id) == (DONE,)


@pytest.mark.parametrize("content", ["text", TEXT, {"a": 1}, [TEXT, TEXT], [], "", 0, b"x"])
def test_a_returned_value_is_one_whole_artifact_and_the_end(content: Any) -> None:
    chunk, done = as_changes(content, new_id)
    assert isinstance(chunk, ArtifactChunk)
    assert (chunk.artifact.artifact_id, chunk.artifact.parts) == ("new", as_parts(content))
    assert (chunk.append, chunk.last_chunk, done) == (False, True, DONE)


def test_returned_artifacts_stand_each_by_themselves() -> None:
    other = Artifact(artifact_id="b", parts=(TEXT,))
    assert as_changes(ARTIFACT, new_id) == (ArtifactChunk(ARTIFACT, last_chunk=True), DONE)
    assert as_changes([ARTIFACT, other], new_id) == (
        ArtifactChunk(ARTIFACT, last_chunk=True),
        ArtifactChunk(other, last_chunk=True),
        DONE,
    )


@pytest.mark.parametrize("result", [object(), [ARTIFACT, "text"], [ARTIFACT, TEXT]])
def test_a_result_that_is_no_content_is_refused(result: Any) -> None:
    with pytest.raises(TypeError):
        as_changes(result, new_id)
