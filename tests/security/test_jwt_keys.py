"""An issuer's keys as they come and go, and an issuer that is slow, down, or not in its right mind."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.harness.issuer import KEYS, Exchange, LocalIssuer
from tests.harness.polling import until
from tests.harness.signing import Signer
from tests.security.conftest import AGENTS, FULL, SERVER, TENANTS, Sender, started
from tests.security.surfaces import SURFACES, UNAVAILABLE, reason, refused

GET = SURFACES[0]
LET_IN = "TASK_NOT_FOUND"
"""What reading a task that is not there comes to, for somebody who is let in."""


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    """An issuer with one key."""
    with LocalIssuer(Signer("ES256", "old")) as running:
        yield running


@contextmanager
def trusting(
    folder: Path, issuer: LocalIssuer, client: httpx2.Client, *, jwks_url: str = "", **times: str
) -> Iterator[Sender]:
    """A server that trusts an issuer; times are those of `[auth.oidc]`."""
    settings = {"jwks_refetch": "200ms", "jwks_max_age": "1h", "jwks_stale": "1h", **times}
    lines = "\n".join(f'{name} = "{value}"' for name, value in settings.items())
    oidc = f'[auth.oidc]\nissuer = "{issuer.url}"\naudience = "dragoman"\njwks_url = "{jwks_url}"\n{lines}\n'
    with started(folder, SERVER + oidc + AGENTS + TENANTS) as running:
        yield Sender(client, running)


def outcome(sender: Sender, token: str) -> str:
    return reason(GET, sender.send(GET.ask("GetTask", token=token)))


def becomes(sender: Sender, token: str, wanted: str, seconds: float = 10) -> None:
    until(lambda: outcome(sender, token) == wanted, what=f"the token is {wanted}", seconds=seconds)


@pytest.mark.parametrize("explicit", [False, True])
def test_keys_are_fetched_at_the_start_and_not_for_each_token(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client, explicit: bool
) -> None:
    with trusting(tmp_path, issuer, client, jwks_url=issuer.origin + KEYS if explicit else "") as sender:
        until(lambda: issuer.asked[KEYS] == 1, what="the keys are fetched before anybody calls")
        for number in range(50):
            assert outcome(sender, issuer.token(jti=str(number))) == LET_IN
        assert issuer.asked[KEYS] == 1
        assert sum(issuer.asked.values()) == (1 if explicit else 2)


def test_a_new_key_counts_as_soon_as_it_is_used_and_one_taken_back_does_not(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client
) -> None:
    with trusting(tmp_path, issuer, client) as sender:
        old = issuer.token()
        assert outcome(sender, old) == LET_IN
        fresh = Signer("ES256", "new")
        issuer.signers = [fresh]
        becomes(sender, issuer.token(), LET_IN)
        assert outcome(sender, old) == "UNAUTHENTICATED", "its key is gone, although it was good a moment ago"


def test_a_key_taken_back_counts_no_more_once_keys_are_old(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client
) -> None:
    with trusting(tmp_path, issuer, client, jwks_max_age="1s") as sender:
        token = issuer.token()
        assert outcome(sender, token) == LET_IN
        issuer.signers = [Signer("ES256", "new")]
        changed = time.monotonic()
        becomes(sender, token, "UNAUTHENTICATED")
        assert time.monotonic() - changed < 5


def test_a_key_exchanged_under_its_name_counts_instead_of_the_old_one(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client
) -> None:
    with trusting(tmp_path, issuer, client, jwks_max_age="1s") as sender:
        token = issuer.token()
        assert outcome(sender, token) == LET_IN
        issuer.signers = [Signer("ES256", "old")]
        becomes(sender, issuer.token(), LET_IN)
        assert outcome(sender, token) == "UNAUTHENTICATED"


def test_an_issuer_that_is_down_at_the_start_holds_nobody_else_up(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client
) -> None:
    issuer.stop()
    with trusting(tmp_path, issuer, client) as sender:
        token = issuer.token()
        for surface in SURFACES:
            with sender.rows.unchanged():
                reply = sender.send(surface.ask("SendMessage", token=token), surface)
                refused(surface, reply, UNAVAILABLE)
            assert 1 <= int(reply.headers["retry-after"]) <= 10
            assert "www-authenticate" not in reply.headers
            assert reason(surface, sender.send(surface.ask("SendMessage", token=FULL), surface)) == ""
        assert sender.get("/readyz").status == 200
        until(
            lambda: any(
                "the issuer's keys cannot be had" in str(line.get("message"))
                for line in sender.server.log_lines()
            ),
            what="the operator is told",
        )
        issuer.start()
        becomes(sender, token, LET_IN)


def test_an_outage_is_lived_through_up_to_its_bound(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client
) -> None:
    with trusting(tmp_path, issuer, client, jwks_max_age="500ms", jwks_stale="3s") as sender:
        token = issuer.token()
        assert outcome(sender, token) == LET_IN
        issuer.stop()
        down = time.monotonic()
        while time.monotonic() - down < 2:
            assert outcome(sender, issuer.token()) == LET_IN
        becomes(sender, token, "UNAVAILABLE")
        assert time.monotonic() - down > 2.5
        issuer.start()
        becomes(sender, token, LET_IN)


def redirect(exchange: Exchange) -> None:
    exchange.reply(b"", status=302, Location=f"{exchange.server.issuer.origin}{KEYS}?moved")


WAYS: dict[str, Callable[[LocalIssuer], Callable[[Exchange], None]]] = {
    "error": lambda issuer: issuer.fail,
    "garbage": lambda issuer: issuer.babble,
    "compressed": lambda issuer: issuer.compress,
    "flood": lambda issuer: issuer.flood,
    "redirect": lambda issuer: redirect,
    "no set": lambda issuer: lambda exchange: exchange.reply(b'{"keys": 5}'),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_issuer_that_misbehaves_is_as_good_as_down(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client, way: Callable[..., Callable[[Exchange], None]]
) -> None:
    with trusting(tmp_path, issuer, client, jwks_url=issuer.origin + KEYS) as sender:
        before = sender.server.rss_bytes()
        issuer.answer = way(issuer)
        issuer.signers = [Signer("ES256", "new")]
        token = issuer.token()
        until(lambda: issuer.asked[KEYS] >= 1, what="the good keys are fetched")
        becomes(sender, token, "UNAVAILABLE")
        assert issuer.asked[f"{KEYS}?moved"] == 0
        assert reason(GET, sender.send(GET.ask("SendMessage", token=FULL))) == ""
        assert sender.server.rss_bytes() - before < 32 * 1024 * 1024
        issuer.answer = issuer.serve
        becomes(sender, token, LET_IN)


def test_an_issuer_that_says_nothing_holds_up_only_who_needs_it(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client
) -> None:
    issuer.answer = issuer.hang
    with trusting(tmp_path, issuer, client) as sender:
        until(lambda: sum(issuer.asked.values()) == 1, what="the issuer is asked")
        waiting = httpx2.Client(timeout=0.5, trust_env=False)
        with waiting, pytest.raises(httpx2.ReadTimeout):
            Sender(waiting, sender.server).send(GET.ask("GetTask", token=issuer.token()))
        began = time.monotonic()
        for _ in range(20):
            assert reason(GET, sender.send(GET.ask("GetTask", token=FULL))) == LET_IN
        assert sender.get("/healthz").status == 200
        assert time.monotonic() - began < 5
        assert sum(issuer.asked.values()) == 1, "one fetch at a time"
        stopped = time.monotonic()
        assert sender.server.terminate() == 0
        assert time.monotonic() - stopped < 10, "and it keeps no server from stopping"


def test_an_issuer_alone_closes_a_server_without_tenants(
    tmp_path: Path, issuer: LocalIssuer, client: httpx2.Client
) -> None:
    oidc = f'[auth.oidc]\nissuer = "{issuer.url}"\naudience = "dragoman"\n'
    with started(tmp_path, oidc) as running:
        sender = Sender(client, running)
        for way in SURFACES:
            for token in (None, issuer.token(), issuer.token(tenant="local")):
                reply = sender.send(way.ask("SendMessage", token=token), way)
                assert (reply.status, reason(way, reply)) == (401, "UNAUTHENTICATED")
        card = sender.get("/agents/demo/.well-known/agent-card.json").json()
        assert card["security"] == [{"bearer": []}]
