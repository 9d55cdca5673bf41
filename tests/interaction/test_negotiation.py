"""Version negotiation over HTTP+JSON and JSON-RPC, of 1.0 and of what nobody serves."""

from collections.abc import Callable

import pytest

from dragoman.protocol.registry import load_versions
from tests.interaction.answers import ENVELOPE, NO_METHOD, VERSION, Reply, check_negotiated, refused
from tests.interaction.callers import Caller, HttpCaller, Request, RpcCaller
from tests.interaction.messages import send_params
from tests.interaction.requirements import covers
from tests.interaction.sockets import Socket

SERVED = ",".join(load_versions())
MODERN = "modern"
"""An agent that the operator serves in 1.0 alone."""

REFUSED = [
    *("1", "1.0.0", "0.3.0", "v1.0", "01.0", "1.00", "2.0", "1.1", "1.7", "99.0", "0.30", "0.9"),
    *("latest", "1,0", "1.0,1.0", "1.0;q=1", "1.0 1.0", "+1.0", "1.0-rc1", "'1.0'", "x" * 5000),
]

HTTP_PATHS = [
    ("POST", "/agents/demo/message:send"),
    ("POST", "/agents/demo/message:stream"),
    ("GET", "/agents/demo/tasks"),
    ("HEAD", "/agents/demo/tasks"),
    ("GET", "/agents/demo/tasks/nope"),
    ("POST", "/agents/demo/tasks/nope:cancel"),
    ("POST", "/agents/demo/tasks/nope:subscribe"),
    ("GET", "/agents/demo/tasks/nope:subscribe"),
    ("POST", "/agents/demo/tasks/nope/pushNotificationConfigs"),
    ("DELETE", "/agents/demo/tasks/nope/pushNotificationConfigs/nope"),
    ("GET", "/agents/demo/extendedAgentCard"),
    ("POST", "/agents/demo/v1/message:send"),
    ("POST", "/agents/demo/v1/v1/message:send"),
    ("GET", "/agents/demo/no/such/path"),
    ("OPTIONS", "/agents/demo/tasks"),
    ("PUT", "/agents/demo/tasks"),
    ("GET", "/agents/nobody/tasks"),
]

CARD_PATHS = [
    ("GET", "/agents/demo/.well-known/agent-card.json"),
    ("HEAD", "/agents/demo/.well-known/agent-card.json"),
    ("POST", "/agents/demo/.well-known/agent-card.json"),
    ("GET", "/agents/nobody/.well-known/agent-card.json"),
    ("GET", "/.well-known/agent-card.json"),
    ("GET", "/no/such/path"),
]


def _names_refused_value(reply: Reply, value: str) -> list[str]:
    """The headers that repeat a refused version; short ones are looked for in version headers alone."""
    named = [name for name, held in reply.headers.items() if "version" in name and name != "vary" and held]
    long = [name for name, held in reply.headers.items() if len(value) > 4 and value in held]
    return named + long


def _check_all(
    http: HttpCaller, paths: list[tuple[str, str]], version: str | None, agent: str = "demo"
) -> None:
    failures = []
    for method, listed in paths:
        path = listed.replace("/demo/", f"/{agent}/")
        headers = {} if version is None else {"A2A-Version": version}
        reply = http.deliver(Request(method, path, headers))
        try:
            if method == "HEAD":
                assert reply.status == 400
                check_negotiated(reply.headers, None)
            else:
                metadata = refused(reply, VERSION)
                assert metadata["supported"] in SERVED and metadata["requested"]
            assert not _names_refused_value(reply, version or "")
        except AssertionError as error:
            failures.append(f"{method} {path}: {str(error)[:300]}")
    assert not failures, "\n".join(failures)


@covers("version.http-exact", "version.http-everywhere", "voice.1", "voice.12")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("version", REFUSED, ids=lambda value: value[:12])
def test_http_refuses_every_version_but_the_exact_one_on_every_path_of_an_agent(
    http: HttpCaller, version: str
) -> None:
    _check_all(http, HTTP_PATHS, version)


