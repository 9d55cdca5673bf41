"""The HTTP+JSON binding of 1.0: paths, query parameters, bodies."""

from typing import Any

import pytest

from dragoman.model import TaskState
from dragoman.model.errors import InvalidParams, MethodNotAllowed, MethodNotFound
from dragoman.model.operation import CancelTask, GetTask, ListTasks, Operation, Request, SubscribeToTask
from dragoman.protocol.spec import HttpCall
from dragoman.protocol.v1_0.http import DIALECT, ROUTES

PATHS = {
    "/message:send": {"POST": Operation.SEND_MESSAGE},
    "/message:stream": {"POST": Operation.SEND_STREAMING_MESSAGE},
    "/tasks": {"GET": Operation.LIST_TASKS},
    "/tasks/t": {"GET": Operation.GET_TASK},
    "/tasks/t:cancel": {"POST": Operation.CANCEL_TASK},
    "/tasks/t:subscribe": {"POST": Operation.SUBSCRIBE_TO_TASK, "GET": Operation.SUBSCRIBE_TO_TASK},
    "/tasks/t/pushNotificationConfigs": {
        "POST": Operation.CREATE_PUSH_CONFIG,
        "GET": Operation.LIST_PUSH_CONFIGS,
    },
    "/tasks/t/pushNotificationConfigs/c": {
        "GET": Operation.GET_PUSH_CONFIG,
        "DELETE": Operation.DELETE_PUSH_CONFIG,
    },
    "/extendedAgentCard": {"GET": Operation.GET_EXTENDED_CARD},
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


def read(
    method: str,
    path: str,
    query: dict[str, list[str]] | None = None,
    body: dict[str, Any] | None = None,
) -> Request:
    match = ROUTES.match(method, path)
    return match.endpoint.decode(HttpCall(match.variables, query or {}, body, "demo"))


def refused(*call: Any, **more: Any) -> str:
    with pytest.raises(InvalidParams) as refusal:
        read(*call, **more)
    return refusal.value.violations[0].field


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", METHODS)
def test_a_path_serves_its_methods_and_no_others(path: str, method: str) -> None:
    operation = PATHS[path].get("GET" if method == "HEAD" else method)
    if operation is None:
        with pytest.raises(MethodNotAllowed) as refusal:
            ROUTES.match(method, path)
        allowed = {*PATHS[path]} | ({"HEAD"} if "GET" in PATHS[path] else set())
        assert {*refusal.value.allowed} == allowed
    else:
        assert ROUTES.match(method, path).endpoint.operation is operation


def test_every_operation_has_a_path() -> None:
    assert {operation for methods in PATHS.values() for operation in methods.values()} == set(Operation)


ELSEWHERE = """
    /messages:send /message:send/ /v1/message:send /tasks/t/cancel /tasks/t:resubscribe /card /tenant/tasks /tasks/a:b
    /message/send /extendedagentcard /tasks/t/pushNotificationConfigs/
"""


@pytest.mark.parametrize("path", ELSEWHERE.split())
def test_paths_of_other_versions_and_tenants_are_not_there(path: str) -> None:
    for method in METHODS:
        with pytest.raises(MethodNotFound):
            ROUTES.match(method, path)


def test_both_json_types_are_taken_and_the_plain_one_is_answered_first() -> None:
    assert DIALECT.media_types == ("application/json", "application/a2a+json")
    assert DIALECT.mount == ""


def test_an_id_in_a_path_may_be_any_text_when_it_is_encoded() -> None:
    assert read("GET", "/tasks/a%2Fb%3Ac%20%C3%BC") == GetTask(task_id="a/b:c ü")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ListTasks()),
        ({"contextId": [""], "status": [""], "pageSize": [""], "pageToken": [""]}, ListTasks()),
        ({"unknown": ["1"], "page_size": ["7"], "PageSize": ["8"]}, ListTasks(page_size=7)),
        ({"pageSize": ["1"]}, ListTasks(page_size=1)),
        ({"pageSize": ["7", "9"]}, ListTasks(page_size=9)),
        ({"status": ["TASK_STATE_FAILED"]}, ListTasks(state=TaskState.FAILED)),
        ({"status": ["4"]}, ListTasks(state=TaskState.FAILED)),
        ({"status": ["0"]}, ListTasks()),
        ({"includeArtifacts": ["true"]}, ListTasks(include_artifacts=True)),
        ({"includeArtifacts": ["false"]}, ListTasks()),
        ({"contextId": ["1"]}, ListTasks(context_id="1")),
        ({"historyLength": ["0"]}, ListTasks()),
        ({"historyLength": ["12"], "tenant": ["demo"]}, ListTasks(history_length=12)),
        ({"statusTimestampAfter": ["1970-01-01T00:00:01.5Z"]}, ListTasks(after=1500)),
        ({"id": ["not a filter"]}, ListTasks()),
    ],
)
def test_query_parameters_are_read(query: dict[str, list[str]], expected: ListTasks) -> None:
    assert read("GET", "/tasks", query) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pageSize", "0"),
        ("pageSize", "101"),
        ("pageSize", "-1"),
        ("pageSize", "1.5"),
        ("pageSize", "ten"),
        ("pageSize", " 5"),
        ("pageSize", "9" * 5000),
        ("historyLength", "-1"),
        ("historyLength", "all"),
        ("historyLength", "true"),
        ("status", "completed"),
        ("status", "99"),
        ("status", "9" * 5000),
        ("status", "²"),
        ("includeArtifacts", "yes"),
        ("includeArtifacts", "1"),
        ("includeArtifacts", "TRUE"),
        ("statusTimestampAfter", "yesterday"),
        ("statusTimestampAfter", "1767225600"),
        ("pageToken", "garbage"),
        ("tenant", "other"),
    ],
)
def test_a_wrong_query_parameter_is_refused_by_its_name(name: str, value: str) -> None:
    assert refused("GET", "/tasks", {name: [value]}) == name


def test_a_query_cannot_say_another_task_than_the_path() -> None:
    assert read("GET", "/tasks/t", {"id": ["u"], "historyLength": ["5"]}) == GetTask(
        task_id="t", history_length=5
    )


@pytest.mark.parametrize("body", [None, {}, {"id": "t"}, {"id": None}, {"unknown": 1}, {"metadata": {}}])
def test_a_cancel_needs_nothing_but_its_path(body: dict[str, Any] | None) -> None:
    assert read("POST", "/tasks/t:cancel", body=body) == CancelTask(task_id="t")


@pytest.mark.parametrize("identifier", ["u", 5, True, ["t"], {"id": "t"}])
def test_a_body_that_names_another_task_than_the_path_is_refused(identifier: Any) -> None:
    assert refused("POST", "/tasks/t:cancel", body={"id": identifier}) == "id"
    assert refused("POST", "/tasks/t:subscribe", body={"id": identifier}) == "id"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_subscription_needs_nothing_but_its_path(method: str) -> None:
    assert read(method, "/tasks/t:subscribe") == SubscribeToTask(task_id="t")
