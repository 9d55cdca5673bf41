"""Streams show what was committed, in order, and no piece of a result."""

import time
from pathlib import Path

import pytest

from tests.harness.polling import until
from tests.interaction.answers import NOT_ACCEPTABLE, TASK_NOT_FOUND, UNSUPPORTED, refused
from tests.interaction.events import Item, folded
from tests.interaction.following import ended, got, sent
from tests.interaction.hosted.callers import Hosted
from tests.interaction.hosted.requirements import covers
from tests.interaction.hosted.test_results import result_of
from tests.interaction.messages import new_id, send_params


def kinds(items: list[Item]) -> list[str]:
    """What each item is, with the state that it tells of."""
    return [f"{item.kind} {item.state.removeprefix('TASK_STATE_')}".strip() for item in items]


@covers("stream.first", "stream.result")
def test_a_stream_is_the_task_as_it_stands_then_the_result_then_the_completion(alice: Hosted) -> None:
    with alice.open("SendStreamingMessage", send_params("hello")) as stream:
        items = stream.rest()
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-store"
    assert kinds(items) == ["task SUBMITTED", "artifactUpdate", "statusUpdate COMPLETED"]
    task = folded(items)
    assert result_of(task) == "hello"
    read = got(alice, task["id"])
    assert {name: task[name] for name in ("id", "contextId", "status", "artifacts")} == {
        name: read[name] for name in ("id", "contextId", "status", "artifacts")
    }


@covers("stream.order")
def test_updates_come_in_the_order_in_which_they_were_committed(alice: Hosted) -> None:
    with alice.open("SendStreamingMessage", send_params("slow 1")) as stream:
        items = stream.rest()
    assert [item.id for item in items] == list(range(1, len(items) + 1))
    words = [
        part["text"]
        for item in items[1:]
        if item.kind == "statusUpdate"
        for part in item.value["status"].get("message", {}).get("parts", [])
    ]
    assert words == [f"{percent} % done" for percent in (0, 20, 40, 60, 80)]
    stamps = [item.value["status"]["timestamp"] for item in items if item.kind == "statusUpdate"]
    assert stamps == sorted(stamps)
    assert kinds(items)[-2:] == ["artifactUpdate", "statusUpdate COMPLETED"]


@covers("stream.pieces")
def test_no_piece_of_a_result_is_shown_before_it_is_whole(probe: Hosted, tmp_path: Path) -> None:
    release = tmp_path / "release"
    with probe.open("SendStreamingMessage", send_params(f"pieces {release}")) as stream:
        began = [stream.next(), stream.next()]
        task_id = began[0].value["id"]
        assert kinds(began) == ["task SUBMITTED", "statusUpdate WORKING"]
        assert not got(probe, task_id).get("artifacts")
        with probe.open("SubscribeToTask", {"id": task_id}) as other:
            assert not other.next().value.get("artifacts")
            release.touch()
            rests = [stream.rest(), other.rest()]
    for rest in rests:
        assert kinds(rest) == ["artifactUpdate", "statusUpdate COMPLETED"]
        update = rest[0].value
        assert (update.get("append", False), update["lastChunk"]) == (False, True)
        assert update["artifact"]["parts"][0]["text"] == "one two three\n\nfour\n\nfive"


@covers("stream.result")
@pytest.mark.parametrize(("text", "state"), [("fail", "FAILED"), ("reject", "REJECTED"), ("data", "FAILED")])
def test_a_run_that_does_not_complete_shows_no_result(alice: Hosted, text: str, state: str) -> None:
    with alice.open("SendStreamingMessage", send_params(text)) as stream:
        items = stream.rest()
    assert kinds(items)[0] == "task SUBMITTED"
    assert kinds(items)[-1] == f"statusUpdate {state}"
    assert "artifactUpdate" not in kinds(items)


@covers("stream.first")
def test_the_stream_of_a_send_ends_where_the_run_asks(alice: Hosted) -> None:
    with alice.open("SendStreamingMessage", send_params("ask which?")) as stream:
        items = stream.rest()
    assert kinds(items) == ["task SUBMITTED", "statusUpdate INPUT_REQUIRED"]


