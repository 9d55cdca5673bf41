"""The demo agents do what their words say."""

import re

import pytest

from dragoman.agents.demo import demo
from dragoman.agents.digest import digest
from dragoman.gateway.execute import execute
from dragoman.model import (
    ArtifactChunk,
    DataPart,
    Part,
    RawPart,
    Reply,
    StatusChange,
    TaskFold,
    TaskState,
    TextPart,
    UrlPart,
)
from dragoman.model.message import text_of
from tests.unit.gateway.attempt import Attempt, begun
from tests.unit.gateway.scripted import message, play

COMPLETED = TaskState.COMPLETED


def answered(text: str, *parts: Part) -> Attempt:
    """What the demo agent did with a message."""
    found: list[Attempt] = []

    async def scenario() -> None:
        attempt = await begun("either", message(text, *parts))
        await execute(attempt.execution, demo.run)
        found.append(attempt)

    play(scenario())
    return found[0]


@pytest.mark.parametrize(
    ("text", "state", "question", "result"),
    [
        ("ask", TaskState.INPUT_REQUIRED, "What shall I echo?", ("answer", (TextPart(text="Ünïcode"),))),
        ("ASK What?", TaskState.INPUT_REQUIRED, "What?", ("answer", (TextPart(text="Ünïcode"),))),
        (
            "auth",
            TaskState.AUTH_REQUIRED,
            "Sign in, then send any message.",
            ("auth", (TextPart(text="Authorized: Ünïcode"),)),
        ),
        ("auth Who?", TaskState.AUTH_REQUIRED, "Who?", ("auth", (TextPart(text="Authorized: Ünïcode"),))),
    ],
)
def test_ask_and_auth_wait_for_the_next_message(
    text: str, state: TaskState, question: str, result: tuple[str, tuple[Part, ...]]
) -> None:
    async def scenario() -> None:
        attempt = await begun("either", message(text))
        await execute(attempt.execution, demo.run)
        assert end(attempt) == (state, question)
        attempt = await attempt.answered("Ünïcode")
        await execute(attempt.execution, demo.run)
        assert artifacts(attempt) == [result]
        assert end(attempt) == (COMPLETED, "")

    play(scenario())


def artifacts(attempt: Attempt) -> list[tuple[str, tuple[Part, ...]]]:
    fold = TaskFold(attempt.ref.lease.task_id, "c")
    fold.apply_all(attempt.store.logs[attempt.ref.lease.task_id])
    return [(artifact.name, artifact.parts) for artifact in fold.task().artifacts or ()]


def end(attempt: Attempt) -> tuple[TaskState, str]:
    last = attempt.done[-1]
    assert isinstance(last, StatusChange)
    return last.state, last.message.text if last.message is not None else ""


def test_every_part_of_a_message_is_echoed_as_it_is() -> None:
    parts = (
        TextPart(text="Hello", media_type="text/x"),
        RawPart(raw=b"\0\xff", filename="f"),
        UrlPart(url="https://example.org"),
        DataPart.of({"n": 2**70, "kind": "text"}),
    )
    attempt = answered("", *parts)
    assert artifacts(attempt) == [("echo", parts)]
    assert end(attempt) == (COMPLETED, "")


@pytest.mark.parametrize("text", ["", "  ", "hello slow", "slower", "streaming 5", "mess age"])
def test_other_first_words_are_echoed(text: str) -> None:
    assert artifacts(answered(text)) == [("echo", (TextPart(text=text),))]


@pytest.mark.parametrize(
    ("text", "chunks"), [("stream", 5), ("stream 1", 1), ("STREAM 3", 3), ("stream many", 5)]
)
def test_stream_answers_in_chunks_the_last_of_which_is_marked(text: str, chunks: int) -> None:
    attempt = answered(text)
    pieces = [change for change in attempt.done if isinstance(change, ArtifactChunk)]
    assert [text_of(piece.artifact.parts) for piece in pieces] == [
        f"chunk {n} " for n in range(1, chunks + 1)
    ]
    assert [piece.append for piece in pieces] == [False] + [True] * (chunks - 1)
    assert [piece.last_chunk for piece in pieces] == [False] * (chunks - 1) + [True]


