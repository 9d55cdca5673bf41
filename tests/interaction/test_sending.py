"""Sending a message: blocking, at once, to every kind of answer."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.interaction.answers import BAD_AGENT, PART_TYPE, UNSUPPORTED, refused
from tests.interaction.callers import Caller, HttpCaller, Request
from tests.interaction.following import ended, got, sent, state_of, texts
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@covers("send.blocking")
def test_a_blocking_send_returns_the_finished_task_with_its_results(caller: Caller) -> None:
    params = send_params("hello")
    task = caller.call("SendMessage", params).task
    assert UUID7.fullmatch(task["id"]) and UUID7.fullmatch(task["contextId"])
    assert TIMESTAMP.fullmatch(task["status"].pop("timestamp"))
    assert task["artifacts"][0].pop("artifactId")
    assert task == {
        "id": task["id"],
        "contextId": task["contextId"],
        "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"name": "echo", "parts": [{"text": "hello"}]}],
        "history": [params["message"]],
    }


@covers("send.blocking")
@pytest.mark.parametrize("agent", ["demo", "digest"])
def test_a_task_reads_the_same_afterwards(caller: Caller, agent: str) -> None:
    task = sent(caller.to(agent), "The cat sat on the mat. The dog ran far away. It rained all day long.")
    assert got(caller.to(agent), task["id"]) == task
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"


@covers("send.states")
@pytest.mark.parametrize(
    ("text", "state", "said"),
    [
        ("fail no luck", "TASK_STATE_FAILED", "no luck"),
        ("fail", "TASK_STATE_FAILED", "Failed, as asked."),
        ("reject not me", "TASK_STATE_REJECTED", "not me"),
    ],
)
def test_an_agent_that_fails_or_rejects_says_so_in_the_status(
    caller: Caller, text: str, state: str, said: str
) -> None:
    task = sent(caller, text)
    assert task["status"]["state"] == state
    message = task["status"]["message"]
    assert (message["role"], message["parts"]) == ("ROLE_AGENT", [{"text": said}])
    assert (message["taskId"], message["contextId"]) == (task["id"], task["contextId"])
    assert "artifacts" not in task


@covers("send.at-once", "voice.34")
def test_a_send_that_returns_at_once_is_answered_while_the_agent_works(caller: Caller) -> None:
    began = time.monotonic()
    task = sent(caller.to("hold"), "wait", wait=False)
    took = time.monotonic() - began
    assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    assert took < 2
    assert caller.to("hold").call("CancelTask", {"id": task["id"]}).result["id"] == task["id"]


@covers("send.at-once", "voice.34")
@pytest.mark.alone
def test_sends_that_return_at_once_do_so_while_the_agent_is_busy_with_others(caller: Caller) -> None:
    hold = caller.to("hold")
    tasks = [sent(hold, "wait", wait=False) for _ in range(30)]
    began = time.monotonic()
    tasks.append(sent(hold, "wait", wait=False))
    assert time.monotonic() - began < 1
    for task in tasks:
        hold.call("CancelTask", {"id": task["id"]})


@covers("send.at-once")
def test_a_send_that_returns_at_once_goes_on_to_its_end(caller: Caller) -> None:
    task = sent(caller, "stream 20", wait=False)
    assert texts(ended(caller, task["id"])) == ["".join(f"chunk {number} " for number in range(1, 21))]


@covers("send.bare-message")
@pytest.mark.parametrize("configuration", [None, {"returnImmediately": True}, {"historyLength": 0}])
def test_a_bare_message_is_answered_without_a_task(
    caller: Caller, rows: Rows, configuration: dict[str, object] | None
) -> None:
    context = new_id("ctx")
    reply = caller.call(
        "SendMessage", send_params("message hi", configuration=configuration, contextId=context)
    )
    assert set(reply.result) == {"message"}
    message = reply.result["message"]
    assert UUID7.fullmatch(message.pop("messageId"))
    assert message == {"role": "ROLE_AGENT", "parts": [{"text": "hi"}], "contextId": context}
    assert caller.call("ListTasks", {"contextId": context}).result["tasks"] == []


@covers("send.bare-message")
def test_an_agent_of_messages_answers_with_messages_alone(caller: Caller) -> None:
    result = caller.to("teller").call("SendMessage", send_params("good day")).result
    assert result["message"]["parts"] == [{"text": "you said: good day"}]
    assert UUID7.fullmatch(result["message"]["contextId"])
    assert "taskId" not in result["message"]


@covers("send.no-answer")
def test_an_agent_that_promised_a_message_and_gave_none_is_an_invalid_agent_response(caller: Caller) -> None:
    refused(caller.to("mute").call("SendMessage", send_params()), BAD_AGENT, identifier=1)


@covers("send.input-modes")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("media_type", ["image/png", "application/pdf", "video/mp4"])
def test_a_part_of_a_media_type_that_the_agent_does_not_take_is_refused(
    caller: Caller, media_type: str
) -> None:
    parts = [{"text": "x"}, {"raw": "AAEC", "mediaType": media_type}]
    metadata = refused(
        caller.to("hold").call("SendMessage", send_params(parts=parts)), PART_TYPE, identifier=1
    )
    assert metadata == {"field": "message.parts[1].mediaType"}


@covers("send.facts")
def test_a_handler_is_told_what_the_request_says(caller: Caller) -> None:
    params = send_params("what do you see", referenceTaskIds=["a", "b"], contextId=new_id("ctx"))
    params["configuration"] = {"acceptedOutputModes": ["text/plain", "application/json"]}
    params["metadata"] = {"urn:x": {"level": 3}}
    facts = caller.to("seen").call("SendMessage", params).task["artifacts"][0]["parts"][0]["data"]
    assert facts == {
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


@covers("send.burst", "voice.40")
@pytest.mark.alone
def test_a_burst_of_sends_that_finish_together_leaves_the_card_responsive(
    caller: Caller, http: HttpCaller, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    hold = caller.to("hold")
    with ThreadPoolExecutor(10) as pool:
        tasks = list(pool.map(lambda _: sent(hold, f"until {gate}", wait=False), range(40)))
    gate.touch()
    slowest = 0.0
    with httpx2.Client(timeout=5, trust_env=False) as client:
        apart = HttpCaller(client, http.origin)
        while any(state_of(hold, task["id"]) == "TASK_STATE_WORKING" for task in tasks[:1]):
            slowest = max(slowest, _card_seconds(apart))
        slowest = max(slowest, *(_card_seconds(apart) for _ in range(20)))
    assert slowest < 1
    assert {tuple(texts(ended(hold, task["id"]))) for task in tasks} == {("released",)}


def _card_seconds(http: HttpCaller) -> float:
    began = time.monotonic()
    reply = http.deliver(Request("GET", "/agents/demo/.well-known/agent-card.json"))
    assert reply.status == 200
    return time.monotonic() - began


@covers("run.acts-kept", "voice.43")
def test_acts_of_parallel_work_are_all_kept_and_those_after_the_end_change_nothing(caller: Caller) -> None:
    team = caller.to("team")
    task = sent(team)
    assert sorted(texts(task)) == sorted(f"piece {number}" for number in range(20))
    later = sent(team)
    assert ended(team, later["id"])["status"]["state"] == "TASK_STATE_COMPLETED"
    assert got(team, task["id"]) == task


@covers("turns.finished", "voice.21")
@pytest.mark.parametrize("text", ["hello", "fail", "reject", "crash"])
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_a_finished_task_takes_no_more_messages(
    caller: Caller, rows: Rows, operation: str, text: str
) -> None:
    task = sent(caller, text)
    with rows.unchanged():
        reply = caller.call(operation, send_params(taskId=task["id"]))
        refused(reply, UNSUPPORTED, identifier=1)
    assert got(caller, task["id"]) == task
