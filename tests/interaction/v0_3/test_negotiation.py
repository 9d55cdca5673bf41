"""Version negotiation where 0.3 is served: what means 0.3, what fails closed, and what every reply says of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.interaction.answers import VERSION, check_negotiated
from tests.interaction.answers import Reply as NewerReply
from tests.interaction.answers import refused as newer_refused
from tests.interaction.callers import HttpCaller, Request, RpcCaller
from tests.interaction.messages import send_params as newer_params
from tests.interaction.sockets import Socket
from tests.interaction.v0_3.answers import NO_METHOD, Reply, refused
from tests.interaction.v0_3.callers import ALIAS, BASE, METHODS, OFFICIAL, RPC, Caller, Place, envelope
from tests.interaction.v0_3.messages import send_params, sent
from tests.interaction.v0_3.requirements import covers


def status_form(reply: Reply, *, identifier: Any = None) -> dict[str, str]:
    """Check that a reply refuses a version in the form of 1.0, and return the metadata of its ErrorInfo."""
    newer = NewerReply(reply.binding, reply.status, reply.headers, reply.body)
    return newer_refused(newer, VERSION, identifier=identifier)


def asked(caller: Caller, *values: str) -> Request:
    """A send with these version headers, none of its own, marked for `headed`."""
    request = caller.request("SendMessage", send_params())
    return request.with_headers(a2a_version=None, x_versions="|".join(values))


def headed(request: Request, *values: bytes) -> bytes:
    """The bytes of a request with these version headers."""
    head, body = request.with_headers(x_versions=None).text().split(b"\r\n\r\n", 1)
    return head + b"".join(b"\r\nA2A-Version: " + value for value in values) + b"\r\n\r\n" + body


MEANS_0_3 = [(), (b"",), (b" ",), (b"0.3",), (b" 0.3",), (b"\t0.3 \t",), (b"0.3", b"0.3"), (b"0.3", b"0.3 ")]


@covers("version.meaning")
@pytest.mark.parametrize("values", MEANS_0_3, ids=str)
def test_no_version_an_empty_one_and_0_3_mean_0_3(
    caller: Caller, socket: Socket, values: tuple[bytes, ...]
) -> None:
    request = asked(caller)
    reply = caller.exchange(socket, headed(request, *values), request, "SendMessage")
    assert reply.value["status"]["state"] == "completed"


@covers("version.meaning")
@pytest.mark.parametrize("query", ["A2A-Version=0.3", "A2A-Version=", "A2A-Version=0.3&A2A-Version=0.3"])
def test_the_query_may_name_0_3_too(caller: Caller, query: str) -> None:
    request = caller.request("SendMessage", send_params())
    reply = caller.deliver(request.at(f"{request.target}?{query}"), "SendMessage")
    if query == "A2A-Version=" and "A2A-Version" in caller.place.headers:
        status_form(reply)
    else:
        assert reply.value["status"]["state"] == "completed"


NOT_0_3 = [
    *("1", "0", "3", "0.3.0", "0.3.1", "v0.3", "00.3", "0.30", "0.03", "0.2", "0.4", "0.9", "2.0", "1.1"),
    *("1.0.0", "1.0.1", "latest", "0,3", "0.3,0.3", "0.3, 1.0", "0.3;q=1", "0.3 0.3", "+0.3", "'0.3'"),
]


@covers("version.refused")
@pytest.mark.usefixtures("nothing_stored")
def test_http_refuses_every_other_version_in_the_form_of_1_0(web: Caller) -> None:
    for version in NOT_0_3:
        request = web.request("SendMessage", send_params()).with_headers(a2a_version=version)
        reply = web.deliver(request)
        metadata = status_form(reply)
        assert metadata == {"requested": version, "supported": "0.3" if web.place.mount else "1.0,0.3"}
        assert not [name for name in reply.headers if "version" in name]


@covers("version.refused")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "version", [version for version in NOT_0_3 if not version.startswith(("0.3.", "1.0."))]
)
def test_jsonrpc_refuses_other_versions_under_the_requests_id(rpc: Caller, version: str) -> None:
    for operation in ("SendMessage", "SendStreamingMessage"):
        request = rpc.request(operation, send_params(), headers={"A2A-Version": version})
        metadata = status_form(rpc.deliver(request), identifier=1)
        assert metadata == {"requested": version, "supported": "1.0,0.3"}


@covers("version.patch")
@pytest.mark.parametrize("version", ["0.3.0", "0.3.7"])
def test_jsonrpc_takes_patch_revisions_of_0_3(rpc: Caller, version: str) -> None:
    reply = rpc.call("SendMessage", send_params(), headers={"A2A-Version": version})
    assert reply.value["status"]["state"] == "completed"


@covers("version.refused")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "values",
    [(b"0.3\xe9",), ("0.３".encode(),), (b"\xff",), (b"0.3", b"1.0"), (b"1.0", b"0.3"), (b"0.3", b"")],
)
def test_versions_that_are_not_ascii_or_differ_are_refused(
    caller: Caller, socket: Socket, values: tuple[bytes, ...]
) -> None:
    request = asked(caller)
    status_form(caller.exchange(socket, headed(request, *values), request), identifier=1)


@covers("version.refused")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("query", ["A2A-Version=1.0", "A2A-Version=0.2", "A2A-Version=0.3&A2A-Version=1.0"])
def test_a_query_and_a_header_that_disagree_are_refused(caller: Caller, query: str) -> None:
    request = caller.request("SendMessage", send_params(), headers={"A2A-Version": "0.3"})
    status_form(caller.deliver(request.at(f"{request.target}?{query}")), identifier=1)


ALIASED = [
    ("POST", "/message:send"),
    ("POST", "/message:stream"),
    ("POST", "/messages:send"),
    ("GET", "/tasks"),
    ("GET", "/tasks/nope"),
    ("POST", "/tasks/nope:cancel"),
    ("POST", "/tasks/nope/cancel"),
    ("GET", "/tasks/nope:subscribe"),
    ("POST", "/tasks/nope/subscribe"),
    ("POST", "/tasks/nope/pushNotificationConfigs"),
    ("DELETE", "/tasks/nope/pushNotificationConfigs/x"),
    ("GET", "/card"),
    ("GET", "/.well-known/agent-card.json"),
    ("GET", "/no/such/path"),
    ("GET", ""),
    ("PUT", "/message:send"),
]


@covers("version.closed")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("place", [ALIAS, *OFFICIAL], ids=lambda place: place.name)
def test_1_0_fails_closed_at_the_alias_and_at_the_official_place(base: Caller, place: Place) -> None:
    caller = base.at(place)
    for method, path in ALIASED:
        for request in (
            Request(method, caller.path(path), {**place.headers, "A2A-Version": "1.0"}),
            Request(method, caller.path(path) + "?A2A-Version=1.0", place.headers),
        ):
            metadata = status_form(caller.deliver(request))
            assert metadata == {"requested": "1.0", "supported": "0.3"}, (method, path)


@covers("version.closed")
def test_a_1_0_message_fails_closed_at_the_alias_and_nothing_is_stored(http: HttpCaller, rows: Any) -> None:
    request = http.request("SendMessage", newer_params())
    with rows.unchanged():
        for mount in ("/v1", "/v1/v1"):
            reply = http.deliver(request.at(f"/agents/demo{mount}/message:send"))
            newer_refused(reply, VERSION)


@covers("version.operator")
@pytest.mark.usefixtures("nothing_stored")
def test_an_agent_of_1_0_alone_refuses_0_3_by_name_at_every_place(caller: Caller) -> None:
    reply = caller.to("modern").call("SendMessage", send_params())
    supported = "1.0" if caller.place.mount in ("", "/rpc") else ""
    assert status_form(reply, identifier=1) == {"requested": "0.3", "supported": supported}
    message = reply.json()["error"]["message"]
    assert "0.3" in message
    assert ("1.0" in message) == bool(supported)
    assert "served here: ." not in message and "served here: ;" not in message


@covers("version.operator")
def test_an_agent_of_0_3_alone_serves_that_and_refuses_1_0_by_name(
    form: Caller, newer: HttpCaller | RpcCaller
) -> None:
    assert sent(form.to("old"))["status"]["state"] == "completed"
    reply = newer.to("old").call("SendMessage", newer_params())
    assert newer_refused(reply, VERSION, identifier=1) == {"requested": "1.0", "supported": "0.3"}


@covers("version.methods")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "method",
    ["SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "GetExtendedAgentCard"],
)
def test_a_method_of_1_0_without_a_version_is_refused_as_a_version_and_with_0_3_as_a_method(
    rpc: Caller, method: str
) -> None:
    body = envelope(method, newer_params() if method.startswith("Send") else {"id": "nope"})
    metadata = status_form(rpc.deliver(rpc.post(body)), identifier=1)
    assert metadata == {"requested": "0.3", "supported": "1.0,0.3"}
    reply = rpc.deliver(rpc.post(body, {"A2A-Version": "0.3"}))
    error = refused(reply, NO_METHOD, identifier=1)
    assert method in error["message"] and "1.0" in error["message"]


@covers("version.methods")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("method", METHODS.values())
def test_a_method_of_0_3_under_a_1_0_header_is_not_found(rpc: Caller, method: str) -> None:
    reply = rpc.deliver(rpc.post(envelope(method, send_params()), {"A2A-Version": "1.0"}))
    assert (reply.json()["error"]["code"], reply.json()["id"]) == (NO_METHOD.code, 1)
    check_negotiated(reply.headers, "1.0")


@covers("version.methods")
@pytest.mark.usefixtures("nothing_stored")
def test_a_notification_of_a_1_0_method_without_a_version_runs_nothing(rpc: Caller) -> None:
    body = b'{"jsonrpc":"2.0","method":"SendMessage","params":{}}'
    status_form(rpc.deliver(rpc.post(body)))


STAGES: dict[str, Callable[[Caller], Request]] = {
    "success": lambda caller: caller.request("SendMessage", send_params()),
    "not found": lambda caller: caller.request("GetTask", {"id": "nope"}),
    "wrong type": lambda caller: caller.request("SendMessage", send_params()).with_headers(
        content_type="a/b"
    ),
    "not acceptable": lambda caller: caller.request("SendMessage", send_params()).with_headers(accept="a/b"),
    "wrong field": lambda caller: caller.request("SendMessage", {"message": {}}),
    "unknown agent": lambda caller: caller.to("nobody").request("SendMessage", send_params()),
    "wrong method": lambda caller: caller.request("SendMessage", send_params()).by("PATCH"),
    "wrong path": lambda caller: caller.request("GetTask", {"id": "x"}).at(caller.path("/x/y")),
    "malformed": lambda caller: caller.request("SendMessage", b"{"),
}


@covers("version.reply-headers")
@pytest.mark.parametrize("stage", STAGES)
def test_every_reply_says_0_3_and_what_it_varies_by(caller: Caller, stage: str) -> None:
    if stage == "wrong path" and caller.place is RPC:
        # Below the endpoint there is nothing: such a path is the headerless base's.
        caller = replace(caller, place=BASE)
    check_negotiated(caller.deliver(STAGES[stage](caller)).headers, "0.3")


@covers("version.reply-headers")
def test_a_stream_says_0_3_and_what_it_varies_by(caller: Caller) -> None:
    with caller.open("SendStreamingMessage", send_params()) as stream:
        check_negotiated(stream.headers, "0.3")
        stream.rest()
    with caller.open("SubscribeToTask", {"id": "nope"}, headers={"Accept": "text/event-stream"}) as stream:
        check_negotiated(stream.headers, "0.3")
