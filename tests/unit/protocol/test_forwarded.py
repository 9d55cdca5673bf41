"""Where a request comes from: who is believed, and for what."""

import pytest

from dragoman.protocol.forwarded import LONGEST, caller_of, networks_of
from dragoman.protocol.headers import Headers

PROXIES = networks_of(["10.0.0.0/8", "127.0.0.1", "fd00::/8"])
XFF, RFC = b"x-forwarded-for", b"forwarded"


def caller(peer: str, *headers: tuple[bytes, str]) -> str:
    pairs = [(name, value.encode("latin-1")) for name, value in headers]
    return caller_of(peer, Headers(pairs), PROXIES)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("198.51.100.9, 192.0.2.1", "192.0.2.1"),
        ("198.51.100.9, 192.0.2.1, 10.1.2.3", "192.0.2.1"),
        ("192.0.2.1,10.1.2.3,10.9.9.9", "192.0.2.1"),
        ("10.1.2.3, 10.4.5.6", "10.1.2.3"),
        ("192.0.2.1:5123", "192.0.2.1"),
        ("[2001:db8::1]:5123", "2001:db8::1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("192.0.2.1, fd00::1", "192.0.2.1"),
        ("192.0.2.1, unknown", "127.0.0.1"),
        ("192.0.2.1, unknown, 10.1.2.3", "10.1.2.3"),
        ("192.0.2.1, ", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("192.0.2.300", "127.0.0.1"),
        ("192.0.2.1 192.0.2.2", "127.0.0.1"),
        ("1" * (LONGEST + 1), "127.0.0.1"),
    ],
)
def test_the_last_address_that_is_no_proxys_is_the_callers(value: str, found: str) -> None:
    assert caller("127.0.0.1", (XFF, value)) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("for=192.0.2.1", "192.0.2.1"),
        ("For=192.0.2.1;proto=https;by=10.0.0.1", "192.0.2.1"),
        ('for="192.0.2.1:5123"', "192.0.2.1"),
        ('for="[2001:db8::1]:5123"', "2001:db8::1"),
        ('proto=https; for="[2001:db8::1]"', "2001:db8::1"),
        ("for=198.51.100.9, for=192.0.2.1", "192.0.2.1"),
        ("for=198.51.100.9, for=192.0.2.1, for=10.1.2.3", "192.0.2.1"),
        ("for=192.0.2.1, for=unknown", "127.0.0.1"),
        ("for=192.0.2.1, for=_hidden", "127.0.0.1"),
        ("for=192.0.2.1, proto=https", "127.0.0.1"),
        ("for=192.0.2.1;for=192.0.2.2", "127.0.0.1"),
        ('for="a, for=192.0.2.9", for=192.0.2.1', "192.0.2.1"),
        ('for=192.0.2.1, host="a\\", for=192.0.2.9"', "127.0.0.1"),
        ('for=192.0.2.1, for="192.0.2.9', "127.0.0.1"),
        ("for=198.51.100.9" + ", for=192.0.2.1" * 1000, "127.0.0.1"),
    ],
)
def test_the_standards_header_is_read_in_the_same_way(value: str, found: str) -> None:
    assert caller("127.0.0.1", (RFC, value)) == found


def test_headers_that_are_repeated_are_one_list() -> None:
    assert caller("127.0.0.1", (XFF, "198.51.100.9"), (XFF, "192.0.2.1"), (XFF, "10.1.2.3")) == "192.0.2.1"


@pytest.mark.parametrize("peer", ["192.0.2.7", "127.0.0.2", "::1", "2001:db8::7", "testclient", ""])
def test_nobody_else_is_believed(peer: str) -> None:
    assert caller(peer, (XFF, "192.0.2.1"), (RFC, "for=192.0.2.1")) == peer


def test_a_proxy_that_says_nothing_is_the_caller_itself() -> None:
    assert caller("10.1.2.3") == "10.1.2.3"


@pytest.mark.parametrize("peer", ["10.1.2.3", "::ffff:10.1.2.3"])
def test_a_header_that_the_proxy_passed_on_as_it_came_moves_nobody(peer: str) -> None:
    assert caller(peer, (XFF, "192.0.2.1"), (RFC, "for=192.0.2.1")) == "192.0.2.1"
    assert caller(peer, (XFF, "192.0.2.1"), (RFC, "for=198.51.100.9")) == peer
    assert caller(peer, (XFF, "198.51.100.9"), (RFC, "for=192.0.2.1")) == peer


def test_without_trusted_proxies_no_header_counts() -> None:
    assert caller_of("127.0.0.1", Headers([(XFF, b"192.0.2.1")]), ()) == "127.0.0.1"


@pytest.mark.parametrize("text", ["10.0.0.1/8", "localhost", "10.0.0.0/33", "", "*"])
def test_what_is_no_network_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="." if not text else text.replace("*", r"\*").split("/")[0]):
        networks_of([text])
