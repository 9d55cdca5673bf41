"""Signed tokens: which are good, whom they stand for, and for how long that is remembered."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from dragoman.identity import Rejected, hash_token
from dragoman.identity import oidc as module
from dragoman.identity.issuer import Document
from dragoman.identity.keys import KeyRing
from dragoman.identity.oidc import JwtVerifier, Trust
from dragoman.model import Principal, Right
from tests.harness.signing import Signer, encoded, jwks, sign_with, sign_with_secret

NOW = 1_800_000_000.0
ISSUER = "https://login.example.com/realms/a"
TRUST = Trust(
    issuer=ISSUER,
    audience="dragoman",
    tenant_claim="tenant",
    scope_claim="scope",
    principal_claim="sub",
    algorithms=("ES256", "RS256", "EdDSA"),
    skew=60.0,
)
CLAIMS: Mapping[str, Any] = {
    "iss": ISSUER,
    "aud": "dragoman",
    "sub": "alice",
    "tenant": "acme",
    "scope": "ai:answer a2a:read",
    "iat": NOW,
    "exp": NOW + 300,
}
ALICE = Principal("acme", "alice", frozenset({Right.ANSWER, Right.READ}))

EC, RSA, ED, OTHER = (
    Signer("ES256", "ec"),
    Signer("RS256", "rsa"),
    Signer("EdDSA", "ed"),
    Signer("ES256", "other"),
)
KEYS = jwks(EC.public(), RSA.public(), ED.public(), OTHER.public())


class World:
    """A verifier, its clocks, and the keys that the issuer has."""

    def __init__(self, trust: Trust = TRUST) -> None:
        self.now = NOW
        self.body = KEYS
        self.ring = KeyRing(self, max_age=600.0, refetch=10.0, stale=3600.0, clock=lambda: self.now)
        self.verifier = JwtVerifier(trust, self.ring, clock=lambda: self.now)

    async def keys(self) -> Document:
        return Document(self.body)

    async def close(self) -> None:
        return

    async def verify(self, token: str) -> Principal:
        """Whom a token stands for, whatever the time until when it does."""
        return structs.replace(await self.verified(token), expires_at=None)

    async def verified(self, token: str) -> Principal:
        return await self.verifier.verify(token, hash_token(token))


def verified(token: str, trust: Trust = TRUST) -> Principal:
    return asyncio.run(World(trust).verify(token))


def flaw(token: str, trust: Trust = TRUST) -> str:
    """Why a token is refused."""
    with pytest.raises(Rejected) as caught:
        verified(token, trust)
    return str(caught.value)


def claims(**changes: Any) -> dict[str, Any]:
    """Good claims with changes; `None` takes one away."""
    return {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}


def trusting(**changes: Any) -> Trust:
    return Trust(**{**{name: getattr(TRUST, name) for name in TRUST.__struct_fields__}, **changes})


# ------------------------------------------------------------------------------------------------------- the signature


@pytest.mark.parametrize("signer", [EC, RSA, ED], ids=lambda signer: signer.algorithm)
def test_a_token_that_the_issuer_signed_stands_for_its_subject(signer: Signer) -> None:
    assert verified(signer.sign(CLAIMS)) == ALICE


def test_both_names_of_one_algorithm_are_the_same() -> None:
    assert verified(ED.sign(CLAIMS, alg="Ed25519")) == ALICE
    assert "algorithm" in flaw(ED.sign(CLAIMS, alg="Ed25519"), trusting(algorithms=("ES256",)))


@pytest.mark.parametrize("algorithm", ["ES384", "ES512", "PS256"])
def test_other_algorithms_count_once_they_are_named(algorithm: str) -> None:
    signer = Signer(algorithm, "k")
    world = World(trusting(algorithms=(algorithm,)))
    world.body = jwks(signer.public())
    assert asyncio.run(world.verify(signer.sign(CLAIMS))) == ALICE
    assert "algorithm" in flaw(signer.sign(CLAIMS))


@pytest.mark.parametrize(
    "name",
    [
        *("none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "ES256K", "es256", "ES256 "),
        *("RSA-OAEP", "dir", 5, None, ["ES256"], {"ES256": 1}, True),
    ],
    ids=repr,
)
def test_an_algorithm_that_is_not_named_is_refused_before_anything_is_checked(name: Any) -> None:
    assert flaw(EC.sign(CLAIMS, alg=name)) == "it is signed by another algorithm than auth.oidc.algorithms"


def test_a_token_without_a_signature_is_none() -> None:
    head, body, _ = EC.sign(CLAIMS).split(".")
    unsigned = encoded(b'{"alg":"none","kid":"ec"}')
    for token in (
        f"{unsigned}.{body}.",
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{unsigned}.{body}",
        head,
        f"{head}..x",
    ):
        assert flaw(token) == "it is no token of this server, and no JWT"


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "ES256"])
def test_a_secret_made_from_a_public_key_signs_nothing(algorithm: str) -> None:
    for signer in (RSA, EC):
        for form in (
            signer.key.as_pem(private=False),
            signer.key.as_der(private=False),
            json.dumps(signer.public()).encode(),
        ):
            header = {"alg": algorithm, "kid": signer.kid, "typ": "JWT"}
            flaw(sign_with_secret(form, header, json.dumps(CLAIMS).encode()))


def test_a_signature_by_another_key_is_refused() -> None:
    for signer in (EC, RSA, ED):
        stranger = Signer(signer.algorithm, signer.kid)
        assert flaw(stranger.sign(CLAIMS)) == "its signature is not good"
    assert flaw(EC.sign(CLAIMS, kid="other")) == "its signature is not good"
    assert flaw(EC.sign(CLAIMS, kid="rsa")) == "the issuer has no such key"
    assert flaw(RSA.sign(CLAIMS, alg="ES256")) == "the issuer has no such key"


def test_nothing_signed_may_change() -> None:
    head, body, signature = EC.sign(CLAIMS).split(".")
    richer = encoded(json.dumps(claims(scope="*")).encode())
    assert flaw(f"{head}.{richer}.{signature}") == "its signature is not good"
    other = encoded(json.dumps({"alg": "ES256", "kid": "ec"}).encode())
    assert flaw(f"{other}.{body}.{signature}") == "its signature is not good"
    for cut in (signature[:-1], signature[4:], signature + "AAAA", "A" * len(signature), "AAAA"):
        assert flaw(f"{head}.{body}.{cut}") == "its signature is not good"


def test_a_signature_that_is_only_spelled_otherwise_is_not_the_same_token() -> None:
    token = ED.sign(CLAIMS)
    last = "AQgw".index(token[-1])
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for offset in range(1, 16):
        assert flaw(token[:-1] + alphabet[16 * last + offset]) == "its signature is not good"


# ---------------------------------------------------------------------------------------------------------- the header


@pytest.mark.parametrize(
    "kid",
    [
        *("unknown", "EC", "ec ", "", "../ec", "../../etc/passwd", "/dev/null", "ec\x00", "file:///dev/null"),
        *("https://evil.example/keys#ec", "ec' OR '1'='1", "x" * 2000, None, 5, ["ec"], {"ec": 1}, True),
    ],
    ids=repr,
)
def test_a_key_has_exactly_the_name_that_the_issuer_gave_it(kid: Any) -> None:
    assert flaw(EC.sign(CLAIMS, kid=kid)) in ("the issuer has no such key", "its header names no key (kid)")


@pytest.mark.parametrize("place", ["jwk", "jku", "x5u", "x5c"])
def test_a_header_cannot_bring_its_own_key(place: str) -> None:
    stranger = Signer("ES256", "ec")
    brought = {
        "jwk": stranger.public(),
        "jku": "https://evil.example/keys",
        "x5u": "https://evil.example/x",
        "x5c": ["AA"],
    }
    assert flaw(stranger.sign(CLAIMS, **{place: brought[place]})) == "its signature is not good"
    assert verified(EC.sign(CLAIMS, **{place: brought[place]})) == ALICE, (
        "nor keep the issuer's from counting"
    )


@pytest.mark.parametrize(
    "kind", ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", "application/jwt", None]
)
def test_types_of_tokens_that_give_access(kind: Any) -> None:
    assert verified(EC.sign(CLAIMS, typ=kind)) == ALICE


@pytest.mark.parametrize(
    "kind", ["dpop+jwt", "logout+jwt", "secevent+jwt", "JOSE", "", "at+jwt ", 5, ["JWT"]], ids=repr
)
def test_a_token_that_was_made_for_something_else_is_refused(kind: Any) -> None:
    assert "typ" in flaw(EC.sign(CLAIMS, typ=kind))


@pytest.mark.parametrize(
    "member", [{"crit": ["exp"]}, {"crit": []}, {"b64": False, "crit": ["b64"]}, {"b64": True}]
)
def test_extensions_of_the_signature_are_refused(member: dict[str, Any]) -> None:
    assert flaw(EC.sign(CLAIMS, **member)) == "its header asks for an extension"


def test_members_of_a_header_that_nobody_knows_are_no_harm() -> None:
    assert verified(EC.sign(CLAIMS, nonce="n", **{"x5t#S256": "t", "vendor": {"a": [1]}})) == ALICE


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b'"ES256"',
        b"null",
        b"\xff",
        b'{"alg":"ES256","kid":"other","kid":"ec"}',
        b'{"alg":"none","alg":"ES256","kid":"ec"}',
        b'{"alg":"ES256","kid":"ec","n":NaN}',
        b'{"alg":"ES256","kid":"ec","n":' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"alg":"ES256","kid":"ec","n":' + b"9" * 5000 + b"}",
        b'{"alg":"ES256","kid":"ec"} ' + b"x",
    ],
    ids=lambda header: repr(header[:40]),
)
def test_a_header_that_could_be_read_in_two_ways_is_not_read(header: bytes) -> None:
    flaw(sign_with(EC.key, "ES256", header, json.dumps(CLAIMS).encode()))


# ---------------------------------------------------------------------------------------------------------- the claims


@pytest.mark.parametrize("name", ["iss", "aud", "exp", "sub", "tenant"])
def test_a_claim_that_is_needed_must_be_there(name: str) -> None:
    assert flaw(EC.sign(claims(**{name: None})))


@pytest.mark.parametrize(
    "issuer",
    [
        ISSUER + "/",
        ISSUER.upper(),
        ISSUER[:-1],
        ISSUER + "b",
        " " + ISSUER,
        "https://login.example.com",
        "",
        5,
        [ISSUER],
    ],
    ids=repr,
)
def test_the_issuer_is_exactly_the_one_that_is_trusted(issuer: Any) -> None:
    assert flaw(EC.sign(claims(iss=issuer))) == "it is of another issuer"


@pytest.mark.parametrize("audience", ["dragoman", ["dragoman"], ["other", "dragoman"]])
def test_a_token_for_us_among_others(audience: Any) -> None:
    assert verified(EC.sign(claims(aud=audience))) == ALICE


@pytest.mark.parametrize(
    "audience",
    [
        "other",
        "Dragoman",
        "dragoman ",
        "dragomans",
        "dragoma",
        "",
        [],
        ["other"],
        [["dragoman"]],
        {"dragoman": 1},
        5,
        "*",
    ],
    ids=repr,
)
def test_a_token_for_others_alone(audience: Any) -> None:
    assert flaw(EC.sign(claims(aud=audience))) == "it is for another audience"


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({"exp": NOW - 59}, True),
        ({"exp": NOW - 60}, False),
        ({"exp": NOW - 3600}, False),
        ({"exp": 0}, False),
        ({"exp": NOW + 0.5}, True),
        ({"nbf": NOW + 60}, True),
        ({"nbf": NOW + 61}, False),
        ({"nbf": NOW - 5}, True),
        ({"iat": NOW + 60}, True),
        ({"iat": NOW + 61}, False),
        ({"iat": None}, True),
        ({"iat": 0}, True),
        ({"nbf": 0, "iat": 0, "exp": 2**53}, True),
    ],
    ids=str,
)
def test_a_token_is_good_between_its_dates_give_or_take_the_skew(changes: dict[str, Any], good: bool) -> None:
    token = EC.sign(claims(**changes))
    if good:
        assert verified(token) == ALICE
    else:
        assert flaw(token) in ("it has expired", "it is not good yet (nbf)", "it is not good yet (iat)")


def test_a_principal_is_good_as_long_as_its_token() -> None:
    assert asyncio.run(World().verified(EC.sign(CLAIMS))).expires_at == NOW + 300 + TRUST.skew


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "value",
    [str(int(NOW) + 300), "", True, [], {}, -1, 2**53 + 1, 10**400, 1e300, [NOW + 300], "2030-01-01"],
    ids=lambda v: repr(v)[:20],
)
def test_what_is_no_date_is_not_taken_for_one(name: str, value: Any) -> None:
    assert flaw(EC.sign(claims(**{name: value}))) == f"its {name} is no date"


@pytest.mark.parametrize("name", [b"exp", b"nbf", b"iat"])
@pytest.mark.parametrize("value", [b"null", b"NaN", b"Infinity", b"1e999"])
def test_dates_that_json_has_no_words_for(name: bytes, value: bytes) -> None:
    text = json.dumps(claims(exp=None, iat=None)).encode()[:-1]
    dates = {b"exp": b"%d" % (NOW + 300), name: value}
    flaw(EC.sign(text + b"".join(b', "%s": %s' % pair for pair in dates.items()) + b"}"))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "local",
        "anonymous",
        "Alice",
        "auth0|alice",
        "alice\n",
        " alice",
        "a/b",
        "é",
        "a" * 129,
        "alice\x00",
        5,
        ["alice"],
        {"a": 1},
        True,
    ],
    ids=repr,
)
def test_a_subject_that_is_no_name_of_a_principal_is_refused_and_never_rewritten(name: Any) -> None:
    assert flaw(EC.sign(claims(sub=name))) == "its sub is no name of a principal"


@pytest.mark.parametrize(
    "name", ["", "local", "anonymous", "ACME", "acme ", "acme/other", ["acme"], 5, {"acme": 1}], ids=repr
)
def test_a_tenant_that_is_no_name_is_refused(name: Any) -> None:
    assert flaw(EC.sign(claims(tenant=name))) == "its tenant is no name of a tenant"


def test_claims_have_the_names_that_the_operator_gave() -> None:
    trust = trusting(tenant_claim="https://example.com/org", scope_claim="scp", principal_claim="oid")
    other = claims(**{"https://example.com/org": "beta", "scp": ["*"], "oid": "bob"})
    assert verified(EC.sign(other), trust) == Principal("beta", "bob")
    assert flaw(EC.sign(CLAIMS), trust) == "its oid is no name of a principal"


@pytest.mark.parametrize(
    ("scopes", "rights"),
    [
        ("ai:answer", {Right.ANSWER}),
        ("ai:answer  a2a:read ", {Right.ANSWER, Right.READ}),
        (["ai:answer", "a2a:delegate"], {Right.ANSWER, Right.DELEGATE}),
        ("openid profile ai:* a2a:read", {Right.ANSWER, Right.READ}),
        ("*", {Right.ANSWER, Right.READ, Right.DELEGATE, Right.APPROVE}),
        ("", set()),
        ([], set()),
        (None, set()),
        (["ai:answer a2a:read"], set()),
        ([" ai:answer", "a2a:read\n", "A2A:READ", "*:*", "a2a:readx"], set()),
        ("ai:answer,a2a:read", set()),
        ("ai:answer\ta2a:read\nadmin:*", set()),
        ("AI:ANSWER A2A:READ *:* a2a:readx a2a. ai:answerx", set()),
        ("ai:answer\u00a0a2a:read", set()),
    ],
)
def test_scopes_are_a_text_in_words_or_an_array_and_nothing_that_looks_alike(
    scopes: Any, rights: set[Right]
) -> None:
    assert verified(EC.sign(claims(scope=scopes))).rights == rights


@pytest.mark.parametrize(
    "scopes", [5, True, {"ai:answer": True}, ["ai:answer", 5], [["ai:answer"]]], ids=repr
)
def test_what_holds_no_scopes_is_refused(scopes: Any) -> None:
    assert flaw(EC.sign(claims(scope=scopes))) == "its scope holds no scopes"


def test_a_token_bound_to_a_key_is_no_bearer_token() -> None:
    assert "cnf" in flaw(EC.sign(claims(cnf={"jkt": "x"})))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"null",
        b'"alice"',
        b"\xff",
        json.dumps(CLAIMS).encode()[:-1] + b', "sub": "bob"}',
        json.dumps(CLAIMS).encode()[:-1] + b', "x": ' + b"[" * 3000 + b"]" * 3000 + b"}",
        json.dumps(CLAIMS).encode()[:-1] + b', "x": "\\ud800"}',
    ],
    ids=lambda payload: repr(payload[-20:]),
)
def test_claims_that_could_be_read_in_two_ways_are_not_read(payload: bytes) -> None:
    assert flaw(EC.sign(payload))


@given(st.text(alphabet="AZaz09._-eyJ", max_size=60) | st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_text_is_more_than_refused(text: str) -> None:
    flaw(text)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jku", "x5c", "cty", "zip"]), _JSON, max_size=4
    ),
    st.dictionaries(st.sampled_from(list(CLAIMS)), _JSON, min_size=1, max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_whatever_an_issuer_signs_is_good_or_refused(header: dict[str, Any], changes: dict[str, Any]) -> None:
    for token in (EC.sign(CLAIMS, **header), EC.sign({**CLAIMS, **changes})):
        try:
            assert verified(token).tenant
        except Rejected:
            continue


# ------------------------------------------------------------------------------------------------ what is remembered


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every token whose signature was checked."""
    done: list[str] = []
    original: Callable[..., Any] = module.jws.deserialize_compact

    def counting(token: str, *rest: Any, **named: Any) -> Any:
        done.append(token)
        return original(token, *rest, **named)

    monkeypatch.setattr(module.jws, "deserialize_compact", counting)
    return done


