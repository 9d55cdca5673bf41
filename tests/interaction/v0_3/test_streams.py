"""Streams of a send: one Task, then updates, and `final` on the last one alone."""

import json
import re
from typing import Any

import pytest

from tests.interaction.messages import new_id
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import (
    BAD_AGENT,
    BODY_TYPE,
    ENVELOPE,
    NO_AGENT,
    PARAMS,
    TASK_NOT_FOUND,
    UNSUPPORTED,
    check_problem,
    check_response,
    refused,
)
from tests.interaction.v0_3.callers import PLACES, Caller, Place
from tests.interaction.v0_3.conftest import IdleStream
from tests.interaction.v0_3.events import Item, folded
from tests.interaction.v0_3.messages import got, message, send_params, sent, text_part
from tests.interaction.v0_3.requirements import covers

STREAMED = {"Accept": "text/event-stream"}


def streamed(caller: Caller, text: str, **members: object) -> list[Item]:
    """All items of the stream of a send."""
    with caller.open("SendStreamingMessage", send_params(text, **members)) as stream:
        return stream.rest()


TEXTS = {
    "hello": "completed",
    "stream 5": "completed",
    "slow 0.1": "completed",
    "fail x": "failed",
    "reject x": "rejected",
    "crash": "failed",
}


@covers("stream.shape", "stream.final", "difference.final")
@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_is_one_task_then_updates_and_the_last_of_them_is_final(caller: Caller, text: str) -> None:
    items = streamed(caller, text)
    assert [item.kind for item in items].index("task") == 0
    assert {item.kind for item in items[1:]} <= {"status-update", "artifact-update"}
    assert [item.final for item in items] == [False] * (len(items) - 1) + [True]
    assert items[-1].state == TEXTS[text]
    assert got(caller, items[0].value["id"])["status"] == items[-1].value["status"]


@covers("stream.final", "stream.question")
def test_a_stream_ends_at_a_question_to_the_caller_which_is_final(caller: Caller) -> None:
    items = streamed(caller.to("asks"), "begin")
    assert [item.final for item in items] == [False] * (len(items) - 1) + [True]
    assert items[-1].state == "input-required"
    task_id = items[0].value["id"]
    with caller.to("asks").open("SendStreamingMessage", send_params("four", taskId=task_id)) as stream:
        rest = stream.rest()
    assert (rest[0].kind, rest[0].value["id"]) == ("task", task_id)
    assert [item.kind for item in rest].count("task") == 1
    assert (rest[-1].state, [item.final for item in rest].index(True)) == ("completed", len(rest) - 1)


@covers("stream.final", "stream.question")
def test_a_stream_goes_on_while_authorisation_is_waited_for(caller: Caller) -> None:
    agent = caller.to("waits")
    with agent.open("SendStreamingMessage", send_params("begin")) as stream:
        items = []
        for item in stream.items():
            items.append(item)
            if item.state == "auth-required":
                break
        assert not any(item.final for item in items)
        sent(agent, "go on", wait=False, taskId=items[0].value["id"])
        rest = stream.rest()
    assert rest[0].state == "working"
    assert [item.final for item in rest] == [False] * (len(rest) - 1) + [True]
    assert rest[-1].state == "completed"
    assert "task" not in [item.kind for item in rest]


@covers("stream.same-task")
@pytest.mark.parametrize("text", ["hello", "stream 30", "big 100", "file x", "data y", "fail z"])
def test_a_stream_put_together_is_the_task(caller: Caller, text: str) -> None:
    items = streamed(caller, text)
    task = got(caller, items[0].value["id"])
    whole = folded(items)
    assert whole["status"] == task["status"]
    assert whole.get("artifacts", []) == task.get("artifacts", [])
    for item in items[1:]:
        assert (item.value["taskId"], item.value["contextId"]) == (task["id"], task["contextId"])


@covers("stream.ids")
def test_the_id_of_an_event_is_its_sequence_in_the_task(caller: Caller, rows: Rows) -> None:
    items = streamed(caller, "stream 10")
    numbers = [item.id for item in items]
    sql = "SELECT max(seq) FROM event WHERE task_id = ?"
    last = rows.query(sql, items[0].value["id"])[0][0]
    assert numbers == list(range(numbers[0] or 0, last + 1))