@covers("version.http-everywhere")
@pytest.mark.parametrize("method_and_path", CARD_PATHS, ids=lambda pair: f"{pair[0]} {pair[1]}")
def test_cards_and_unknown_paths_refuse_a_wrong_version_before_anything_else(
    http: HttpCaller, method_and_path: tuple[str, str]
) -> None:
    for version in ("2.0", "1.0.0", "1.7", "garbage"):
        _check_all(http, [method_and_path], version)


@covers("version.unnamed", "voice.6")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("version", [None, "", "0.3"])
def test_http_without_a_version_means_0_3_and_is_refused_by_name_where_that_is_switched_off(
    http: HttpCaller, version: str | None
) -> None:
    paths = [pair for pair in HTTP_PATHS if "/demo/" in pair[1]]
    _check_all(http, paths, version, MODERN)


@covers("version.unnamed", "voice.6")
@pytest.mark.usefixtures("nothing_stored")
def test_a_call_without_a_version_is_told_the_assumed_version_and_the_header_to_send(caller: Caller) -> None:
    request = caller.to(MODERN).request("SendMessage", send_params(), headers={})
    reply = caller.deliver(request)
    metadata = refused(reply, VERSION, identifier=1)
    message = reply.json()["error"]["message"]
    assert "0.3" in message and "A2A-Version" in message and "1.0" in message
    assert metadata == {"requested": "0.3", "supported": "1.0"}


@covers("version.http-exact")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("value", [b"1.\xe9", "1.٠".encode(), "１.０".encode(), b"\xff\xfe"])
def test_a_version_that_is_not_ascii_is_refused(caller: Caller, socket: Socket, value: bytes) -> None:
    request = caller.request("SendMessage", send_params(), headers={"A2A-Version": "MARK"})
    socket.send(request.text().replace(b"MARK", value))
    refused(socket.reply(caller.binding), VERSION, identifier=1)


@covers("version.repeated")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("values", [("1.0", "2.0"), ("1.0", "0.3"), ("2.0", "1.0"), ("1.0", "1.0", "1")])
def test_repeated_headers_that_differ_are_refused(
    caller: Caller, socket: Socket, values: tuple[str, ...]
) -> None:
    refused(_reply_to(caller, socket, *values), VERSION, identifier=1)


def _reply_to(caller: Caller, socket: Socket, *values: str) -> Reply:
    """The reply to a send with these version headers."""
    lines = "".join(f"A2A-Version: {value}\r\n" for value in values).encode("latin-1")
    request = caller.request("SendMessage", send_params(), headers={"X-Mark": "1"})
    socket.send(request.text().replace(b"X-Mark: 1\r\n", lines))
    return socket.reply(caller.binding)


@covers("version.supported-named")
@pytest.mark.parametrize(
    "values", [("2.0",), ("1.\xe9",), ("1.0", "2.0")], ids=["other", "non-ascii", "several"]
)
def test_every_refusal_of_a_version_says_what_was_asked_for_and_what_is_served(
    caller: Caller, socket: Socket, values: tuple[str, ...]
) -> None:
    metadata = refused(_reply_to(caller, socket, *values), VERSION, identifier=1)
    assert metadata["requested"]
    assert metadata["supported"] == SERVED


@covers("version.repeated")
def test_repeated_headers_that_agree_count_as_one(caller: Caller, socket: Socket) -> None:
    reply = _reply_to(caller, socket, "1.0", "1.0")
    assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"


@covers("headers.padding")
@pytest.mark.parametrize("value", [" 1.0", "\t1.0", "1.0 ", "1.0\t", " \t 1.0 \t "])
def test_white_space_around_a_header_value_is_no_part_of_it(
    caller: Caller, socket: Socket, value: str
) -> None:
    assert _reply_to(caller, socket, value).task["status"]["state"] == "TASK_STATE_COMPLETED"


@covers("version.query")
def test_the_query_may_name_the_version(http: HttpCaller) -> None:
    reply = http.deliver(Request("GET", "/agents/demo/tasks?A2A-Version=1.0&contextId=none"))
    assert reply.result["tasks"] == []
    check_negotiated(reply.headers)


