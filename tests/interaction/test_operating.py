"""What operators see: probes, metrics, and one log line a request."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.protocol.registry import load_versions
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.callers import READY, Caller, HttpCaller, Request
from tests.interaction.following import sent
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.sockets import Socket


@covers("probe.health")
@pytest.mark.parametrize(("path", "status"), [("/healthz", "ok"), ("/readyz", "ready")])
@pytest.mark.parametrize("headers", [{}, READY, {"Accept": "text/html"}], ids=["bare", "version", "accept"])
def test_a_healthy_server_says_so_to_anybody(
    http: HttpCaller, path: str, status: str, headers: dict[str, str]
) -> None:
    reply = http.deliver(Request("GET", path, headers))
    assert (reply.status, reply.json()) == (200, {"status": status})
    assert reply.headers["cache-control"] == "no-store" and reply.headers["x-request-id"]
    head = http.deliver(Request("HEAD", path, headers))
    assert (head.status, head.body, head.headers["content-length"]) == (
        200,
        b"",
        reply.headers["content-length"],
    )


@covers("probe.health")
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_are_for_reading_only(http: HttpCaller, path: str) -> None:
    reply = http.deliver(Request("POST", path))
    assert (reply.status, reply.reason, reply.headers["allow"]) == (405, "METHOD_NOT_ALLOWED", "GET, HEAD")


def samples(http: HttpCaller, name: str) -> dict[str, float]:
    """The samples of one metric by their labels."""
    reply = http.deliver(Request("GET", "/metrics"))
    assert (reply.status, reply.content_type) == (200, "text/plain")
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", reply.body.decode(), re.MULTILINE)
    return {labels: float(value) for labels, value in found}


SERVED, REJECTED = 'version="1.0"', 'version="rejected"'
VERSIONS = {REJECTED, *(f'version="{version}"' for version in load_versions())}


@covers("metrics.versions")
def test_requests_are_counted_by_negotiated_version(caller: Caller, http: HttpCaller) -> None:
    before = samples(http, "a2a_requests_total")
    for _ in range(3):
        caller.call("ListTasks", {"contextId": "none"})
    caller.call("GetTask", {"id": "nope"})
    for version in ("2.0", "garbage", "1", "x" * 300):
        caller.call("ListTasks", headers={"A2A-Version": version})
    caller.deliver(caller.to("modern").request("ListTasks", headers={}))
    after = samples(http, "a2a_requests_total")
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown == dict.fromkeys(VERSIONS, 0) | {SERVED: 4, REJECTED: 5}


@covers("metrics.bounded")
def test_nothing_that_a_caller_sends_becomes_a_label(caller: Caller, http: HttpCaller) -> None:
    marker = new_id("label")
    caller.call(marker if caller.binding == "jsonrpc" else "GetTask", {"id": marker})
    caller.to(marker).call("ListTasks")
    http.deliver(Request("GET", f"/agents/demo/{marker}", {"A2A-Version": marker}))
    http.deliver(Request("GET", f"/{marker}"))
    text = http.deliver(Request("GET", "/metrics")).body.decode()
    assert marker not in text
    assert set(samples(http, "a2a_requests_total")) == VERSIONS
    operations = {
        re.search(r'operation="(.*?)"', labels)[1] for labels in samples(http, "dragoman_requests_total")
    }  # type: ignore[index]
    assert operations <= OPERATIONS


OPERATIONS = {
    *("", "SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"),
    *("CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs"),
    *("DeleteTaskPushNotificationConfig", "GetExtendedAgentCard", "GetAgentCard"),
}


def line_of(server: ServerProcess, request_id: str) -> dict[str, Any]:
    """The one log line of a request."""

    def lines() -> list[dict[str, Any]]:
        text = server.log_file.read_text(encoding="utf-8")
        found = [json.loads(line) for line in text.splitlines() if f'"request_id":"{request_id}"' in line]
        return [line for line in found if line.get("logger") == "dragoman.request"]

    until(lines, what=f"a log line of request {request_id}", seconds=3)
    found = lines()
    assert [line["request_id"] for line in found] == [request_id]
    return found[0]


@covers("logs.request")
def test_each_request_has_one_log_line_with_the_id_of_its_reply(
    caller: Caller, server: ServerProcess
) -> None:
    reply = caller.call("SendMessage", send_params("hello"))
    line = line_of(server, reply.headers["x-request-id"])
    route = "/agents/{agent}/rpc" if caller.binding == "jsonrpc" else "/agents/{agent}/message:send"
    expected = {
        "method": "POST",
        "route": route,
        "status": 200,
        "version": "1.0",
        "outcome": "ok",
        "operation": "SendMessage",
        "agent": "demo",
        "tenant": "local",
        "task_id": reply.task["id"],
    }
    assert {name: line.get(name) for name in expected} == expected
    assert line["ms"] >= 0 and line["level"] == "info"


REFUSED: dict[str, tuple[Callable[[Caller], Request], dict[str, Any]]] = {
    "version": (
        lambda caller: caller.request("ListTasks", headers={"A2A-Version": "secret-9.9"}),
        {"version": "rejected", "outcome": "VERSION_NOT_SUPPORTED"},
    ),
    "field": (
        lambda caller: caller.request("SendMessage", {"message": {}}),
        {"version": "1.0", "outcome": "INVALID_PARAMS", "operation": "SendMessage"},
    ),
    "type": (
        lambda caller: caller.request("SendMessage", send_params()).with_headers(content_type="a/b"),
        {"version": "1.0", "outcome": "CONTENT_TYPE_NOT_SUPPORTED", "status": 415},
    ),
    "agent": (
        lambda caller: caller.to("secret-agent").request("ListTasks"),
        {"version": "1.0", "outcome": "AGENT_NOT_FOUND", "status": 404},
    ),
    "task": (
        lambda caller: caller.request("GetTask", {"id": "secret-task"}),
        {"version": "1.0", "outcome": "TASK_NOT_FOUND", "operation": "GetTask"},
    ),
}


@covers("logs.refusals")
@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_logged_with_its_reason_and_nothing_of_the_caller(
    caller: Caller, server: ServerProcess, case: str
) -> None:
    make, expected = REFUSED[case]
    line = line_of(server, caller.deliver(make(caller)).headers["x-request-id"])
    assert {name: line.get(name) for name in expected} == expected
    assert "secret" not in json.dumps(line)


@covers("logs.request")
@pytest.mark.parametrize("operation", ["SendStreamingMessage", "SubscribeToTask"])
def test_a_stream_has_one_log_line_too(
    caller: Caller, server: ServerProcess, holding: str, operation: str
) -> None:
    params = send_params("hello") if operation == "SendStreamingMessage" else {"id": holding}
    agent = caller if operation == "SendStreamingMessage" else caller.to("hold")
    with agent.open(operation, params) as stream:
        stream.next()
    line = line_of(server, stream.headers["x-request-id"])
    assert (line["status"], line["operation"], line["outcome"]) == (200, operation, "ok")


@covers("logs.request")
def test_a_request_whose_caller_left_while_it_waited_has_its_log_line(
    caller: Caller, server: ServerProcess, socket: Socket, rows: Any
) -> None:
    """The server notices a caller that has gone a second after the request began."""
    request_id = new_id("left")
    context = new_id("ctx")
    request = caller.to("hold").request("SendMessage", send_params("wait", contextId=context))
    socket.send(request.with_headers(x_request_id=request_id).text())
    listed = until(
        lambda: caller.to("hold").call("ListTasks", {"contextId": context}).result["tasks"], what="it runs"
    )
    socket.close()
    try:
        assert line_of(server, request_id)["operation"] == "SendMessage"
    finally:
        caller.to("hold").call("CancelTask", {"id": listed[0]["id"]})


@covers("logs.no-text")
def test_no_message_text_reaches_the_log(caller: Caller, server: ServerProcess) -> None:
    secret = new_id("secret")
    params = send_params(secret, metadata={secret: secret}, contextId=secret)
    last = caller.call("SendMessage", params)
    task = last.task
    with caller.open("SendStreamingMessage", send_params(f"fail {secret}")) as stream:
        stream.rest()
    caller.call("SendMessage", send_params(secret, parts=[{"kind": secret, "text": secret}]))
    caller.call("SendMessage", ('{"message":{"' + secret).encode())
    caller.call("ListTasks", {"contextId": secret, "pageToken": secret, "status": secret})
    caller.call("SendMessage", params | {"metadata": {"x": secret}})
    sent(caller, f"crash {secret}")
    last = caller.call("GetTask", {"id": task["id"]}, headers={"A2A-Extensions": secret, "Cookie": secret})
    line_of(server, last.headers["x-request-id"])
    assert secret not in server.log_file.read_text(encoding="utf-8")


@covers("logs.json")
def test_every_line_of_the_log_is_json(server: ServerProcess, http: HttpCaller) -> None:
    line_of(server, http.call("ListTasks").headers["x-request-id"])
    whole = [line for line in server.log_file.read_text(encoding="utf-8").split("\n") if line]
    assert all(isinstance(json.loads(line), dict) for line in whole)
