"""Header oddities: repeated, padded, huge; the request id; what is never believed or echoed."""

import re

import httpx2
import pytest

from tests.harness.server import ServerProcess
from tests.interaction.answers import TASK_NOT_FOUND, refused
from tests.interaction.callers import READY, Caller, HttpCaller, Request
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.sockets import Socket


@covers("headers.request-id")
@pytest.mark.parametrize("value", ["a", "A-1._z", "0" * 64])
def test_a_request_id_of_the_caller_is_kept(caller: Caller, value: str) -> None:
    for operation, params in (("ListTasks", {"pageSize": 1}), ("GetTask", {"id": "nope"})):
        reply = caller.call(operation, params, headers={"X-Request-Id": value})
        assert reply.headers["x-request-id"] == value


@covers("headers.request-id")
@pytest.mark.parametrize("value", ["", "0" * 65, "a b", "a,b", "é", "a/b", "a:b", "<a>", "a\tb", '"a"'])
def test_any_other_request_id_is_replaced(caller: Caller, socket: Socket, value: str) -> None:
    request = caller.request("GetTask", {"id": "nope"}).with_headers(x_request_id=value)
    socket.send(request.text())
    given = socket.reply(caller.binding).headers["x-request-id"]
    assert given != value
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", given)


@covers("headers.request-id")
def test_every_reply_has_a_request_id_of_its_own(caller: Caller) -> None:
    given = {caller.call("GetTask", {"id": "nope"}).headers["x-request-id"] for _ in range(50)}
    assert len(given) == 50


@covers("headers.huge")
@pytest.mark.parametrize("size", [1000, 16_000, 60_000])
def test_a_large_header_is_read_or_refused_but_never_a_fault(
    caller: Caller, socket: Socket, size: int
) -> None:
    socket.send(caller.request("GetTask", {"id": "nope"}).with_headers(x_large="a" * size).text())
    assert socket.reply(caller.binding).status in (200, 400, 404, 431)


@covers("headers.huge")
def test_a_header_without_end_is_cut_off(socket: Socket) -> None:
    """A megabyte is more than any proxy lets through; a server that goes on reading can be filled by one caller."""
    socket.send(b"GET /agents/demo/tasks HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nX-Endless: ")
    socket.send_what_is_taken(b"a" * 8 * 1024 * 1024)
    socket.send_what_is_taken(b"\r\n\r\n")
    reply = next(socket.replies(), None)
    assert reply is None or reply.status in (400, 431)


@covers("headers.repeated")
def test_many_and_repeated_headers_are_no_fault(caller: Caller, socket: Socket) -> None:
    text = caller.request("GetTask", {"id": "nope"}).text()
    extra = b"".join(
        b"X-Filler-%d: %d\r\nAccept: */*\r\nX-Request-Id: twice\r\n" % (n, n) for n in range(300)
    )
    head, body = text.split(b"\r\n\r\n", 1)
    socket.send(head + b"\r\n" + extra + b"\r\n" + body)
    reply = socket.reply(caller.binding)
    refused(reply, TASK_NOT_FOUND, identifier=1)
    assert reply.headers["x-request-id"] == "twice"


@covers("headers.not-believed", "voice.69")
def test_forwarded_headers_and_host_change_nothing_in_the_card(http: HttpCaller) -> None:
    path = "/agents/demo/.well-known/agent-card.json"
    plain = http.deliver(Request("GET", path, READY))
    lies = {
        "Host": "localhost:1",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Prefix": "/evil",
        "X-Forwarded-For": "10.0.0.1",
        "Forwarded": "host=evil.example;proto=https",
        "X-Original-URL": "/evil",
    }
    told = http.deliver(Request("GET", path, {**READY, **lies}))
    assert told.body == plain.body
    assert told.headers["etag"] == plain.headers["etag"]
    assert all(entry["url"].startswith(http.origin) for entry in plain.json()["supportedInterfaces"])


@covers("headers.not-believed")
def test_tenant_and_principal_headers_are_not_believed(caller: Caller) -> None:
    headers = {
        "X-Tenant": "other",
        "X-A2A-Tenant": "other",
        "X-User": "root",
        "Authorization": "Bearer nonsense",
    }
    task = caller.to("seen").call("SendMessage", send_params(), headers=headers).task
    assert task["artifacts"][0]["parts"][0]["data"]["principal"] == "local"
    assert caller.to("seen").call("GetTask", {"id": task["id"]}).result["id"] == task["id"]


@covers("headers.extensions")
@pytest.mark.parametrize("value", ["", ",", "urn:a", "urn:a, urn:b,,", "\xe9", "a" * 20_000])
def test_extensions_that_nobody_declared_are_ignored_and_not_echoed(
    caller: Caller, socket: Socket, value: str
) -> None:
    socket.send(caller.request("SendMessage", send_params()).with_headers(a2a_extensions=value).text())
    reply = socket.reply(caller.binding)
    assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "a2a-extensions" not in reply.headers


@covers("headers.no-echo")
def test_nothing_that_a_caller_sends_comes_back_in_a_header(caller: Caller) -> None:
    marker = new_id("marker")
    params = send_params(marker, contextId=marker, metadata={marker: marker})
    headers = {"X-Marker": marker, "Accept-Language": marker, "Cookie": marker, "Origin": f"https://{marker}"}
    reply = caller.call("SendMessage", params, headers=headers)
    assert marker in reply.body.decode()
    assert not [name for name, value in reply.headers.items() if marker in value or marker in name]
    assert "server" not in reply.headers and "set-cookie" not in reply.headers


READ = (
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/.well-known/jwks.json",
    "/.well-known/agent-card.json",
)


@covers("headers.request-id")
@pytest.mark.parametrize("path", [*READ, "/agents/demo/.well-known/agent-card.json", "/nowhere"])
def test_what_is_read_again_has_the_same_headers_again(
    client: httpx2.Client, server: ServerProcess, path: str
) -> None:
    """What replies have in common is nobody's to add to."""
    first, *more = (client.get(server.url + path).headers.multi_items() for _ in range(3))
    assert [name for name, _ in first].count("x-request-id") == 1
    for again in more:
        assert [name for name, _ in again] == [name for name, _ in first]
