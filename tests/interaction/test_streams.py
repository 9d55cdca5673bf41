"""Streams of a send: what they begin with, what their ids are, how text travels in them, and how they end."""

import re

import pytest

from tests.interaction.answers import BAD_AGENT, PARAMS, Reply, refused
from tests.interaction.callers import Caller
from tests.interaction.events import Item, Stream, folded
from tests.interaction.following import got
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows


def streamed(caller: Caller, text: str, **members: object) -> list[Item]:
    """All items of the stream of a send."""
    with caller.open("SendStreamingMessage", send_params(text, **members)) as stream:
        return stream.rest()


@covers("stream.shape")
def test_a_stream_begins_with_the_task_and_ends_after_its_last_state(caller: Caller) -> None:
    items = streamed(caller, "hello")
    assert items[0].kind == "task"
    assert items[0].state in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    assert {item.kind for item in items[1:]} == {"artifactUpdate", "statusUpdate"}
    assert items[-1].state == "TASK_STATE_COMPLETED"
    assert not [item for item in items[:-1] if item.state == "TASK_STATE_COMPLETED"]


@covers("stream.shape")
@pytest.mark.parametrize(
    ("text", "state"),
    [("fail x", "TASK_STATE_FAILED"), ("reject x", "TASK_STATE_REJECTED"), ("crash", "TASK_STATE_FAILED")],
)
def test_a_stream_ends_after_any_terminal_state(caller: Caller, text: str, state: str) -> None:
    items = streamed(caller, text)
    assert (items[0].kind, items[-1].state) == ("task", state)
    assert got(caller, items[0].value["id"])["status"] == items[-1].value["status"]


@covers("stream.same-task")
@pytest.mark.parametrize("text", ["hello", "stream 30", "slow 0.4", "big 100", "file x", "data y", "fail z"])
def test_a_stream_put_together_is_the_task(caller: Caller, text: str) -> None:
    items = streamed(caller, text)
    task = got(caller, items[0].value["id"])
    whole = folded(items)
    assert whole["status"] == task["status"]
    assert whole.get("artifacts", []) == task.get("artifacts", [])
    for item in items[1:]:
        assert (item.value["taskId"], item.value["contextId"]) == (task["id"], task["contextId"])


@covers("stream.ids")
@pytest.mark.parametrize("text", ["hello", "stream 30", "slow 0.4", "fail"])
def test_the_id_of_an_event_is_its_sequence_in_the_task(caller: Caller, rows: Rows, text: str) -> None:
    items = streamed(caller, text)
    numbers = [item.id for item in items]
    task_id = items[0].value["id"]
    last = rows.query("SELECT max(seq) FROM event WHERE task_id = ?", task_id)[0][0]
    assert numbers == list(range(numbers[0] or 0, last + 1))


@covers("stream.order")
def test_1500_chunks_come_in_order(caller: Caller) -> None:
    items = streamed(caller, "stream 1500")
    assert items[-1].state == "TASK_STATE_COMPLETED"
    parts = [part["text"] for part in folded(items)["artifacts"][0]["parts"]]
    assert parts == [f"chunk {number} " for number in range(1, 1501)]
    numbers = [item.id or 0 for item in items]
    assert numbers == sorted(set(numbers))


@covers("stream.chunks")
def test_the_first_chunk_begins_an_artifact_the_others_append_and_the_last_one_says_so(
    caller: Caller,
) -> None:
    chunks = [item.value for item in streamed(caller, "stream 30") if item.kind == "artifactUpdate"]
    assert [chunk.get("append", False) for chunk in chunks] == [False] + [True] * 29
    assert [chunk.get("lastChunk", False) for chunk in chunks] == [False] * 29 + [True]
    assert len({chunk["artifact"]["artifactId"] for chunk in chunks}) == 1


@covers("stream.large", "voice.18")
def test_an_event_of_a_mebibyte_comes_whole(caller: Caller) -> None:
    items = streamed(caller, "big 1024")
    assert folded(items)["artifacts"][0]["parts"] == [{"text": "0123456789abcdef" * 64 * 1024}]
    assert items[-1].state == "TASK_STATE_COMPLETED"


def raw_stream(caller: Caller, text: str) -> bytes:
    """The bytes of a stream."""
    request = caller.request("SendStreamingMessage", send_params(text))
    return caller.deliver(request).body


