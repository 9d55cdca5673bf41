"""Cards and sends through the official SDKs."""

import pytest

from tests.interop.sdks import HTTP_JSON, UNFINISHED, Report, artifact_text, raw_bytes, state, text

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_the_card_names_each_binding_at_the_address_where_it_answers(report: Report) -> None:
    card = report["card"]
    interfaces = [
        (interface["protocolBinding"], interface["url"])
        for interface in card["supportedInterfaces"]
        if interface["protocolVersion"] == "1.0"
    ]
    assert sorted(interfaces) == [("HTTP+JSON", report.agent_url), ("JSONRPC", f"{report.agent_url}/rpc")]


def test_the_card_describes_an_agent_that_streams_and_does_not_push(report: Report) -> None:
    card = report["card"]
    assert card["name"] and card["description"] and card["version"]
    assert card["skills"] and card["defaultInputModes"] and card["defaultOutputModes"]
    assert card["capabilities"]["streaming"] is True
    assert not card["capabilities"].get("pushNotifications", False)
    assert not card["capabilities"].get("extendedAgentCard", False)


def test_the_sdk_speaks_the_binding_it_was_told_to_pick_from_the_card(report: Report) -> None:
    posts = {call.removeprefix("POST ") for call in report.seen["calls"] if call.startswith("POST ")}
    if report.sdk.binding == HTTP_JSON:
        assert {"/agents/demo/message:send", "/agents/demo/message:stream"} <= posts
        assert "/agents/demo/rpc" not in posts
    else:
        assert posts == {"/agents/demo/rpc"}


def test_a_blocking_send_gives_the_completed_task_with_what_was_sent(report: Report) -> None:
    task = report["echo"]["task"]
    sent = "A dragoman carries words, not opinions. Größe: 名前 🕊"
    assert task["id"] and task["contextId"]
    assert state(task) == "TASK_STATE_COMPLETED"
    assert artifact_text(task) == sent
    (message,) = [message for message in task["history"] if message["role"] == "ROLE_USER"]
    assert text(message["parts"]) == sent
    assert message.get("taskId") in {None, "", task["id"]}
    assert message.get("contextId") in {None, "", task["contextId"]}


def test_return_immediately_gives_the_task_before_its_work_is_done(report: Report) -> None:
    seen = report["return_immediately"]
    assert seen["seconds"] < 1.5
    assert state(seen["first"]) in UNFINISHED
    assert seen["last"]["id"] == seen["first"]["id"]
    assert state(seen["last"]) == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("how", ["sent", "streamed"])
def test_an_agent_that_only_answers_gives_a_message_and_no_task(report: Report, how: str) -> None:
    seen = report["bare_message"]
    answers = [seen["sent"]] if how == "sent" else seen["streamed"]
    assert [list(answer) for answer in answers] == [["message"]]
    message = answers[0]["message"]
    assert message["role"] == "ROLE_AGENT"
    assert "hello" in text(message["parts"])
    assert message["messageId"] and message["contextId"]
    assert not message.get("taskId")


def test_a_second_message_with_the_same_context_starts_a_new_task_in_it(report: Report) -> None:
    first, second = report["same_context"]["first"], report["same_context"]["second"]
    assert second["contextId"] == first["contextId"]
    assert second["id"] != first["id"]
    assert artifact_text(second) == "second turn"


def test_the_same_message_sent_again_gives_the_same_task(report: Report) -> None:
    assert report["repeat"]["second"] == report["repeat"]["first"]
    assert artifact_text(report["repeat"]["first"]["task"]) == "once only"


def test_another_message_under_a_used_id_is_refused(report: Report) -> None:
    assert report["repeat"]["changed"]["type"] is not None
    assert "answer" not in report["repeat"]["changed"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("fail", "TASK_STATE_FAILED"), ("reject", "TASK_STATE_REJECTED"), ("crash", "TASK_STATE_FAILED")],
)
def test_an_agent_that_does_not_succeed_leaves_its_task_in_the_state_that_says_so(
    report: Report, asked: str, expected: str
) -> None:
    task = report["outcomes"][asked]
    assert state(task) == expected
    assert not task.get("artifacts")


def test_no_word_of_an_exception_reaches_the_caller(report: Report) -> None:
    assert "Traceback" not in str(report["outcomes"]["crash"])
    assert ".py" not in str(report["outcomes"]["crash"])


def test_a_file_artifact_arrives_with_its_bytes_name_and_type(report: Report) -> None:
    (artifact,) = report["artifacts"]["file"]
    (part,) = artifact["parts"]
    assert raw_bytes(part)
    assert part["filename"] and "/" in part["mediaType"]


def test_a_data_artifact_arrives_as_data(report: Report) -> None:
    (artifact,) = report["artifacts"]["data"]
    (part,) = artifact["parts"]
    assert part["data"]
    assert isinstance(part["data"], dict | list)


def test_a_large_artifact_arrives_whole(report: Report) -> None:
    (artifact,) = report["artifacts"]["big 256"]
    assert len(text(artifact["parts"]).encode()) == 256 * 1024
