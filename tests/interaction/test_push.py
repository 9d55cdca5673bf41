"""Push notification configurations over both bindings, and what their receivers are told."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.polling import until
from tests.harness.receiver import OK, Notified, Receiver, status
from tests.harness.server import ServerProcess
from tests.harness.stores import named
from tests.interaction.answers import FULL, PARAMS, TASK_NOT_FOUND, refused
from tests.interaction.callers import Caller, Request
from tests.interaction.following import sent
from tests.interaction.messages import send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

CREATE, GET = "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"
LIST, DELETE = "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"
URL = "https://hooks.example.com/a2a"
BEARER = {"scheme": "Bearer", "credentials": "s3cr3t-credentials"}


@pytest.fixture
def hooked(caller: Caller) -> Caller:
    """A caller of an agent that sends push notifications."""
    return caller.to("hooked")


@pytest.fixture
def task(hooked: Caller) -> str:
    """A finished task."""
    return str(sent(hooked)["id"])


@pytest.fixture
def asking(hooked: Caller) -> str:
    """A task that waits for its caller."""
    return str(sent(hooked, "ask")["id"])


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of notifications."""
    with Receiver() as listening:
        yield listening


def inline(url: str, text: str = "stream 3", **more: Any) -> dict[str, Any]:
    config = {"url": url, **more}
    return send_params(text, configuration={"taskPushNotificationConfig": config})


def told(notified: list[Notified]) -> list[str]:
    """What notifications tell, each in a word."""
    words = []
    for one in notified:
        ((kind, item),) = one.json().items()
        if kind == "statusUpdate":
            words.append(item["status"]["state"].removeprefix("TASK_STATE_").lower())
        else:
            words.append(kind)
    return words


@covers("push.delivery")
@pytest.mark.parametrize(("agent", "pushes"), [("hooked", True), ("demo", False)])
def test_the_card_says_whether_an_agent_sends_notifications(http: Caller, agent: str, pushes: bool) -> None:
    request = Request("GET", f"/agents/{agent}/.well-known/agent-card.json", {"A2A-Version": "1.0"})
    assert http.deliver(request).json()["capabilities"]["pushNotifications"] is pushes


@covers("push.create", "push.get")
def test_a_configuration_is_kept_under_the_id_of_its_caller(
    caller: Caller, hooked: Caller, task: str
) -> None:
    config = {"taskId": task, "id": "my hook/1", "url": URL, "token": "t0k3n", "authentication": BEARER}
    shown = {"taskId": task, "id": "my hook/1", "url": URL, "authentication": {"scheme": "Bearer"}}
    assert hooked.call(CREATE, config).result == shown
    assert hooked.call(GET, {"taskId": task, "id": "my hook/1"}).result == shown


@covers("push.create", "push.list")
def test_ids_are_made_where_none_is_given_and_a_used_one_is_replaced(
    caller: Caller, hooked: Caller, task: str
) -> None:
    first = hooked.call(CREATE, {"taskId": task, "url": URL}).result
    second = hooked.call(CREATE, {"taskId": task, "url": URL}).result
    assert first["id"] and second["id"] and first["id"] != second["id"]
    again = hooked.call(CREATE, {"taskId": task, "id": first["id"], "url": f"{URL}/other"}).result
    listed = hooked.call(LIST, {"taskId": task}).result
    assert listed == {"configs": sorted([again, second], key=lambda one: one["id"]), "nextPageToken": ""}


@covers("push.list")
def test_configurations_are_listed_by_the_page(caller: Caller, hooked: Caller, task: str) -> None:
    for name in "dbca":
        hooked.call(CREATE, {"taskId": task, "id": name, "url": URL})
    pages, token = [], ""
    for _ in range(3):
        page = hooked.call(LIST, {"taskId": task, "pageSize": 2, "pageToken": token}).result
        pages.append([one["id"] for one in page["configs"]])
        token = page["nextPageToken"]
        if not token:
            break
    assert pages == [["a", "b"], ["c", "d"]]
    assert hooked.call(LIST, {"taskId": str(sent(hooked)["id"])}).result["configs"] == []