@covers("stream.literal", "voice.16")
@pytest.mark.parametrize("text", ["你好é", "ñ 😀 ﷽", "Ω≈ç√∫", "\x7f\xa0\ufeff"])
def test_text_that_is_not_ascii_travels_as_utf_8(caller: Caller, text: str) -> None:
    body = raw_stream(caller, text)
    assert body.count(text.encode()) == 2  # in the history of the task, and in the echo
    assert b"\\u" not in body


@covers("stream.line-breaks", "voice.17")
@pytest.mark.parametrize("breaking", ["\u2028", "\u2029", "\u0085"])
def test_characters_that_some_clients_take_for_line_ends_are_escaped(caller: Caller, breaking: str) -> None:
    text = f"a{breaking}b\r\nc\rd\x0b\x0ce"
    body = raw_stream(caller, text)
    assert breaking.encode() not in body
    assert f"a\\u{ord(breaking):04x}b".encode() in body
    assert b"\r" not in body
    # A client that splits as Unicode has it sees the same lines as one that splits at LF.
    assert [line for line in body.decode().splitlines() if line] == [
        line for line in body.decode().split("\n") if line
    ]
    items = streamed(caller, text)
    assert folded(items)["artifacts"][0]["parts"] == [{"text": text}]


@covers("stream.frames")
def test_every_line_of_a_stream_is_a_field_that_the_standard_knows(caller: Caller) -> None:
    body = raw_stream(caller, "stream 3").decode()
    assert body.endswith("\n\n")
    for block in body.removesuffix("\n\n").split("\n\n"):
        assert re.fullmatch(r"id: \d+\ndata: \{.*\}", block), block


@covers("stream.bare-message")
@pytest.mark.parametrize("agent", ["demo", "teller"])
def test_the_stream_of_a_bare_message_is_that_message(caller: Caller, agent: str) -> None:
    items = streamed(caller.to(agent), "message hi")
    assert [item.kind for item in items] == ["message"]
    said = {"demo": "hi", "teller": "you said: message hi"}[agent]
    assert items[0].value["parts"] == [{"text": said}]


@covers("stream.error", "voice.13", "voice.14")
def test_an_error_in_a_stream_that_has_begun_keeps_its_code_and_ends_it(caller: Caller) -> None:
    """The agent promised a message and gave none: known only after the stream was opened."""
    with caller.to("mute").open("SendStreamingMessage", send_params()) as stream:
        frames = list(stream.frames())
    assert len(frames) == 1
    assert (frames[0].id, frames[0].event) == (None, "error" if caller.binding == "http" else None)
    body = (frames[0].data or "").encode()
    status = BAD_AGENT.http if caller.binding == "http" else 200
    headers = dict(stream.headers) | {"content-type": "application/json"}
    refused(Reply(caller.binding, status, headers, body), BAD_AGENT, identifier=1)


@covers("stream.refused", "voice.15")
@pytest.mark.usefixtures("nothing_stored")
def test_a_stream_that_is_refused_is_a_plain_error_and_no_stream(caller: Caller) -> None:
    with caller.open("SendStreamingMessage", {"message": {"messageId": new_id()}}) as stream:
        assert stream.headers["content-type"] == "application/json"
        refused(stream.reply(), PARAMS, fields=["message.role"], identifier=1)


@covers("stream.at-once")
def test_return_immediately_means_nothing_to_a_stream(caller: Caller) -> None:
    params = send_params("stream 3", configuration={"returnImmediately": True})
    with caller.open("SendStreamingMessage", params) as stream:
        items = stream.rest()
    assert (items[0].kind, items[-1].state) == ("task", "TASK_STATE_COMPLETED")


@covers("stream.prompt")
def test_events_come_as_they_happen(caller: Caller, holding: str) -> None:
    """The stream is read while the task stands still: its first item must not wait for a second one."""
    with caller.to("hold").open("SubscribeToTask", {"id": holding}) as stream:
        assert stream.next().value["id"] == holding


@covers("stream.keep-alive", "voice.51", "voice.52")
@pytest.mark.parametrize("kind", ["http", "jsonrpc"])
def test_a_silent_stream_shows_a_comment_within_15_seconds(
    idle_streams: dict[str, Stream], kind: str
) -> None:
    """The streams were opened when the session began, so that little or none of the wait is left."""
    frames = idle_streams[kind].frames()
    assert next(frames).data is not None
    frame = next(frames)
    assert (frame.comment, frame.id, frame.event, frame.data) == ("keep-alive", None, None, None)
