"""Sending a message: whether it waits, what it answers, and how a conversation goes on."""

import re
from typing import Any

import pytest

from tests.interaction.messages import new_id
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import BAD_AGENT, PARAMS, PART_TYPE, TASK_NOT_FOUND, UNSUPPORTED, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import ended, file_part, got, send_params, sent, text_part, texts
from tests.interaction.v0_3.requirements import covers

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@covers("send.blocking")
def test_a_send_returns_the_finished_task_with_its_results(caller: Caller) -> None:
    params = send_params("hello")
    task = caller.call("SendMessage", params).value
    assert UUID7.fullmatch(task["id"]) and UUID7.fullmatch(task["contextId"])
    assert TIMESTAMP.fullmatch(task["status"].pop("timestamp"))
    assert task["artifacts"][0].pop("artifactId")
    assert task == {
        "kind": "task",
        "id": task["id"],
        "contextId": task["contextId"],
        "status": {"state": "completed"},
        "artifacts": [{"name": "echo", "parts": [text_part("hello")]}],
        "history": [params["message"]],
    }


@covers("send.blocking", "form.kinds")
def test_the_result_is_bare_and_its_kind_says_what_it_is(kinds: Caller) -> None:
    assert kinds.call("SendMessage", send_params()).result["kind"] == "task"
    assert kinds.call("SendMessage", send_params("message hi")).result["kind"] == "message"


@covers("send.blocking", "form.proto")
def test_the_result_is_wrapped_as_the_proto_has_it(official: Caller) -> None:
    result = official.call("SendMessage", send_params()).result
    assert (set(result), result["task"]["status"]["state"]) == ({"task"}, "TASK_STATE_COMPLETED")
    result = official.call("SendMessage", send_params("message hi")).result
    assert (set(result), result["message"]["role"]) == ({"message"}, "ROLE_AGENT")


WAITS: list[tuple[Any, bool, bool]] = [
    (None, True, True),
    ({}, True, False),
    ({"acceptedOutputModes": []}, True, False),
    ({"acceptedOutputModes": ["text/plain"], "historyLength": 3}, True, False),
    ({"blocking": True}, True, True),
    ({"blocking": False}, False, False),
    ({"blocking": None}, True, False),
]
"""Configuration → whether the send waits in the JSON with kinds, and in ProtoJSON, where false is never written."""


@covers("send.waiting", "difference.waiting")
@pytest.mark.parametrize(("configuration", "with_kinds", "in_proto"), WAITS, ids=str)
def test_whether_a_send_waits_hangs_on_its_configuration_and_its_form(
    form: Caller, configuration: Any, with_kinds: bool, in_proto: bool
) -> None:
    task = form.call("SendMessage", send_params("slow 0.1", configuration=configuration)).value
    waits = with_kinds if form.has_kinds else in_proto
    assert (task["status"]["state"] == "completed") == waits
    assert texts(ended(form, task["id"])) == ["Took 0.1 s."]


@covers("send.states")
@pytest.mark.parametrize(
    ("text", "state", "said"),
    [("fail no luck", "failed", "no luck"), ("reject not me", "rejected", "not me")],
)
def test_an_agent_that_fails_or_rejects_says_so_in_the_status(
    caller: Caller, text: str, state: str, said: str
) -> None:
    task = sent(caller, text)
    assert task["status"]["state"] == state
    told = task["status"]["message"]
    assert (told["role"], told["parts"]) == ("agent", [text_part(said)])
    assert (told["taskId"], told["contextId"]) == (task["id"], task["contextId"])
    assert "artifacts" not in task


HISTORY = [(None, 1, 1), (0, 0, 1), (1, 1, 1), (5, 1, 1)]


@covers("send.history", "difference.no-history")
@pytest.mark.parametrize(("length", "with_kinds", "in_proto"), HISTORY)
def test_a_history_length_of_0_is_none_at_all_with_kinds_and_unset_in_proto(
    form: Caller, length: int | None, with_kinds: int, in_proto: int
) -> None:
    configuration = {"blocking": True} | ({} if length is None else {"historyLength": length})
    task = form.call("SendMessage", send_params(configuration=configuration)).value
    assert len(task.get("history", [])) == (with_kinds if form.has_kinds else in_proto)


@covers("send.bare-message")
def test_a_bare_message_is_answered_without_a_task(caller: Caller, base: Caller) -> None:
    context = new_id("ctx")
    value = caller.call("SendMessage", send_params("message hi", contextId=context)).value
    assert UUID7.fullmatch(value.pop("messageId"))
    assert value == {"kind": "message", "role": "agent", "parts": [text_part("hi")], "contextId": context}
    assert base.call("ListTasks", {"contextId": context}).result["tasks"] == []


