"""Push notification configurations of 0.3, at every place where it is served, and the tasks that receivers are told."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.polling import until
from tests.harness.receiver import OK, Notified, Receiver, status
from tests.interaction.callers import Request
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import FULL, PARAMS, TASK_NOT_FOUND, Reply, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.dialects import Kinds
from tests.interaction.v0_3.messages import send_params, sent, texts
from tests.interaction.v0_3.requirements import covers

CREATE, GET = "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"
LIST, DELETE = "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"
URL = "https://hooks.example.com/a2a"
BEARER = {"schemes": ["Bearer", "Basic"], "credentials": "s3cr3t"}


@pytest.fixture
def hooked(caller: Caller) -> Caller:
    """A caller of an agent that sends push notifications."""
    return caller.to("hooked")


@pytest.fixture
def asking(hooked: Caller) -> str:
    """A task that waits for its caller."""
    return str(sent(hooked, "ask")["id"])


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of notifications."""
    with Receiver() as listening:
        yield listening


def create(caller: Caller, task: str, config: dict[str, Any]) -> Reply:
    if caller.binding == "jsonrpc":
        params: dict[str, Any] = {"taskId": task, "pushNotificationConfig": config}
    elif caller.has_kinds:
        params = {"id": task, "pushNotificationConfig": config}
    else:
        config_id = config.get("id", "")
        named = {"name": f"tasks/{task}/pushNotificationConfigs/{config_id}"} if config_id else {}
        params = {
            "id": task,
            "parent": f"tasks/{task}",
            "configId": config_id,
            "config": {**named, "pushNotificationConfig": config},
        }
    return caller.call(CREATE, params, as_is=True)


def call(caller: Caller, operation: str, task: str, config_id: str) -> Reply:
    name = "pushNotificationConfigId" if caller.binding == "jsonrpc" else "configId"
    return caller.call(operation, {"id": task, name: config_id}, as_is=True)


def shown(caller: Caller, value: Any) -> tuple[str, dict[str, Any]]:
    """The task and the configuration of a TaskPushNotificationConfig."""
    if caller.has_kinds:
        assert set(value) == {"taskId", "pushNotificationConfig"}, value
        return value["taskId"], value["pushNotificationConfig"]
    assert set(value) == {"name", "pushNotificationConfig"}, value
    kind, task, kind_of_config, config_id = value["name"].split("/")
    assert (kind, kind_of_config) == ("tasks", "pushNotificationConfigs")
    assert config_id == value["pushNotificationConfig"]["id"]
    return task, value["pushNotificationConfig"]


def listed(caller: Caller, task: str) -> list[dict[str, Any]]:
    result = caller.call(LIST, {"id": task}, as_is=True).result
    values = result if caller.has_kinds else result["configs"]
    return [shown(caller, value)[1] for value in values]


def states(notified: list[Notified]) -> list[str]:
    """The states of the tasks that notifications hold, each checked for its form."""
    return [Kinds().task(one.json())["status"]["state"] for one in notified]


@covers("push.operations")
@pytest.mark.parametrize(("agent", "pushes"), [("hooked", True), ("demo", False)])
def test_the_card_says_whether_an_agent_sends_notifications(web: Caller, agent: str, pushes: bool) -> None:
    path = f"/agents/{agent}/v1/.well-known/agent-card.json"
    card = web.deliver(Request("GET", path, {"A2A-Version": "0.3"})).json()
    assert card["capabilities"]["pushNotifications"] is pushes


@covers("push.operations", "difference.push-schemes")
def test_a_configuration_is_created_read_listed_and_deleted(
    caller: Caller, hooked: Caller, asking: str
) -> None:
    config = {"id": "hook", "url": URL, "token": "t0k3n", "authentication": BEARER}
    kept = {"id": "hook", "url": URL, "authentication": {"schemes": ["Bearer"]}}
    assert shown(caller, create(hooked, asking, config).result) == (asking, kept)
    assert shown(caller, call(hooked, GET, asking, "hook").result) == (asking, kept)
    second = shown(caller, create(hooked, asking, {"url": f"{URL}/2"}).result)[1]
    assert second["id"] and second == {"id": second["id"], "url": f"{URL}/2"}
    assert listed(hooked, asking) == sorted([kept, second], key=lambda one: one["id"])
    for _ in range(2):
        assert call(hooked, DELETE, asking, "hook").result == (None if caller.has_kinds else {})
    refused(call(hooked, GET, asking, "hook"), TASK_NOT_FOUND, identifier=1)
    assert listed(hooked, asking) == [second]