@covers("subscribe.snapshot")
def test_a_subscription_begins_with_the_task_and_tells_what_happens(probe: Hosted, tmp_path: Path) -> None:
    release = tmp_path / "release"
    task_id = sent(probe, f"hold {release}", wait=False)["id"]
    until(lambda: "message" in got(probe, task_id)["status"], what="the agent has spoken")
    with probe.open("SubscribeToTask", {"id": task_id}) as stream:
        first = stream.next()
        assert (first.kind, first.value) == ("task", got(probe, task_id))
        release.touch()
        assert kinds(stream.rest()) == ["artifactUpdate", "statusUpdate COMPLETED"]


@covers("subscribe.snapshot")
def test_a_subscription_to_a_run_that_asks_stays_until_the_end(alice: Hosted) -> None:
    task = sent(alice, "ask which?")
    with alice.open("SubscribeToTask", {"id": task["id"]}) as stream:
        assert stream.next().state == "TASK_STATE_INPUT_REQUIRED"
        assert alice.resume(task["id"], "that one").status == 200
        assert kinds(stream.rest()) == [
            "statusUpdate WORKING",
            "artifactUpdate",
            "statusUpdate COMPLETED",
        ]


@covers("subscribe.finished")
@pytest.mark.parametrize("text", ["hello", "fail", "reject"])
def test_a_finished_task_is_not_subscribed_to(alice: Hosted, text: str) -> None:
    task = sent(alice, text)
    reply = alice.call("SubscribeToTask", {"id": task["id"]})
    refused(reply, UNSUPPORTED, identifier=1)
    assert "GetTask" in reply.json()["error"]["message"]
    refused(alice.call("SubscribeToTask", {"id": new_id()}), TASK_NOT_FOUND, identifier=1)


@covers("stream.no-resume")
@pytest.mark.parametrize("event", ["1", "2", "0", "999", "x", ""])
def test_whoever_comes_back_gets_the_task_as_it_stands(probe: Hosted, held: str, event: str) -> None:
    until(lambda: "message" in got(probe, held)["status"], what="the agent has spoken")
    with probe.open("SubscribeToTask", {"id": held}, headers={"Last-Event-ID": event}) as stream:
        first = stream.next()
        assert (first.kind, first.value["id"], first.id) == ("task", held, 2)


@covers("stream.no-resume", "subscribe.finished")
def test_nor_does_it_open_the_stream_of_a_finished_task(alice: Hosted) -> None:
    task = sent(alice)
    reply = alice.call("SubscribeToTask", {"id": task["id"]}, headers={"Last-Event-ID": "1"})
    refused(reply, UNSUPPORTED, identifier=1)


@covers("observers.refused")
def test_a_stream_that_nobody_accepts_holds_no_place(alice: Hosted) -> None:
    task = sent(alice.by("ERIN"), "slow 20", wait=False)
    erin = alice.by("ERIN")
    for _ in range(6):
        reply = erin.call("SubscribeToTask", {"id": task["id"]}, headers={"Accept": "text/html"})
        refused(reply, NOT_ACCEPTABLE, identifier=1)
    for _ in range(6):
        refused(erin.call("SubscribeToTask", {"id": new_id()}), TASK_NOT_FOUND, identifier=1)
    with erin.open("SubscribeToTask", {"id": task["id"]}) as stream:
        assert stream.next().kind == "task"
    assert erin.call("CancelTask", {"id": task["id"]}).result["status"]["state"] == "TASK_STATE_CANCELED"


@covers("cancel.persists")
def test_a_cancel_ends_the_stream(alice: Hosted) -> None:
    with alice.open("SendStreamingMessage", send_params("slow 30")) as stream:
        task_id = stream.next().value["id"]
        began = time.monotonic()
        alice.call("CancelTask", {"id": task_id})
        assert kinds(stream.rest())[-1] == "statusUpdate CANCELED"
        assert time.monotonic() - began < 3
    assert ended(alice, task_id)["status"]["state"] == "TASK_STATE_CANCELED"
