"""The gate: which headers are a credential, whom it stands for, and what is asked of whom."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable

import pytest

from dragoman.identity import Credential, Failures, Gate, Registry, Rejected, Verifier, hash_token
from dragoman.model import ANONYMOUS, LOCAL, Principal, Right
from dragoman.model.errors import (
    DragomanError,
    Forbidden,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from dragoman.model.principal import is_name, rights_of
from tests.harness.paths import SOURCE

FULL = "full-token-of-alice-0000001"
READ = "read-token-of-alice-0000001"
WEAK = "token-of-alice-without-answer"
OLD = "token-of-alice-that-expired"
JWT = "aaaa.bbbb.cccc"

ALICE = Principal("acme", "alice", rights_of(["ai:answer", "a2a:*"]))
TOKENS = {
    hash_token(FULL): Credential("1", ALICE),
    hash_token(READ): Credential("2", Principal("acme", "alice", rights_of(["ai:answer", "a2a:read"]))),
    hash_token(WEAK): Credential("3", Principal("acme", "alice", rights_of(["a2a:*"]))),
    hash_token(OLD): Credential("4", ALICE, expires_at=1000.0),
}
REGISTRY = Registry({"acme": ()}, TOKENS)


class Tells(Verifier):
    """Knows one token, and counts what it is asked."""

    def __init__(self, principal: Principal | None = None, error: DragomanError | None = None) -> None:
        self.asked: list[str] = []
        self._principal = principal
        self._error = error

    def start(self) -> None:
        return

    async def close(self) -> None:
        return

    async def verify(self, token: str, digest: bytes) -> Principal:
        assert digest == hash_token(token)
        self.asked.append(token)
        if self._error is not None:
            raise self._error
        if self._principal is None or token != JWT:
            raise Rejected("it is not good")
        return self._principal


def gate(
    registry: Registry = REGISTRY, verifier: Verifier | None = None, *, burst: int = 1000, now: float = 999.0
) -> Gate:
    return Gate(registry, Failures(burst, 0.5), verifier=verifier, clock=lambda: now)


def identified(at: Gate, *credentials: str | bytes, tenant: str = "", public: bool = False) -> Principal:
    sent = [one.encode() if isinstance(one, str) else one for one in credentials]
    return asyncio.run(at.identify(sent, "192.0.2.1", tenant=tenant, public=public))


def refused(at: Gate, *credentials: str | bytes) -> Unauthenticated:
    with pytest.raises(Unauthenticated) as caught:
        identified(at, *credentials)
    return caught.value


@pytest.mark.parametrize("credentials", [[], ["Bearer x"], ["nonsense", "twice"]])
def test_without_tenants_and_issuer_everybody_is_local(credentials: list[str]) -> None:
    assert identified(gate(Registry()), *credentials) == Principal(LOCAL, LOCAL)


def test_an_issuer_alone_closes_the_gate() -> None:
    at = gate(Registry(), Tells(ALICE))
    assert not at.is_open
    assert not refused(at).invalid


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
@pytest.mark.parametrize("space", [" ", "   "])
def test_a_known_token_stands_for_its_principal(scheme: str, space: str) -> None:
    assert identified(gate(), f"{scheme}{space}{FULL}") == ALICE


def test_a_missing_credential_is_told_from_a_wrong_one() -> None:
    assert not refused(gate()).invalid
    assert refused(gate(), "Bearer unknown-token-000000000000000").invalid


@pytest.mark.parametrize(
    "credentials",
    [
        [""],
        ["Bearer"],
        ["Bearer "],
        [FULL],
        [f"Basic {FULL}"],
        [f"Token {FULL}"],
        [f"Bearer\t{FULL}"],
        [f"Bearer{FULL}"],
        [f"Bearer {FULL} "],
        [f"Bearer {FULL},"],
        [f"Bearer {FULL}\n"],
        [f"Bearer {FULL}, Bearer {FULL}"],
        [f'Bearer "{FULL}"'],
        [f"Bearer {FULL[:-1]}"],
        [f"Bearer {FULL}0"],
        [f"Bearer {FULL.upper()}"],
        [f"Bearer {FULL}\x00"],
        [b"Bearer " + FULL.encode() + b"\xff"],
        ["Bearer " + "a" * 8193],
        [f"Bearer {FULL}", f"Bearer {FULL}"],
        [f"Bearer {FULL}", "Basic x"],
    ],
)
def test_what_is_not_exactly_one_good_bearer_token_is_refused(credentials: list[str | bytes]) -> None:
    assert refused(gate(verifier=Tells(ALICE)), *credentials).invalid


def test_refusals_differ_for_the_log_alone() -> None:
    at = gate(now=1000.0)
    told = {refused(at, f"Bearer {token}").message for token in (OLD, "unknown-token-00000000000", "dgm_x")}
    assert len(told) == 1
    assert refused(at, f"Bearer {OLD}").flaw == "it has expired"
    assert refused(at, "Basic x").flaw == "it is no single bearer token"


def test_a_token_is_good_until_it_expires() -> None:
    assert identified(gate(now=999.9), f"Bearer {OLD}") == ALICE
    assert refused(gate(now=1000.0), f"Bearer {OLD}").invalid


def test_a_credential_without_the_right_to_ask_is_forbidden_by_its_scope() -> None:
    with pytest.raises(Forbidden) as caught:
        identified(gate(), f"Bearer {WEAK}")
    assert caught.value.scope == "ai:answer"


def test_a_public_agent_takes_nobody_for_somebody() -> None:
    assert identified(gate(), public=True) == Principal(LOCAL, ANONYMOUS)
    assert identified(gate(), public=True, tenant="acme") == Principal("acme", ANONYMOUS)
    assert identified(gate(), f"Bearer {FULL}", public=True, tenant="acme") == ALICE
    with pytest.raises(Unauthenticated):
        identified(gate(), "Bearer wrong", public=True)


def test_what_the_registry_knows_is_never_shown_to_the_verifier() -> None:
    verifier = Tells(ALICE)
    looks_signed = "header.payload.signature-0000"
    registry = Registry({"acme": ()}, {hash_token(looks_signed): Credential("1", ALICE)})
    at = gate(registry, verifier)
    assert identified(at, f"Bearer {looks_signed}") == ALICE
    refused(at, "Bearer dgm_aaaa.bbbb.cccc")
    assert verifier.asked == []


def test_the_verifier_tells_about_every_other_token() -> None:
    verifier = Tells(ALICE)
    at = gate(verifier=verifier)
    assert identified(at, f"Bearer {JWT}") == ALICE
    assert refused(at, "Bearer other").flaw == "it is not good"
    assert verifier.asked == [JWT, "other"]


def test_a_verified_token_of_a_tenant_that_is_not_here_is_refused_at_once() -> None:
    at = gate(verifier=Tells(ALICE))
    assert identified(at, f"Bearer {JWT}") == ALICE
    at.registry = Registry({"other": ()})
    assert refused(at, f"Bearer {JWT}").flaw == "its tenant is none of this server's"


def test_a_verified_token_without_the_right_to_ask_is_forbidden() -> None:
    at = gate(verifier=Tells(Principal("acme", "bob", frozenset({Right.READ}))))
    with pytest.raises(Forbidden):
        identified(at, f"Bearer {JWT}")


def test_too_many_bad_credentials_make_the_address_wait() -> None:
    at = gate(verifier=(verifier := Tells(ALICE)), burst=2)
    assert identified(at, f"Bearer {FULL}") == ALICE
    for _ in range(2):
        refused(at, "Bearer bad")
    for token in ("bad", READ, JWT):
        with pytest.raises(RateLimited):
            identified(at, f"Bearer {token}")
    assert verifier.asked == ["bad", "bad"], "no work for an address that has to wait"
    assert identified(at, f"Bearer {FULL}") == ALICE, "it was good from there before"


def test_no_credential_and_none_that_cannot_be_told_is_held_against_an_address() -> None:
    at = gate(verifier=Tells(error=Unavailable("Not now", retry_after=7)), burst=1)
    for _ in range(5):
        assert not refused(at).invalid
        with pytest.raises(Unavailable):
            identified(at, f"Bearer {JWT}")
    assert refused(at, "Basic x").invalid


@pytest.mark.parametrize(
    ("scopes", "rights"),
    [
        ([], []),
        (["a2a:read"], [Right.READ]),
        (["a2a:*"], [Right.READ, Right.DELEGATE, Right.APPROVE]),
        (["ai:*"], [Right.ANSWER]),
        (["*"], [Right.ANSWER, Right.READ, Right.DELEGATE, Right.APPROVE]),
        (["admin:*"], [Right.ADMIN]),
        (["ai:answer", "a2a:delegate"], [Right.ANSWER, Right.DELEGATE]),
        *(
            ([like], [])
            for like in (
                *("a2a:readx", "a2a:rea", "A2A:READ", "a2a:Read", " a2a:read", "a2a:read ", "a2a:read\n"),
                *("*:*", "**", "a2a:**", "a2a", "a2a:", "a2a.*", "*:read", "admin", "admin:", "ADMIN:*"),
                *("ai:answer a2a:read", "ai:answer,a2a:read", "аi:answer", "ai：answer", "ai:answer\x00", ""),
            )
        ),
    ],
)
def test_scopes_cover_exactly_their_rights(scopes: Iterable[str], rights: list[Right]) -> None:
    assert rights_of(scopes) == set(rights)


@pytest.mark.parametrize("name", ["a", "0", "alice", "alice@example.com", "a_b.c-d", "a" * 128])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "local",
        "anonymous",
        "Alice",
        "-a",
        ".a",
        "@a",
        "a b",
        "a\n",
        "a/b",
        "a|b",
        "a:b",
        "é",
        "a\x00",
        "a" * 129,
    ],
)
def test_what_is_no_name(name: str) -> None:
    assert not is_name(name)


def test_a_server_without_an_issuer_loads_nothing_that_only_issuers_need() -> None:
    script = "import sys, dragoman.serving; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "uvicorn" in loaded
    assert "httpx2" not in loaded
