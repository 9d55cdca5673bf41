"""Whether the signatures of a card are good, by keys that whoever asks trusts (A2A 1.0 §8.4.3).

A signature names its key and may say where keys are (`jku`). Neither is believed: only the keys that are given count,
and an algorithm only with a key of its kind. Of the unprotected header nothing is read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from joserfc.errors import JoseError
from joserfc.util import urlsafe_b64decode, urlsafe_b64encode
from msgspec import Struct

from dragoman.cards.canonical import READINGS, CanonicalError, Reading
from dragoman.jose import KINDS, Algorithms, Key, PublicKeys, is_usable
from dragoman.model.errors import InvalidParams, MalformedJson
from dragoman.protocol.protojson import parse

MOST = 32
"""Signatures of one card that are looked at."""

_REGISTRY = Algorithms(algorithms=list(KINDS))
_BASE64URL = re.compile(r"[A-Za-z0-9_-]{1,4096}", re.ASCII)


class JwksError(Exception):
    """A text is no JWK Set; the message says so."""


class Trusted(Struct, frozen=True):
    """The keys that count, and the names of those that are in the same set but whose time is over or not yet come."""

    keys: PublicKeys
    over: frozenset[str]


class Checked(Struct, frozen=True, kw_only=True):
    """A signature: what its header says, by which reading it is good, or else what is wrong with it."""

    kid: str
    algorithm: str
    jku: str
    reading: str = ""
    version: str = ""
    flaw: str = ""


class Verdict(Struct, frozen=True):
    """What became of a card's signatures.

    `covered` are the versions of A2A whose members at least one good signature is over, newest first.
    """

    signatures: tuple[Checked, ...]
    covered: tuple[str, ...]


def trusted(text: bytes, now: float) -> Trusted:
    """Return the keys of a JWK Set that count at a time, in seconds since 1970 UTC.

    `nbf`, `exp` and `revoked` of a key are those of OpenID Federation 1.0 §8.7.2.

    Raises:
        JwksError: it is none.
    """
    try:
        value = parse(text).check()
    except (MalformedJson, InvalidParams) as error:
        raise JwksError(f"is no JWK Set: {error.message.removeprefix('The body ')}") from None
    members = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(members, list):
        raise JwksError('is no JWK Set: it has no member "keys" with an array')
    usable = [one for one in members if is_usable(one)]
    counting = [one for one in usable if _counts(one, now)]
    names = {str(one["kid"]) for one in counting}
    return Trusted(PublicKeys(counting), frozenset({str(one["kid"]) for one in usable} - names))


def verify(card: Mapping[str, Any], trust: Trusted) -> Verdict:
    """Judge the signatures of a card."""
    entries = card.get("signatures")
    written = list(_written(card))
    checked = tuple(
        _check(one, written, trust) for one in (entries if isinstance(entries, list) else [])[:MOST]
    )
    good = {one.version for one in checked if not one.flaw}
    return Verdict(checked, tuple(dict.fromkeys(one.version for one in READINGS if one.version in good)))


def header_of(entry: object) -> Mapping[str, Any]:
    """Return the protected header of a signature; empty if it has none that can be read."""
    protected = entry.get("protected") if isinstance(entry, dict) else None
    if not isinstance(protected, str) or _BASE64URL.fullmatch(protected) is None:
        return {}
    try:
        header = parse(urlsafe_b64decode(protected.encode())).check()
    except (MalformedJson, InvalidParams, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


def _written(card: Mapping[str, Any]) -> list[tuple[Reading, bytes]]:
    written = []
    for reading in READINGS:
        try:
            written.append((reading, reading.write(card)))
        except CanonicalError:
            continue
    return written


def _check(entry: object, written: Sequence[tuple[Reading, bytes]], trust: Trusted) -> Checked:
    header = header_of(entry)
    named = {
        name: header[name] if isinstance(header.get(name), str) else "" for name in ("kid", "alg", "jku")
    }
    facts = {"kid": named["kid"], "algorithm": named["alg"], "jku": named["jku"]}
    flaw = _flaw(entry, header, trust)
    key = trust.keys.find(named["kid"], named["alg"])
    if flaw or key is None:
        return Checked(**facts, flaw=flaw or f"the key of this name is not for {named['alg']}")
    if not isinstance(entry, dict):
        raise TypeError("a signature without a flaw is an object")
    for reading, payload in written:
        if _is_good(entry, named["alg"], payload, key):
            return Checked(**facts, reading=reading.name, version=reading.version)
    return Checked(**facts, flaw="does not fit: the card was changed, or another key of this name made it")


def _flaw(entry: object, header: Mapping[str, Any], trust: Trusted) -> str:
    """Return what speaks against a signature before any key is asked; empty if nothing does."""
    if not isinstance(entry, dict) or not header:
        return "has no protected header that can be read"
    kid, algorithm = header.get("kid"), header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in KINDS:
        return (
            "is by an algorithm that is not believed: only signatures that anybody can check and one can make"
        )
    if "crit" in header or "b64" in header:
        return "asks for an extension of JWS"
    if not isinstance(kid, str) or not kid:
        return "names no key (kid)"
    if kid in trust.over:
        return "is by a key whose time is over, or has not come"
    if kid not in trust.keys:
        return "is by a key that is not among the trusted ones"
    signature = entry.get("signature")
    if not isinstance(signature, str) or _BASE64URL.fullmatch(signature) is None:
        return "is no base64url"
    return ""


def _is_good(entry: Mapping[str, Any], algorithm: str, payload: bytes, key: Key) -> bool:
    # Not as a whole JWS: the header was looked at, and official signers write what the library refuses ("jku": null).
    text = entry["protected"].encode() + b"." + urlsafe_b64encode(payload)
    try:
        return _REGISTRY.get_alg(algorithm).verify(text, urlsafe_b64decode(entry["signature"].encode()), key)
    except (JoseError, ValueError):
        return False


def _counts(member: Mapping[str, Any], now: float) -> bool:
    since, until = member.get("nbf", 0), member.get("exp", now + 1)
    if type(since) not in (int, float) or type(until) not in (int, float):
        return False
    return since <= now < until and "revoked" not in member