@covers("version.query")
def test_a_query_and_a_header_that_agree_are_served(http: HttpCaller) -> None:
    request = Request("GET", "/agents/demo/tasks?contextId=none&A2A-Version=1.0", {"A2A-Version": "1.0"})
    assert http.deliver(request).result["totalSize"] == 0


@covers("version.query")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("query", ["A2A-Version=0.3", "A2A-Version=2.0", "A2A-Version=1.0&A2A-Version=1.1"])
def test_a_query_and_a_header_that_disagree_are_refused(caller: Caller, query: str) -> None:
    request = caller.request("SendMessage", send_params())
    reply = caller.deliver(
        Request(request.method, f"{request.target}?{query}", request.headers, request.body)
    )
    refused(reply, VERSION, identifier=1)


@covers("version.jsonrpc-patch")
@pytest.mark.parametrize("version", ["1.0", "1.0.0", "1.0.1", "1.0.17"])
def test_jsonrpc_takes_patch_revisions_and_answers_as_1_0(rpc: RpcCaller, version: str) -> None:
    reply = rpc.call("ListTasks", {"contextId": "none"}, headers={"A2A-Version": version})
    assert reply.result["totalSize"] == 0
    check_negotiated(reply.headers)


@covers("version.jsonrpc-refused", "voice.1")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "version",
    [
        "1.1",
        "2.0",
        "99.0",
        "1.7",
        "0.3.x",
        "0.4",
        "1",
        "v1.0",
        "01.0",
        "1.0.x",
        "1.0.0.0",
        "1.0.01",
        "garbage",
    ],
)
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage", "message/send"])
def test_jsonrpc_refuses_other_versions_under_the_request_id(
    rpc: RpcCaller, version: str, operation: str
) -> None:
    reply = rpc.call(operation, send_params(), headers={"A2A-Version": version})
    assert refused(reply, VERSION, identifier=1) == {"requested": version, "supported": SERVED}
    assert not _names_refused_value(reply, version)


@covers("version.jsonrpc-refused")
@pytest.mark.usefixtures("nothing_stored")
def test_a_notification_in_a_refused_version_is_an_invalid_request_and_runs_nothing(rpc: RpcCaller) -> None:
    request = rpc.post(b'{"jsonrpc":"2.0","method":"SendMessage"}', {"A2A-Version": "2.0"})
    reply = rpc.deliver(request)
    assert (reply.json()["id"], reply.json()["error"]["code"]) == (None, ENVELOPE.code)


@covers("method.unknown")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "method",
    [
        *(
            "message/send",
            "message/stream",
            "tasks/get",
            "tasks/cancel",
            "tasks/resubscribe",
            "agent/getCard",
        ),
        *(
            "Nope",
            "sendMessage",
            "SENDMESSAGE",
            "SendMessage ",
            "rpc.discover",
            "ListTaskPushNotificationConfig",
        ),
    ],
)
def test_a_method_that_1_0_does_not_have_is_not_found(rpc: RpcCaller, method: str) -> None:
    refused(rpc.call(method, send_params()), NO_METHOD, identifier=1)


STAGES: dict[str, Callable[[Caller], Request]] = {
    "success": lambda caller: caller.request("ListTasks", {"contextId": "none"}),
    "not found": lambda caller: caller.request("GetTask", {"id": "nope"}),
    "wrong type": lambda caller: caller.request("SendMessage", send_params()).with_headers(
        content_type="a/b"
    ),
    "not acceptable": lambda caller: caller.request("ListTasks").with_headers(accept="image/png"),
    "wrong field": lambda caller: caller.request("SendMessage", {"message": {}}),
    "unknown agent": lambda caller: caller.to("nobody").request("ListTasks"),
}


@covers("version.reply-headers")
@pytest.mark.parametrize("stage", STAGES)
def test_every_reply_names_its_version_and_what_it_varies_by(caller: Caller, stage: str) -> None:
    check_negotiated(caller.deliver(STAGES[stage](caller)).headers)


@covers("version.reply-headers")
def test_a_stream_names_its_version_and_what_it_varies_by(caller: Caller) -> None:
    with caller.open("SendStreamingMessage", send_params()) as stream:
        check_negotiated(stream.headers)
        stream.rest()
