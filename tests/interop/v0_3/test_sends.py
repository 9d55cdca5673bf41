"""Cards and sends through the official 0.3 SDKs."""

import pytest

from tests.interop.sdks import Report, artifact_text, state, text
from tests.interop.v0_3.sdks import JAVASCRIPT, UNFINISHED, content, history_texts, over_http, said

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

GREETING = "A dragoman carries words, not opinions. Größe: 名前 🕊"


def test_the_card_of_a_caller_without_a_version_names_the_0_3_interfaces(report: Report) -> None:
    card = report["card"]
    rpc = f"{report.agent_url}/rpc"
    assert (card["protocolVersion"], card["url"], card["preferredTransport"]) == ("0.3", rpc, "JSONRPC")
    interfaces = [(interface["transport"], interface["url"]) for interface in card["additionalInterfaces"]]
    assert interfaces == [("JSONRPC", rpc), ("HTTP+JSON", f"{report.agent_url}/v1")]


def test_the_card_describes_an_agent_that_streams_and_does_not_push(report: Report) -> None:
    card = report["card"]
    assert card["name"] and card["description"] and card["version"] and card["skills"]
    assert card["defaultInputModes"] and card["defaultOutputModes"]
    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"]["pushNotifications"] is False
    assert not card.get("supportsAuthenticatedExtendedCard", False)


def test_a_client_asked_for_its_card_has_the_public_one(report: Report) -> None:
    assert report["own_card"] == report["card"]


def test_the_sdk_speaks_the_binding_it_was_told_to_pick_from_the_card(report: Report) -> None:
    posts = {call.removeprefix("POST ") for call in report.seen["calls"] if call.startswith("POST ")}
    if over_http(report):
        assert {"/agents/demo/v1/v1/message:send", "/agents/demo/v1/v1/message:stream"} <= posts
        assert "/agents/demo/rpc" not in posts
    else:
        assert posts == {"/agents/demo/rpc"}


def test_a_blocking_send_gives_the_completed_task_with_what_was_sent(report: Report) -> None:
    task = report["echo"]
    assert task["kind"] == "task"
    assert task["id"] and task["contextId"]
    assert state(task) == "completed"
    assert artifact_text(task) == GREETING
    assert history_texts(task) == [("user", GREETING)]
    (message,) = task["history"]
    assert message["kind"] == "message" and message["messageId"]
    assert message.get("taskId") in {None, "", task["id"]}
    assert message.get("contextId") in {None, "", task["contextId"]}


def test_a_send_that_does_not_block_gives_the_task_before_its_work_is_done(report: Report) -> None:
    seen = report["not_blocking"]
    assert seen["seconds"] < 1.5
    assert state(seen["first"]) in UNFINISHED
    assert seen["last"]["id"] == seen["first"]["id"]
    assert state(seen["last"]) == "completed"
    assert artifact_text(seen["last"]) == "Took 2 s."


@pytest.mark.parametrize("how", ["sent", "streamed"])
def test_an_agent_that_only_answers_gives_a_message_and_no_task(report: Report, how: str) -> None:
    seen = report["bare_message"]
    (message,) = [seen["sent"]] if how == "sent" else seen["streamed"]
    assert (message["kind"], message["role"]) == ("message", "agent")
    assert text(message["parts"]) == "hello"
    assert message["messageId"] and message["contextId"]
    assert not message.get("taskId")


def test_a_second_message_with_the_same_context_starts_a_new_task_in_it(report: Report) -> None:
    first, second = report["same_context"]["first"], report["same_context"]["second"]
    assert second["contextId"] == first["contextId"]
    assert second["id"] != first["id"]
    assert artifact_text(second) == "second turn"


def test_the_same_message_sent_again_gives_the_same_task(report: Report) -> None:
    assert report["repeat"]["second"] == report["repeat"]["first"]
    assert artifact_text(report["repeat"]["first"]) == "once only"


@pytest.mark.parametrize(
    ("asked", "expected"), [("fail", "failed"), ("reject", "rejected"), ("crash", "failed")]
)
def test_an_agent_that_does_not_succeed_leaves_its_task_in_the_state_that_says_so(
    report: Report, asked: str, expected: str
) -> None:
    task = report["outcomes"][asked]
    assert state(task) == expected
    assert not task.get("artifacts")
    if asked != "crash":
        assert said(task) == f"{expected.capitalize()}, as asked."


def test_no_word_of_an_exception_reaches_the_caller(report: Report) -> None:
    assert "Traceback" not in str(report["outcomes"]["crash"])
    assert ".py" not in str(report["outcomes"]["crash"])


def test_a_file_artifact_arrives_with_its_bytes_name_and_type(report: Report) -> None:
    (artifact,) = report["artifacts"]["file"]
    (part,) = artifact["parts"]
    assert content(part) == b"A file made by the demo agent.\n"
    assert part["file"]["mimeType"] == "text/plain"
    lost = report.sdk in JAVASCRIPT and over_http(report)  # its ProtoJSON has no name
    assert part["file"].get("name") == (None if lost else "demo.txt")


def test_a_data_artifact_arrives_as_data(report: Report) -> None:
    (artifact,) = report["artifacts"]["data words words"]
    (part,) = artifact["parts"]
    assert content(part) == {"text": "words words", "words": 2, "attempt": 1}


def test_a_large_artifact_arrives_whole(report: Report) -> None:
    (artifact,) = report["artifacts"]["big 256"]
    assert text(artifact["parts"]) == "0123456789abcdef" * (256 * 1024 // 16)
