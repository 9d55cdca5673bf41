"""Requests go to the very address that was checked, and nowhere else; what comes back is bounded."""

import asyncio
import datetime
import ssl
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dragoman.egress import EgressPolicy, Refused
from dragoman.egress.client import MAX_BYTES, Egress, EgressFailed, NotSent, Received
from dragoman.egress.policy import origin_of
from tests.harness.receiver import OK, Receiver, status

Address = IPv4Address | IPv6Address
LOOPBACK = EgressPolicy(schemes=("https", "http"), ports=None, allowed=(ip_network("127.0.0.0/8"),))


class Names:
    """A resolver whose answers are given in turn, the last one again and again; it remembers what it was asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ip_address(one) for one in answer]


def send(
    url: str,
    *,
    policy: EgressPolicy = LOOPBACK,
    names: Callable[[str, int], Awaitable[Sequence[Address]]] | None = None,
    times: int = 1,
    body: bytes = b"{}",
    wants_body: bool = True,
    headers: Sequence[tuple[str, str]] = (),
    total: float = 5.0,
    connect: float = 5.0,
) -> list[Received]:
    async def run() -> list[Received]:
        client = Egress(
            policy, user_agent="test/1", total_seconds=total, connect_seconds=connect, resolve=names
        )
        try:
            return [
                await client.send("POST", url, headers=headers, body=body, wants_body=wants_body)
                for _ in range(times)
            ]
        finally:
            await client.close()

    return asyncio.run(run())


def test_a_request_says_what_it_was_given_and_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Receiver(lambda one: status(418, "X-Said: yes", body=b"short")) as other, Receiver() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url(""))
        (reply,) = send(other.url("/a?b=c"), headers=[("Authorization", "Bearer x")])
        assert (reply.status, reply.header(b"x-said"), reply.body) == (418, b"yes", b"short")
        (got,) = other.got()
        assert (got.path, got.body, proxy.got()) == ("/a?b=c", b"{}", [])
        assert got.headers == {
            "host": f"127.0.0.1:{other.port}",
            "user-agent": "test/1",
            "accept-encoding": "identity",
            "content-length": "2",
            "authorization": "Bearer x",
        }


def test_connections_are_used_again_but_no_cookie_is_kept() -> None:
    with Receiver(lambda one: status(200, "Set-Cookie: a=b")) as other:
        send(other.url(), times=3)
        assert other.connections == 1
        assert ["cookie" in one.headers for one in other.got()] == [False] * 3


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(code: int) -> None:
    with Receiver() as hidden:
        location = f"Location: {hidden.url('/latest/meta-data')}"
        with Receiver(lambda one: status(code, location)) as other:
            (reply,) = send(other.url())
        assert (reply.status, hidden.got()) == (code, [])


def test_a_name_is_resolved_once_for_a_connection_and_the_connection_goes_there() -> None:
    with Receiver() as other:
        names = Names(["127.0.0.1"], ["10.0.0.1"])
        (reply,) = send(other.url(host="hooks.example.com"), names=names)
        assert (reply.status, names.asked) == (200, ["hooks.example.com"])
        assert other.got()[0].headers["host"] == f"hooks.example.com:{other.port}"


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1", "10.0.0.1"],
        ["10.0.0.1", "127.0.0.1"],
        ["127.0.0.1", "::1"],
        ["169.254.169.254"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["0.0.0.0"],
    ],
    ids=str,
)
def test_a_name_with_one_address_that_is_not_public_is_refused(answers: list[str]) -> None:
    with Receiver() as other:
        with pytest.raises(Refused, match="not public"):
            send(other.url(host="hooks.example.com"), names=Names(answers))
        assert other.connections == 0


def test_a_name_that_is_bound_anew_is_refused_at_the_next_connection() -> None:
    with Receiver(lambda one: status(200, "Connection: close")) as other:
        names = Names(["127.0.0.1"], ["10.0.0.1"])
        with pytest.raises(Refused, match=r"10\.0\.0\.1"):
            send(other.url(host="hooks.example.com"), names=names, times=2)
        assert (len(other.got()), len(names.asked)) == (1, 2)


def test_an_origin_of_the_operators_is_reached_wherever_it_is() -> None:
    with Receiver() as other:
        url = other.url(host="models")
        policy = EgressPolicy(trusted={origin_of(url)})
        (reply,) = send(url, policy=policy, names=Names(["127.0.0.1"]))
        assert reply.status == 200
        with pytest.raises(Refused):
            send(other.url(host="127.0.0.1"), policy=policy)


def test_the_next_address_is_tried_if_one_does_not_answer() -> None:
    with Receiver() as other:
        (reply,) = send(other.url(host="a.example"), names=Names(["127.9.9.9", "127.0.0.1"]))
        assert reply.status == 200


def test_a_name_without_an_address_cannot_be_reached() -> None:
    async def nobody(host: str, port: int) -> Sequence[Address]:
        raise OSError("no such name")

    for names in (nobody, Names([])):
        with pytest.raises(EgressFailed, match="without an address"):
            send("http://a.example/", names=names)


@pytest.mark.parametrize(
    "header",
    [
        ("X", "a\r\nB: c"),
        ("X", "a\nb"),
        ("X", "a\rb"),
        ("X", "a\0b"),
        ("X", "ü"),
        ("X\r\nY", "a"),
        ("", "a"),
        ("X ", "a"),
        ("X", " a"),
        ("X", "a "),
        ("X", "a\t"),
    ],
)
def test_a_header_that_is_none_is_refused(header: tuple[str, str]) -> None:
    with Receiver() as other:
        with pytest.raises(Refused, match="header"):
            send(other.url(), headers=[header])
        assert other.connections == 0


def test_a_large_reply_is_given_up_where_it_is_wanted_and_cut_where_it_is_not() -> None:
    with Receiver(lambda one: status(200, body=b"x" * 10 * MAX_BYTES)) as other:
        with pytest.raises(EgressFailed, match=str(MAX_BYTES)):
            send(other.url())
        (reply,) = send(other.url(), wants_body=False)
        assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "no reply of HTTP/1.1"),
        (b"220 mail.example ESMTP\r\n\r\n", "no reply of HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort\0", "no whole reply|connection broke|no reply"),
        (None, "no whole reply within 0.5 s"),
    ],
)
def test_what_is_no_reply_fails(answer: bytes | None, words: str) -> None:
    with Receiver(lambda one: answer) as other, pytest.raises(EgressFailed, match=words):
        send(other.url(), total=0.5)


def test_a_receiver_that_never_reads_is_given_up() -> None:
    with Receiver(reads=False) as other, pytest.raises(EgressFailed, match="no whole reply within"):
        send(other.url(), total=0.5, body=b"x" * 20_000_000)


def test_a_place_where_nobody_listens_fails() -> None:
    with Receiver() as other:
        url = other.url()
    with pytest.raises(NotSent, match="no connection"):
        send(url)
    with pytest.raises(NotSent, match="no connection"):
        stream(url)


def stream(url: str, *, total: float = 5.0, most: int = 1000) -> tuple[int, bytes, bytes]:
    """The status, the Content-Type and what came of the body of a reply that is read as it comes."""

    async def run() -> tuple[int, bytes, bytes]:
        client = Egress(LOOPBACK, user_agent="test/1", total_seconds=total)
        found = b""
        try:
            async with client.stream("GET", url) as incoming:
                async for piece in incoming.pieces:
                    found += piece
                    if len(found) >= most:
                        break
            return incoming.status, incoming.header(b"content-type"), found
        finally:
            await client.close()

    return asyncio.run(run())


def test_a_stream_is_read_as_it_comes_and_can_be_left() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n"
    with Receiver(lambda one: head + b"data: 1\n\n") as other:
        # The reply is not whole, and never will be.
        assert stream(other.url(), most=9) == (200, b"text/event-stream", b"data: 1\n\n")


def test_a_stream_that_is_silent_or_ends_too_soon_fails() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    with (
        Receiver(lambda one: None) as other,
        pytest.raises(EgressFailed, match=r"no whole reply within 0\.3 s"),
    ):
        stream(other.url(), total=0.3)
    with Receiver(lambda one: head) as other, pytest.raises(EgressFailed, match="no whole reply in time"):
        stream(other.url(), total=0.3)
    with (
        Receiver(lambda one: head + b"short\0") as other,
        pytest.raises(EgressFailed, match=r"no whole reply in time|connection broke|no reply"),
    ):
        stream(other.url(), total=0.3)


def test_a_connection_has_less_time_than_a_request() -> None:
    async def slow(host: str, port: int) -> Sequence[Address]:
        await asyncio.sleep(30)
        return []

    with pytest.raises(EgressFailed, match="no connection within the time"):
        send("http://a.example/", names=slow, connect=0.2)


async def _nobody(host: str, port: int) -> Sequence[Address]:
    raise OSError("no such name")


async def _slow(host: str, port: int) -> Sequence[Address]:
    await asyncio.sleep(30)
    return []


@pytest.mark.parametrize("names", [_nobody, _slow, Names([]), Names(["127.9.9.9"])])
@pytest.mark.parametrize(("total", "connect"), [(5.0, 0.2), (0.2, 5.0)])
def test_a_request_that_has_no_connection_was_certainly_not_sent(
    names: Callable[[str, int], Awaitable[Sequence[Address]]], total: float, connect: float
) -> None:
    with Receiver() as other:
        with pytest.raises(NotSent):
            send(other.url(host="a.example"), names=names, total=total, connect=connect)
        assert other.connections == 0


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort\0", None])
def test_a_request_of_which_a_byte_has_left_may_have_arrived(answer: bytes | None) -> None:
    with Receiver(lambda one: answer) as other:
        with pytest.raises(EgressFailed) as caught:
            send(other.url(), total=0.5)
        assert not isinstance(caught.value, NotSent)
        assert len(other.got()) == 1


def test_a_client_may_use_each_connection_once() -> None:
    async def run(url: str) -> None:
        client = Egress(LOOPBACK, user_agent="test/1", idle_seconds=0)
        for _ in range(3):
            await client.send("POST", url, body=b"{}")
        await client.close()

    with Receiver() as other:
        asyncio.run(run(other.url()))
        assert (other.connections, len(other.got())) == (3, 3)


def test_certificates_that_cannot_be_read_are_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def run(url: str) -> None:
        client = Egress(LOOPBACK, user_agent="test/1")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
        with pytest.raises(EgressFailed, match="certificates that this system trusts"):
            await client.send("GET", url)
        monkeypatch.delenv("SSL_CERT_FILE")
        assert (await client.send("GET", url)).status == 200
        await client.close()

    with Receiver() as other:
        asyncio.run(run(other.url()))


def certificate(folder: Path, name: str) -> ssl.SSLContext:
    """Return what a server of this name shows, signed by itself; the certificate is in `ca.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


def test_tls_verifies_the_name_and_not_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = certificate(tmp_path, "hooks.example.com")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with Receiver(lambda one: OK, tls=tls) as other:
        names = Names(["127.0.0.1"])
        (reply,) = send(other.url(host="hooks.example.com"), names=names)
        assert reply.status == 200
        for host in ("other.example.com", "127.0.0.1"):
            with pytest.raises(EgressFailed, match="without a certificate for the name"):
                send(other.url(host=host), names=names)
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(EgressFailed, match="without a certificate"):
            send(other.url(host="hooks.example.com"), names=names)
        assert len(other.got()) == 1