def test_slow_tells_how_far_it_is() -> None:
    attempt = answered("slow 0.4")
    said = [
        change.message.text for change in attempt.done if isinstance(change, StatusChange) and change.message
    ]
    assert said == ["0 % done", "50 % done"]
    assert artifacts(attempt) == [("slow", (TextPart(text="Took 0.4 s."),))]


@pytest.mark.parametrize(
    ("text", "kib"), [("big", 64), ("big 1", 1), ("big 3", 3), ("big -1", 64), ("big 1e99", 64)]
)
def test_big_answers_as_much_as_was_asked(text: str, kib: int) -> None:
    ((name, (part,)),) = artifacts(answered(text))
    assert isinstance(part, TextPart)
    assert (name, len(part.text)) == ("big", kib * 1024)


@pytest.mark.parametrize(
    ("text", "state", "said"),
    [
        ("fail", TaskState.FAILED, "Failed, as asked."),
        ("fail with this", TaskState.FAILED, "with this"),
        ("reject", TaskState.REJECTED, "Rejected, as asked."),
        ("crash", TaskState.FAILED, "The agent failed while it handled the message."),
    ],
)
def test_words_end_the_run_in_other_ways(text: str, state: TaskState, said: str) -> None:
    assert end(answered(text)) == (state, said)


def test_message_answers_with_a_bare_message() -> None:
    (reply,) = answered("message hello there").done
    assert isinstance(reply, Reply)
    assert (reply.message.text, reply.message.task_id) == ("hello there", "")


def test_file_and_data_answer_with_such_parts() -> None:
    assert artifacts(answered("file content")) == [
        ("file", (RawPart(raw=b"content", filename="demo.txt", media_type="text/plain"),))
    ]
    value = {"text": "two words", "words": 2, "attempt": 1}
    assert artifacts(answered("data two words")) == [
        ("data", (DataPart.of(value, media_type="application/json"),))
    ]


def test_the_skills_name_every_word_that_drives_the_demo_agent() -> None:
    described = " ".join(skill.description for skill in demo.skills)
    for word in ("slow", "stream", "big", "fail", "reject", "crash", "message", "file", "data"):
        assert re.search(rf"\b{word}\b", described)


def summarised(*parts: Part) -> Attempt:
    found: list[Attempt] = []

    async def scenario() -> None:
        attempt = await begun("task", message("", *parts))
        await execute(attempt.execution, digest.run)
        found.append(attempt)

    play(scenario())
    return found[0]


def test_a_digest_covers_texts_files_and_data() -> None:
    attempt = summarised(
        TextPart(text="The river rose. The river fell."),
        RawPart(raw="\ufeffA fox ran. The fox hid.".encode(), filename="fox.txt", media_type="text/plain"),
        RawPart(raw=b'{"fruit": "apple"}', filename="fruit.json", media_type="application/json"),
        DataPart.of({"colour": "red"}),
    )
    ((name, (part,)),) = artifacts(attempt)
    assert isinstance(part, TextPart)
    assert (name, part.media_type) == ("digest.md", "text/markdown")
    assert end(attempt) == (COMPLETED, "")
    for word in ("river", "fox.txt", "fruit.json"):
        assert word in part.text


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (UrlPart(url="https://example.org", filename="page"), "page is a link"),
        (RawPart(raw=b"\xff\xfe", filename="x.txt"), "x.txt is not UTF-8"),
        (
            RawPart(raw=b"{", filename="x.json", media_type="application/json; charset=utf-8"),
            "x.json is not JSON",
        ),
    ],
)
def test_a_part_that_cannot_be_digested_is_named_in_the_rejection(part: Part, said: str) -> None:
    state, text = end(summarised(TextPart(text="Fine."), part))
    assert state is TaskState.REJECTED
    assert said in text
