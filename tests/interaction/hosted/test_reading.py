"""Reading, listing and cancelling; what the profile has not at all; and versions."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.interaction.answers import (
    BODY_TYPE,
    NO_METHOD,
    NO_PUSH,
    NOT_ALLOWED,
    NOT_CANCELABLE,
    PARAMS,
    TASK_NOT_FOUND,
    UNSUPPORTED,
    VERSION,
    Reply,
    refused,
)
from tests.interaction.callers import READY, RpcCaller
from tests.interaction.following import ended, got, sent
from tests.interaction.hosted.callers import BASE, Hosted
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import new_id, send_params
from tests.interaction.rows import Rows


@pytest.fixture(scope="module")
def listed(client: Any, server: Any) -> tuple[Hosted, list[dict[str, Any]]]:
    """A caller whose tasks with an agent are exactly these: finished, failed, one that asks."""
    erin = Hosted(client, server.url, "second", "ERIN")
    return erin, [sent(erin, text) for text in ("one", "fail", "two", "ask which?", "three")]


def pages(caller: Hosted, **params: Any) -> Iterator[dict[str, Any]]:
    """The pages of a listing."""
    token = ""
    while True:
        page: dict[str, Any] = caller.call("ListTasks", {**params, "pageToken": token}).result
        yield page
        token = page["nextPageToken"]
        if not token:
            return


def ids(page: dict[str, Any]) -> list[str]:
    return [task["id"] for task in page["tasks"]]


@covers("get.state")
@pytest.mark.parametrize("text", ["hello", "fail no", "ask which?", "slow 0.3"])
def test_a_task_is_read_as_it_was_answered(alice: Hosted, text: str) -> None:
    task = sent(alice, text)
    assert got(alice, task["id"]) == task
    refused(alice.call("GetTask", {"id": new_id()}), TASK_NOT_FOUND, identifier=1)


@covers("get.history")
def test_history_is_as_long_as_it_is_asked_for(alice: Hosted) -> None:
    task = sent(alice, "ask which?")
    alice.resume(task["id"], "that one")
    whole = ended(alice, task["id"])["history"]
    assert [turn["role"] for turn in whole] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]
    for length in (0, 1, 2, 3, 9):
        assert got(alice, task["id"], historyLength=length).get("history", []) == whole[-length:] * bool(
            length
        )
    refused(alice.call("GetTask", {"id": task["id"], "historyLength": -1}), PARAMS, identifier=1)


@covers("list.scoped", "list.order")
def test_a_list_holds_the_callers_own_tasks_newest_first(
    alice: Hosted, listed: tuple[Hosted, list[dict[str, Any]]]
) -> None:
    erin, tasks = listed
    page = erin.call("ListTasks").result
    assert ids(page) == [task["id"] for task in tasks][::-1]
    assert (page["totalSize"], page["pageSize"], page["nextPageToken"]) == (5, 50, "")
    for other in (alice, alice.by("BOB"), erin.to("demo"), alice.to("second")):
        assert not set(ids(page)) & set(ids(other.call("ListTasks", {"pageSize": 100}).result))
    open_surface = RpcCaller(alice.client, alice.origin, "second")
    seen = open_surface.call("ListTasks", headers=erin.credential).result
    assert seen["totalSize"] == 0, "hosted tasks are not there for the open surface"


@covers("list.filters")
def test_a_list_is_filtered_by_context_status_and_time(listed: tuple[Hosted, list[dict[str, Any]]]) -> None:
    erin, tasks = listed
    (one, failed, two, asking, three) = tasks
    assert ids(erin.call("ListTasks", {"contextId": two["contextId"]}).result) == [two["id"]]
    for state, expected in (
        ("TASK_STATE_FAILED", [failed]),
        ("TASK_STATE_INPUT_REQUIRED", [asking]),
        ("TASK_STATE_COMPLETED", [three, two, one]),
        ("TASK_STATE_CANCELED", []),
    ):
        page = erin.call("ListTasks", {"status": state}).result
        assert ids(page) == [task["id"] for task in expected]
        assert page["totalSize"] == len(expected)
    moment = two["status"]["timestamp"]
    later = (datetime.fromisoformat(three["status"]["timestamp"]) + timedelta(seconds=1)).isoformat()
    assert ids(erin.call("ListTasks", {"statusTimestampAfter": moment}).result)[-1] == two["id"]
    assert ids(erin.call("ListTasks", {"statusTimestampAfter": later}).result) == []
    both = {"contextId": two["contextId"], "status": "TASK_STATE_FAILED"}
    assert ids(erin.call("ListTasks", both).result) == []


@covers("list.pages")
def test_pages_are_joined_by_tokens_without_gap_or_repetition(
    listed: tuple[Hosted, list[dict[str, Any]]],
) -> None:
    erin, tasks = listed
    for size in (1, 2, 4, 100):
        found = list(pages(erin, pageSize=size))
        assert [one for page in found for one in ids(page)] == [task["id"] for task in tasks][::-1]
        assert {(page["totalSize"], page["pageSize"]) for page in found} == {(5, size)}
    for size in (0, 101, -1):
        refused(erin.call("ListTasks", {"pageSize": size}), PARAMS, fields=["pageSize"], identifier=1)


@covers("list.pages", "strangers.contexts")
def test_a_token_is_good_for_its_own_listing_alone(
    alice: Hosted, listed: tuple[Hosted, list[dict[str, Any]]]
) -> None:
    erin, _ = listed
    token = erin.call("ListTasks", {"pageSize": 2}).result["nextPageToken"]
    for other, params in (
        (alice.to("second"), {}),
        (erin.to("demo"), {}),
        (erin, {"status": "TASK_STATE_FAILED"}),
    ):
        reply = other.call("ListTasks", {"pageSize": 2, "pageToken": token, **params})
        refused(reply, PARAMS, fields=["pageToken"], identifier=1)


@covers("list.artifacts")
def test_results_are_listed_only_if_they_are_asked_for(listed: tuple[Hosted, list[dict[str, Any]]]) -> None:
    erin, tasks = listed
    plain = erin.call("ListTasks").result["tasks"]
    assert not any("artifacts" in task or "history" in task for task in plain)
    full = erin.call("ListTasks", {"includeArtifacts": True, "historyLength": 9}).result["tasks"]
    assert [task["artifacts"] for task in full] == [task.get("artifacts", []) for task in tasks][::-1]
    assert [task["history"] for task in full] == [task["history"] for task in tasks][::-1]


@covers("cancel.persists")
def test_a_cancel_is_kept_and_answered_with_the_task(alice: Hosted, rows: Rows) -> None:
    task = sent(alice, "slow 30", wait=False)
    cancelled = alice.call("CancelTask", {"id": task["id"]}).result
    assert cancelled["status"]["state"] == "TASK_STATE_CANCELED"
    assert got(alice, task["id"]) == cancelled
    assert rows.query("SELECT state FROM task WHERE id = ?", task["id"]) == [(5,)]


@covers("cancel.finished")
@pytest.mark.parametrize("text", ["hello", "fail", "reject", "slow 30"])
def test_a_finished_task_is_not_cancelled_and_is_read_instead(alice: Hosted, text: str) -> None:
    task = sent(alice, text, wait=text != "slow 30")
    if text == "slow 30":
        task = alice.call("CancelTask", {"id": task["id"]}).result
    refused(alice.call("CancelTask", {"id": task["id"]}), NOT_CANCELABLE, identifier=1)
    assert got(alice, task["id"]) == task


@covers("cancel.persists")
def test_a_run_that_asks_is_cancelled_too(alice: Hosted) -> None:
    for text in ("ask which?", "auth", "approve it"):
        task = sent(alice, text)
        assert alice.call("CancelTask", {"id": task["id"]}).result["status"]["state"] == "TASK_STATE_CANCELED"
        refused(alice.call("CancelTask", {"id": task["id"]}), NOT_CANCELABLE, identifier=1)


PUSH = {
    "CreateTaskPushNotificationConfig": {"taskId": "x", "url": "https://example.org/hook"},
    "GetTaskPushNotificationConfig": {"taskId": "x", "id": "y"},
    "ListTaskPushNotificationConfigs": {"taskId": "x"},
    "DeleteTaskPushNotificationConfig": {"taskId": "x", "id": "y"},
}


@covers("unsupported.push")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", PUSH)
@pytest.mark.parametrize("known", [True, False], ids=["a task", "no task"])
def test_push_operations_are_refused_as_the_standard_has_it(
    alice: Hosted, listed: tuple[Hosted, list[dict[str, Any]]], operation: str, known: bool
) -> None:
    erin, tasks = listed
    params = {**PUSH[operation], **({"taskId": tasks[0]["id"]} if known else {})}
    for parameters in (params, {}):
        refused(erin.call(operation, parameters), NO_PUSH, identifier=1)


@covers("unsupported.card")
@pytest.mark.usefixtures("nothing_stored")
def test_the_extended_card_is_refused_as_the_standard_has_it(alice: Hosted) -> None:
    refused(alice.call("GetExtendedAgentCard"), UNSUPPORTED, identifier=1)


@covers("unsupported.methods")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("method", ["message/send", "tasks/get", "sendMessage", "SendMessages", "x"])
def test_other_methods_are_not_there(alice: Hosted, method: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"%s","params":{}}' % method.encode()
    refused(alice.deliver(alice.post(body)), NO_METHOD, identifier=1)


@covers("unsupported.methods", "rpc.endpoint")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/rpc/x",
        "/message:send",
        "/tasks",
        "/v1",
        "/extendedAgentCard",
        "/.well-known/agent.json",
        "/card",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_paths_are_not_there(alice: Hosted, path: str, method: str) -> None:
    for agent in ("demo", "nobody", "theirs"):
        reply = alice.api(
            method, f"{BASE.removeprefix('/v1/a2a')}/{agent}{path}", {} if method == "POST" else None
        )
        # The base itself is a path of the registry of remote agents, which has none of these and takes no POST.
        assert reply.status == (405 if (path, method) == ("", "POST") else 404), (agent, reply)


@covers("rpc.endpoint")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_the_endpoint_takes_posts_of_json(alice: Hosted, method: str) -> None:
    request = alice.post(b"{}")
    reply = alice.deliver(type(request)(method, request.target, request.headers, request.body))
    refused(reply, NOT_ALLOWED)
    assert reply.headers["allow"] == "POST"
    typed = alice.post(b"{}", {**READY, "content-type": "text/plain"})
    refused(alice.deliver(typed), BODY_TYPE)


def versioned(alice: Hosted, version: str | None, operation: str = "ListTasks", params: Any = None) -> Reply:
    headers = {} if version is None else {"A2A-Version": version}
    return alice.deliver(alice.request(operation, params, headers=headers))


@covers("version.missing")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("version", [None, "", "0.3", "0.3.0"])
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage", "GetTask", "ListTasks"])
def test_without_a_version_a_call_is_refused_as_one_in_0_3(
    alice: Hosted, version: str | None, operation: str
) -> None:
    params = send_params() if operation.startswith("Send") else {"id": "x"} if operation == "GetTask" else {}
    reply = versioned(alice, version, operation, params)
    metadata = refused(reply, VERSION, identifier=1)
    assert metadata["supported"] == "1.0"


@covers("version.missing")
@pytest.mark.usefixtures("nothing_stored")
def test_methods_of_0_3_are_refused_for_their_version(alice: Hosted) -> None:
    for version in (None, "0.3"):
        headers = {} if version is None else {"A2A-Version": version}
        body = b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}'
        refused(alice.deliver(alice.post(body, headers)), VERSION, identifier=1)


@covers("version.patches")
@pytest.mark.parametrize("version", ["1.0", "1.0.0", "1.0.1", "1.0.17"])
def test_patch_revisions_of_1_0_are_taken(alice: Hosted, version: str) -> None:
    reply = versioned(alice, version, "SendMessage", send_params("hello"))
    assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert reply.headers["a2a-version"] == "1.0"


@covers("version.others")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "version", ["1", "1.1", "1.1.0", "2.0", "0.2", "v1.0", "1.0-x", "latest", "1.0, 1.1", "x"]
)
def test_every_other_version_is_refused(alice: Hosted, version: str) -> None:
    reply = versioned(alice, version, "SendMessage", send_params("hello"))
    metadata = refused(reply, VERSION, identifier=1)
    assert metadata["supported"] == "1.0"


@covers("version.others")
@pytest.mark.usefixtures("nothing_stored")
def test_the_query_may_name_the_version_and_must_not_contradict(alice: Hosted) -> None:
    request = alice.request("ListTasks", {}, headers={})
    asked = type(request)("POST", f"{request.target}?A2A-Version=1.0", request.headers, request.body)
    assert alice.deliver(asked).result["tasks"] is not None
    refused(alice.deliver(asked.with_headers(a2a_version="0.3")), VERSION, identifier=1)