@covers("stream.chunks", "difference.chunk-flags")
def test_the_flags_of_chunks_are_written_where_they_are_true(caller: Caller) -> None:
    chunks = [item.value for item in streamed(caller, "stream 5") if item.kind == "artifact-update"]
    assert [chunk.get("append") for chunk in chunks] == [None] + [True] * 4
    assert [chunk.get("lastChunk") for chunk in chunks] == [None] * 4 + [True]
    assert len({chunk["artifact"]["artifactId"] for chunk in chunks}) == 1


FORMS = {
    "http with kinds": r'id: \d+\ndata: \{.*"kind":"(?:task|status-update|artifact-update)".*\}',
    "jsonrpc": r'id: \d+\ndata: \{"jsonrpc":"2\.0","id":1,"result":\{.*"kind":".*\}\}',
    "proto": r'id: \d+\ndata: \{"(?:task|statusUpdate|artifactUpdate)":\{.*\}\}',
}


@covers("stream.frames")
def test_an_event_is_its_id_and_one_line_of_data(caller: Caller) -> None:
    """Official clients read one line of data an event, with a space after the colon."""
    reply = caller.call("SendStreamingMessage", send_params("stream 3"))
    assert reply.headers["content-type"] == "text/event-stream"
    assert (reply.headers["cache-control"], reply.headers["x-accel-buffering"]) == ("no-store", "no")
    body = reply.body.decode()
    assert body.endswith("\n\n")
    form = (
        "proto" if not caller.has_kinds else "jsonrpc" if caller.binding == "jsonrpc" else "http with kinds"
    )
    for block in body.removesuffix("\n\n").split("\n\n"):
        assert re.fullmatch(FORMS[form], block), block


@covers("stream.text")
@pytest.mark.parametrize("breaking", ["\u2028", "\u2029", "\u0085"])
def test_text_travels_as_utf_8_but_for_what_some_clients_take_for_line_ends(
    caller: Caller, breaking: str
) -> None:
    text = f"é😀{breaking}b\r\nc\0"
    body = caller.call("SendStreamingMessage", send_params(text)).body
    assert breaking.encode() not in body and "é😀".encode() in body
    items = streamed(caller, text)
    assert folded(items)["artifacts"][0]["parts"] == [text_part(text)]


@covers("stream.bare-message")
@pytest.mark.parametrize("agent", ["demo", "teller"])
def test_the_stream_of_a_bare_message_is_that_message(caller: Caller, agent: str) -> None:
    items = streamed(caller.to(agent), "message hi")
    assert [item.kind for item in items] == ["message"]
    said = {"demo": "hi", "teller": "you said: message hi"}[agent]
    assert items[0].value["parts"] == [text_part(said)]


@covers("stream.at-once")
@pytest.mark.parametrize("blocking", [True, False])
def test_blocking_means_nothing_to_a_stream(caller: Caller, blocking: bool) -> None:
    params = send_params("stream 3", configuration={"blocking": blocking})
    with caller.open("SendStreamingMessage", params) as stream:
        items = stream.rest()
    assert (items[0].kind, items[-1].state) == ("task", "completed")


@covers("stream.error")
def test_an_error_in_a_stream_that_has_begun_keeps_its_code_and_ends_it(caller: Caller) -> None:
    """The agent promised a message and gave none: known only after the stream was opened."""
    with caller.to("mute").open("SendStreamingMessage", send_params()) as stream:
        items = stream.rest()
    assert [(item.id, item.kind) for item in items] == [(None, "error")]
    if caller.binding == "jsonrpc":
        check_response(items[0].value, BAD_AGENT, identifier=1)
    else:
        check_problem(items[0].value, stream.head, BAD_AGENT)


