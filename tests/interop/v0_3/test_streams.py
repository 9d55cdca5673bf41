"""Streams and resubscriptions through the official 0.3 SDKs."""

import pytest

from tests.interop.sdks import Report, artifact_text, state, text
from tests.interop.v0_3.sdks import JAVASCRIPT, UNFINISHED, assert_task_stream, of_kind, over_http, said

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_a_stream_is_the_task_then_its_updates_then_the_final_one(report: Report) -> None:
    events = report["stream_chunks"]["events"]
    assert_task_stream(events)
    assert state(events[-1]) == "completed"


def test_streamed_chunks_build_one_artifact_in_order(report: Report) -> None:
    chunks = of_kind(report["stream_chunks"]["events"], "artifact-update")
    assert len({chunk["artifact"]["artifactId"] for chunk in chunks}) == 1
    appended = [False] + [True] * 4
    if report.sdk in JAVASCRIPT and over_http(report):
        appended = [False] * 5  # it tells its caller the last chunk and not which are appended
    assert [chunk.get("append", False) for chunk in chunks] == appended
    assert [chunk.get("lastChunk", False) for chunk in chunks] == [False] * 4 + [True]
    texts = [text(chunk["artifact"]["parts"]) for chunk in chunks]
    assert texts == [f"chunk {number} " for number in range(1, 6)]
    assert artifact_text(report["stream_chunks"]["task"]) == "".join(texts)


def test_progress_is_seen_while_the_agent_works(report: Report) -> None:
    events = report["stream_progress"]
    assert_task_stream(events)
    working = [update for update in of_kind(events, "status-update") if state(update) == "working"]
    assert [said(update) for update in working if said(update)] == [
        f"{done} % done" for done in (0, 20, 40, 60, 80)
    ]


def test_a_resubscription_starts_with_the_running_task_and_follows_it_to_its_end(report: Report) -> None:
    seen = report["resubscribe"]
    assert_task_stream(seen["events"])
    task = seen["events"][0]
    assert task["id"] == seen["running"]["id"]
    assert state(task) in UNFINISHED
    assert len(of_kind(seen["events"], "status-update")) >= 5
    assert state(seen["events"][-1]) == "completed"


def test_a_resubscription_to_a_finished_task_is_that_task_and_nothing_more(report: Report) -> None:
    seen = report["resubscribe_finished"]
    assert seen["events"] == [seen["done"]]
    assert state(seen["done"]) == "completed"
    assert artifact_text(seen["done"]) == "all done"
