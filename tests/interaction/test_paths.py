"""Paths and methods: what exists, with which methods, and how the rest is refused."""

import pytest

from tests.interaction.answers import (
    NO_AGENT,
    NO_METHOD,
    NO_PUSH,
    NOT_ALLOWED,
    PARAMS,
    TASK_NOT_FOUND,
    UNSUPPORTED,
    Reply,
    refused,
)
from tests.interaction.callers import READY, Caller, HttpCaller, Request, RpcCaller
from tests.interaction.messages import send_params
from tests.interaction.requirements import covers
from tests.interaction.sockets import Socket

AGENT = "/agents/demo"

UNKNOWN = [
    *(f"{AGENT}", f"{AGENT}/", f"{AGENT}/nope", f"{AGENT}/tasks/", f"{AGENT}//tasks", f"{AGENT}/tasks/a/b"),
    *(f"{AGENT}/message", f"{AGENT}/message:nope", f"{AGENT}/message/send", f"{AGENT}/MESSAGE:SEND"),
    *(f"{AGENT}/messages:send", f"{AGENT}/tasks/x:nope", f"{AGENT}/tasks/x/cancel", f"{AGENT}/tasks/:cancel"),
    *(f"{AGENT}/v2/message:send", f"{AGENT}/v2/tasks", f"{AGENT}/demo/tasks", f"{AGENT}/rpc/x"),
    *(
        f"{AGENT}/.well-known/agent.json",
        f"{AGENT}/.well-known/",
        f"{AGENT}/card",
        f"{AGENT}/..%2fdemo/tasks",
    ),
    *(f"{AGENT}/tasks/x/pushNotificationConfigs/a/b", f"{AGENT}/" + "x" * 8000, f"{AGENT}/%00", f"{AGENT}/%"),
]


@covers("path.unknown")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("path", UNKNOWN, ids=lambda path: path[:50])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_below_an_agent_is_not_found(http: HttpCaller, method: str, path: str) -> None:
    refused(http.deliver(Request(method, path, READY)), NO_METHOD)


OUTSIDE = [
    *(
        "/",
        "/nope",
        "/agents",
        "/v1/a2a/agents/demo/nope",
        "/v1/a2a/.well-known/agent.json",
        "/tasks",
        "/rpc",
    ),
    *(
        "/message:send",
        "/favicon.ico",
        "/.well-known/jwks",
        "/healthz/",
        "/HEALTHZ",
        "/agents%2fdemo/tasks",
    ),
]


@covers("path.unknown", "voice.12")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("path", OUTSIDE)
def test_an_unknown_path_elsewhere_is_not_found(http: HttpCaller, path: str) -> None:
    reply = http.deliver(Request("GET", path, READY))
    assert (reply.status, reply.reason, reply.content_type) == (404, "METHOD_NOT_FOUND", "application/json")
    assert reply.headers["x-request-id"]


@covers("path.unknown-agent")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("agent", ["nobody", "DEMO", "demo.", "", "%64emo", "demo%20", "a" * 100])
@pytest.mark.parametrize("operation", ["SendMessage", "ListTasks"])
def test_an_unknown_agent_is_not_found(caller: Caller, agent: str, operation: str) -> None:
    params = send_params() if operation == "SendMessage" else {}
    refused(caller.to(agent).call(operation, params), NO_AGENT)


ALLOWED = {
    "/message:send": {"POST"},
    "/message:stream": {"POST"},
    "/tasks": {"GET", "HEAD"},
    "/tasks/x": {"GET", "HEAD"},
    "/tasks/x:cancel": {"POST"},
    "/tasks/x:subscribe": {"GET", "HEAD", "POST"},
    "/tasks/x/pushNotificationConfigs": {"GET", "HEAD", "POST"},
    "/tasks/x/pushNotificationConfigs/y": {"DELETE", "GET", "HEAD"},
    "/extendedAgentCard": {"GET", "HEAD"},
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


WRONG_METHODS = [
    (method, path) for path, allowed in ALLOWED.items() for method in METHODS if method not in allowed
]


@covers("path.method")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("method", "path"), WRONG_METHODS, ids=lambda value: value)
def test_a_wrong_method_is_told_the_right_ones(http: HttpCaller, method: str, path: str) -> None:
    reply = http.deliver(Request(method, AGENT + path, READY))
    assert set(reply.headers["allow"].split(", ")) == ALLOWED[path]
    if method == "HEAD":
        assert (reply.status, reply.body) == (405, b"")
    else:
        refused(reply, NOT_ALLOWED)


