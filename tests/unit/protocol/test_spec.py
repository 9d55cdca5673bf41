"""Route tables."""

from collections.abc import Mapping

import pytest

from dragoman.model.errors import MethodNotAllowed, MethodNotFound
from dragoman.model.operation import GetExtendedCard, Operation
from dragoman.protocol.spec import Endpoint, RouteTable


def endpoint(operation: Operation) -> Endpoint:
    return Endpoint(operation, lambda call: GetExtendedCard())


GET, LIST, CANCEL = Operation.GET_TASK, Operation.LIST_TASKS, Operation.CANCEL_TASK
SUBSCRIBE, PUSH = Operation.SUBSCRIBE_TO_TASK, Operation.GET_PUSH_CONFIG
TABLE = RouteTable(
    {
        "/tasks": {"GET": endpoint(LIST)},
        "/tasks/{id}": {"GET": endpoint(GET)},
        "/tasks/{id}:cancel": {"POST": endpoint(CANCEL)},
        "/tasks/{id}:subscribe": {"POST": endpoint(SUBSCRIBE), "GET": endpoint(SUBSCRIBE)},
        "/tasks/{task_id}/configs/{id}": {"GET": endpoint(PUSH)},
        "/a.b+c": {"GET": endpoint(LIST)},
    }
)


@pytest.mark.parametrize(
    ("method", "path", "operation", "variables"),
    [
        ("GET", "/tasks", LIST, {}),
        ("HEAD", "/tasks", LIST, {}),
        ("GET", "/tasks/t-1", GET, {"id": "t-1"}),
        ("HEAD", "/tasks/t-1", GET, {"id": "t-1"}),
        ("POST", "/tasks/t-1:cancel", CANCEL, {"id": "t-1"}),
        ("GET", "/tasks/t-1:subscribe", SUBSCRIBE, {"id": "t-1"}),
        ("POST", "/tasks/t-1:subscribe", SUBSCRIBE, {"id": "t-1"}),
        ("GET", "/tasks/t-1/configs/c-1", PUSH, {"task_id": "t-1", "id": "c-1"}),
        ("GET", "/tasks/cancel", GET, {"id": "cancel"}),
        ("GET", "/a.b+c", LIST, {}),
    ],
)
def test_a_path_and_method_lead_to_an_operation(
    method: str, path: str, operation: Operation, variables: Mapping[str, str]
) -> None:
    match = TABLE.match(method, path)
    assert (match.endpoint.operation, match.variables) == (operation, variables)


@pytest.mark.parametrize(
    ("encoded", "identifier"),
    [
        ("a%3Ab", "a:b"),
        ("a%3acancel", "a:cancel"),
        ("a%2Fb", "a/b"),
        ("a%20b", "a b"),
        ("a+b", "a+b"),
        ("%C3%BC", "ü"),
        ("%00", "\0"),
        ("a%25b", "a%b"),
        ("a%2525b", "a%25b"),
        ("%F0%9F%9A%80", "\U0001f680"),
        ("%FF", "\ufffd"),
        ("a%", "a%"),
        ("a%zz", "a%zz"),
        ("..", ".."),
        ("x" * 3000, "x" * 3000),
    ],
)
def test_an_id_is_decoded_once_and_after_the_path_was_taken_apart(encoded: str, identifier: str) -> None:
    assert TABLE.match("GET", f"/tasks/{encoded}").variables == {"id": identifier}
    assert TABLE.match("POST", f"/tasks/{encoded}:cancel").variables == {"id": identifier}


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/task",
        "/Tasks",
        "/tasks/",
        "//tasks",
        "/tasks//",
        "/tasks/t-1/",
        "/tasks/t-1:",
        "/tasks/:cancel",
        "/tasks/t-1:other",
        "/tasks/t-1:cancel/",
        "/tasks/t-1:CANCEL",
        "/tasks/a:b",
        "/tasks/a:b:cancel",
        "/tasks/t-1:cancel:cancel",
        "/tasks/t-1/configs",
        "/tasks/t-1/configs/",
        "/tasks/t-1/configs/c:d",
        "/tasks/t-1/configs/c-1/d",
        "/tasks/a/b",
        "/x/tasks",
        "/axb+c",
        "/a.bb+c",
    ],
)
def test_another_path_is_not_there(path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        with pytest.raises(MethodNotFound):
            TABLE.match(method, path)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/tasks", ("GET", "HEAD")),
        ("DELETE", "/tasks/t-1", ("GET", "HEAD")),
        ("get", "/tasks/t-1", ("GET", "HEAD")),
        ("GET", "/tasks/t-1:cancel", ("POST",)),
        ("HEAD", "/tasks/t-1:cancel", ("POST",)),
        ("PUT", "/tasks/t-1:subscribe", ("POST", "GET", "HEAD")),
        ("OPTIONS", "/tasks/t-1/configs/c-1", ("GET", "HEAD")),
    ],
)
def test_another_method_is_refused_with_those_that_are_there(
    method: str, path: str, allowed: tuple[str, ...]
) -> None:
    with pytest.raises(MethodNotAllowed) as refusal:
        TABLE.match(method, path)
    assert refusal.value.allowed == allowed


def test_a_match_knows_its_template_so_that_logs_need_no_ids() -> None:
    assert TABLE.match("POST", "/tasks/t-1:cancel").template == "/tasks/{id}:cancel"
    assert TABLE.match("GET", "/tasks").template == "/tasks"