def test_a_token_is_checked_once_while_it_is_remembered(checks: list[str]) -> None:
    async def story() -> None:
        world = World()
        token = EC.sign(claims(exp=NOW + 3600))
        for seconds, times in ((0, 1), (299, 1), (1, 2), (299, 2), (1, 3)):
            world.now += seconds
            assert await world.verify(token) == ALICE
            assert len(checks) == times
        assert await world.verify(RSA.sign(CLAIMS | {"exp": NOW + 3600})) == ALICE
        assert len(checks) == 4

    asyncio.run(story())


def test_a_remembered_token_is_no_longer_good_once_it_has_expired() -> None:
    async def story() -> None:
        world = World()
        token = EC.sign(claims(exp=NOW + 10))
        await world.verify(token)
        world.now += 69
        assert await world.verify(token) == ALICE
        world.now += 1
        with pytest.raises(Rejected, match="expired"):
            await world.verify(token)

    asyncio.run(story())


def test_a_remembered_token_is_no_longer_good_once_its_key_is_gone() -> None:
    async def story() -> None:
        world = World()
        token = EC.sign(claims(exp=NOW + 3600))
        world.now += 500
        await world.verify(token)
        world.body = jwks(RSA.public())
        world.now += 599
        # Asked for meanwhile, so that it is remembered when the keys grow old.
        assert await world.verify(token) == ALICE
        world.now += 1
        with pytest.raises(Rejected, match="no such key"):
            await world.verify(token)

    asyncio.run(story())


