"""What an HTTP connection does beside framing: turns, time, back pressure, callers that leave, servers that stop."""

import asyncio
import json
import socket

import pytest
import uvicorn

from dragoman.bindings import connection as module
from dragoman.bindings.connection import MAX_HEAD, MAX_WAITING, HttpConnection
from dragoman.bindings.edge import WATCH_AFTER
from dragoman.bindings.framing import head
from dragoman.bindings.turn import HELD
from tests.unit.bindings.connections import (
    DEADLINE,
    Connected,
    Pipe,
    Showing,
    application,
    configuration,
    on_a_loop,
)
from tests.unit.bindings.test_connection_beside_uvicorn import chunks, get, post

NO_REQUEST = b"Invalid HTTP request received."


def shown(written: bytes | bytearray) -> list[dict[str, object]]:
    """The replies that show a request, in order."""
    parts = bytes(written).split(b'{"method"')[1:]
    return [json.JSONDecoder().raw_decode('{"method"' + part.decode("latin-1"))[0] for part in parts]


# --------------------------------------------------------------------------------------------------------------- turns


def test_a_request_waits_for_its_turn_and_too_many_are_not_read() -> None:
    async def run() -> None:
        one = Connected()
        await one.send(get(b"/held"), b"".join(get(b"/%d" % number) for number in range(MAX_WAITING - 1)))
        assert not one.pipe.written and one.pipe.reading
        await one.send(get(b"/last"))
        assert not one.pipe.reading
        one.handler.go.set()
        await one.settle()
        await one.pipe.until(b"/last")
        paths = [reply["path"] for reply in shown(one.pipe.written)]
        assert paths == ["/held", *(f"/{number}" for number in range(MAX_WAITING - 1)), "/last"]
        assert one.pipe.reading and not one.pipe.closed.is_set()

    on_a_loop(run)


@pytest.mark.parametrize(
    "noise", [b"noise\r\n\r\n", get(b"/", b"A: b\x00\r\n"), get(b"/", b"A: " + b"b" * MAX_HEAD)]
)
def test_a_refusal_comes_after_the_replies_before_it(noise: bytes) -> None:
    async def run() -> None:
        one = Connected()
        await one.send(get(b"/held") + get(b"/next"), noise, get(b"/never"))
        assert not one.pipe.written and not one.pipe.closed.is_set()
        one.handler.go.set()
        await asyncio.wait_for(one.pipe.closed.wait(), DEADLINE)
        assert [reply["path"] for reply in shown(one.pipe.written)] == ["/held", "/next"]
        assert one.pipe.written.count(b"HTTP/1.1 4") == 1
        assert one.pipe.written.endswith((NO_REQUEST, b"The headers are too large."))

    on_a_loop(run)


def test_a_broken_body_is_refused_at_once_and_never_read_as_whole() -> None:
    async def run() -> None:
        one = Connected()
        await one.send(chunks(b"5\r\nhello\r\n"), b"no size\r\n")
        assert one.pipe.written.startswith(b"HTTP/1.1 400 ") and one.pipe.closed.is_set()
        await one.settle()
        assert one.handler.read == []

    on_a_loop(run)


def test_a_broken_body_of_a_request_that_waits_takes_its_place() -> None:
    async def run() -> None:
        one = Connected()
        await one.send(get(b"/held") + chunks(b"5\r\nhello\r\nno size\r\n"))
        one.handler.go.set()
        await asyncio.wait_for(one.pipe.closed.wait(), DEADLINE)
        assert len(one.handler.read) == 1 and one.pipe.written.endswith(NO_REQUEST)

    on_a_loop(run)


def test_rest_of_a_body_that_breaks_after_its_reply_ends_the_connection_without_a_second_one() -> None:
    async def run() -> None:
        one = Connected()
        await one.send(chunks(b"").replace(b"/c", b"/unread"), b"no size\r\n")
        assert one.pipe.written.endswith(b"not read") and one.pipe.written.count(b"HTTP/1.1 ") == 1
        assert one.pipe.closed.is_set()

    on_a_loop(run)