@covers("stream.refused")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("headers", [{}, STREAMED, {"Accept": "application/json"}], ids=str)
def test_a_stream_that_is_refused_over_http_is_a_problem_document(
    web: Caller, headers: dict[str, str]
) -> None:
    reply = web.call("SendStreamingMessage", {"message": {"messageId": new_id()}}, headers=headers)
    refused(reply, PARAMS, fields=["message.role"])
    refused(web.call("SubscribeToTask", {"id": "nope"}, headers=headers), TASK_NOT_FOUND)
    refused(web.to("still").call("SendStreamingMessage", send_params(), headers=headers), UNSUPPORTED)


REFUSED: dict[str, tuple[str, str, dict[str, Any], Any]] = {
    "field": ("demo", "SendStreamingMessage", {"message": {}}, PARAMS),
    "task": ("demo", "SubscribeToTask", {"id": "nope"}, TASK_NOT_FOUND),
    "no id": ("demo", "SubscribeToTask", {}, PARAMS),
    "agent": ("still", "SendStreamingMessage", {"message": message()}, UNSUPPORTED),
    "turn": ("demo", "SendStreamingMessage", {"message": message(taskId="nope")}, TASK_NOT_FOUND),
}


@covers("stream.refused-as-stream")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json, text/event-stream;q=0.5"])
def test_a_stream_that_is_refused_over_jsonrpc_is_a_stream_of_the_error_for_whoever_takes_one(
    rpc: Caller, case: str, accept: str
) -> None:
    """Official clients find the error nowhere else (A2A 0.3 §7: each event of the stream is a response)."""
    agent, operation, params, refusal = REFUSED[case]
    with rpc.to(agent).open(operation, params, headers={"Accept": accept}) as stream:
        frames = list(stream.frames())
    assert stream.headers["a2a-version"] == "0.3"
    assert [(frame.id, frame.event) for frame in frames] == [(None, None)]
    check_response(json.loads(frames[0].data or ""), refusal, identifier=1)


@covers("stream.refused-as-stream")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("accept", [None, "*/*", "application/json"])
def test_a_stream_that_is_refused_over_jsonrpc_is_plain_json_for_everybody_else(
    rpc: Caller, case: str, accept: str | None
) -> None:
    agent, operation, params, refusal = REFUSED[case]
    headers = {} if accept is None else {"Accept": accept}
    refused(rpc.to(agent).call(operation, params, headers=headers), refusal, identifier=1)


@covers("stream.refused-as-stream")
@pytest.mark.usefixtures("nothing_stored")
def test_what_is_refused_before_the_method_is_known_or_is_no_stream_is_plain_json(rpc: Caller) -> None:
    stream = rpc.request("SendStreamingMessage", send_params(), headers=STREAMED)
    refused(rpc.deliver(stream.with_headers(content_type="text/plain")), BODY_TYPE)
    refused(rpc.to("nobody").call("SendStreamingMessage", send_params(), headers=STREAMED), NO_AGENT)
    refused(rpc.deliver(rpc.post(b'{"jsonrpc":"1.0","id":1}', STREAMED)), ENVELOPE, identifier=1)
    refused(rpc.call("GetTask", {"id": "nope"}, headers=STREAMED), TASK_NOT_FOUND, identifier=1)
    refused(rpc.call("SendMessage", {}, headers=STREAMED), PARAMS, fields=["message"], identifier=1)


@covers("stream.keep-alive")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_silent_stream_shows_a_comment_that_is_no_event(
    idle_streams: dict[str, IdleStream], place: Place
) -> None:
    """One line without an empty one after it, which a2a-sdk 0.3.26 takes for an event without data once it saw an id.

    The streams were opened when the session began, so that little or none of the wait is left.
    """
    idle = idle_streams[place.name]
    frames = idle.stream.frames()
    assert next(frames).data is not None
    frame = next(frames)
    assert (frame.comment, frame.id, frame.event, frame.data) == ("keep-alive", None, None, None)
    idle.caller.call("CancelTask", {"id": idle.task_id})
    left = [frame for frame in idle.stream.frames() if frame.comment != "keep-alive"]
    assert [(frame.comment, frame.id is not None) for frame in left] == [(None, True)]
    assert "CANCELLED" in (left[0].data or "").upper().replace("CANCELED", "CANCELLED")