def test_a_remembered_token_survives_keys_that_only_came_again(checks: list[str]) -> None:
    async def story() -> None:
        world = World()
        token = EC.sign(claims(exp=NOW + 3600))
        await world.verify(token)
        world.now += 599
        await world.verify(token)
        world.now += 2
        await world.verify(token)
        assert len(checks) == 2

    asyncio.run(story())


def test_a_key_that_is_new_counts_as_soon_as_it_may_be_fetched() -> None:
    async def story() -> None:
        world = World()
        await world.verify(EC.sign(CLAIMS))
        fresh = Signer("ES256", "fresh")
        world.body = jwks(fresh.public())
        with pytest.raises(Rejected, match="no such key"):
            await world.verify(fresh.sign(CLAIMS))
        world.now += 10
        assert await world.verify(fresh.sign(CLAIMS)) == ALICE
        with pytest.raises(Rejected, match="no such key"):
            await world.verify(EC.sign(CLAIMS))

    asyncio.run(story())


def test_refusals_are_not_remembered_and_no_more_tokens_than_a_bound(
    checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 2)

    async def story() -> None:
        world = World()
        bad = Signer("ES256", "ec").sign(CLAIMS)
        for _ in range(2):
            with pytest.raises(Rejected):
                await world.verify(bad)
        assert len(checks) == 2
        first, second, third = (EC.sign(claims(jti=str(number))) for number in range(3))
        for token in (first, second, third, third, second):
            await world.verify(token)
        assert len(checks) == 5
        await world.verify(first)
        assert len(checks) == 6

    asyncio.run(story())
