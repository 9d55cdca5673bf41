"""Fetching keys from a real issuer, and from one that misbehaves in every way."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator

import pytest

from dragoman.identity.issuer import MAX_BYTES, Document, FetchError, Issuer
from tests.harness.issuer import DISCOVERY, KEYS, Exchange, LocalIssuer


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    """An issuer that behaves."""
    with LocalIssuer() as running:
        yield running


def fetched(issuer: str, jwks_url: str = "", *, seconds: float = 5.0) -> Document:
    async def fetch() -> Document:
        source = Issuer(issuer, jwks_url, connect_seconds=seconds, total_seconds=seconds)
        try:
            return await source.keys()
        finally:
            await source.close()

    return asyncio.run(fetch())


def refusal(issuer: str, jwks_url: str = "", *, seconds: float = 5.0) -> str:
    with pytest.raises(FetchError) as caught:
        fetched(issuer, jwks_url, seconds=seconds)
    return str(caught.value)


def test_keys_come_from_where_they_are_said_to_be(issuer: LocalIssuer) -> None:
    assert fetched(issuer.url, issuer.origin + KEYS).body == issuer.key_set()
    assert issuer.asked == {KEYS: 1}
    assert issuer.headers[0]["accept-encoding"] == "identity"
    assert "authorization" not in issuer.headers[0] and "cookie" not in issuer.headers[0]


@pytest.mark.parametrize("path", ["", "/", "/realms/a", "/realms/a/"])
def test_where_they_are_is_found_out_from_the_issuer(path: str) -> None:
    with LocalIssuer(path=path) as issuer:
        assert fetched(issuer.url).body == issuer.key_set()
        assert issuer.asked == {path.rstrip("/") + DISCOVERY: 1, KEYS: 1}


def test_a_discovery_document_about_another_issuer_is_refused(issuer: LocalIssuer) -> None:
    assert "another issuer" in refusal(issuer.url + "/")
    assert issuer.asked[KEYS] == 0


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:1/keys", "http://127.0.0.2:{port}/keys", "https://127.0.0.1:{port}/keys"),
        *("http://localhost:{port}/keys", "file:///etc/passwd", "//127.0.0.1:{port}/keys", "/keys"),
        *("http://[::1/keys", "http://127.0.0.1:{port}@evil.example/keys", "http://127.0.0.1:{port}\n/keys"),
    ],
)
def test_nothing_leads_to_another_origin(issuer: LocalIssuer, url: str) -> None:
    issuer.keys_url = url.format(port=issuer.origin.rpartition(":")[2])
    assert "another origin" in refusal(issuer.url)
    assert issuer.asked == {DISCOVERY: 1}


@pytest.mark.parametrize(
    "members", [{}, {"jwks_uri": None}, {"jwks_uri": ""}, {"jwks_uri": 5}, {"jwks_uri": ["x"]}]
)
def test_a_discovery_document_without_keys_is_refused(
    issuer: LocalIssuer, members: dict[str, object]
) -> None:
    issuer.answer = lambda exchange: exchange.reply(json.dumps({"issuer": issuer.url, **members}).encode())
    assert "names no jwks_uri" in refusal(issuer.url)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(issuer: LocalIssuer, status: int) -> None:
    with LocalIssuer() as target:
        issuer.answer = lambda exchange: exchange.reply(b"", status=status, Location=target.origin + KEYS)
        assert f"answers {status}, which must be 200" in refusal(issuer.url, issuer.origin + KEYS)
        assert target.asked == {}


def to_nobody(exchange: Exchange) -> None:
    exchange.close_connection = True


def half(exchange: Exchange) -> None:
    exchange.send_response(200)
    exchange.send_header("Content-Length", "1000")
    exchange.end_headers()
    exchange.wfile.write(b'{"keys"')
    exchange.close_connection = True


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (lambda issuer: issuer.fail, "answers 503"),
        (lambda issuer: issuer.compress, "answers compressed"),
        (lambda issuer: issuer.flood, f"more than {MAX_BYTES} bytes"),
        (lambda issuer: to_nobody, "cannot be reached"),
        (lambda issuer: half, "cannot be reached"),
    ],
    ids=["error", "compressed", "flood", "closed", "half"],
)
def test_what_is_no_whole_and_small_document_is_refused(
    issuer: LocalIssuer, way: Callable[[LocalIssuer], Callable[[Exchange], None]], said: str
) -> None:
    issuer.answer = way(issuer)
    assert said in refusal(issuer.url, issuer.origin + KEYS)
    assert issuer.sent < 16 * MAX_BYTES


def test_garbage_is_told_by_its_address_and_not_repeated(issuer: LocalIssuer) -> None:
    issuer.answer = issuer.babble
    said = refusal(issuer.url)
    assert said == f"{issuer.url}{DISCOVERY} answers with something else than a JSON object"


@pytest.mark.parametrize("way", ["hang", "trickle"])
def test_an_issuer_has_so_many_seconds_and_no_more(issuer: LocalIssuer, way: str) -> None:
    issuer.answer = getattr(issuer, way)
    began = time.monotonic()
    assert "no whole reply within 0.4 s" in refusal(issuer.url, issuer.origin + KEYS, seconds=0.4)
    assert time.monotonic() - began < 5


def test_an_issuer_that_is_not_there_is_told_so(issuer: LocalIssuer) -> None:
    issuer.stop()
    assert "cannot be reached" in refusal(issuer.url)
    issuer.start()
    assert fetched(issuer.url).body == issuer.key_set()


def test_no_proxy_and_no_credential_is_taken_from_the_environment(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalIssuer() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.origin)
        assert fetched(issuer.url).body == issuer.key_set()
        assert proxy.asked == {}


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("max-age=120", 120),
        ("public, max-age=0, must-revalidate", 0),
        ('Max-Age="300"', 300),
        ("no-cache", None),
        ("max-age=soon", None),
        ("max-age=-5", None),
        ("", None),
    ],
)
def test_how_long_they_may_be_kept_is_read(issuer: LocalIssuer, header: str, seconds: float | None) -> None:
    issuer.answer = lambda exchange: exchange.reply(issuer.key_set(), Cache_Control=header)
    assert fetched(issuer.url, issuer.origin + KEYS).max_age == seconds
