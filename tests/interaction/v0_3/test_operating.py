"""What operators see of 0.3: requests by version, and log lines with the place and nothing of the caller."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.callers import Request
from tests.interaction.messages import new_id
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import send_params
from tests.interaction.v0_3.requirements import covers


def samples(base: Caller) -> dict[str, float]:
    """The requests counted so far, by version."""
    text = base.deliver(Request("GET", "/metrics")).body.decode()
    return {
        version: float(value)
        for version, value in re.findall(r'^a2a_requests_total\{version="(.*)"\} (\S+)$', text, re.MULTILINE)
    }


@covers("metrics.versions")
def test_requests_are_counted_by_negotiated_version(caller: Caller, base: Caller) -> None:
    before = samples(base)
    caller.call("SendMessage", send_params())
    caller.call("GetTask", {"id": "nope"})
    caller.to(new_id("label")).call("GetTask", {"id": "nope"})
    with caller.open("SubscribeToTask", {"id": "nope"}) as stream:
        assert stream.status in (200, 404)
    for version in ("0.2", "v0.3", "x" * 300):
        caller.call("GetTask", {"id": "nope"}, headers={"A2A-Version": version})
    caller.to("modern").call("SendMessage", send_params())
    after = samples(base)
    assert set(after) == {"0.3", "1.0", "rejected"}
    assert {name: after[name] - before.get(name, 0) for name in after} == {"0.3": 4, "1.0": 0, "rejected": 4}


def line_of(server: ServerProcess, request_id: str) -> dict[str, Any]:
    """The one log line of a request."""

    def lines() -> list[dict[str, Any]]:
        text = server.log_file.read_text(encoding="utf-8")
        found = [json.loads(line) for line in text.splitlines() if f'"request_id":"{request_id}"' in line]
        return [line for line in found if line.get("logger") == "dragoman.request"]

    until(lines, what=f"a log line of request {request_id}", seconds=3)
    found = lines()
    assert len(found) == 1
    return found[0]


ROUTES = {
    "base": "/agents/{agent}/message:send",
    "header": "/agents/{agent}/message:send",
    "alias": "/agents/{agent}/v1/message:send",
    "proto": "/agents/{agent}/v1/v1/message:send",
    "snake": "/agents/{agent}/v1/v1/message:send",
    "doubled": "/agents/{agent}/v1/v1/message:send",
    "rpc": "/agents/{agent}/rpc",
}


@covers("logs.request")
def test_each_request_has_one_log_line_that_tells_the_place(caller: Caller, server: ServerProcess) -> None:
    reply = caller.call("SendMessage", send_params())
    line = line_of(server, reply.headers["x-request-id"])
    expected = {
        "route": ROUTES[caller.place.name],
        "status": 200,
        "version": "0.3",
        "outcome": "ok",
        "operation": "SendMessage",
        "agent": "demo",
        "task_id": reply.value["id"],
    }
    assert {name: line.get(name) for name in expected} == expected


REFUSED: dict[str, tuple[Callable[[Caller], Request], dict[str, Any]]] = {
    "version": (
        lambda caller: caller.request("GetTask", {"id": "x"}, headers={"A2A-Version": "secret-9.9"}),
        {"version": "rejected", "outcome": "VERSION_NOT_SUPPORTED"},
    ),
    "switched off": (
        lambda caller: caller.to("modern").request("GetTask", {"id": "x"}),
        {"version": "rejected", "outcome": "VERSION_NOT_SUPPORTED"},
    ),
    "field": (
        lambda caller: caller.request("SendMessage", {"message": {}}),
        {"version": "0.3", "outcome": "INVALID_PARAMS", "operation": "SendMessage"},
    ),
    "agent": (
        lambda caller: caller.to("secret-agent").request("GetTask", {"id": "x"}),
        {"version": "0.3", "outcome": "AGENT_NOT_FOUND", "status": 404},
    ),
    "task": (
        lambda caller: caller.request("GetTask", {"id": "secret-task"}),
        {"version": "0.3", "outcome": "TASK_NOT_FOUND", "operation": "GetTask"},
    ),
}


@covers("logs.request")
@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_logged_with_its_reason_and_nothing_of_the_caller(
    form: Caller, server: ServerProcess, case: str
) -> None:
    make, expected = REFUSED[case]
    line = line_of(server, form.deliver(make(form)).headers["x-request-id"])
    assert {name: line.get(name) for name in expected} == expected
    assert "secret" not in json.dumps(line)


@covers("logs.request")
def test_no_message_text_reaches_the_log(caller: Caller, server: ServerProcess) -> None:
    secret = new_id("secret")
    caller.call("SendMessage", send_params(secret, metadata={secret: secret}, contextId=secret))
    caller.call("SendMessage", send_params(secret, role=secret))
    last = caller.call("GetTask", {"id": secret}, headers={"X-A2A-Extensions": secret})
    line_of(server, last.headers["x-request-id"])
    assert secret not in server.log_file.read_text(encoding="utf-8")


@covers("extensions.echo")
def test_extensions_that_nobody_declared_are_ignored_and_not_echoed(caller: Caller) -> None:
    for header in ("X-A2A-Extensions", "A2A-Extensions"):
        reply = caller.call("SendMessage", send_params(), headers={header: "urn:x, ,urn:y"})
        assert reply.value["status"]["state"] == "completed"
        assert not [name for name in reply.headers if name.endswith("a2a-extensions")]


@covers("extensions.echo")
def test_a_stream_echoes_extensions_as_0_3_has_them(caller: Caller) -> None:
    headers = {"X-A2A-Extensions": "urn:dragoman:ext:idempotency:v1"}
    with caller.to("loose").open("SendStreamingMessage", send_params(), headers=headers) as stream:
        assert stream.headers["x-a2a-extensions"] == "urn:dragoman:ext:idempotency:v1"
        assert "a2a-extensions" not in stream.headers


@covers("headers.request-id")
def test_a_request_id_of_the_caller_is_kept_and_told_in_problems(caller: Caller) -> None:
    request_id = new_id("r")
    reply = caller.call("GetTask", {"id": "nope"}, headers={"X-Request-Id": request_id})
    assert reply.headers["x-request-id"] == request_id
    if caller.binding == "http":
        assert reply.json()["trace_id"] == request_id