@covers("path.method")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("method", [method for method in METHODS if method != "POST"])
def test_jsonrpc_is_served_by_post_alone(rpc: RpcCaller, method: str) -> None:
    reply = rpc.deliver(Request(method, f"{AGENT}/rpc", READY))
    assert reply.headers["allow"] == "POST"
    if method == "HEAD":
        assert (reply.status, reply.body) == (405, b"")
    else:
        refused(reply, NOT_ALLOWED)


@covers("path.head", "voice.70")
@pytest.mark.parametrize(
    "path",
    [
        *("/tasks?pageSize=1", "/tasks/nope", "/tasks/nope:subscribe", "/tasks/nope/pushNotificationConfigs"),
        *("/extendedAgentCard", "/.well-known/agent-card.json"),
    ],
)
def test_head_answers_as_get_does_without_a_body(http: HttpCaller, path: str) -> None:
    got = http.deliver(Request("GET", AGENT + path, READY))
    head = http.deliver(Request("HEAD", AGENT + path, READY))
    assert (head.status, head.body) == (got.status, b"")
    for name in ("content-type", "content-length", "a2a-version", "vary", "etag", "allow"):
        assert head.headers.get(name) == got.headers.get(name)


@covers("path.head")
def test_head_of_a_subscription_ends_at_once_and_leaves_no_observer(http: HttpCaller) -> None:
    hold = http.to("hold")
    task = hold.call("SendMessage", send_params(configuration={"returnImmediately": True})).task
    path = f"/agents/hold/tasks/{task['id']}:subscribe"
    before = _observers(http)
    heads = [http.deliver(Request("HEAD", path, READY)) for _ in range(3)]
    hold.call("CancelTask", {"id": task["id"]})
    assert [(head.status, head.content_type, head.body) for head in heads] == [
        (200, "text/event-stream", b"")
    ] * 3
    assert _observers(http) == before


def _observers(http: HttpCaller) -> float:
    text = http.deliver(Request("GET", "/metrics")).body.decode()
    return float(
        next(line.split()[1] for line in text.splitlines() if line.startswith("dragoman_observers "))
    )


PUSH = [
    ("CreateTaskPushNotificationConfig", {"taskId": "x", "url": "https://example.com"}),
    ("GetTaskPushNotificationConfig", {"taskId": "x", "id": "y"}),
    ("ListTaskPushNotificationConfigs", {"taskId": "x"}),
    ("DeleteTaskPushNotificationConfig", {"taskId": "x", "id": "y"}),
]


@covers("capability.push")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("operation", "params"), PUSH, ids=lambda value: value if isinstance(value, str) else ""
)
def test_push_configurations_are_not_supported(
    caller: Caller, operation: str, params: dict[str, str]
) -> None:
    refused(caller.call(operation, params), NO_PUSH, identifier=1)


@covers("capability.push")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize(
    "config", [{"url": "https://example.com/hook"}, {"url": "http://169.254.169.254/"}, {}]
)
def test_a_send_with_a_push_configuration_is_refused(
    caller: Caller, operation: str, config: dict[str, str]
) -> None:
    params = send_params(configuration={"taskPushNotificationConfig": config})
    refused(caller.call(operation, params), NO_PUSH, identifier=1)


@covers("capability.extended-card")
@pytest.mark.parametrize("params", [None, {}])
def test_an_extended_card_is_not_supported(caller: Caller, params: dict[str, str] | None) -> None:
    refused(caller.call("GetExtendedAgentCard", params), UNSUPPORTED, identifier=1)


