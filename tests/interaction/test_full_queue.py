"""An agent whose queue is full: new messages are refused and not stored, and everything else goes on as ever."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.answers import CONFLICT, FULL, refused
from tests.interaction.callers import Caller, HttpCaller, Request, RpcCaller
from tests.interaction.conftest import AGENTS
from tests.interaction.following import ended, got, sent, state_of, texts
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

CONFIG = f"""
[agents.narrow]
python = "{AGENTS}:hold"
max_runs = 1
max_waiting = 1
[agents.asker]
python = "dragoman.agents.demo:demo"
max_runs = 1
max_waiting = 0
[agents.demo]
python = "dragoman.agents.demo:demo"
"""
WORKING, CANCELED = "TASK_STATE_WORKING", "TASK_STATE_CANCELED"


@pytest.fixture(scope="module")
def narrow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of agents that are full soon."""
    folder = tmp_path_factory.mktemp("narrow")
    config = folder / "dragoman.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with ServerProcess(folder / "data", config=config) as server:
        yield server


@pytest.fixture(scope="module")
def narrow_rows(narrow_server: ServerProcess) -> Rows:
    """The rows of that server."""
    return Rows(narrow_server.data)


@pytest.fixture(params=[HttpCaller, RpcCaller], ids=["http", "jsonrpc"])
def narrow_caller(request: pytest.FixtureRequest, narrow_server: ServerProcess) -> Iterator[Caller]:
    """A caller of an agent that works on one message and lets one wait, over each binding in turn."""
    with httpx2.Client(timeout=20, trust_env=False) as client:
        yield request.param(client, narrow_server.url, "narrow")


@dataclass(frozen=True)
class Filling:
    """What fills the agent: a task that is worked on, one that waits, and the message of that one."""

    running: str
    waiting: str
    params: dict[str, Any]


def runs(caller: Caller) -> tuple[int, int]:
    """How many runs of the caller's agent go on, and how many wait, as the metrics have it."""
    text = HttpCaller(caller.client, caller.origin).deliver(Request("GET", "/metrics")).body.decode()
    found = [
        re.search(rf'^dragoman_runs_{what}{{agent="{caller.agent}"}} (\S+)$', text, re.MULTILINE)
        for what in ("running", "waiting")
    ]
    running, waiting = (int(float(one[1])) if one else -1 for one in found)
    return running, waiting


@pytest.fixture
def filling(narrow_caller: Caller) -> Iterator[Filling]:
    """The agent is full meanwhile; afterwards it is empty."""
    running = sent(narrow_caller, "wait", wait=False)["id"]
    until(lambda: state_of(narrow_caller, running) == WORKING, what="the first task is worked on")
    params = send_params("wait", configuration={"returnImmediately": True})
    waiting = narrow_caller.call("SendMessage", params).task["id"]
    # It shows as working before long, whether it is or not; nothing more is written of either after that.
    until(lambda: state_of(narrow_caller, waiting) == WORKING, what="the second task shows")
    yield Filling(running, waiting, params)
    for task_id in (running, waiting):
        narrow_caller.call("CancelTask", {"id": task_id})
    until(lambda: runs(narrow_caller) == (0, 0), what="the agent is idle")


SENDS = pytest.mark.parametrize(
    ("operation", "configuration"),
    [
        ("SendMessage", None),
        ("SendMessage", {"returnImmediately": True}),
        ("SendStreamingMessage", None),
    ],
    ids=["blocking", "at once", "streaming"],
)


@covers("full.refused")
@SENDS
def test_a_new_message_is_refused_with_the_time_to_come_back_and_not_stored(
    narrow_caller: Caller, filling: Filling, narrow_rows: Rows, operation: str, configuration: Any
) -> None:
    params = send_params("until /", contextId=new_id("ctx"), configuration=configuration)
    with narrow_rows.unchanged():
        for _ in range(3):
            reply = narrow_caller.call(operation, params)
            assert refused(reply, FULL, identifier=1) == {"limit": "max_waiting"}
            assert reply.headers["retry-after"] == "5"
    assert runs(narrow_caller) == (1, 1)
    assert (
        narrow_caller.call("ListTasks", {"contextId": params["message"]["contextId"]}).result["tasks"] == []
    )
    narrow_caller.call("CancelTask", {"id": filling.waiting})
    until(lambda: runs(narrow_caller) == (1, 0), what="there is room")
    accepted = narrow_caller.call("SendMessage", params | {"configuration": {"returnImmediately": True}})
    assert "idempotent-replayed" not in accepted.headers
    narrow_caller.call("CancelTask", {"id": filling.running})
    assert texts(ended(narrow_caller, accepted.task["id"])) == ["released"]


