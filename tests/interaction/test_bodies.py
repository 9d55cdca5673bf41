"""Bodies that are too large, too slow, or cut off: refused in the negotiated form, with nothing stored."""

from dataclasses import replace

import pytest

from tests.interaction.answers import BODY_TYPE, TIMEOUT, TOO_LARGE, refused
from tests.interaction.callers import Caller, HttpCaller
from tests.interaction.conftest import BODY_LIMIT, BODY_SECONDS
from tests.interaction.messages import send_params
from tests.interaction.requirements import covers
from tests.interaction.sockets import Socket


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def chunked_head(caller: Caller, operation: str = "SendMessage") -> bytes:
    """The head of a request whose body comes in chunks."""
    return (
        caller.request(operation, send_params())
        .with_headers(transfer_encoding="chunked")
        .text()
        .split(b"content-length", 1)[0]
        + b"\r\n"
    )


@covers("body.too-large")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("length", [BODY_LIMIT + 1, 10**9, 2**40])
def test_a_length_over_the_limit_is_refused_before_the_body_is_sent(
    caller: Caller, socket: Socket, length: int
) -> None:
    request = caller.request("SendMessage", b"")
    socket.send(request.text(length=length))
    reply = socket.reply(caller.binding)
    refused(reply, TOO_LARGE)
    assert reply.headers["connection"] == "close"
    assert socket.is_closed_by_server()


@covers("body.too-large")
@pytest.mark.usefixtures("nothing_stored")
def test_a_length_beyond_all_numbers_is_refused(caller: Caller, socket: Socket) -> None:
    socket.send(caller.request("SendMessage", b"").text(length=10**30))
    assert socket.reply(caller.binding).status in (400, 413)


@covers("body.too-large", "voice.72")
@pytest.mark.usefixtures("nothing_stored")
def test_chunks_over_the_limit_are_refused_when_they_pass_it(caller: Caller, socket: Socket) -> None:
    socket.send(chunked_head(caller))
    socket.send_what_is_taken(chunk(b" " * 65536) * (BODY_LIMIT // 65536 + 4))
    refused(socket.reply(caller.binding), TOO_LARGE)


@covers("body.too-large")
@pytest.mark.usefixtures("nothing_stored")
def test_a_client_that_sends_a_whole_body_over_the_limit_reads_the_refusal(caller: Caller) -> None:
    refused(caller.call("SendMessage", send_params("x" * (BODY_LIMIT + 100_000))), TOO_LARGE)


@covers("body.limit")
def test_a_body_of_exactly_the_limit_is_read(caller: Caller) -> None:
    request = caller.request("SendMessage", send_params())
    body = (request.body or b"").ljust(BODY_LIMIT)
    reply = caller.deliver(replace(request, body=body))
    assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"
    refused(caller.deliver(replace(request, body=body + b" ")), TOO_LARGE)


@covers("body.chunked")
def test_a_chunked_body_is_read_however_it_is_cut(caller: Caller, socket: Socket) -> None:
    body = caller.request("SendMessage", send_params("hé" * 50)).body or b""
    socket.send(chunked_head(caller))
    for byte in body:
        socket.send(chunk(bytes([byte])))
    socket.send(b"0\r\n\r\n")
    assert socket.reply(caller.binding).task["artifacts"][0]["parts"] == [{"text": "hé" * 50}]


@covers("body.too-slow")
@pytest.mark.usefixtures("nothing_stored")
def test_a_body_that_is_not_whole_in_time_is_refused(caller: Caller, socket: Socket) -> None:
    request = caller.request("SendMessage", send_params())
    socket.send(request.text()[:-10])
    reply = socket.reply(caller.binding)
    refused(reply, TIMEOUT)
    assert f"{BODY_SECONDS} s" in reply.json()["error"]["message"]
    assert reply.headers["connection"] == "close"
    assert socket.is_closed_by_server()


@covers("body.too-slow")
@pytest.mark.usefixtures("nothing_stored")
def test_a_body_in_drops_has_no_more_time_than_another(http: HttpCaller, socket: Socket) -> None:
    socket.send(chunked_head(http))
    reply = None
    for _ in range(BODY_SECONDS * 20):
        socket.send_what_is_taken(chunk(b" "))
        reply = socket.reply_within(0.1, http.binding)
        if reply is not None:
            break
    assert reply is not None
    refused(reply, TIMEOUT)


@covers("body.cut")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_half_a_body_is_never_taken_for_a_whole_one(
    caller: Caller, socket: Socket, operation: str, chunked: bool
) -> None:
    """What was sent before the connection ends is a whole JSON text, which makes the half look whole."""
    request = caller.request(operation, send_params())
    whole = request.body or b""
    if chunked:
        socket.send(chunked_head(caller, operation) + chunk(whole))
    else:
        socket.send(request.text(length=len(whole) + 1))
    socket.finish_sending()
    assert not [reply for reply in socket.replies(caller.binding) if reply.status < 400]


@covers("body.keep-alive")
def test_a_connection_serves_on_after_a_refusal_with_an_unread_body(caller: Caller, socket: Socket) -> None:
    refusal = caller.request("SendMessage", send_params("x" * 200_000)).with_headers(content_type="a/b")
    good = caller.request("ListTasks", {"contextId": "none"})
    socket.send(refusal.text() + good.text())
    replies = socket.replies(caller.binding)
    refused(next(replies), BODY_TYPE)
    assert next(replies).result["tasks"] == []


@covers("body.keep-alive")
def test_pipelined_requests_are_answered_in_order(caller: Caller, socket: Socket) -> None:
    texts = [f"number {number}" for number in range(20)]
    socket.send(b"".join(caller.request("SendMessage", send_params(text)).text() for text in texts))
    replies = socket.replies(caller.binding)
    answers = [next(replies).task["artifacts"][0]["parts"][0]["text"] for _ in texts]
    assert answers == texts


@covers("body.expect")
def test_a_caller_that_waits_for_100_continue_is_told_to_go_on(caller: Caller, socket: Socket) -> None:
    request = caller.request("SendMessage", send_params()).with_headers(expect="100-continue")
    head, body = request.text().split(b"\r\n\r\n", 1)
    socket.send(head + b"\r\n\r\n")
    assert socket.reply(caller.binding).status == 100
    socket.send(body)
    assert socket.reply(caller.binding).task["status"]["state"] == "TASK_STATE_COMPLETED"


@covers("body.upgrade")
@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
def test_an_offer_to_upgrade_is_ignored_and_the_body_is_read(
    caller: Caller, socket: Socket, upgrade: str
) -> None:
    """The JDK's HTTP client and `curl --http2` offer h2c on every plain request, POST included."""
    request = caller.request("SendMessage", send_params()).with_headers(
        connection="Upgrade, HTTP2-Settings", upgrade=upgrade, http2_settings="AAMAAABkAAQCAAAAAAIAAAAA"
    )
    socket.send(request.text())
    assert socket.reply(caller.binding).task["status"]["state"] == "TASK_STATE_COMPLETED"
