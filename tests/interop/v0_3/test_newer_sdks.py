"""The SDKs of A2A 1.0 on a 0.3 interface: they translate, and their callers notice known losses alone."""

import base64
from ast import literal_eval

import pytest

from tests.harness.server import ServerProcess
from tests.harness.wire import call
from tests.interop.sdks import (
    UNFINISHED,
    Json,
    Report,
    Sdk,
    artifact_text,
    assert_task_stream,
    kinds,
    only,
    state,
    text,
)
from tests.interop.v0_3.sdks import NEWER_SDKS, over_http

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SCENARIOS = (
    "echo", "return_immediately", "stream_chunks", "stream_progress", "history", "cancel", "subscribe", "errors",
    "bare_message", "same_context", "repeat", "outcomes", "artifacts", "parts",
)  # fmt: skip


@pytest.fixture(scope="module", params=NEWER_SDKS, ids=str)
def newer(request: pytest.FixtureRequest, server: ServerProcess) -> Report:
    """What the SDK saw of the scenarios that 0.3 has operations for."""
    sdk: Sdk = request.param
    return sdk.drive(server.url, *SCENARIOS)


def test_it_speaks_0_3_and_nothing_else(newer: Report) -> None:
    posts = {call.removeprefix("POST ") for call in newer.seen["calls"] if call.startswith("POST ")}
    if over_http(newer):
        assert all(path.startswith("/agents/demo/v1/v1/") for path in posts)
        assert "/agents/demo/v1/v1/message:send" in posts
    else:
        assert posts == {"/agents/demo/rpc"}


def test_a_blocking_send_gives_the_completed_task_with_what_was_sent(newer: Report) -> None:
    task = newer["echo"]["task"]
    assert state(task) == "TASK_STATE_COMPLETED"
    assert task["status"]["timestamp"]
    assert artifact_text(task) == "A dragoman carries words, not opinions. Größe: 名前 🕊"
    (message,) = task["history"]
    assert (message["role"], text(message["parts"])) == ("ROLE_USER", artifact_text(task))


def test_return_immediately_gives_the_task_before_its_work_is_done(newer: Report) -> None:
    seen = newer["return_immediately"]
    assert seen["seconds"] < 1.5
    assert state(seen["first"]) in UNFINISHED
    assert state(seen["last"]) == "TASK_STATE_COMPLETED"


def test_streams_carry_the_task_and_its_updates_to_the_end(newer: Report) -> None:
    for events in (
        newer["stream_chunks"]["events"],
        newer["stream_progress"],
        newer["subscribe"]["events"],
    ):
        assert_task_stream(events)
        assert state(only(events, "statusUpdate")[-1]) == "TASK_STATE_COMPLETED"
    chunks = only(newer["stream_chunks"]["events"], "artifactUpdate")
    texts = [text(chunk["artifact"]["parts"]) for chunk in chunks]
    assert texts == [f"chunk {number} " for number in range(1, 6)]
    assert artifact_text(newer["stream_chunks"]["task"]) == "".join(texts)


def test_a_history_length_of_one_gives_the_newest_message(newer: Report) -> None:
    assert newer["history"]["one"]["history"] == newer["history"]["absent"]["history"][-1:]


def test_cancel_ends_a_running_task_at_once_and_for_good(newer: Report) -> None:
    seen = newer["cancel"]
    assert state(seen["canceled"]) == "TASK_STATE_CANCELED"
    assert seen["read"]["status"] == seen["canceled"]["status"]
    assert seen["again"]["type"] == "TaskNotCancelableError"


@pytest.mark.parametrize(
    ("call_name", "expected"),
    [
        ("get unknown", "TaskNotFoundError"),
        ("cancel unknown", "TaskNotFoundError"),
        ("subscribe unknown", "TaskNotFoundError"),
        ("message to unknown", "TaskNotFoundError"),
        ("message to finished", "UnsupportedOperationError"),
        ("cancel finished", "TaskNotCancelableError"),
        ("push create", "PushNotificationNotSupportedError"),
    ],
)
def test_each_refusal_is_the_typed_error_of_the_standard(
    newer: Report, call_name: str, expected: str
) -> None:
    assert newer["errors"][call_name]["type"] == expected, newer["errors"][call_name]