@covers("send.no-answer")
def test_an_agent_that_promised_a_message_and_gave_none_is_an_invalid_agent_response(caller: Caller) -> None:
    refused(caller.to("mute").call("SendMessage", send_params()), BAD_AGENT, identifier=1)


@covers("send.input-modes")
@pytest.mark.usefixtures("nothing_stored")
def test_a_part_of_a_media_type_that_the_agent_does_not_take_is_refused(caller: Caller) -> None:
    parts = [text_part("x"), file_part(b"\0", mimeType="image/png")]
    refused(caller.to("hold").call("SendMessage", send_params(parts=parts)), PART_TYPE, identifier=1)


@covers("send.facts", "difference.reference-task-ids")
def test_a_handler_is_told_what_the_request_says(caller: Caller) -> None:
    params = send_params("what do you see", referenceTaskIds=["a", "b"], contextId=new_id("ctx"))
    params["configuration"] = {"acceptedOutputModes": ["text/plain", "application/json"], "blocking": True}
    params["metadata"] = {"urn:x": {"level": 3}}
    task = caller.to("seen").call("SendMessage", params).value
    assert task["artifacts"][0]["parts"][0]["data"] == {
        "text": "what do you see",
        "parts": ["TextPart"],
        "values": [],
        "metadata": repr({"urn:x": {"level": 3}}),
        "references": ["a", "b"],
        "modes": ["text/plain", "application/json"],
        "principal": "local",
        "context": params["message"]["contextId"],
        "history": [params["message"]["messageId"]],
    }
    # The 0.3 proto has no field for it, and official clients refuse what they do not know.
    shown = task["history"][0].get("referenceTaskIds")
    assert shown == (["a", "b"] if caller.has_kinds else None)


@covers("turns.context")
def test_a_context_id_of_the_caller_is_kept_and_a_new_one_is_given_otherwise(caller: Caller) -> None:
    context = new_id("ctx")
    assert sent(caller, contextId=context)["contextId"] == context
    assert sent(caller)["contextId"] != sent(caller)["contextId"]


@covers("turns.same-task")
def test_a_message_to_a_running_task_joins_it(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    params = send_params("more", taskId=holding, configuration={"blocking": False})
    task = hold.call("SendMessage", params).value
    assert task["id"] == holding
    history = [said["parts"][0]["text"] for said in got(hold, holding)["history"]]
    assert history == ["wait", "more"]


@covers("turns.refused")
@pytest.mark.usefixtures("nothing_stored")
def test_a_message_to_a_task_that_does_not_exist_is_refused(caller: Caller) -> None:
    refused(caller.call("SendMessage", send_params(taskId="nope")), TASK_NOT_FOUND, identifier=1)


@covers("turns.refused")
def test_a_message_to_a_task_of_another_context_or_agent_is_refused(
    caller: Caller, holding: str, rows: Rows
) -> None:
    params = send_params(taskId=holding, contextId=new_id("ctx"))
    with rows.unchanged():
        reply = caller.to("hold").call("SendMessage", params)
        refused(reply, PARAMS, fields=["message.contextId"], identifier=1)
        reply = caller.call("SendMessage", send_params(taskId=holding))
        refused(reply, TASK_NOT_FOUND, identifier=1)


@covers("turns.refused")
@pytest.mark.parametrize("text", ["hello", "fail", "reject", "crash"])
def test_a_finished_task_takes_no_more_messages(caller: Caller, rows: Rows, text: str) -> None:
    task = sent(caller, text)
    with rows.unchanged():
        reply = caller.call("SendMessage", send_params(taskId=task["id"]))
        refused(reply, UNSUPPORTED, identifier=1)
    assert got(caller, task["id"]) == task


@covers("turns.asked")
@pytest.mark.parametrize(("agent", "state"), [("asks", "input-required"), ("waits", "auth-required")])
def test_a_send_waits_for_a_question_and_the_answer_goes_on_with_the_task(
    caller: Caller, agent: str, state: str
) -> None:
    task = sent(caller.to(agent), "begin")
    assert task["status"]["state"] == state
    assert task["status"]["message"]["role"] == "agent"
    answered = sent(caller.to(agent), "four", taskId=task["id"])
    assert (answered["id"], answered["status"]["state"]) == (task["id"], "completed")
    said = [(one["role"], one["parts"][0]["text"]) for one in answered["history"]]
    question = task["status"]["message"]["parts"][0]["text"]
    assert said == [("user", "begin"), ("agent", "thinking"), ("agent", question), ("user", "four")]
