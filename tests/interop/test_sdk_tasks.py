"""Reading, listing and cancelling tasks, and typed errors, through the official SDKs."""

import pytest

from tests.harness.server import ServerProcess
from tests.harness.wire import call
from tests.interop.sdks import UNFINISHED, Json, Report, artifact_text, state, text

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def _ids(page: Json) -> list[str]:
    return [task["id"] for task in page.get("tasks", [])]


def test_get_without_a_history_length_gives_the_messages(report: Report) -> None:
    task = report["history"]["absent"]
    assert artifact_text(task) == "remember this"
    assert task["history"][0]["role"] == "ROLE_USER"
    assert text(task["history"][0]["parts"]) == "remember this"


def test_get_with_history_length_0_gives_everything_but_messages(report: Report) -> None:
    with_history, without = report["history"]["absent"], report["history"]["zero"]
    assert not without.get("history")
    assert without | {"history": with_history["history"]} == with_history


def test_get_with_history_length_1_gives_the_newest_message(report: Report) -> None:
    assert report["history"]["one"]["history"] == report["history"]["absent"]["history"][-1:]


def test_list_pages_through_a_context_newest_first_without_gap_or_repetition(report: Report) -> None:
    seen = report["listing"]
    assert [len(_ids(page)) for page in seen["pages"]] == [2, 2, 1]
    assert [task_id for page in seen["pages"] for task_id in _ids(page)] == seen["sent"][::-1]


def test_every_page_says_how_many_tasks_there_are_and_how_large_it_may_be(report: Report) -> None:
    pages = report["listing"]["pages"]
    assert [(page["totalSize"], page["pageSize"]) for page in pages] == [(5, 2)] * 3
    assert not pages[-1].get("nextPageToken")


def test_list_filters_by_status(report: Report) -> None:
    seen = report["listing"]
    assert _ids(seen["failed"]) == [seen["sent"][2]]
    assert seen["failed"]["totalSize"] == 1


def test_list_filters_by_context(report: Report) -> None:
    seen = report["listing"]
    assert _ids(seen["elsewhere"]) == []
    assert not seen["elsewhere"].get("totalSize", 0)
    assert seen["everything"]["totalSize"] >= 5
    assert len(_ids(seen["everything"])) == 1


def test_list_gives_artifacts_only_when_they_are_asked_for(report: Report) -> None:
    seen = report["listing"]
    assert not any(task.get("artifacts") for page in seen["pages"] for task in page["tasks"])
    texts = [artifact_text(task) for task in seen["with_artifacts"]["tasks"] if task.get("artifacts")]
    assert texts == ["four", "three", "two", "one"]


def test_cancel_ends_a_running_task_at_once_and_for_good(report: Report) -> None:
    seen = report["cancel"]
    assert state(seen["running"]) in UNFINISHED
    assert seen["canceled"]["id"] == seen["running"]["id"]
    assert state(seen["canceled"]) == "TASK_STATE_CANCELED"
    assert state(seen["read"]) == "TASK_STATE_CANCELED"
    assert seen["read"]["status"] == seen["canceled"]["status"]
    assert seen["seconds"] < 3.0


def test_a_second_cancel_is_refused_as_not_cancelable(report: Report) -> None:
    assert report["cancel"]["again"]["type"] == "TaskNotCancelableError"


@pytest.mark.parametrize(
    ("call_name", "expected"),
    [
        ("get unknown", "TaskNotFoundError"),
        ("cancel unknown", "TaskNotFoundError"),
        ("subscribe unknown", "TaskNotFoundError"),
        ("message to unknown", "TaskNotFoundError"),
        ("message to finished", "UnsupportedOperationError"),
        ("subscribe finished", "UnsupportedOperationError"),
        ("cancel finished", "TaskNotCancelableError"),
        ("push create", "PushNotificationNotSupportedError"),
    ],
)
def test_each_refusal_is_the_typed_error_of_the_standard(
    report: Report, call_name: str, expected: str
) -> None:
    assert report["errors"][call_name]["type"] == expected, report["errors"][call_name]


def _finished_task(server: ServerProcess) -> Json:
    message = {"messageId": "raw-1", "role": "ROLE_USER", "parts": [{"text": "raw"}]}
    reply = call("POST", f"{server.url}/agents/demo/message:send", {"message": message})
    assert reply.status == 200, reply
    task: Json = reply.json()["task"]
    return task


def _rpc(server: ServerProcess, method: str, params: Json) -> Json:
    envelope = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    reply = call("POST", f"{server.url}/agents/demo/rpc", envelope)
    assert reply.status == 200, reply
    answer: Json = reply.json()
    assert answer["id"] == 7
    return answer


def test_a_push_configuration_is_refused_by_the_server_itself_over_http(server: ServerProcess) -> None:
    task_id = _finished_task(server)["id"]
    config = {"url": "http://127.0.0.1:9/hook"}
    reply = call("POST", f"{server.url}/agents/demo/tasks/{task_id}/pushNotificationConfigs", config)
    assert reply.status == 400
    error = reply.json()["error"]
    assert (error["code"], error["status"]) == (400, "FAILED_PRECONDITION")
    assert [detail.get("reason") for detail in error["details"]] == ["PUSH_NOTIFICATION_NOT_SUPPORTED"]


def test_a_push_configuration_is_refused_by_the_server_itself_over_json_rpc(server: ServerProcess) -> None:
    config = {"taskId": _finished_task(server)["id"], "url": "http://127.0.0.1:9/hook"}
    answer = _rpc(server, "CreateTaskPushNotificationConfig", config)
    assert "result" not in answer
    assert answer["error"]["code"] == -32003


def test_a_listed_task_has_no_artifacts_member_at_all(server: ServerProcess) -> None:
    context = _finished_task(server)["contextId"]
    over_http = call("GET", f"{server.url}/agents/demo/tasks?contextId={context}").json()
    assert [list(task.keys() & {"artifacts"}) for task in over_http["tasks"]] == [[]]
    assert over_http["nextPageToken"] == ""
    assert _rpc(server, "ListTasks", {"contextId": context})["result"] == over_http
