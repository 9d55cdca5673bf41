"""Hosts of a Host header, and which of them mean this machine."""

import pytest

from dragoman.protocol.hosts import host_of, is_host, means_loopback


@pytest.mark.parametrize(
    ("value", "host"),
    [
        (b"localhost", "localhost"),
        (b"LocalHost:8080", "localhost"),
        (b"localhost.", "localhost"),
        (b"localhost.:80", "localhost"),
        (b"127.0.0.1:8080", "127.0.0.1"),
        (b"[::1]:8080", "::1"),
        (b"[::FFFF:127.0.0.1]", "::ffff:127.0.0.1"),
        (b"evil.example:8080", "evil.example"),
        (b"evil.example:", "evil.example"),
        (b"", None),
        (b":80", None),
        (b"a b", None),
        (b"localhost, evil.example", None),
        (b"localhost@evil.example", None),
        (b"localhost:80:80", None),
        (b"::1", None),
        (b"localhost/x", None),
        (b"localh\xf6st", None),
    ],
)
def test_a_host_is_read_without_its_port(value: bytes, host: str | None) -> None:
    assert host_of(value) == host


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.8.9.1", "::1"])
def test_these_mean_this_machine(host: str) -> None:
    assert means_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "xlocalhost", "10.0.0.1", "0.0.0.0", "::", "127.0.0.1.nip.io"],
)
def test_these_may_mean_another_one(host: str) -> None:
    assert not means_loopback(host)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("agents.example.com", True),
        ("host_a", True),
        ("10.0.0.1", True),
        ("2001:db8::1", True),
        ("Agents.example.com", False),
        ("agents.example.com:8080", False),
        ("https://agents.example.com", False),
        ("[::1]", False),
        ("a..b", False),
        ("*", False),
        ("", False),
    ],
)
def test_hosts_of_the_configuration_are_such_as_requests_have(text: str, good: bool) -> None:
    assert is_host(text) is good
