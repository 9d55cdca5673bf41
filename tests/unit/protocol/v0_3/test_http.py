"""The HTTP+JSON binding of 0.3: three places, two dialects, paths in several spellings, query parameters, bodies."""

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.model import TaskState
from dragoman.model.errors import InvalidParams, MethodNotAllowed, MethodNotFound
from dragoman.model.operation import CancelTask, GetTask, ListTasks, Operation, Request, SubscribeToTask
from dragoman.protocol.headers import Headers
from dragoman.protocol.spec import HttpCall, HttpDialect
from dragoman.protocol.v0_3.http import DIALECTS

BASE, ALIAS, OFFICIAL = DIALECTS
DOUBLED = OFFICIAL.choose(Headers([(b"user-agent", b"python-httpx/0.28.1")])) if OFFICIAL.choose else None

SUBSCRIBE = {"POST": Operation.SUBSCRIBE_TO_TASK, "GET": Operation.SUBSCRIBE_TO_TASK}
PROTO_PATHS: Mapping[str, Mapping[str, Operation]] = {
    "/message:send": {"POST": Operation.SEND_MESSAGE},
    "/message:stream": {"POST": Operation.SEND_STREAMING_MESSAGE},
    "/tasks/t": {"GET": Operation.GET_TASK},
    "/tasks/t:cancel": {"POST": Operation.CANCEL_TASK},
    "/tasks/t:subscribe": SUBSCRIBE,
    "/tasks/t/pushNotificationConfigs": {
        "POST": Operation.CREATE_PUSH_CONFIG,
        "GET": Operation.LIST_PUSH_CONFIGS,
    },
    "/tasks/t/pushNotificationConfigs/c": {
        "GET": Operation.GET_PUSH_CONFIG,
        "DELETE": Operation.DELETE_PUSH_CONFIG,
    },
    "/card": {"GET": Operation.GET_EXTENDED_CARD},
}
KIND_PATHS = {
    **PROTO_PATHS,
    "/messages:send": {"POST": Operation.SEND_MESSAGE},
    "/messages:stream": {"POST": Operation.SEND_STREAMING_MESSAGE},
    "/tasks": {"GET": Operation.LIST_TASKS},
    "/tasks/t/cancel": {"POST": Operation.CANCEL_TASK},
    "/tasks/t/subscribe": SUBSCRIBE,
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


def dialects() -> list[HttpDialect]:
    assert DOUBLED is not None
    return [BASE, ALIAS, OFFICIAL, DOUBLED]


def paths_of(dialect: HttpDialect) -> Mapping[str, Mapping[str, Operation]]:
    return PROTO_PATHS if dialect.mount == "/v1/v1" else KIND_PATHS


def read(
    dialect: HttpDialect,
    method: str,
    path: str,
    query: dict[str, list[str]] | None = None,
    body: dict[str, Any] | None = None,
) -> Request:
    match = dialect.routes.match(method, path)
    return match.endpoint.decode(HttpCall(match.variables, query or {}, body, "demo"))


def refused(*call: Any, **more: Any) -> str:
    with pytest.raises(InvalidParams) as refusal:
        read(*call, **more)
    return refusal.value.violations[0].field


@pytest.mark.parametrize("dialect", dialects(), ids=["base", "alias", "official", "doubled"])
@pytest.mark.parametrize("method", METHODS)
def test_a_path_serves_its_methods_and_no_others(dialect: HttpDialect, method: str) -> None:
    for path, methods in paths_of(dialect).items():
        operation = methods.get("GET" if method == "HEAD" else method)
        if operation is None:
            with pytest.raises(MethodNotAllowed) as refusal:
                dialect.routes.match(method, path)
            assert {*refusal.value.allowed} == {*methods} | ({"HEAD"} if "GET" in methods else set())
        else:
            assert dialect.routes.match(method, path).endpoint.operation is operation


@pytest.mark.parametrize("dialect", dialects(), ids=["base", "alias", "official", "doubled"])
def test_there_are_no_other_paths(dialect: HttpDialect) -> None:
    elsewhere = "/extendedAgentCard /message:send/ /v1/message:send /tasks/t:resubscribe /tasks/ /message/send".split()
    for path in [*elsewhere, *(KIND_PATHS.keys() - paths_of(dialect).keys())]:
        for method in METHODS:
            with pytest.raises(MethodNotFound):
                dialect.routes.match(method, path)


def test_every_operation_of_0_3_has_a_path_where_it_is_served() -> None:
    served = {operation for methods in KIND_PATHS.values() for operation in methods.values()}
    assert served == set(Operation)
    official = {operation for methods in PROTO_PATHS.values() for operation in methods.values()}
    assert served - official == {Operation.LIST_TASKS}


def test_where_the_dialects_stand_and_which_of_them_is_in_cards() -> None:
    assert [dialect.mount for dialect in DIALECTS] == ["", "/v1", "/v1/v1"]
    assert [dialect.advertised for dialect in DIALECTS] == [False, True, False]
    assert {dialect.media_types for dialect in dialects()} == {("application/json",)}
    assert [dialect.card_paths for dialect in DIALECTS] == [
        ("/card",),
        ("/card", "/.well-known/agent-card.json"),
        ("/card", "/.well-known/agent-card.json"),
    ]


def test_forms_of_results_are_kept_apart_by_name_where_they_differ_and_only_there() -> None:
    names = [dialect.codec.name for dialect in dialects()]
    assert names[0] == names[1]
    assert len(set(names)) == 3


@pytest.mark.parametrize(
    ("agent", "doubled"),
    [
        (b"python-httpx/0.28.1", True),
        (b"python-httpx/1.0 something", True),
        (b"python-httpx2/2.16.2", False),
        (b"Python-HTTPX/0.28.1", False),
        (b"node", False),
        (b"", False),
        (None, False),
    ],
)
def test_python_sdks_are_known_by_their_http_library(agent: bytes | None, doubled: bool) -> None:
    assert OFFICIAL.choose is not None
    chosen = OFFICIAL.choose(Headers([] if agent is None else [(b"user-agent", agent)]))
    assert chosen is (DOUBLED if doubled else None)
    assert (BASE.choose, ALIAS.choose) == (None, None)


@pytest.mark.parametrize("dialect", dialects(), ids=["base", "alias", "official", "doubled"])
def test_an_id_in_a_path_may_be_any_text_when_it_is_encoded(dialect: HttpDialect) -> None:
    assert read(dialect, "GET", "/tasks/a%2Fb%3Ac%20%C3%BC") == GetTask(task_id="a/b:c ü")
    assert read(dialect, "POST", "/tasks/a%2Fcancel:cancel") == CancelTask(task_id="a/cancel")


@pytest.mark.parametrize(
    ("query", "with_kinds", "in_proto"),
    [
        ({}, None, None),
        ({"historyLength": ["0"]}, 0, None),
        ({"historyLength": ["3"]}, 3, 3),
        ({"history_length": ["3"]}, 3, 3),
        ({"historyLength": [""]}, None, None),
        ({"historyLength": ["1", "2"]}, 2, 2),
        ({"id": ["other"], "unknown": ["1"]}, None, None),
    ],
)
def test_the_query_of_a_get(
    query: dict[str, list[str]], with_kinds: int | None, in_proto: int | None
) -> None:
    for dialect in dialects():
        expected = in_proto if dialect.mount == "/v1/v1" else with_kinds
        assert read(dialect, "GET", "/tasks/t", query) == GetTask(task_id="t", history_length=expected)


def test_the_query_of_a_listing() -> None:
    query = {
        "contextId": ["c"],
        "status": ["input-required"],
        "page_size": ["7"],
        "history_length": ["2"],
        "statusTimestampAfter": ["1970-01-01T00:00:01.5Z"],
        "includeArtifacts": ["true"],
        "tenant": ["other"],
    }
    expected = ListTasks(
        context_id="c",
        state=TaskState.INPUT_REQUIRED,
        page_size=7,
        history_length=2,
        after=1500,
        include_artifacts=True,
    )
    for dialect in (BASE, ALIAS):
        assert read(dialect, "GET", "/tasks", query) == expected
        assert read(dialect, "GET", "/tasks") == ListTasks()


@pytest.mark.parametrize("spelling", ["/tasks/t:subscribe", "/tasks/t/subscribe"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_subscription_shows_finished_tasks_too(method: str, spelling: str) -> None:
    expected = SubscribeToTask(task_id="t", also_finished=True)
    for dialect in dialects():
        if spelling in paths_of(dialect):
            assert read(dialect, method, spelling) == expected
            if method == "POST":
                assert read(dialect, method, spelling, body={"id": "t", "metadata": {"a": 1}}) == expected


@pytest.mark.parametrize("action", ["cancel", "subscribe"])
def test_a_body_cannot_name_another_task_than_the_path(action: str) -> None:
    for dialect in dialects():
        for spelling in (f"/tasks/t:{action}", f"/tasks/t/{action}"):
            if spelling in paths_of(dialect):
                assert refused(dialect, "POST", spelling, body={"id": "u"}) == "id"


@pytest.mark.parametrize("action", ["cancel", "subscribe"])
@pytest.mark.parametrize(
    ("name", "is_right"),
    [("tasks/t", True), ("", True), (None, True), ("tasks/u", False), ("t", False), (5, False)],
)
def test_a_resource_name_in_proto_is_that_of_the_path(action: str, name: Any, is_right: bool) -> None:
    for dialect in dialects()[2:]:
        path = f"/tasks/t:{action}"
        if is_right:
            assert read(dialect, "POST", path, body={"name": name}).task_id == "t"  # type: ignore[union-attr]
        else:
            assert refused(dialect, "POST", path, body={"name": name}) == "name"
    # A member that the form with kinds does not have.
    assert read(ALIAS, "POST", f"/tasks/t:{action}", body={"name": name}).task_id == "t"  # type: ignore[union-attr]