# --------------------------------------------------------------------------------------------------------------- heads


@pytest.mark.parametrize("piece", [MAX_HEAD * 2, 1000], ids=["at once", "in pieces"])
def test_a_head_that_is_too_large_is_refused(piece: int) -> None:
    async def run() -> None:
        one = Connected()
        text = get(b"/", b"A: " + b"b" * (MAX_HEAD + 2000) + b"\r\n")
        await one.send(*(text[at : at + piece] for at in range(0, len(text), piece)))
        assert one.pipe.written.startswith(b"HTTP/1.1 431 ") and one.pipe.closed.is_set()
        assert one.handler.read == []

    on_a_loop(run)


def test_a_head_that_just_fits_is_read_and_a_body_is_no_head() -> None:
    async def run() -> None:
        one = Connected()
        await one.send(get(b"/one", b"A: " + b"b" * (MAX_HEAD - 100) + b"\r\n"))
        await one.send(post(b"x" * 2 * MAX_HEAD, target=b"/two") + get(b"/three"))
        assert [reply["path"] for reply in shown(one.pipe.written)] == ["/one", "/two", "/three"]

    on_a_loop(run)


@pytest.mark.parametrize(
    "endless", [b"X-Trailer: " + b"a" * 1000, b"a" * 1000], ids=["trailer", "chunk extension"]
)
def test_what_comes_with_a_body_without_being_one_has_a_bound(endless: bytes) -> None:
    async def run() -> None:
        one = Connected()
        await one.send(chunks(b"0\r\n" if endless.startswith(b"X") else b"5;"))
        for _ in range(MAX_HEAD // 1000 + 3):
            await one.send(endless)
        assert one.pipe.written.startswith(b"HTTP/1.1 431 ") and one.pipe.closed.is_set()

    on_a_loop(run)


def test_a_trailer_is_no_header() -> None:
    async def run() -> None:
        one = Connected()
        await one.send(chunks(b"1\r\nx\r\n0\r\nX-Shown: trailer\r\n\r\n", b"X-Shown: header\r\n"))
        assert shown(one.pipe.written)[0]["x-shown"] == ["header"]

    on_a_loop(run)


@pytest.mark.parametrize("value", [b"1\r\nset-cookie: a=b", b"1\n2", b"1\r2", b"\x00", b"\x7f"])
def test_a_header_with_a_control_character_is_never_written(value: bytes) -> None:
    for header in ((b"x-evil", value), (b"x-" + value, b"1")):
        with pytest.raises(ValueError, match="control character"):
            head(200, [(b"date", b"now"), header])
    assert head(200, [(b"a", b"b\tc \xe9")]) == b"HTTP/1.1 200 OK\r\na: b\tc \xe9\r\n\r\n"
    assert head(204, []) == b"HTTP/1.1 204 No Content\r\n\r\n"
    assert head(299, []) == b"HTTP/1.1 299 \r\n\r\n"


@pytest.mark.parametrize("path", [b"/fault", b"/inject"])
def test_a_fault_is_a_500_that_says_nothing(path: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        one = Connected()
        await one.send(get(path) + get(b"/never"))
        assert one.pipe.written.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert one.pipe.written.endswith(b"\r\n\r\nInternal Server Error") and one.pipe.closed.is_set()
        assert b"secret" not in one.pipe.written and b"cookie" not in one.pipe.written

    on_a_loop(run)
    assert [record.message for record in caplog.records] == ["a reply could not be sent"]


def test_a_caller_of_http_1_0_gets_a_stream_without_chunks() -> None:
    async def run() -> None:
        one = Connected()
        await one.send(get(b"/stream", version=b"1.0"))
        text = bytes(one.pipe.written)
        assert text == b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nonetwo"
        assert one.pipe.closed.is_set()

    on_a_loop(run)


# -------------------------------------------------------------------------------------------------------------- bodies


def test_100_continue_is_said_to_who_waits_for_it_once_somebody_reads() -> None:
    expecting = post(b"hello", b"Expect: 100-Continue\r\n")
    begin, body = expecting.split(b"\r\n\r\n")

    async def run() -> None:
        one = Connected()
        await one.send(begin + b"\r\n\r\n")
        assert one.pipe.written == b"HTTP/1.1 100 Continue\r\n\r\n"
        await one.send(body[:2], body[2:])
        assert shown(one.pipe.written)[0]["body"] == 5
        for quiet in (
            expecting,
            begin.replace(b"1.1", b"1.0") + b"\r\n\r\n",
            begin.replace(b"/p", b"/unread") + b"\r\n\r\n",
        ):
            other = Connected()
            await other.send(quiet)
            assert b"100 Continue" not in other.pipe.written

    on_a_loop(run)


def test_a_body_that_nobody_reads_yet_waits_at_the_caller() -> None:
    async def run() -> None:
        one = Connected()
        text = post(b"x" * 4 * HELD, target=b"/held")
        await one.send(text[: HELD // 2])
        assert one.pipe.reading
        await one.send(text[HELD // 2 : 2 * HELD])
        assert not one.pipe.reading
        one.handler.go.set()
        await one.settle()
        assert one.pipe.reading
        await one.send(text[2 * HELD :])
        assert shown(one.pipe.written)[0]["body"] == 4 * HELD

    on_a_loop(run)


def test_a_body_that_nobody_wants_is_read_away() -> None:
    async def run() -> None:
        one = Connected()
        text = post(b"x" * 4 * HELD, target=b"/unread")
        await one.send(text[: 2 * HELD])
        assert one.pipe.written.endswith(b"not read") and one.pipe.reading
        await one.send(text[2 * HELD :], get(b"/next"))
        assert shown(one.pipe.written)[0]["path"] == "/next"

    on_a_loop(run)


def test_a_body_has_its_time() -> None:
    async def run() -> None:
        one = Connected(body_seconds=0.05)
        await one.send(post(b"hello")[:-1])
        await asyncio.wait_for(one.pipe.closed.wait(), DEADLINE)
        assert one.pipe.written.startswith(b"HTTP/1.1 408 ") and b"within 0.05 s" in one.pipe.written

    on_a_loop(run)


# ---------------------------------------------------------------------------------------------------------------- time


@pytest.mark.parametrize("before", [b"", get(b"/before")], ids=["first", "second"])
def test_a_head_has_its_time_however_often_something_comes(
    before: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.1)

    async def run() -> None:
        one = Connected()
        await one.send(before, b"GET / HTTP/1.1\r\n")
        async with asyncio.timeout(DEADLINE):
            while not one.pipe.closed.is_set():
                await one.send(b"A: b\r\n")
                await asyncio.sleep(0.01)
        assert one.pipe.written.endswith(b"The request was not whole in time.")
        assert one.pipe.written.count(b"HTTP/1.1 408 ") == 1
        assert len(shown(one.pipe.written)) == len(one.handler.read) == (1 if before else 0)

    on_a_loop(run)


def test_an_idle_connection_is_closed_without_a_word_and_one_with_a_request_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.02)

    async def run() -> None:
        one = Connected()
        one.connection._keep_alive = 0.02  # type: ignore[assignment]
        await one.send(get(b"/one"), get(b"/held"))
        other = Connected()
        await asyncio.wait_for(other.pipe.closed.wait(), DEADLINE)
        assert other.pipe.written.startswith(b"HTTP/1.1 408 ")
        assert not one.pipe.closed.is_set()
        one.handler.go.set()
        await asyncio.wait_for(one.pipe.closed.wait(), DEADLINE)
        assert [reply["path"] for reply in shown(one.pipe.written)] == ["/one", "/held"]
        assert b"408" not in one.pipe.written

    on_a_loop(run)


# -------------------------------------------------------------------------------------------------------- slow readers


def test_a_stream_waits_for_a_slow_reader() -> None:
    async def run() -> None:
        one = Connected()
        one.connection.pause_writing()
        await one.send(get(b"/endless"))
        assert b"one" not in one.pipe.written and one.handler.passed_on == 0
        one.connection.resume_writing()
        await one.pipe.until(b"more", 3)
        one.connection.pause_writing()
        await one.settle()
        written, made = len(one.pipe.written), one.handler.passed_on
        await one.settle()
        assert (len(one.pipe.written), one.handler.passed_on) == (written, made)
        one.hang_up()
        await one.settle()
        assert one.handler.released == 1 and one.state.tasks == set()

    on_a_loop(run)


def test_replies_to_a_pipeline_wait_for_a_slow_reader_too() -> None:
    async def run() -> None:
        one = Connected()
        one.connection.pause_writing()
        await one.send(get(b"/one") + get(b"/two"))
        assert not one.pipe.written and len(one.handler.read) == 1
        one.connection.resume_writing()
        await one.pipe.until(b"/two")

    on_a_loop(run)


# ------------------------------------------------------------------------------------------------- callers that leave


def test_a_stream_whose_caller_leaves_is_cancelled_at_once() -> None:
    async def run() -> None:
        one = Connected()
        await one.send(get(b"/endless"))
        one.hang_up()
        assert len(one.state.tasks) == 1 and one.state.connections == set()
        await one.settle()
        assert one.handler.cancelled.is_set() and one.handler.released == 1
        assert one.state.tasks == set()

    on_a_loop(run)


def test_a_request_whose_caller_leaves_goes_on_for_a_moment_and_is_cancelled_then() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        one = Connected()
        await one.send(get(b"/held") + get(b"/never"))
        one.hang_up()
        await one.settle()
        assert not one.handler.cancelled.is_set() and len(one.state.tasks) == 1
        await asyncio.wait_for(one.handler.cancelled.wait(), DEADLINE)
        assert loop.time() - began >= WATCH_AFTER - 0.01
        await one.settle()
        assert one.state.tasks == set() and one.handler.read == [] and not one.pipe.written

    on_a_loop(run)


def test_what_is_quick_is_done_although_its_caller_left() -> None:
    async def run() -> None:
        one = Connected()
        one.connection.data_received(post(b"hello"))
        one.hang_up()
        await one.settle()
        assert one.handler.read == [b"hello"] and not one.pipe.written
        half = Connected()
        half.connection.data_received(post(b"hello")[:-1])
        half.hang_up()
        await half.settle()
        assert half.handler.read == []

    on_a_loop(run)


# --------------------------------------------------------------------------------------------------- servers that stop


def test_a_server_that_stops_closes_what_is_idle_and_lets_a_request_end() -> None:
    async def run() -> None:
        idle, busy, late = Connected(), Connected(), Connected()
        await idle.send(get(b"/one"))
        await busy.send(get(b"/held") + get(b"/never"))
        await late.send(post(b"hello")[:-1])
        for one in (idle, busy, late):
            one.connection.shutdown()
        assert idle.pipe.closed.is_set()
        await late.send(post(b"hello")[-1:])
        busy.handler.go.set()
        for one in (busy, late):
            await asyncio.wait_for(one.pipe.closed.wait(), DEADLINE)
            assert b"\r\nconnection: close\r\n" in one.pipe.written and len(one.handler.read) == 1

    on_a_loop(run)


def test_uvicorn_waits_for_a_stream_that_has_begun() -> None:
    async def run() -> None:
        handler = Showing()
        app = application(handler)
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(configuration(app))
        serving = asyncio.create_task(server._serve([listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(get(b"/endless"))
        await reader.readuntil(b"one\r\n")
        server.should_exit = True
        await asyncio.sleep(0)
        assert not serving.done()
        app.edge.end_streams()
        rest = await asyncio.wait_for(reader.read(), DEADLINE)
        assert b": the server is stopping\n" in rest and rest.endswith(b"\r\n0\r\n\r\n")
        await asyncio.wait_for(serving, DEADLINE)
        writer.close()

    on_a_loop(run)


def test_only_an_application_of_ours_is_served() -> None:
    async def run() -> None:
        async def other(*_: object) -> None: ...

        with pytest.raises(TypeError, match="AsgiApp"):
            HttpConnection(configuration(other), Connected().state, {})
        assert Pipe().reading

    on_a_loop(run)
