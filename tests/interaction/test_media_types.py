"""Media types of requests and replies: what is read, what is answered, and what is refused."""

import pytest

from tests.interaction.answers import (
    BODY_TYPE,
    NO_METHOD,
    NOT_ACCEPTABLE,
    NOT_ALLOWED,
    PARAMS,
    TASK_NOT_FOUND,
    check_negotiated,
    refused,
)
from tests.interaction.callers import READY, Caller, HttpCaller, Request, RpcCaller
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.sockets import Socket

JSON, A2A_JSON = "application/json", "application/a2a+json"


@covers("media.http-json", "media.http-a2a-json")
@pytest.mark.parametrize(
    ("content_type", "accept", "answered"),
    [
        (JSON, None, JSON),
        (JSON, "*/*", JSON),
        (JSON, "application/*", JSON),
        (JSON, JSON, JSON),
        (JSON, "text/html, application/xml;q=0.9, */*;q=0.8", JSON),
        (A2A_JSON, None, A2A_JSON),
        (A2A_JSON, "*/*", A2A_JSON),
        (JSON, A2A_JSON, A2A_JSON),
        (JSON, f"text/html, {A2A_JSON};q=0.5", A2A_JSON),
        (JSON, "Application/A2A+JSON", A2A_JSON),
        (JSON, f"{A2A_JSON};q=0, {JSON}", JSON),
        ("APPLICATION/JSON", None, JSON),
        ("Application/A2A+Json", None, A2A_JSON),
        ("application/json; charset=utf-8", None, JSON),
        ("application/json;charset=ISO-8859-1", None, JSON),
        ('application/json ; charset="utf-16"; x=y', None, JSON),
        ("application/a2a+json; charset=UTF-8", None, A2A_JSON),
    ],
)
def test_http_answers_in_a2a_json_exactly_when_the_request_names_it(
    http: HttpCaller, content_type: str, accept: str | None, answered: str
) -> None:
    request = http.request("SendMessage", send_params("hé")).with_headers(
        content_type=content_type, accept=accept
    )
    reply = http.deliver(request)
    assert reply.headers["content-type"] == answered
    assert reply.task["artifacts"][0]["parts"] == [{"text": "hé"}]


@covers("media.http-a2a-json")
def test_an_http_error_is_in_the_negotiated_media_type_too(http: HttpCaller) -> None:
    reply = http.call("GetTask", {"id": "nope"}, headers={"Accept": A2A_JSON})
    assert reply.headers["content-type"] == A2A_JSON
    refused(reply, TASK_NOT_FOUND)
    reply = http.deliver(http.request("SendMessage", b"{}").with_headers(content_type=A2A_JSON))
    assert reply.headers["content-type"] == A2A_JSON
    refused(reply, PARAMS, fields=["message"])


@covers("media.jsonrpc-json")
@pytest.mark.parametrize(
    "content_type",
    [JSON, "APPLICATION/JSON", "application/json; charset=utf-8", "application/json;charset=x"],
)
def test_jsonrpc_reads_and_answers_json(rpc: RpcCaller, content_type: str) -> None:
    reply = rpc.deliver(rpc.request("SendMessage", send_params()).with_headers(content_type=content_type))
    assert reply.headers["content-type"] == JSON
    assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"


WRONG_TYPES = [
    *("text/plain", "text/json", "application/xml", "application/x-www-form-urlencoded", "application/jsonp"),
    *("multipart/form-data; boundary=x", "application/grpc", "application/problem+json", "json", "*/*"),
    *("application/json, text/plain", "application/json/x", ";charset=utf-8", "text/plain; application/json"),
]


@covers("media.wrong-type", "voice.12")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("content_type", WRONG_TYPES)
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage", "CancelTask"])
def test_a_body_of_another_media_type_is_refused(caller: Caller, operation: str, content_type: str) -> None:
    params = {"id": "x", "metadata": {"a": 1}} if operation == "CancelTask" else send_params()
    request = caller.request(operation, params).with_headers(content_type=content_type)
    refused(caller.deliver(request), BODY_TYPE)


@covers("media.wrong-type")
@pytest.mark.usefixtures("nothing_stored")
def test_a_wrong_media_type_is_refused_before_the_body_is_read_as_json(caller: Caller) -> None:
    request = caller.request("SendMessage", b"{bad").with_headers(content_type="text/plain")
    refused(caller.deliver(request), BODY_TYPE)


@covers("media.wrong-type")
@pytest.mark.usefixtures("nothing_stored")
def test_a_body_without_a_media_type_is_refused(caller: Caller) -> None:
    request = caller.request("SendMessage", send_params()).with_headers(content_type=None)
    refused(caller.deliver(request), BODY_TYPE)