@covers("push.delete", "push.get")
def test_a_deleted_configuration_is_gone_and_may_be_deleted_again(
    caller: Caller, hooked: Caller, task: str
) -> None:
    hooked.call(CREATE, {"taskId": task, "id": "c", "url": URL})
    for _ in range(2):
        assert hooked.call(DELETE, {"taskId": task, "id": "c"}).result == {}
    refused(hooked.call(GET, {"taskId": task, "id": "c"}), TASK_NOT_FOUND, identifier=1)
    assert hooked.call(LIST, {"taskId": task}).result["configs"] == []


@covers("push.tasks")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", [CREATE, GET, LIST, DELETE])
def test_a_task_that_is_not_there_has_no_configurations(
    caller: Caller, hooked: Caller, operation: str
) -> None:
    params = {"taskId": "nope", **({} if operation == LIST else {"id": "c"})}
    if operation == CREATE:
        params["url"] = URL
    refused(hooked.call(operation, params), TASK_NOT_FOUND, identifier=1)


@covers("push.tasks")
def test_a_task_of_another_agent_has_none_here(caller: Caller, hooked: Caller, task: str) -> None:
    assert hooked.call(CREATE, {"taskId": task, "id": "c", "url": URL}).result
    elsewhere = str(sent(caller.to("demo"))["id"])
    refused(hooked.call(CREATE, {"taskId": elsewhere, "url": URL}), TASK_NOT_FOUND, identifier=1)


@covers("push.cap")
def test_a_task_has_sixteen_configurations_and_no_more(caller: Caller, hooked: Caller, asking: str) -> None:
    for number in range(16):
        assert hooked.call(CREATE, {"taskId": asking, "id": str(number), "url": URL}).result
    refused(hooked.call(CREATE, {"taskId": asking, "url": URL}), FULL, identifier=1)
    answer = inline(URL, "answer")
    answer["message"]["taskId"] = asking
    refused(hooked.call("SendMessage", answer), FULL, identifier=1)
    assert hooked.call(CREATE, {"taskId": asking, "id": "7", "url": f"{URL}/b"}).result
    hooked.call(DELETE, {"taskId": asking, "id": "7"})
    assert hooked.call("SendMessage", answer).task["status"]["state"] == "TASK_STATE_COMPLETED"


BAD_URLS = [
    *("", "hooks.example.com", "ftp://hooks.example.com/", "https://user:pw@hooks.example.com/", "https://"),
    *("https://10.0.0.1/", "https://169.254.169.254/latest/meta-data", "https://[::1]/", "https://0.0.0.0/"),
    *("https://2130706433/", "https://0x7f.1/", "https://0177.0.0.1/", "https://[::ffff:127.0.0.1]/"),
    *("https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://localhost./", "https://metadata/"),
    *("https://hooks.example.com/\r\nX: y", "https://hooks.example.com:0/", "https://hooks.example.com/#x"),
]


@covers("push.urls")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("url", BAD_URLS)
def test_a_url_that_leads_elsewhere_is_refused_in_a_message(
    caller: Caller, hooked: Caller, operation: str, url: str
) -> None:
    reply = hooked.call(operation, inline(url))
    refused(reply, PARAMS, fields=["configuration.taskPushNotificationConfig.url"], identifier=1)


@covers("push.urls")
def test_a_url_that_leads_elsewhere_is_refused(caller: Caller, hooked: Caller, task: str, rows: Rows) -> None:
    with rows.unchanged():
        for url in BAD_URLS:
            reply = hooked.call(CREATE, {"taskId": task, "url": url})
            refused(reply, PARAMS, fields=["url"], identifier=1)
        refused(hooked.call(CREATE, {"taskId": task}), PARAMS, fields=["url"], identifier=1)