@covers("capability.streaming")
@pytest.mark.usefixtures("nothing_stored")
def test_an_agent_that_cannot_stream_refuses_both_streaming_operations(caller: Caller) -> None:
    still = caller.to("still")
    refused(still.call("SendStreamingMessage", send_params()), UNSUPPORTED, identifier=1)
    refused(still.call("SubscribeToTask", {"id": "nope"}), UNSUPPORTED, identifier=1)


@covers("path.task-id")
@pytest.mark.parametrize(
    "identifier",
    ["nope", "%", "a/b", "a:b", "...", " ", "é", "\0", "'; --", "%2e", "x" * 5000, "a?b#c", "tasks"],
)
def test_any_text_may_be_asked_for_as_a_task_and_is_not_found(caller: Caller, identifier: str) -> None:
    metadata = refused(caller.call("GetTask", {"id": identifier}), TASK_NOT_FOUND, identifier=1)
    assert metadata["taskId"] == identifier[:128]
    refused(caller.call("CancelTask", {"id": identifier}), TASK_NOT_FOUND, identifier=1)


@covers("path.task-id")
@pytest.mark.parametrize("operation", ["GetTask", "CancelTask", "SubscribeToTask"])
@pytest.mark.parametrize("identifier", ["", None, 5, ["x"]], ids=repr)
def test_a_task_id_must_be_text(rpc: RpcCaller, operation: str, identifier: object) -> None:
    refused(rpc.call(operation, {"id": identifier}), PARAMS, fields=["id"], identifier=1)
    refused(rpc.call(operation, {}), PARAMS, fields=["id"], identifier=1)


@covers("path.body-id")
def test_a_body_that_names_another_task_than_the_path_is_refused(http: HttpCaller) -> None:
    for action in ("cancel", "subscribe"):
        request = http.request("CancelTask", b'{"id":"other"}')
        reply = http.deliver(Request("POST", f"{AGENT}/tasks/nope:{action}", request.headers, request.body))
        refused(reply, PARAMS, fields=["id"])


@covers("tenant.own")
@pytest.mark.parametrize("path", ["/tasks", "/tasks/nope", "/tasks/nope:subscribe"])
def test_a_foreign_tenant_in_the_query_is_refused(http: HttpCaller, path: str) -> None:
    refused(http.deliver(Request("GET", f"{AGENT}{path}?tenant=other", READY)), PARAMS, fields=["tenant"])


@covers("path.query")
@pytest.mark.parametrize("count", [1, 50, 99, 101, 500])
def test_a_query_of_many_parameters_is_no_fault_of_ours(caller: Caller, count: int) -> None:
    query = "&".join(f"unknown{number}=1" for number in range(count))
    request = caller.request("ListTasks", {"contextId": "none"})
    target = request.target + ("&" if "?" in request.target else "?") + query
    reply = caller.deliver(Request(request.method, target, request.headers, request.body))
    assert reply.status in (200, 400), reply
    assert count > 99 or reply.result["tasks"] == []


@covers("path.query")
@pytest.mark.parametrize(
    "query", ["%", "%zz", "%ff%fe", "&&&", "=", "a=b;c=d", "tenant", "+", "%00=%00", "a" * 9000]
)
def test_a_query_of_nonsense_is_ignored(http: HttpCaller, query: str) -> None:
    reply = http.deliver(Request("GET", f"{AGENT}/tasks?contextId=none&{query}", READY))
    assert reply.result["tasks"] == []


@covers("path.raw")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "line",
    [
        b"GET /agents/demo/t\xe9sks HTTP/1.1",
        b"BREW /agents/demo/tasks HTTP/1.1",
        b"GET nope HTTP/1.1",
        b"x",
        b"\0\0\0",
    ],
)
def test_what_is_no_http_request_is_refused_and_closed(socket: Socket, line: bytes) -> None:
    socket.send(line + b"\r\nhost: x\r\na2a-version: 1.0\r\n\r\n")
    reply: Reply = socket.reply()
    assert 400 <= reply.status < 500
    assert reply.headers.get("connection") == "close" and socket.is_closed_by_server()