@covers("push.operations")
def test_json_rpc_may_ask_for_the_only_configuration_without_its_id(rpc: Caller) -> None:
    hooked = rpc.to("hooked")
    task = str(sent(hooked)["id"])
    refused(hooked.call(GET, {"id": task}, as_is=True), TASK_NOT_FOUND, identifier=1)
    create(hooked, task, {"id": "a", "url": URL})
    assert hooked.call(GET, {"id": task}, as_is=True).result["pushNotificationConfig"]["id"] == "a"
    create(hooked, task, {"id": "b", "url": URL})
    refused(hooked.call(GET, {"id": task}, as_is=True), TASK_NOT_FOUND, identifier=1)
    create(hooked, task, {"id": task, "url": URL})
    assert hooked.call(GET, {"id": task}, as_is=True).result["pushNotificationConfig"]["id"] == task


@covers("push.operations")
@pytest.mark.parametrize(
    "body",
    [
        {"url": URL},
        {"pushNotificationConfig": {"url": URL, "id": "c"}},
        {"config": {"url": URL, "id": "c"}},
        {"configId": "c", "config": {"pushNotificationConfig": {"url": URL}}},
        {"config_id": "c", "config": {"push_notification_config": {"url": URL}}},
        {"config": {"taskId": "", "pushNotificationConfig": {"url": URL, "id": "c"}}},
    ],
    ids=str,
)
def test_http_takes_every_form_that_callers_send(web: Caller, body: dict[str, Any]) -> None:
    hooked = web.to("hooked")
    task = str(sent(hooked)["id"])
    reply = hooked.call(CREATE, {"id": task, **body}, as_is=True)
    found, config = shown(web, reply.result)
    assert (found, config["url"]) == (task, URL)
    assert config["id"] == "c" or (body == {"url": URL} and config["id"])


@covers("push.operations")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"taskId": "other", "pushNotificationConfig": {"url": URL}}, "taskId"),
        ({"config": {"taskId": "other", "pushNotificationConfig": {"url": URL}}}, "config.taskId"),
        ({"parent": "tasks/other", "config": {"pushNotificationConfig": {"url": URL}}}, "parent"),
        (
            {"configId": "c", "config": {"pushNotificationConfig": {"url": URL, "id": "d"}}},
            "config.pushNotificationConfig.id",
        ),
        ({"configId": "c", "config": {"name": "tasks/x/pushNotificationConfigs/d"}}, "config.name"),
        ({"config": 5}, "config"),
        (
            {"pushNotificationConfig": {"url": URL, "authentication": {"credentials": "x"}}},
            "pushNotificationConfig.authentication.schemes",
        ),
        (
            {"pushNotificationConfig": {"url": URL, "authentication": {"schemes": "Bearer"}}},
            "pushNotificationConfig.authentication.schemes",
        ),
        ({"pushNotificationConfig": {"url": URL, "token": "a\r\nb"}}, "pushNotificationConfig.token"),
        ({"pushNotificationConfig": {"url": "https://[::1]/"}}, "pushNotificationConfig.url"),
        (
            {"config": {"pushNotificationConfig": {"url": "http://169.254.169.254/"}}},
            "config.pushNotificationConfig.url",
        ),
        ({}, "url"),
    ],
    ids=str,
)
def test_a_field_that_is_wrong_is_named(web: Caller, body: dict[str, Any], field: str, rows: Rows) -> None:
    hooked = web.to("hooked")
    task = str(sent(hooked)["id"])
    with rows.unchanged():
        refused(hooked.call(CREATE, {"id": task, **body}, as_is=True), PARAMS, fields=[field])


