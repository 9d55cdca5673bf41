"""Streams and subscriptions through the official SDKs."""

import pytest

from tests.interop.sdks import UNFINISHED, Report, artifact_text, assert_task_stream, only, state, text

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_a_stream_is_the_task_then_its_updates_then_the_end(report: Report) -> None:
    events = report["stream_chunks"]["events"]
    assert_task_stream(events)
    assert state(only(events, "statusUpdate")[-1]) == "TASK_STATE_COMPLETED"


def test_streamed_chunks_build_one_artifact_in_order(report: Report) -> None:
    chunks = only(report["stream_chunks"]["events"], "artifactUpdate")
    assert len({chunk["artifact"]["artifactId"] for chunk in chunks}) == 1
    assert [bool(chunk.get("append")) for chunk in chunks] == [False] + [True] * (len(chunks) - 1)
    assert [bool(chunk.get("lastChunk")) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    texts = [text(chunk["artifact"]["parts"]) for chunk in chunks]
    assert len([piece for piece in texts if piece]) == 5
    assert artifact_text(report["stream_chunks"]["task"]) == "".join(texts)


def test_progress_is_seen_while_the_agent_works(report: Report) -> None:
    events = report["stream_progress"]
    assert_task_stream(events)
    progress = [update for update in only(events, "statusUpdate") if state(update) == "TASK_STATE_WORKING"]
    said = [
        text(update["status"]["message"]["parts"]) for update in progress if "message" in update["status"]
    ]
    assert len(said) >= 4
    assert len(set(said)) == len(said)


def test_a_subscription_starts_with_the_running_task_and_follows_it_to_its_end(report: Report) -> None:
    seen = report["subscribe"]
    assert_task_stream(seen["events"])
    task = seen["events"][0]["task"]
    assert task["id"] == seen["running"]["id"]
    assert state(task) in UNFINISHED
    assert len(only(seen["events"], "statusUpdate")) >= 5
    assert state(only(seen["events"], "statusUpdate")[-1]) == "TASK_STATE_COMPLETED"