@covers("full.known")
def test_a_message_that_was_accepted_is_answered_when_it_is_sent_again(
    narrow_caller: Caller, filling: Filling, narrow_rows: Rows
) -> None:
    with narrow_rows.unchanged():
        again = narrow_caller.call("SendMessage", filling.params)
        assert (again.headers["idempotent-replayed"], again.task["id"]) == ("true", filling.waiting)
        with narrow_caller.open("SendStreamingMessage", filling.params) as stream:
            assert stream.headers["idempotent-replayed"] == "true"
            assert stream.next().value["id"] == filling.waiting
        other = send_params("another", messageId=filling.params["message"]["messageId"])
        refused(narrow_caller.call("SendMessage", other), CONFLICT, identifier=1)


@covers("full.open")
def test_reading_listing_following_and_cancelling_are_admitted(
    narrow_caller: Caller, filling: Filling
) -> None:
    listed = narrow_caller.call("ListTasks").result["tasks"]
    assert {filling.running, filling.waiting} <= {task["id"] for task in listed}
    assert got(narrow_caller, filling.waiting)["status"]["state"] == WORKING
    with narrow_caller.open("SubscribeToTask", {"id": filling.waiting}) as stream:
        assert stream.next().value["id"] == filling.waiting
        canceled = narrow_caller.call("CancelTask", {"id": filling.waiting})
        assert canceled.result["status"]["state"] == CANCELED
        assert stream.rest()[-1].state == CANCELED
    reply = narrow_caller.call("CancelTask", {"id": filling.running})
    assert reply.result["status"]["state"] == CANCELED


@covers("full.own-task")
def test_a_message_to_a_running_task_joins_it(narrow_caller: Caller, filling: Filling) -> None:
    for task_id in (filling.running, filling.waiting):
        task = sent(narrow_caller, "more", wait=False, taskId=task_id)
        assert task["id"] == task_id
        assert [message["parts"] for message in task["history"]] == [[{"text": "wait"}], [{"text": "more"}]]
    refused(narrow_caller.call("SendMessage", send_params("more")), FULL, identifier=1)


@covers("full.own-task")
def test_an_answer_to_a_question_is_taken_and_waits_for_its_turn(narrow_caller: Caller) -> None:
    asker = narrow_caller.to("asker")
    asked = sent(asker, "ask Which one?")
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    until(lambda: runs(asker) == (0, 0), what="a task that waits for its caller takes no place")
    slow = sent(asker, "slow 60", wait=False)
    refused(asker.call("SendMessage", send_params("hello")), FULL, identifier=1)
    answered = sent(asker, "the second", wait=False, taskId=asked["id"])
    assert answered["status"]["state"] == WORKING
    assert runs(asker) == (1, 1)
    asker.call("CancelTask", {"id": slow["id"]})
    assert texts(ended(asker, asked["id"])) == ["the second"]
    until(lambda: runs(asker) == (0, 0), what="the agent is idle")


@covers("full.others")
def test_other_agents_take_messages_as_ever(narrow_caller: Caller, filling: Filling) -> None:
    for agent in ("demo", "asker"):
        assert texts(sent(narrow_caller.to(agent), "hello")) == ["hello"]
        until(lambda agent=agent: runs(narrow_caller.to(agent)) == (0, 0), what="the agent is idle")


@covers("full.told")
def test_operators_see_what_waits_and_what_was_refused(
    narrow_caller: Caller, filling: Filling, narrow_server: ServerProcess
) -> None:
    def counted() -> float:
        text = HttpCaller(narrow_caller.client, narrow_caller.origin).deliver(Request("GET", "/metrics")).body
        sample = rb'^dragoman_requests_total{operation="SendMessage",outcome="QUOTA_EXCEEDED"} (\S+)$'
        found = re.search(sample, text, re.MULTILINE)
        return float(found[1]) if found else 0

    before = counted()
    ids = [narrow_caller.call("SendMessage", send_params()).headers["x-request-id"] for _ in range(3)]
    assert counted() == before + 3
    assert runs(narrow_caller) == (1, 1)

    def lines() -> list[dict[str, Any]]:
        logged = [line for line in narrow_server.log_lines() if line.get("logger") == "dragoman.request"]
        return [line for line in logged if line["request_id"] in ids]

    until(lambda: len(lines()) == 3, what="three lines in the log")
    for line in lines():
        assert (line["outcome"], line["level"], line["agent"]) == ("QUOTA_EXCEEDED", "info", "narrow")
        assert "task_id" not in json.dumps(line)