@covers("push.operations")
def test_json_rpc_names_a_field_that_is_wrong(rpc: Caller, rows: Rows) -> None:
    hooked = rpc.to("hooked")
    task = str(sent(hooked)["id"])
    with rows.unchanged():
        for params, field in (
            ({"taskId": task}, "pushNotificationConfig"),
            ({"pushNotificationConfig": {"url": URL}}, "taskId"),
            (
                {"taskId": task, "pushNotificationConfig": {"url": "http://10.0.0.1/"}},
                "pushNotificationConfig.url",
            ),
            ({"taskId": task, "pushNotificationConfig": {"url": URL, "id": 5}}, "pushNotificationConfig.id"),
        ):
            refused(hooked.call(CREATE, params, as_is=True), PARAMS, fields=[field], identifier=1)
        refused(hooked.call(DELETE, {"id": task}, as_is=True), PARAMS, identifier=1)


@covers("push.operations")
@pytest.mark.usefixtures("nothing_stored")
def test_a_task_that_is_not_there_has_no_configurations(caller: Caller, hooked: Caller) -> None:
    refused(create(hooked, "nope", {"url": URL}), TASK_NOT_FOUND, identifier=1)
    refused(call(hooked, GET, "nope", "c"), TASK_NOT_FOUND, identifier=1)
    refused(call(hooked, DELETE, "nope", "c"), TASK_NOT_FOUND, identifier=1)
    refused(hooked.call(LIST, {"id": "nope"}, as_is=True), TASK_NOT_FOUND, identifier=1)


@covers("push.operations")
def test_a_task_has_sixteen_configurations_and_no_more(caller: Caller, hooked: Caller, asking: str) -> None:
    for number in range(16):
        assert create(hooked, asking, {"id": str(number), "url": URL}).result
    refused(create(hooked, asking, {"url": URL}), FULL, identifier=1)


@covers("push.delivery", "difference.push-notifications")
def test_every_event_is_told_by_the_task_as_it_stands(
    caller: Caller, hooked: Caller, receiver: Receiver
) -> None:
    config = {"url": receiver.url(), "token": "t0k3n", "authentication": BEARER}
    params = send_params("stream 3", configuration={"blocking": True, "pushNotificationConfig": config})
    task = hooked.call("SendMessage", params).value
    notified = receiver.wait(6)
    assert states(notified) == ["submitted", *["working"] * 4, "completed"]
    assert [len("".join(texts(one.json())).split()) // 2 for one in notified] == [0, 0, 1, 2, 3, 3]
    assert [one.event for one in notified] == [f"{task['id']}/{seq}" for seq in range(1, 7)]
    for one in notified:
        assert one.headers["content-type"] == "application/json"
        assert one.headers["authorization"] == "Bearer s3cr3t"
        assert one.headers["x-a2a-notification-token"] == "t0k3n"
    last = notified[-1].json()
    assert (last["kind"], last["id"], last["contextId"]) == ("task", task["id"], task["contextId"])


@covers("push.delivery")
def test_a_later_configuration_is_told_of_later_events(
    caller: Caller, hooked: Caller, receiver: Receiver, asking: str
) -> None:
    create(hooked, asking, {"url": receiver.url()})
    answer = send_params("an answer", taskId=asking, configuration={"blocking": True})
    assert hooked.call("SendMessage", answer).value["status"]["state"] == "completed"
    notified = receiver.wait(3)
    assert states(notified) == ["working", "working", "completed"]
    assert [one.sequence for one in notified] == [3, 4, 5]


@covers("push.delivery")
def test_what_is_not_taken_is_sent_again_as_it_was(rpc: Caller, receiver: Receiver, rows: Rows) -> None:
    faults = iter([status(500), b""])
    receiver.answer = lambda one: next(faults, OK) if one.sequence == 2 else OK
    config = {"pushNotificationConfig": {"url": receiver.url()}}
    task = rpc.to("hooked").call("SendMessage", send_params("stream 2", configuration=config)).value
    notified = receiver.wait(7)
    assert [one.sequence for one in notified] == [1, 2, 2, 2, 3, 4, 5]
    assert len({one.body for one in notified if one.sequence == 2}) == 1
    until(
        lambda: rows.query("SELECT state FROM push_config WHERE task_id = ?", task["id"]) == [("done",)],
        what="the configuration is done",
    )
