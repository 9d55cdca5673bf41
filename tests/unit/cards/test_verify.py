"""Signatures of cards: what is good, by whose keys, and everything that is not."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.cards.canonical import canonical
from dragoman.cards.keys import SigningKey, jwks, new_key
from dragoman.cards.sign import signatures
from dragoman.cards.verify import JwksError, Trusted, Verdict, header_of, trusted, verify
from tests.harness.signing import Signer, encoded, sign_with, sign_with_secret
from tests.unit.cards.test_canonical import CARD, OLD, with_params

NOW = 1_800_000_000.0
KEY, OTHER, ED = new_key("ES256", NOW), new_key("ES256", NOW), new_key("EdDSA", NOW)
JKU = "https://a.example/.well-known/jwks.json"


def signed(
    card: Mapping[str, Any], *keys: SigningKey, versions: tuple[str, ...] = ("1.0",)
) -> dict[str, Any]:
    made = [one for version in versions for one in signatures(card, version, keys or (KEY,), JKU)]
    return {**card, "signatures": made}


def trust(*keys: SigningKey) -> Trusted:
    return trusted(jwks(keys), NOW)


def judged(card: Mapping[str, Any], *keys: SigningKey) -> Verdict:
    return verify(card, trust(*(keys or (KEY,))))


def flaw(card: Mapping[str, Any], *keys: SigningKey) -> str:
    """What is wrong with the one signature of a card, which must not count."""
    verdict = judged(card, *keys)
    (checked,) = verdict.signatures
    assert verdict.covered == () and checked.flaw
    return checked.flaw


# --------------------------------------------------------------------------------------------------------------- good


@pytest.mark.parametrize("key", [KEY, ED], ids=["ES256", "EdDSA"])
@pytest.mark.parametrize("name", ["Clerk", "Café", "😀 ﬡ €", 'line\nbreak \\ " \x7f'])
def test_what_we_sign_is_good_in_every_script(key: SigningKey, name: str) -> None:
    card = signed({**CARD, "name": name}, key)
    verdict = judged(json.loads(json.dumps(card)), key)
    assert verdict.covered == ("1.0",)
    (checked,) = verdict.signatures
    assert (checked.kid, checked.algorithm, checked.jku) == (key.kid, key.algorithm, JKU)
    assert (checked.flaw, checked.reading) == ("", "A2A 1.0, as the SDKs read it")


def test_the_header_is_protected_and_the_payload_is_not_sent() -> None:
    (entry,) = signed(CARD)["signatures"]
    assert set(entry) == {"protected", "signature"}
    assert header_of(entry) == {"alg": "ES256", "kid": KEY.kid, "typ": "JOSE", "jku": JKU}
    assert len(base64.urlsafe_b64decode(entry["signature"] + "==")) == 64
    (plain,) = signatures(CARD, "1.0", [KEY], "")
    assert header_of(plain) == {"alg": "ES256", "kid": KEY.kid, "typ": "JOSE"}


def test_each_of_two_keys_is_enough_as_in_a_rotation() -> None:
    card = signed(CARD, OTHER, KEY)
    assert judged(card, KEY).covered == judged(card, OTHER).covered == ("1.0",)
    assert [one.flaw for one in judged(card, KEY).signatures] == [
        "is by a key that is not among the trusted ones",
        "",
    ]


def test_a_card_for_both_generations_is_covered_for_each_by_a_signature_of_its_own() -> None:
    card = signed({**CARD, **OLD, "name": "Café"}, versions=("1.0", "0.3"))
    verdict = judged(card)
    assert verdict.covered == ("1.0", "0.3")
    assert [one.version for one in verdict.signatures] == ["1.0", "0.3"]
    # Where callers of 0.3 are sent is none of what 1.0 reads, and the other way round.
    assert judged({**card, "url": "https://evil.example"}).covered == ("1.0",)
    assert judged({**card, "supportedInterfaces": []}).covered == ("0.3",)


def test_numbers_in_params_are_good_however_they_come_back() -> None:
    card = signed(with_params('{"n":1,"x":1e21,"big":12345678901234567000,"z":-0.0}'))
    text = json.dumps(card).replace('"n": 1,', '"n": 1.0,').replace("1e+21", "1000000000000000000000")
    assert text != json.dumps(card)
    assert judged(json.loads(text)).covered == ("1.0",)
    assert flaw(json.loads(text.replace('"n": 1.0', '"n": 1.5')))


def test_a_signer_that_keeps_empty_members_is_read_to_the_letter() -> None:
    card = {**CARD, "skills": []}
    payload = json.dumps(card, separators=(",", ":"), sort_keys=True).encode()
    signer = Signer("ES256", "k1")
    token = sign_with(signer.key, "ES256", {"alg": "ES256", "kid": "k1", "typ": "JOSE"}, payload)
    header, _, signature = token.split(".")
    verdict = verify(
        {**card, "signatures": [{"protected": header, "signature": signature}]},
        trusted(json.dumps({"keys": [signer.public()]}).encode(), NOW),
    )
    assert [one.reading for one in verdict.signatures] == ["A2A 1.0 §8.4.1 to the letter"]


# ---------------------------------------------------------------------------------------------------------- tampered


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Clark"},
        {"description": "Files letters"},
        {"version": "2.10"},
        {"iconUrl": "https://a.example/i.png"},
        {"capabilities": {"streaming": True}},
        {"capabilities": {"streaming": True, "pushNotifications": True}},
        {"supportedInterfaces": [{**CARD["supportedInterfaces"][0], "url": "https://b.example"}]},  # type: ignore[dict-item,index]
        {"defaultInputModes": ["text/plain", "text/html"]},
        {"securitySchemes": {"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}},
        {"name": "Clerk\u200b"},
    ],
)
def test_no_member_can_be_changed_added_or_taken_away(change: dict[str, Any]) -> None:
    assert flaw({**signed(CARD), **change}).startswith("does not fit: the card was changed")
    less = {name: value for name, value in signed(CARD).items() if name not in change}
    if set(change) & set(CARD):
        assert flaw(less).startswith("does not fit")


def test_members_that_nobody_reads_change_nothing() -> None:
    assert judged({**signed(CARD), "x-note": "hello", "iconUrl": ""}).covered == ("1.0",)


def test_two_names_that_look_alike_are_two() -> None:
    assert flaw({**signed({**CARD, "name": "Café"}), "name": "Cafe\N{COMBINING ACUTE ACCENT}"})


# --------------------------------------------------------------------------------------------------------- the keys


def test_a_key_that_is_not_trusted_is_not_believed_wherever_it_is_said_to_be() -> None:
    assert flaw(signed(CARD, OTHER)) == "is by a key that is not among the trusted ones"


def test_another_key_of_the_same_name_is_the_wrong_one() -> None:
    (member,) = json.loads(jwks([OTHER]))["keys"]
    wrong = trusted(json.dumps({"keys": [{**member, "kid": KEY.kid}]}).encode(), NOW)
    (checked,) = verify(signed(CARD), wrong).signatures
    assert checked.flaw.startswith("does not fit")


@pytest.mark.parametrize(
    ("facts", "counts"),
    [
        ({"exp": NOW + 1}, True),
        ({"exp": NOW}, False),
        ({"exp": NOW - 1}, False),
        ({"exp": "2030"}, False),
        ({"exp": None}, False),
        ({"nbf": NOW}, True),
        ({"nbf": NOW + 1}, False),
        ({"revoked": {"revoked_at": 1}}, False),
    ],
)
def test_a_key_counts_for_its_time_only(facts: dict[str, Any], counts: bool) -> None:
    (member,) = json.loads(jwks([KEY]))["keys"]
    found = trusted(json.dumps({"keys": [{**member, **facts}]}).encode(), NOW)
    verdict = verify(signed(CARD), found)
    assert verdict.covered == (("1.0",) if counts else ())
    if not counts:
        assert verdict.signatures[0].flaw == "is by a key whose time is over, or has not come"


@pytest.mark.parametrize(
    "change",
    [{"use": "enc"}, {"key_ops": ["sign"]}, {"d": "AAAA"}, {"kid": ""}, {"kty": "oct", "k": "AAAA"}],
)
def test_what_is_no_public_signing_key_is_passed_over(change: dict[str, Any]) -> None:
    (member,) = json.loads(jwks([KEY]))["keys"]
    found = trusted(json.dumps({"keys": [{**member, **change}, 5]}).encode(), NOW)
    assert verify(signed(CARD), found).covered == ()


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": 1}', b'{"keys": [], "keys": []}'])
def test_what_is_no_jwk_set_is_refused(text: bytes) -> None:
    with pytest.raises(JwksError, match="is no JWK Set"):
        trusted(text, NOW)


# ------------------------------------------------------------------------------------------------- algorithm confusion


def entry(token: str) -> dict[str, Any]:
    header, _, signature = token.split(".")
    return {**CARD, "signatures": [{"protected": header, "signature": signature}]}


def header(**members: Any) -> dict[str, Any]:
    merged = {"alg": "ES256", "kid": KEY.kid, "typ": "JOSE", **members}
    return {name: value for name, value in merged.items() if value is not None}


PAYLOAD = canonical(CARD, "1.0")


@pytest.mark.parametrize(
    "algorithm", ["HS256", "HS512", "none", "None", "nOnE", "", "ES256K", 5, None, ["ES256"]]
)
def test_only_algorithms_that_anybody_can_check_and_one_can_make_are_believed(algorithm: Any) -> None:
    token = sign_with(KEY.private, "ES256", header(alg=algorithm), PAYLOAD)
    assert flaw(entry(token)).startswith("is by an algorithm that is not believed")


def test_a_public_key_is_no_secret_of_hmac() -> None:
    for secret in (jwks([KEY]), json.dumps(KEY.public()).encode(), KEY.private.as_pem(private=False)):
        token = sign_with_secret(secret, header(alg="HS256"), PAYLOAD)
        assert flaw(entry(token)).startswith("is by an algorithm that is not believed")


@pytest.mark.parametrize("algorithm", ["ES384", "ES512", "RS256", "PS256", "EdDSA", "Ed25519"])
def test_a_key_is_for_algorithms_of_its_kind_alone(algorithm: str) -> None:
    token = sign_with(KEY.private, "ES256", header(alg=algorithm), PAYLOAD)
    assert flaw(entry(token)) == f"the key of this name is not for {algorithm}"


def test_a_signature_without_anything_in_it_is_not_good() -> None:
    for signature in ("", "AA", "A" * 86, encoded(b"\0" * 64), "!", 5, None):
        card = entry(sign_with(KEY.private, "ES256", header(), PAYLOAD))
        card["signatures"][0]["signature"] = signature
        assert flaw(card)


@pytest.mark.parametrize("members", [{"crit": ["exp"]}, {"b64": False, "crit": ["b64"]}, {"b64": True}])
def test_extensions_of_jws_are_not_followed(members: dict[str, Any]) -> None:
    token = sign_with(KEY.private, "ES256", header(**members), PAYLOAD)
    assert flaw(entry(token)) == "asks for an extension of JWS"


@pytest.mark.parametrize(
    "members", [{"jwk": OTHER.public()}, {"x5c": ["AAAA"]}, {"jku": "https://evil.example"}]
)
def test_keys_that_a_header_brings_along_are_not_taken(members: dict[str, Any]) -> None:
    token = sign_with(OTHER.private, "ES256", header(**members), PAYLOAD)
    assert flaw(entry(token)).startswith("does not fit")


def test_the_unprotected_header_says_nothing() -> None:
    card = entry(sign_with(OTHER.private, "ES256", header(kid=OTHER.kid), PAYLOAD))
    card["signatures"][0]["header"] = {"kid": KEY.kid, "alg": "none"}
    assert flaw(card) == "is by a key that is not among the trusted ones"
    assert judged(card, OTHER).covered == ("1.0",)


def test_a_header_with_empty_members_is_read_as_official_signers_write_it() -> None:
    """The Python SDK's own example has a `jku` of null."""
    card = entry(sign_with(KEY.private, "ES256", header() | {"jku": None}, PAYLOAD))
    (checked,) = judged(card).signatures
    assert (checked.flaw, checked.jku) == ("", "")


