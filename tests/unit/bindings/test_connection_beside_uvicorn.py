"""The same bytes to uvicorn's own HTTP protocol and to ours, before one application; and to ours, cut anywhere."""

import asyncio
import re
import socket
from itertools import pairwise
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dragoman.bindings.connection import HttpConnection
from tests.unit.bindings.connections import (
    DEADLINE,
    Connected,
    Showing,
    application,
    configuration,
    on_a_loop,
)

HOST = b"Host: a\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
"""Comes after each case: its reply shows that the connection went on, and ends it."""


def post(body: bytes, head: bytes = b"", target: bytes = b"/p") -> bytes:
    return b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n%b" % (target, HOST, head, len(body), body)


def chunks(text: bytes, head: bytes = b"") -> bytes:
    return b"POST /c HTTP/1.1\r\n%b%bTransfer-Encoding: chunked\r\n\r\n%b" % (HOST, head, text)


def get(target: bytes, head: bytes = HOST, method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, target, version, head)


GOOD = {
    "get": get(b"/a"),
    "query": get(b"/a?b=c?d&e=%20"),
    "empty query": get(b"/a?"),
    "percent": get(b"/a%2Fb%zz"),
    "two slashes": get(b"//other.example/a"),
    "fragment": get(b"/a?b#c?d"),
    "absolute": get(b"http://other.example/a?b"),
    "no host": get(b"/", b""),
    "empty header": get(b"/", b"X-Shown:\r\nX-Shown:   \r\n"),
    "repeated header": get(b"/", b"X-Shown: 1\r\nx-shown: 2\r\nX-SHOWN: 3\t\r\n"),
    "bytes in a header": get(b"/", b"X-Shown: a\tb,c;d\r\n"),
    "empty lines before": b"\r\n\r\n" + get(b"/a"),
    "options of all": get(b"*", method=b"OPTIONS"),
    "head": get(b"/a", method=b"HEAD"),
    "head of a stream": get(b"/stream", method=b"HEAD"),
    "stream": get(b"/stream"),
    "204": get(b"/nothing"),
    "304": get(b"/same"),
    "body": post(b"hello"),
    "no body": post(b""),
    "get with a body": post(b"hello").replace(b"POST", b"GET"),
    "large body": post(b"x" * 250_000),
    "body over the limit": post(b"x" * 400_000),
    "body nobody reads": post(b"x" * 1000, target=b"/unread"),
    "large body nobody reads": post(b"x" * 200_000, target=b"/unread"),
    "chunks": chunks(b"5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n"),
    "chunk extension": chunks(b"5;a=b\r\nhello\r\n0\r\n\r\n"),
    "trailer": chunks(b"5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n"),
    "two codings": chunks(b"0\r\n\r\n").replace(b"chunked", b"gzip, chunked"),
    "pipeline": get(b"/a") + post(b"two") + get(b"/b") + chunks(b"1\r\nx\r\n0\r\n\r\n") + get(b"/stream") + get(b"/c"),
    "long pipeline": b"".join(post(b"x" * n) for n in range(40)),
    "close": get(b"/a", b"Connection: close\r\n") + get(b"/b"),
    "keep-alive": get(b"/a", b"Connection: keep-alive\r\n"),
    "1.0": get(b"/a", version=b"1.0") + get(b"/b"),
    "1.0 that would go on": get(b"/a", b"Connection: keep-alive\r\n", version=b"1.0") + get(b"/b"),
    "1.0 with chunks": chunks(b"1\r\nx\r\n0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "0.9": b"GET /a\r\n\r\n",
    "2.0": get(b"/a", version=b"2.0"),
    "fault": get(b"/fault"),
    "expectation, body at once": post(b"hello", b"Expect: 200-ok\r\n"),
}  # fmt: skip
BAD = {
    "noise": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    "words": b"hello server\r\n\r\n",
    "version": get(b"/", version=b"1.2"),
    "method": get(b"/", method=b"BREW"),
    "small letters": get(b"/", method=b"get"),
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nHost: a\n\n",
    "bare carriage return": get(b"/", b"A: b\rc\r\n"),
    "folded header": get(b"/", b"A: b\r\n c\r\n"),
    "space before colon": get(b"/", b"A : b\r\n"),
    "no name": get(b"/", b": b\r\n"),
    "no colon": get(b"/", b"A\r\n"),
    "nul": get(b"/", b"A: b\x00c\r\n"),
    "space in target": get(b"/a b"),
    "bytes in target": get(b"/\xc3\xa9"),
    "authority without path": get(b"http://a"),
    "connect": get(b"a:443", method=b"CONNECT"),
    "two lengths": post(b"ab", b"Content-Length: 2\r\n"),
    "two other lengths": post(b"ab", b"Content-Length: 3\r\n"),
    "length and chunks": post(b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\n"),
    "chunks and length": chunks(b"0\r\n\r\n").replace(b"chunked\r\n", b"chunked\r\nContent-Length: 5\r\n"),
    "unknown coding": chunks(b"0\r\n\r\n").replace(b"chunked", b"gzip"),
    "chunked not last": chunks(b"0\r\n\r\n").replace(b"chunked", b"chunked, gzip"),
    "chunked twice": chunks(b"0\r\n\r\n").replace(b"chunked", b"chunked, chunked"),
    "space in coding": chunks(b"0\r\n\r\n").replace(b"chunked", b"chun ked"),
    "negative length": post(b"").replace(b"Length: 0", b"Length: -1"),
    "length with a sign": post(b"").replace(b"Length: 0", b"Length: +1"),
    "length of letters": post(b"").replace(b"Length: 0", b"Length: 0x1"),
    "length beyond numbers": post(b"").replace(b"Length: 0", b"Length: " + b"9" * 30),
    "chunk size": chunks(b"xyz\r\nhello\r\n0\r\n\r\n"),
    "chunk end": chunks(b"5\r\nhelloworld\r\n0\r\n\r\n"),
    "chunk size beyond numbers": chunks(b"f" * 20 + b"\r\nhello\r\n0\r\n\r\n"),
}
ENDS = (
    *("1.0", "1.0 that would go on", "1.0 with chunks", "0.9", "2.0"),
    *("close", "fault", "body over the limit"),
)
"""Good requests after whose reply the connection ends."""


class Server:
    """A server in this process that speaks by one of the two protocols."""

    def __init__(self, protocol: Any) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(configuration(application(Showing()), protocol))

    async def __aenter__(self) -> int:
        self._task = asyncio.create_task(self._server._serve([self._listener]))
        return int(self._listener.getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._task


async def said(port: int, data: bytes) -> bytes:
    """What a server writes until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    text = bytearray()
    try:
        async with asyncio.timeout(DEADLINE):
            while piece := await reader.read(65536):
                text += piece
    except ConnectionError:
        pass  # it closed before it had read everything
    writer.close()
    return bytes(text)


def plain(text: bytes) -> bytes:
    """Replies with the lines of each head in order, for that order means nothing."""

    def sort(head: re.Match[bytes]) -> bytes:
        return head[1] + b"\r\n".join(sorted(head[2].split(b"\r\n"))) + b"\r\n\r\n"

    return re.sub(rb"(HTTP/1\.1 \d[^\r]*\r\n)(.*?)\r\n\r\n", sort, text, flags=re.DOTALL)


def test_replies_are_those_of_uvicorn_to_the_byte() -> None:
    async def compare() -> None:
        async with Server(HttpToolsProtocol) as theirs, Server(HttpConnection) as ours:
            for name, data in {**GOOD, **BAD}.items():
                wanted = plain(await said(theirs, data + LAST))
                assert plain(await said(ours, data + LAST)) == wanted, name
                assert (b"/last" in wanted) == (name in GOOD and name not in ENDS), name
                if name in BAD:
                    assert wanted.startswith(b"HTTP/1.1 400 ") and wanted.count(b"HTTP/1.1") == 1, name

    on_a_loop(compare)


def replies_in(data: bytes, cuts: list[int]) -> bytes:
    written = bytearray()

    async def run() -> None:
        one = Connected()
        places = sorted({0, *(cut % (len(data) + 1) for cut in cuts), len(data)})
        await one.send(*(data[here:there] for here, there in pairwise(places)))
        await asyncio.wait_for(one.pipe.closed.wait(), DEADLINE)
        written.extend(one.pipe.written)

    on_a_loop(run)
    return bytes(written)


OFFERS = {
    "upgrade": post(b"hello", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"),
    "UPGRADE": post(b"hello", b"X-Shown: once\r\nCONNECTION: UPGRADE\r\nUPGRADE: websocket\r\n"),
    "of a stream": get(b"/stream", b"Upgrade: h2c\r\nConnection: Upgrade\r\n"),
}  # fmt: skip
CUT = {**GOOD, **BAD, **OFFERS}


@settings(deadline=None)
@given(name=st.sampled_from(sorted(CUT)), cuts=st.lists(st.integers(0, 500_000), max_size=6))
def test_it_does_not_matter_where_the_bytes_are_cut(name: str, cuts: list[int]) -> None:
    """A body over the limit is refused as soon as that is known, so what follows may be lost."""
    data = CUT[name] + LAST
    assert replies_in(data, cuts) == replies_in(data, [])


@pytest.mark.parametrize("name", sorted(CUT))
def test_a_request_that_comes_byte_by_byte_is_the_same(name: str) -> None:
    data = CUT[name] + LAST
    if len(data) < 2000:
        assert replies_in(data, list(range(len(data)))) == replies_in(data, [])


@pytest.mark.parametrize("name", sorted(OFFERS))
def test_an_offer_to_upgrade_is_not_taken_and_its_body_is_read(name: str) -> None:
    offer = OFFERS[name]
    without = re.sub(rb"(?i)\r\nupgrade: [^\r]*", b"", offer)
    assert replies_in(offer + LAST, []) == replies_in(without + LAST, [])
    assert b"/last" in replies_in(offer + LAST, [])