def test_a_subscription_to_a_finished_task_is_answered_as_0_3_does(newer: Report) -> None:
    # In 1.0 it is an UnsupportedOperationError; in 0.3 it is the task, and the end.
    error = newer["errors"]["subscribe finished"]
    assert error["type"] is None
    (event,) = literal_eval(error["answer"])
    assert list(event) == ["task"]
    assert state(event["task"]) == "TASK_STATE_COMPLETED"
    assert artifact_text(event["task"]) == "done soon"


@pytest.mark.parametrize("how", ["sent", "streamed"])
def test_an_agent_that_only_answers_gives_a_message_and_no_task(newer: Report, how: str) -> None:
    answers = [newer["bare_message"]["sent"]] if how == "sent" else newer["bare_message"]["streamed"]
    assert kinds(answers) == ["message"]
    assert text(answers[0]["message"]["parts"]) == "hello"


def test_a_context_and_a_repeated_message_are_recognised(newer: Report) -> None:
    first, second = newer["same_context"]["first"], newer["same_context"]["second"]
    assert (second["contextId"], second["id"] == first["id"]) == (first["contextId"], False)
    assert newer["repeat"]["second"] == newer["repeat"]["first"]
    assert newer["repeat"]["changed"]["type"] in {"InvalidParamsError", "RequestMalformedError"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("fail", "TASK_STATE_FAILED"), ("reject", "TASK_STATE_REJECTED"), ("crash", "TASK_STATE_FAILED")],
)
def test_an_agent_that_does_not_succeed_leaves_its_task_in_the_state_that_says_so(
    newer: Report, asked: str, expected: str
) -> None:
    assert state(newer["outcomes"][asked]) == expected


def _as_carried(newer: Report, part: Json) -> Json:
    """What the SDK itself keeps of a part on its way.

    The JavaScript one has neither the name of a file nor the metadata of a part in the ProtoJSON of 0.3, and so loses
    the mark on data that is no object and had to be wrapped in one.
    """
    if not (over_http(newer) and "js" in newer.sdk.environment):
        return part
    kept = {name: value for name, value in part.items() if name != "filename"}
    if "data" in kept and not isinstance(kept["data"], dict):
        kept["data"] = {"value": kept["data"]}
    return kept


@pytest.mark.parametrize("how", ["task", "read"])
def test_files_and_data_come_back_as_they_were_sent(newer: Report, how: str) -> None:
    sent = [_as_carried(newer, part) for part in newer["parts"]["sent"]["parts"]]
    (artifact,) = newer["parts"][how]["artifacts"]
    assert artifact["parts"] == sent
    assert base64.b64decode(artifact["parts"][0]["raw"]) == bytes(range(256))
    (message,) = newer["parts"][how]["history"]
    assert message["parts"] == sent


def test_the_agent_and_callers_of_1_0_see_the_bytes_that_were_meant(newer: Report) -> None:
    # An echo alone proves nothing: bytes that were encoded once too often come back as they went.
    sent = newer["parts"]["sent"]["parts"]
    task = call("GET", f"{newer.agent_url}/tasks/{newer['parts']['task']['id']}").json()
    assert [part["raw"] for part in task["artifacts"][0]["parts"][:3]] == [part["raw"] for part in sent[:3]]


def test_artifacts_arrive_whole(newer: Report) -> None:
    (file,) = newer["artifacts"]["file"][0]["parts"]
    assert base64.b64decode(file["raw"]) == b"A file made by the demo agent.\n"
    sent = {"filename": "demo.txt", "mediaType": "text/plain", "raw": file["raw"]}
    assert file == _as_carried(newer, sent)
    (data,) = newer["artifacts"]["data"][0]["parts"]
    assert data["data"] == {"text": "", "words": 0, "attempt": 1}
    assert len(text(newer["artifacts"]["big 256"][0]["parts"])) == 256 * 1024