@pytest.mark.parametrize("kid", [None, "", 5, ["k"]])
def test_a_signature_must_name_its_key(kid: Any) -> None:
    assert flaw(entry(sign_with(KEY.private, "ES256", header(kid=kid), PAYLOAD))) == "names no key (kid)"


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"5", b"\xff", b'{"alg":"ES256","alg":"none","kid":"k"}', b'{"alg":"ES256"', b"[" * 100_000],
)
def test_a_header_that_cannot_be_read_is_refused(text: bytes) -> None:
    token = sign_with(KEY.private, "ES256", text, PAYLOAD)
    assert flaw(entry(token)) == "has no protected header that can be read"


@pytest.mark.parametrize("entries", [None, {}, "x", 5])
def test_what_is_no_list_of_signatures_vouches_for_nothing(entries: Any) -> None:
    assert judged({**CARD, "signatures": entries}) == Verdict((), ())


@pytest.mark.parametrize(
    "one", [None, 5, "x", [], {}, {"signature": "AA"}, {"protected": 5, "signature": "AA"}]
)
def test_what_is_no_signature_is_not_good(one: Any) -> None:
    assert flaw({**CARD, "signatures": [one]}) == "has no protected header that can be read"


def test_only_so_many_signatures_are_looked_at() -> None:
    junk = [{"protected": "e30", "signature": "AA"}] * 100
    assert len(judged({**CARD, "signatures": junk}).signatures) == 32


def test_a_card_without_a_canonical_form_is_not_good() -> None:
    assert flaw({**signed(CARD), "name": "\ud800"}).startswith("does not fit")
