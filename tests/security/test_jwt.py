"""Signed tokens of an issuer: which are let in, as whom, and that no other is, on every surface."""

import base64
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.harness.issuer import KEYS, LocalIssuer
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.harness.signing import Signer, encoded, sign_with_secret
from tests.interaction.answers import NO_AGENT, TASK_NOT_FOUND
from tests.interaction.callers import Request
from tests.security.conftest import AGENTS, BOB, FULL, SERVER, TENANTS, Sender, started
from tests.security.surfaces import (
    FORBIDDEN,
    INVALID,
    SURFACES,
    UNAUTHENTICATED,
    Surface,
    challenged,
    reason,
    refused,
    same_refusal,
)

EC, RSA, ED = Signer("ES256", "ec"), Signer("RS256", "rsa"), Signer("EdDSA", "ed")
REFETCH = 0.5
UNSIGNED = encoded(b'{"alg":"none","kid":"ec"}')

OIDC = """
[auth.oidc]
issuer = "{issuer}"
audience = "dragoman"
jwks_refetch = "{refetch}"
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[LocalIssuer]:
    """An issuer with a key of each kind."""
    with LocalIssuer(EC, RSA, ED, path="/realms/a") as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, issuer: LocalIssuer) -> Iterator[ServerProcess]:
    """A server that trusts the issuer, beside its own tokens."""
    oidc = OIDC.format(issuer=issuer.url, refetch=f"{REFETCH}s")
    with started(tmp_path_factory.mktemp("jwt"), SERVER + oidc + AGENTS + TENANTS) as running:
        yield running


@pytest.fixture(scope="module")
def sender(client: httpx2.Client, server: ServerProcess) -> Sender:
    """What sends requests to that server."""
    return Sender(client, server)


@pytest.mark.parametrize("signer", [EC, RSA, ED], ids=lambda signer: signer.algorithm)
def test_a_good_token_lets_its_principal_in(
    sender: Sender, issuer: LocalIssuer, surface: Surface, signer: Signer
) -> None:
    token = issuer.token(signer, scope="ai:answer a2a:read a2a:delegate")
    task = sender.task(token, agent="ours")
    assert reason(surface, sender.send(surface.ask("GetTask", "ours", task=task, token=token), surface)) == ""
    assert reason(surface, sender.send(surface.ask("SendMessage", "ours", token=token), surface)) == ""
    assert sender.rows.query(
        "SELECT tenant, principal FROM task JOIN scope ON scope.id = scope_id WHERE task.id = ?", task
    ) == [("acme", "alice")]


def test_both_kinds_of_credentials_stand_for_the_same_principal(
    sender: Sender, issuer: LocalIssuer, surface: Surface
) -> None:
    task = sender.task(FULL)
    assert (
        reason(surface, sender.send(surface.ask("GetTask", task=task, token=issuer.token()), surface)) == ""
    )
    for other in (issuer.token(sub="bob"), issuer.token(tenant="beta"), issuer.token(sub="alice2")):
        refused(surface, sender.send(surface.ask("GetTask", task=task, token=other), surface), TASK_NOT_FOUND)


def test_the_tenant_is_the_one_in_the_token(sender: Sender, issuer: LocalIssuer, surface: Surface) -> None:
    mine, theirs = issuer.token(scope="*"), issuer.token(tenant="beta", scope="*")
    assert reason(surface, sender.send(surface.ask("SendMessage", "theirs", token=theirs), surface)) == ""
    for said in ({}, {"x_tenant": "beta"}, {"tenant": "beta", "x_principal": "carol"}):
        for operation in surface.operations:
            asked = surface.ask(operation, "theirs", token=mine).with_headers(**said)
            there = sender.send(asked, surface)
            refused(surface, there, NO_AGENT)
            unknown = surface.ask(operation, "unknwn", token=mine).with_headers(**said)
            assert same_refusal(surface, there, sender.send(unknown, surface))
    asked = surface.ask("SendMessage", "theirs", token=mine)
    in_query = Request(asked.method, f"{asked.target}?tenant=beta", asked.headers, asked.body)
    refused(surface, sender.send(in_query, surface), NO_AGENT)


# --------------------------------------------------------------------------------------------------------- what is not


def wrong_tokens(issuer: LocalIssuer) -> dict[str, str]:
    """Tokens that must not be let in, by what is wrong with them."""
    now = time.time()
    good = issuer.token()
    head, body, signature = good.split(".")
    stranger = Signer("ES256", "ec")
    richer = issuer.token(scope="*", tenant="beta").split(".")[1]
    header = {"alg": "HS256", "kid": "rsa", "typ": "JWT"}
    payload = _decoded(body)
    return {
        "expired": issuer.token(exp=now - 61),
        "without an end": issuer.token(exp=None),
        "not good yet": issuer.token(nbf=now + 120),
        "from the future": issuer.token(iat=now + 120),
        "other issuer": issuer.token(iss=issuer.origin),
        "issuer with a slash": issuer.token(iss=issuer.url + "/"),
        "without an issuer": issuer.token(iss=None),
        "other audience": issuer.token(aud="other"),
        "audience in parts": issuer.token(aud=["drago", "man"]),
        "without an audience": issuer.token(aud=None),
        "without a subject": issuer.token(sub=None),
        "without a tenant": issuer.token(tenant=None),
        "tenant that is not here": issuer.token(tenant="gamma"),
        "tenants": issuer.token(tenant=["acme"]),
        "the implicit tenant": issuer.token(tenant="local"),
        "subject that is no name": issuer.token(sub="Alice"),
        "subject of everybody": issuer.token(sub="anonymous"),
        "scopes that are none": issuer.token(scope={"ai:answer": True}),
        "no signature": f"{UNSIGNED}.{body}.",
        "none with a signature": issuer.token(header={"alg": "none"}),
        "signature cut off": f"{head}.{body}.",
        "signature of zeros": f"{head}.{body}.{'A' * len(signature)}",
        "claims exchanged": f"{head}.{richer}.{signature}",
        "HMAC with the public key": sign_with_secret(RSA.key.as_pem(private=False), header, payload),
        "HMAC with the public key, as RS256": sign_with_secret(
            RSA.key.as_pem(private=False), {**header, "alg": "RS256"}, payload
        ),
        "HMAC with nothing": sign_with_secret(b"", header, payload),
        "key of somebody else": issuer.token(stranger),
        "key in the header": issuer.token(stranger, header={"jwk": stranger.public()}),
        "key at an address": issuer.token(stranger, header={"jku": issuer.origin + "/evil", "kid": "evil"}),
        "name of another key": issuer.token(EC, header={"kid": "rsa"}),
        "name of no key": issuer.token(EC, header={"kid": "nobody"}),
        "no name": issuer.token(EC, header={"kid": None}),
        "name that is a path": issuer.token(EC, header={"kid": "../../../../dev/null"}),
        "name that is SQL": issuer.token(EC, header={"kid": "ec' OR '1'='1"}),
        "algorithm that is not allowed": issuer.token(Signer("ES384", "ec")),
        "made for something else": issuer.token(EC, header={"typ": "logout+jwt"}),
        "extension": issuer.token(EC, header={"crit": ["exp"]}),
        "bound to a key": issuer.token(cnf={"jkt": "x"}),
        "encrypted": f"{head}.{body}.{signature}.{body}.{signature}",
        "our own prefix": f"dgm_{good}",
    }


def _decoded(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


NAMES = list(wrong_tokens(LocalIssuer(EC, RSA, ED)))


@pytest.mark.parametrize("name", NAMES)
def test_a_token_that_is_not_good_is_refused_like_any_other(
    sender: Sender, issuer: LocalIssuer, name: str
) -> None:
    token = wrong_tokens(issuer)[name]
    with sender.rows.unchanged():
        for surface in SURFACES:
            for operation in ("SendMessage", "GetTask", "CancelTask"):
                reply = sender.send(surface.ask(operation, token=token), surface)
                challenged(surface, reply, INVALID, UNAUTHENTICATED)
                other = sender.send(surface.ask(operation, token="nobody-has-this-token-0000"), surface)
                assert same_refusal(surface, reply, other), "nobody learns what is wrong with it"
    assert issuer.asked["/evil"] == 0, "nothing in a token has anything fetched"


def test_the_log_says_what_is_wrong_and_not_with_what(sender: Sender, issuer: LocalIssuer) -> None:
    token = issuer.token(exp=time.time() - 3600, scope="ai:answer secret-scope")
    asked = SURFACES[0].ask("GetTask", token=token).with_headers(x_request_id="expired-1")
    sender.send(asked)

    def logged() -> list[dict[str, Any]]:
        return [line for line in sender.server.log_lines() if line.get("request_id") == "expired-1"]

    assert until(logged, what="the request is in the log")[0]["flaw"] == "it has expired"
    text = sender.server.log_file.read_text(encoding="utf-8")
    for piece in (token, *token.split("."), "secret-scope"):
        assert piece not in text


LIKE = [
    *("a2a:readx", "A2A:READ", "*:*", "a2a:", "a2a", "a2a:read,a2a:delegate", "a2a:read\u00a0", "a2a:read\t"),
    *(["a2a:read "], [" a2a:read"], ["a2a:read a2a:delegate"], ["A2A:*"], [], "", None),
]


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("scopes", LIKE, ids=repr)
def test_scopes_that_only_look_alike_cover_nothing(sender: Sender, issuer: LocalIssuer, scopes: Any) -> None:
    with_asking = ["ai:answer", *scopes] if isinstance(scopes, list) else f"ai:answer {scopes or ''}"
    token = issuer.token(scope=with_asking)
    for surface in SURFACES:
        for operation in surface.operations:
            refused(surface, sender.send(surface.ask(operation, token=token), surface), FORBIDDEN)


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ("openid email ai:answer a2a:read", {"GetTask"}),
        ("ai:* a2a:*", {"GetTask", "SendMessage"}),
        (["*"], {"GetTask", "SendMessage"}),
        ("ai:answer a2a:read a2a:read ai:answer", {"GetTask"}),
        ("a2a:* ai:answerx", set()),
        ("admin:*", set()),
        (None, set()),
    ],
)
def test_what_covers_a_scope_is_enough_and_no_more(
    sender: Sender, issuer: LocalIssuer, surface: Surface, scopes: Any, allowed: set[str]
) -> None:
    token, task = issuer.token(scope=scopes), sender.task(FULL)
    for operation in ("GetTask", "SendMessage"):
        reply = sender.send(surface.ask(operation, task=task, token=token), surface)
        if operation in allowed:
            assert reason(surface, reply) == ""
        else:
            refused(surface, reply, FORBIDDEN)


def test_unknown_keys_do_not_have_the_issuer_asked_again_and_again(
    sender: Sender, issuer: LocalIssuer
) -> None:
    before, began = issuer.asked[KEYS], time.monotonic()
    for number in range(300):
        token = issuer.token(EC, header={"kid": f"unknown-{number}"})
        challenged(
            SURFACES[0], sender.send(SURFACES[0].ask("GetTask", token=token)), INVALID, UNAUTHENTICATED
        )
    # One at once, if the last fetch is long enough ago, and one more each time that a fetch may be made again.
    assert issuer.asked[KEYS] - before <= 1 + (time.monotonic() - began) / REFETCH
    assert (
        reason(SURFACES[0], sender.send(SURFACES[0].ask("GetTask", token=issuer.token()))) == "TASK_NOT_FOUND"
    )


def test_a_token_of_this_server_is_never_shown_to_the_issuer(sender: Sender, issuer: LocalIssuer) -> None:
    assert reason(SURFACES[0], sender.send(SURFACES[0].ask("GetTask", token=BOB))) == "TASK_NOT_FOUND"
    told = str(issuer.headers) + str(issuer.asked)
    assert BOB not in told and FULL not in told and "authorization" not in told.lower()


def test_public_agents_take_a_good_token_and_refuse_a_bad_one(
    sender: Sender, issuer: LocalIssuer, surface: Surface
) -> None:
    task = sender.task(issuer.token(scope="*"), agent="anyones")
    asked = surface.ask("GetTask", "anyones", task=task, token=issuer.token())
    assert reason(surface, sender.send(asked, surface)) == ""
    refused(surface, sender.send(surface.ask("GetTask", "anyones", task=task), surface), TASK_NOT_FOUND)
    expired = issuer.token(exp=time.time() - 3600)
    reply = sender.send(surface.ask("GetTask", "anyones", task=task, token=expired), surface)
    challenged(surface, reply, INVALID, UNAUTHENTICATED)
