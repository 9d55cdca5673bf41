"""Extensions: required, active, echoed; what those of ours do, on every operation."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.harness.receiver import Receiver
from tests.interaction.answers import EXTENSION, refused
from tests.interaction.callers import Caller, HttpCaller
from tests.interaction.events import Item
from tests.interaction.following import got
from tests.interaction.messages import message, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

FIRST, FREE, SECOND = "urn:test:first:v1", "urn:test:free:v1", "urn:test:second:v1"
FACTS, GRAPH = "urn:dragoman:ext:run-facts:v1", "urn:dragoman:ext:flow-graph:v1"
PLACE = '{"graph_id":"g","kind":"task","at":123456789012345678901234567890,"role":"user","z":[1.0,null],"a":"\\u0000"}'
"""A place in a graph, as no encoder would order it."""


def naming(*uris: str) -> dict[str, str]:
    return {"A2A-Extensions": ", ".join(uris)}


@covers("extensions.required")
@pytest.mark.parametrize("named", [(), (FREE,), (FIRST, "urn:test:second:v2")], ids=len)
@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("SendMessage", send_params()),
        ("SendStreamingMessage", send_params()),
        ("GetTask", {"id": "nope"}),
        ("ListTasks", {}),
        ("CancelTask", {"id": "nope"}),
        ("SubscribeToTask", {"id": "nope"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_without_a_required_extension_every_operation_is_refused_by_its_name(
    caller: Caller, rows: Rows, operation: str, params: Any, named: tuple[str, ...]
) -> None:
    identifier = 1 if caller.binding == "jsonrpc" else None
    with rows.unchanged():
        reply = caller.to("strict").call(operation, params, headers=naming(*named))
    told = refused(reply, EXTENSION, identifier=identifier)
    missing = [uri for uri in (FIRST, SECOND) if uri not in named]
    assert told["required"] == ", ".join(missing)
    assert "a2a-extensions" not in reply.headers


@covers("extensions.echo", "extensions.handler")
def test_active_extensions_are_echoed_and_told_to_the_handler(caller: Caller) -> None:
    asked = naming(SECOND, "urn:test:unknown:v1", FREE, FIRST, FREE)
    reply = caller.to("strict").call("SendMessage", send_params(), headers=asked)
    assert reply.headers["a2a-extensions"] == f"{SECOND}, {FREE}, {FIRST}"
    assert reply.task["artifacts"][0]["parts"] == [{"data": [SECOND, FREE, FIRST]}]
    found = caller.to("strict").call("GetTask", {"id": reply.task["id"]}, headers=naming(FIRST, SECOND))
    assert found.headers["a2a-extensions"] == f"{FIRST}, {SECOND}"
    with caller.to("strict").open("SendStreamingMessage", send_params(), headers=asked) as stream:
        assert stream.headers["a2a-extensions"] == f"{SECOND}, {FREE}, {FIRST}"


def is_fact(facts: dict[str, Any], sequence: int, *, runs: bool) -> bool:
    if (facts["sequence"], facts["attempt"]) != (sequence, 1):
        return False
    if not runs:
        return facts.keys() == {"sequence", "attempt"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", facts["deadline"])
    left = (datetime.fromisoformat(facts["deadline"]) - datetime.now(UTC)).total_seconds()
    return 3500 < left <= 3600


@covers("extensions.run-facts")
def test_tasks_and_updates_tell_how_far_the_run_is_to_whoever_asks(caller: Caller, other: Caller) -> None:
    """Also to those who ask over the other binding, where the message was sent without asking."""
    graph = caller.to("graph")
    with graph.open("SendStreamingMessage", send_params(), headers=naming(FACTS)) as stream:
        items = stream.rest()
    shown = [(item.value["metadata"][FACTS], item) for item in items]
    for facts, item in shown:
        assert item.id is not None
        assert is_fact(facts, item.id, runs=item.state != "TASK_STATE_INPUT_REQUIRED"), (facts, item)
    assert items[1].value["metadata"]["own"] == 1
    task_id = items[0].value["id"]
    waits = other.to("graph").call("GetTask", {"id": task_id}, headers=naming(FACTS)).result
    assert is_fact(waits["metadata"][FACTS], 3, runs=False)
    assert "metadata" not in got(graph, task_id)

    done = graph.call("SendMessage", send_params("left", taskId=task_id), headers=naming(FACTS)).task
    assert is_fact(done["metadata"][FACTS], 6, runs=False)
    for params in ({}, {"includeArtifacts": True, "historyLength": 2}):
        found = graph.call("ListTasks", {**params, "pageSize": 5}, headers=naming(FACTS)).result["tasks"]
        listed = next(task for task in found if task["id"] == task_id)
        assert listed["metadata"] == done["metadata"]


@covers("extensions.run-facts")
def test_a_subscription_and_a_cancel_tell_them_too(caller: Caller) -> None:
    graph = caller.to("graph")
    task = graph.call("SendMessage", send_params()).task
    with graph.open("SubscribeToTask", {"id": task["id"]}, headers=naming(FACTS)) as stream:
        assert is_fact(stream.next().value["metadata"][FACTS], 3, runs=False)
        cancelled = graph.call("CancelTask", {"id": task["id"]}, headers=naming(FACTS)).result
        assert is_fact(cancelled["metadata"][FACTS], 4, runs=False)
        assert is_fact(stream.next().value["metadata"][FACTS], 4, runs=False)


def exactly(reply: bytes | str) -> int:
    """How often the place stands in a reply, digit by digit."""
    text = reply.decode() if isinstance(reply, bytes) else reply
    return text.count(f'"{GRAPH}":{PLACE}')


def placed(**members: Any) -> bytes:
    """The parameters of a send whose message has a place in a graph."""
    marked = message("go", metadata={"PLACE": 0, "own": True}, **members)
    text = json.dumps({"message": marked}).replace('"PLACE": 0', f'"{GRAPH}": {PLACE}')
    return text.encode()


@covers("extensions.flow-graph")
def test_a_task_keeps_its_place_through_every_state_as_it_was_sent(caller: Caller, other: Caller) -> None:
    graph = caller.to("graph")
    request = graph.request("SendStreamingMessage", placed(), headers={"A2A-Version": "1.0", **naming(GRAPH)})
    with graph.follow(request) as stream:
        frames = [frame.data for frame in stream.frames() if frame.data is not None]
    # The task has it twice: in its history, as part of the message, and as its own.
    assert [exactly(frame) for frame in frames] == [2, 1, 1]
    task_id = json.loads(frames[0])["result" if caller.binding == "jsonrpc" else "task"]
    task_id = task_id["task"]["id"] if caller.binding == "jsonrpc" else task_id["id"]

    # From here on nobody names the extension: what a task has, it has.
    assert exactly(other.to("graph").call("GetTask", {"id": task_id}).body) == 2
    with graph.open("SubscribeToTask", {"id": task_id}) as stream:
        assert stream.next().value["metadata"].keys() == {GRAPH}
        done = graph.call("SendMessage", send_params("left", taskId=task_id))
        after = stream.rest()
    assert exactly(done.body) == 2 and done.task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [places(item) for item in after] == [
        ("TASK_STATE_WORKING", True),
        ("", False),
        ("TASK_STATE_COMPLETED", True),
    ]
    listed = graph.call("ListTasks", {"contextId": done.task["contextId"]})
    assert exactly(listed.body) == 1


def places(item: Item) -> tuple[str, bool]:
    return item.state, item.value.get("metadata") == {GRAPH: json.loads(PLACE)}


@covers("extensions.flow-graph", "push.delivery")
def test_notifications_of_a_state_have_the_place_too(caller: Caller) -> None:
    with Receiver() as receiver:
        asked = json.loads(placed())
        asked["configuration"] = {"taskPushNotificationConfig": {"url": receiver.url()}}
        graph = caller.to("graph")
        task = graph.deliver(
            graph.request("SendMessage", asked, headers={"A2A-Version": "1.0", **naming(GRAPH)})
        ).task
        graph.call("SendMessage", send_params("left", taskId=task["id"]))
        told = [next(iter(one.json().values())) for one in receiver.wait(6)]
    states = [
        item["status"]["state"].removeprefix("TASK_STATE_") if "status" in item else "" for item in told
    ]
    assert states == ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "WORKING", "", "COMPLETED"]
    kept = [item.get("metadata", {}).get(GRAPH) == json.loads(PLACE) for item in told]
    assert kept == [bool(state) for state in states]


@covers("extensions.flow-graph")
def test_without_the_extension_the_place_stays_in_the_message_alone(caller: Caller) -> None:
    reply = caller.to("graph").deliver(caller.to("graph").request("SendMessage", placed()))
    assert exactly(reply.body) == 1
    assert reply.task["history"][0]["metadata"].keys() == {GRAPH, "own"}
    assert "metadata" not in reply.task
    follow_up = placed(taskId=reply.task["id"])
    request = caller.to("graph").request(
        "SendMessage", follow_up, headers={"A2A-Version": "1.0", **naming(GRAPH)}
    )
    assert "metadata" not in caller.deliver(request).task


@covers("extensions.configured")
def test_the_configuration_declares_extensions_and_the_card_shows_them(http: HttpCaller) -> None:
    for headers in ({"A2A-Version": "1.0"}, {}):
        card = http.client.get(
            f"{http.origin}/agents/dressed/.well-known/agent-card.json", headers=headers
        ).json()
        shipped, own = card["capabilities"]["extensions"]
        assert (shipped["uri"], "required" in shipped) == (FACTS, False) and shipped["description"]
        assert own == {"uri": "urn:test:own:v1", "params": {"most": 3, "of": ["a"]}}