@covers("push.headers")
@pytest.mark.parametrize("text", [" a", "a ", "a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "é", "\x7f"])
def test_what_is_no_header_is_refused(
    caller: Caller, hooked: Caller, task: str, rows: Rows, text: str
) -> None:
    config = {"taskId": task, "url": URL}
    with rows.unchanged():
        for more, field in (
            ({"token": text}, "token"),
            ({"authentication": {"scheme": "Bearer", "credentials": text}}, "authentication.credentials"),
            ({"authentication": {"scheme": f"Bearer{text}"}}, "authentication.scheme"),
            ({"authentication": {"scheme": "Bearer x"}}, "authentication.scheme"),
            ({"authentication": {"credentials": "x"}}, "authentication.scheme"),
        ):
            refused(hooked.call(CREATE, {**config, **more}), PARAMS, fields=[field], identifier=1)


@covers("push.create")
@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"id": 5}, "id"),
        ({"id": "a\nb"}, "id"),
        ({"id": "x" * 257}, "id"),
        ({"url": 5}, "url"),
        ({"url": "https://a.example/" + "x" * 2048}, "url"),
        ({"token": {}}, "token"),
        ({"token": "x" * 1025}, "token"),
        ({"authentication": "Bearer x"}, "authentication"),
        ({"authentication": {"scheme": "Bearer", "credentials": "x" * 8193}}, "authentication.credentials"),
        ({"tenant": "other"}, "tenant"),
    ],
)
def test_a_field_that_is_wrong_is_named(
    caller: Caller, hooked: Caller, task: str, rows: Rows, more: dict[str, Any], field: str
) -> None:
    with rows.unchanged():
        reply = hooked.call(CREATE, {"taskId": task, "url": URL, **more})
        refused(reply, PARAMS, fields=[field], identifier=1)


@covers("push.inline")
@pytest.mark.usefixtures("nothing_stored")
def test_a_configuration_with_a_message_names_no_other_task(caller: Caller, hooked: Caller) -> None:
    reply = hooked.call("SendMessage", inline(URL, taskId="another"))
    refused(reply, PARAMS, fields=["configuration.taskPushNotificationConfig.taskId"], identifier=1)


@covers("push.inline", "push.delivery", "push.secrets")
def test_every_event_of_a_task_is_posted_in_order(
    caller: Caller, hooked: Caller, receiver: Receiver, server: ServerProcess, rows: Rows
) -> None:
    asked = inline(receiver.url(), id="mine", token="t0k3n-of-mine", authentication=BEARER)
    task = hooked.call("SendMessage", asked).task
    notified = receiver.wait(6)
    assert told(notified) == ["submitted", "working", *["artifactUpdate"] * 3, "completed"]
    assert [one.event for one in notified] == [f"{task['id']}/{seq}" for seq in range(1, 7)]
    assert [one.sequence for one in notified] == [*range(1, 7)]
    for one in notified:
        assert (one.path, one.headers["content-type"]) == ("/hook", "application/a2a+json")
        assert one.headers["authorization"] == "Bearer s3cr3t-credentials"
        assert one.headers["x-a2a-notification-token"] == "t0k3n-of-mine"
        ((_, item),) = one.json().items()
        assert (item["taskId"], item["contextId"]) == (task["id"], task["contextId"])
    shown = hooked.call(LIST, {"taskId": task["id"]}).result["configs"]
    assert shown == [
        {"id": "mine", "taskId": task["id"], "url": receiver.url(), "authentication": {"scheme": "Bearer"}}
    ]
    until(
        lambda: rows.query("SELECT state FROM push_config WHERE task_id = ?", task["id"]) == [("done",)],
        what="the configuration is done",
    )
    for kept in server.data.iterdir():
        assert b"s3cr3t" not in kept.read_bytes() and b"t0k3n-of-mine" not in kept.read_bytes(), kept
    assert "s3cr3t" not in server.log_file.read_text() and "t0k3n-of-mine" not in server.log_file.read_text()


@covers("push.inline")
def test_a_send_that_streams_brings_a_configuration_too(
    caller: Caller, hooked: Caller, receiver: Receiver
) -> None:
    with hooked.open("SendStreamingMessage", inline(receiver.url(), "stream 2")) as stream:
        assert len(list(stream.items())) >= 4
    assert told(receiver.wait(5))[-1] == "completed"


@covers("push.inline")
def test_a_message_that_is_sent_again_brings_nothing(
    caller: Caller, hooked: Caller, receiver: Receiver
) -> None:
    first = send_params("hello")
    task = hooked.call("SendMessage", first).task
    first["configuration"] = {"taskPushNotificationConfig": {"url": receiver.url()}}
    again = hooked.call("SendMessage", first)
    assert (again.task["id"], again.headers["idempotent-replayed"]) == (task["id"], "true")
    assert hooked.call(LIST, {"taskId": task["id"]}).result["configs"] == []


