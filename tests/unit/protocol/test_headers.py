"""Request headers."""

from dragoman.protocol.headers import Headers

HEADERS = Headers([(b"accept", b"a"), (b"a2a-version", b"1.0"), (b"accept", b"b"), (b"accept", b"c")])


def test_the_first_of_several_headers_of_a_name_is_the_one_that_is_got() -> None:
    assert HEADERS.get(b"accept") == b"a"
    assert HEADERS.get(b"a2a-version") == b"1.0"


def test_every_header_of_a_name_is_there_in_order() -> None:
    assert HEADERS.all(b"accept") == [b"a", b"b", b"c"]
    assert HEADERS.all(b"a2a-version") == [b"1.0"]


def test_a_list_that_came_in_several_headers_is_one_list() -> None:
    assert HEADERS.joined(b"accept") == b"a, b, c"
    assert HEADERS.joined(b"a2a-version") == b"1.0"


def test_a_missing_header_is_none() -> None:
    assert HEADERS.get(b"content-type") is None
    assert HEADERS.joined(b"content-type") is None
    assert HEADERS.all(b"content-type") == []


def test_an_empty_header_is_there() -> None:
    empty = Headers([(b"accept", b"")])
    assert empty.get(b"accept") == b""
    assert empty.all(b"accept") == [b""]
