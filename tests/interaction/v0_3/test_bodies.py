"""Bodies that are too large, too slow or cut off, in the forms of 0.3; and what clients may do to a connection."""

from contextlib import ExitStack

import pytest

from tests.interaction.callers import Request
from tests.interaction.conftest import BODY_LIMIT, BODY_SECONDS
from tests.interaction.sockets import Socket
from tests.interaction.v0_3.answers import TIMEOUT, TOO_LARGE, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import send_params
from tests.interaction.v0_3.requirements import covers


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def chunked_head(request: Request) -> bytes:
    """The head of a request whose body comes in chunks."""
    head = request.with_headers(transfer_encoding="chunked").text().split(b"content-length", 1)[0]
    return head + b"\r\n"


@covers("body.too-large")
@pytest.mark.usefixtures("nothing_stored")
def test_a_length_over_the_limit_is_refused_before_the_body_is_sent(caller: Caller, socket: Socket) -> None:
    request = caller.request("SendMessage", b"")
    reply = caller.exchange(socket, request.text(length=BODY_LIMIT + 1), request)
    refused(reply, TOO_LARGE)
    assert reply.headers["connection"] == "close" and socket.is_closed_by_server()


@covers("body.too-large")
@pytest.mark.usefixtures("nothing_stored")
def test_chunks_over_the_limit_are_refused_when_they_pass_it(caller: Caller, socket: Socket) -> None:
    request = caller.request("SendMessage", send_params())
    socket.send(chunked_head(request))
    socket.send_what_is_taken(chunk(b" " * 65536) * (BODY_LIMIT // 65536 + 4))
    refused(caller.read(socket, request), TOO_LARGE)


@covers("body.limit")
def test_a_body_of_exactly_the_limit_is_read(caller: Caller) -> None:
    body = caller.request("SendMessage", send_params()).body or b""
    reply = caller.deliver(
        caller.request("SendMessage", send_params()).holding(body.ljust(BODY_LIMIT)), "SendMessage"
    )
    assert reply.value["status"]["state"] == "completed"


@covers("body.too-slow")
@pytest.mark.usefixtures("nothing_stored")
def test_bodies_that_are_not_whole_in_time_are_refused(all_places: list[Caller]) -> None:
    """All places at once, because each refusal takes the time that a body has."""
    requests = [caller.request("SendMessage", send_params()) for caller in all_places]
    with ExitStack() as stack:
        sockets = [stack.enter_context(Socket(caller.origin)) for caller in all_places]
        for socket, request in zip(sockets, requests, strict=True):
            socket.send(request.text()[:-10])
        for caller, socket, request in zip(all_places, sockets, requests, strict=True):
            reply = caller.read(socket, request)
            error = refused(reply, TIMEOUT)
            assert f"{BODY_SECONDS} s" in error["message"]
            assert reply.headers["connection"] == "close" and socket.is_closed_by_server()


@covers("body.cut")
@pytest.mark.usefixtures("nothing_stored")
def test_half_a_body_is_never_taken_for_a_whole_one(caller: Caller, socket: Socket) -> None:
    request = caller.request("SendMessage", send_params())
    socket.send(request.text(length=len(request.body or b"") + 5))
    socket.finish_sending()
    assert socket.is_closed_by_server()


@covers("body.connection")
def test_a_connection_serves_on_after_a_refusal_and_in_order(caller: Caller, socket: Socket) -> None:
    wrong = caller.request("SendMessage", {"message": {}})
    right = caller.request("SendMessage", send_params())
    socket.send(wrong.text() + right.text() + wrong.text())
    replies = [caller.read(socket, right, "SendMessage") for _ in range(3)]
    assert [reply.is_refused for reply in replies] == [True, False, True]
    assert replies[1].value["status"]["state"] == "completed"