@covers("media.wrong-type")
@pytest.mark.usefixtures("nothing_stored")
def test_jsonrpc_refuses_a2a_json(rpc: RpcCaller) -> None:
    request = rpc.request("SendMessage", send_params()).with_headers(content_type=A2A_JSON)
    refused(rpc.deliver(request), BODY_TYPE)


@covers("media.no-body")
def test_a_post_without_a_body_needs_no_media_type(http: HttpCaller) -> None:
    task = http.to("hold").call("SendMessage", send_params(configuration={"returnImmediately": True})).task
    path = f"/agents/hold/tasks/{task['id']}"
    with http.follow(Request("POST", f"{path}:subscribe", READY)) as stream:
        assert stream.next().value["id"] == task["id"]
    canceled = http.deliver(Request("POST", f"{path}:cancel", READY)).result
    assert canceled["status"]["state"] == "TASK_STATE_CANCELED"


@covers("media.not-acceptable")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "image/png, text/*",
        "application/xml",
        "application/json;q=0",
        "*/*;q=0",
        "text/event-stream",
    ],
)
@pytest.mark.parametrize("operation", ["SendMessage", "ListTasks"])
def test_a_success_that_the_caller_does_not_accept_is_refused_and_nothing_is_done(
    http: HttpCaller, operation: str, accept: str
) -> None:
    params = send_params() if operation == "SendMessage" else {"contextId": "none"}
    refused(http.call(operation, params, headers={"Accept": accept}), NOT_ACCEPTABLE)


@covers("media.not-acceptable")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_a_caller_that_accepts_no_json_and_no_stream_is_refused_over_each_binding(
    caller: Caller, operation: str
) -> None:
    reply = caller.call(operation, send_params(), headers={"Accept": "text/html"})
    assert (reply.status, reply.reason) == (406, "NOT_ACCEPTABLE")
    check_negotiated(reply.headers)


@covers("media.http-a2a-json", "headers.repeated")
@pytest.mark.parametrize("accepted", [("text/html", A2A_JSON), (A2A_JSON, "text/html"), ("*/*", A2A_JSON)])
def test_several_accept_headers_are_read_as_one_list(
    http: HttpCaller, socket: Socket, accepted: tuple[str, ...]
) -> None:
    head, body = http.request("SendMessage", send_params("several")).text().split(b"\r\n\r\n", 1)
    extra = "".join(f"\r\nAccept: {media_type}" for media_type in accepted).encode()
    socket.send(head + extra + b"\r\n\r\n" + body)
    reply = socket.reply(http.binding)
    assert reply.headers["content-type"] == A2A_JSON
    assert reply.task["artifacts"][0]["parts"] == [{"text": "several"}]


@covers("media.errors-always")
@pytest.mark.usefixtures("nothing_stored")
def test_an_error_keeps_its_own_status_whatever_the_caller_accepts(http: HttpCaller) -> None:
    picky = {"Accept": "text/html"}
    refused(http.call("SendMessage", {"message": {"messageId": new_id()}}, headers=picky), PARAMS)
    refused(http.deliver(Request("GET", "/agents/demo/nope", {**READY, **picky})), NO_METHOD)
    refused(http.deliver(Request("PUT", "/agents/demo/tasks", {**READY, **picky})), NOT_ALLOWED)
    refused(http.deliver(Request("POST", "/agents/demo/message:send", {**READY, **picky})), PARAMS)


@covers("media.errors-always")
@pytest.mark.usefixtures("nothing_stored")
def test_a_task_that_does_not_exist_is_not_found_whatever_the_caller_accepts(http: HttpCaller) -> None:
    reply = http.call("GetTask", {"id": "nope"}, headers={"Accept": "text/html"})
    refused(reply, TASK_NOT_FOUND)


@covers("media.streams", "voice.8")
@pytest.mark.parametrize(
    "accept",
    ["text/event-stream", "*/*", "application/json, text/event-stream", "Text/Event-Stream", JSON, None],
)
def test_a_stream_is_an_event_stream(caller: Caller, accept: str | None) -> None:
    request = caller.request("SendStreamingMessage", send_params()).with_headers(accept=accept)
    with caller.follow(request) as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-store"
        assert stream.headers["x-accel-buffering"] == "no"
        assert stream.rest()[-1].state == "TASK_STATE_COMPLETED"


@covers("media.streams", "voice.15")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", ["SendStreamingMessage", "SubscribeToTask"])
def test_an_error_before_a_stream_is_json_even_if_only_event_streams_are_accepted(
    caller: Caller, operation: str
) -> None:
    params = {"id": "nope"} if operation == "SubscribeToTask" else {"message": {}}
    with caller.open(operation, params, headers={"Accept": "text/event-stream"}) as stream:
        expected = TASK_NOT_FOUND if operation == "SubscribeToTask" else PARAMS
        refused(stream.reply(), expected, identifier=1)