@covers("push.inline")
def test_a_bare_message_is_no_task_to_tell_of(
    caller: Caller, hooked: Caller, receiver: Receiver, rows: Rows
) -> None:
    reply = hooked.call("SendMessage", inline(receiver.url(), "message hi"))
    assert set(reply.result) == {"message"}
    until(
        lambda: (
            rows.query("SELECT state FROM push_config WHERE url = ?", named(receiver.url())) == [("done",)]
        ),
        what="the configuration is done",
    )
    assert receiver.got() == []


@covers("push.create", "push.delivery")
def test_one_that_comes_later_is_told_what_comes_after_it_across_turns(
    caller: Caller, hooked: Caller, receiver: Receiver, asking: str
) -> None:
    hooked.call(CREATE, {"taskId": asking, "url": receiver.url()})
    params = send_params("an answer", taskId=asking)
    assert hooked.call("SendMessage", params).task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert told(receiver.wait(3)) == ["working", "artifactUpdate", "completed"]


@covers("push.delivery", "push.delete")
def test_each_of_several_is_told_and_a_deleted_one_is_not(
    caller: Caller, hooked: Caller, receiver: Receiver, asking: str
) -> None:
    for name in "abc":
        hooked.call(CREATE, {"taskId": asking, "id": name, "url": receiver.url(f"/{name}")})
    hooked.call(DELETE, {"taskId": asking, "id": "b"})
    hooked.call("CancelTask", {"id": asking})
    receiver.wait(1, "/a")
    receiver.wait(1, "/c")
    assert {one.path: told([one]) for one in receiver.got()} == {"/a": ["canceled"], "/c": ["canceled"]}


FAULTS: dict[str, list[bytes | None]] = {
    "500": [status(500)],
    "404": [status(404, body=b"<html>")],
    "a redirect": [status(307, "Location: http://169.254.169.254/latest/meta-data")],
    "no HTTP": [b"hello\r\n\r\n"],
    "a reset": [b""],
    "several": [status(503), b"", status(429)],
}


@covers("push.retry")
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_taken_is_sent_again_before_anything_else(
    caller: Caller, hooked: Caller, receiver: Receiver, fault: str
) -> None:
    faults = iter(FAULTS[fault])
    receiver.answer = lambda one: next(faults, OK) if one.sequence == 3 else OK
    hooked.call("SendMessage", inline(receiver.url(), "stream 2"))
    notified = receiver.wait(5 + len(FAULTS[fault]))
    assert [one.sequence for one in notified] == [1, 2, *[3] * (1 + len(FAULTS[fault])), 4, 5]
    assert len({one.event for one in notified}) == 5
    bodies = [one.body for one in notified if one.sequence == 3]
    assert len(set(bodies)) == 1 and json.loads(bodies[0])["artifactUpdate"]


@covers("push.retry")
def test_what_is_answered_at_length_is_taken_all_the_same(
    caller: Caller, hooked: Caller, receiver: Receiver
) -> None:
    receiver.answer = lambda one: status(200, body=b"x" * 10 * 1024 * 1024)
    hooked.call("SendMessage", inline(receiver.url(), "stream 2"))
    assert [one.sequence for one in receiver.wait(5)] == [1, 2, 3, 4, 5]


@covers("push.retry", "push.create")
def test_what_was_given_up_goes_on_when_its_configuration_is_replaced(
    caller: Caller, hooked: Caller, receiver: Receiver, rows: Rows
) -> None:
    receiver.answer = lambda one: status(500) if one.path == "/old" else OK
    task = hooked.call("SendMessage", inline(receiver.url("/old"), "stream 1", id="c")).task
    until(
        lambda: len(receiver.got("/old")) >= 2,
        what="it is tried again",
    )
    hooked.call(CREATE, {"taskId": task["id"], "id": "c", "url": receiver.url("/new")})
    assert [one.sequence for one in receiver.wait(4, "/new")] == [1, 2, 3, 4]
