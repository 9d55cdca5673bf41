"""What the parser leaves to us of HTTP/1.1 (RFC 9112): targets of requests, heads of replies, and chunks."""

from collections.abc import Sequence
from http import HTTPStatus

import httptools

Header = tuple[bytes, bytes]

CLOSE: Header = (b"connection", b"close")
CHUNKED: Header = (b"transfer-encoding", b"chunked")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

BODILESS = frozenset({204, 304})
"""Statuses whose replies have neither a body nor a length (RFC 9110 §6.4.1)."""

_STATUS_LINES = {one.value: b"HTTP/1.1 %d %b" % (one.value, one.phrase.encode()) for one in HTTPStatus}
_CONTROLS = bytes(code for code in (*range(32), 127) if code != 9)


def place_of(target: bytes) -> tuple[bytes, bytes] | None:
    """Return the path and the query of a request's target (§3.2), or `None` if it has no path."""
    if target.startswith(b"/") and b"#" not in target:
        path, _, query = target.partition(b"?")
        return path, query
    try:
        url = httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError:
        return None
    return None if url.path is None else (url.path, url.query or b"")


def head(status: int, headers: Sequence[Header]) -> bytes:
    """Return the head of a reply.

    Raises:
        ValueError: a name or a value holds what could end its line, or another control character.
    """
    status_line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d " % status
    written = b"\r\n".join([status_line, *map(b": ".join, headers), b"", b""])
    # The ends of the lines are control characters, two each, and there must be no others.
    if len(written.translate(None, _CONTROLS)) != len(written) - 2 * (len(headers) + 2):
        raise ValueError("a header of the reply holds a control character")
    return written


def chunk(data: bytes) -> bytes:
    """Return some bytes of a reply without a length; there must be at least one, for none ends the reply."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def refusal(status: int, text: str, headers: Sequence[Header]) -> bytes:
    """Return a whole reply to what is no request: `text`, beside some headers. The connection ends with it."""
    body = text.encode()
    length = (b"content-length", b"%d" % len(body))
    return head(status, [*headers, (b"content-type", b"text/plain; charset=utf-8"), length, CLOSE]) + body
