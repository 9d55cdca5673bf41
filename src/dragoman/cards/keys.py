"""The keys that cards are signed with: private JWKs (RFC 7517), each named by its thumbprint (RFC 7638).

A key says since when it is there (`iat`) and, once another one has taken its place, until when it counts (`exp`): in
seconds since 1970 UTC, under the names that OpenID Federation 1.0 §8.7.2 gives to these members of a key.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey
from msgspec import Struct, structs

from dragoman.cards.settings import ALGORITHMS
from dragoman.jose import KINDS, Algorithms
from dragoman.model.errors import InvalidParams, MalformedJson
from dragoman.protocol.protojson import parse

REGISTRY = Algorithms(algorithms=[*ALGORITHMS, "Ed25519"])

_CLASSES: dict[str, type[ECKey] | type[OKPKey]] = {"EC": ECKey, "OKP": OKPKey}

_WHAT = "a JWK Set with private keys, such as `dragoman keys create` writes"


class KeysError(Exception):
    """There are no keys to sign with, or they cannot be used; the message says why and what to do."""


class SigningKey(Struct, frozen=True, kw_only=True):
    """A key that signs. `since` and `until` are seconds since 1970 UTC; without `until` it is there for good."""

    kid: str
    algorithm: str
    private: ECKey | OKPKey
    since: int
    until: int | None = None

    def is_live(self, now: float) -> bool:
        """Tell whether it signs at a time."""
        return self.until is None or now < self.until

    def public(self) -> dict[str, Any]:
        """Return its public half as a member of a JWK Set."""
        return {**_numbers(self, private=False), **self._facts(), "use": "sig", "key_ops": ["verify"]}

    def secret(self) -> dict[str, Any]:
        """Return all of it, as a key file holds it."""
        return {**_numbers(self, private=True), **self._facts(), "use": "sig", "key_ops": ["sign"]}

    def _facts(self) -> dict[str, Any]:
        until = {} if self.until is None else {"exp": self.until}
        return {"kid": self.kid, "alg": self.algorithm, "iat": self.since, **until}


def new_key(algorithm: str, now: float) -> SigningKey:
    """Return a new key, whose name is one that a command does not take for an option."""
    while True:
        private = (
            ECKey.generate_key("P-256", private=True)
            if algorithm == "ES256"
            else OKPKey.generate_key("Ed25519", private=True)
        )
        kid = private.thumbprint()
        if not kid.startswith("-"):
            return SigningKey(kid=kid, algorithm=algorithm, private=private, since=int(now))


def live(keys: Iterable[SigningKey], now: float) -> tuple[SigningKey, ...]:
    """Return the keys that sign at a time, the newest first."""
    found = [key for key in keys if key.is_live(now)]
    return tuple(sorted(found, key=lambda key: (key.until is not None, -key.since, key.kid)))


def rotated(
    keys: Iterable[SigningKey], key: SigningKey, now: float, overlap: float
) -> tuple[SigningKey, ...]:
    """Return the keys once `key` has taken the place of the others, which sign beside it for `overlap` seconds."""
    end = int(now + overlap)
    older = [
        structs.replace(one, until=end if one.until is None else min(one.until, end))
        for one in live(keys, now)
    ]
    return live([key, *older], now)


def jwks(keys: Iterable[SigningKey]) -> bytes:
    """Return the JWK Set that whoever verifies needs."""
    return msgspec.json.encode({"keys": [key.public() for key in keys]})


def write_keys(keys: Iterable[SigningKey]) -> bytes:
    """Return the text of a key file."""
    return msgspec.json.format(msgspec.json.encode({"keys": [key.secret() for key in keys]})) + b"\n"


def read_keys(text: bytes) -> tuple[SigningKey, ...]:
    """Return the keys in the text of a key file, in its order.

    Raises:
        KeysError: it is none, or holds a key that cannot sign.
    """
    try:
        value = parse(text).check()
    except (MalformedJson, InvalidParams):
        raise KeysError(f"is not {_WHAT}") from None
    members = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(members, list) or not members:
        raise KeysError(f"is not {_WHAT}")
    keys = tuple(_key(one, index) for index, one in enumerate(members))
    _check_names(keys)
    return keys


def _key(member: object, index: int) -> SigningKey:
    if not isinstance(member, dict):
        raise KeysError(f"is not {_WHAT}: keys[{index}] is no object")
    shape = (member.get("kty"), member.get("crv"))
    algorithm = next((name for name in ALGORITHMS if KINDS[name] == shape), None)
    if algorithm is None or member.get("alg", algorithm) not in (algorithm, _other_name(algorithm)):
        raise KeysError(
            f"keys[{index}] is for no algorithm that cards are signed with: {', '.join(ALGORITHMS)}"
        )
    kind = _CLASSES[str(member["kty"])]
    numbers = {name: member[name] for name in ("kty", "crv", "x", "y", "d") if name in member}
    if not isinstance(member.get("d"), str):
        raise KeysError(f"keys[{index}] holds no private key (d)")
    try:
        private = kind.import_key(numbers)
        kid = member.get("kid", private.thumbprint())
    except (JoseError, ValueError, KeyError, TypeError, AttributeError):
        raise KeysError(f"keys[{index}] cannot be read as a key") from None
    since, until = member.get("iat", 0), member.get("exp")
    if not isinstance(kid, str) or not kid or len(kid) > 128:
        raise KeysError(f"keys[{index}].kid must be a name of 128 characters at most")
    if type(since) is not int or type(until) not in (int, type(None)):
        raise KeysError(f"keys[{index}]: iat and exp must be whole seconds since 1970")
    key = SigningKey(kid=kid, algorithm=algorithm, private=private, since=since, until=until)
    if not _fits(key):
        raise KeysError(f"keys[{index}]: its private and its public half are of two keys")
    return key


def _check_names(keys: Sequence[SigningKey]) -> None:
    if len({key.kid for key in keys}) != len(keys):
        raise KeysError("holds two keys of one name (kid)")


def _other_name(algorithm: str) -> str:
    return "Ed25519" if algorithm == "EdDSA" else algorithm


def _numbers(key: SigningKey, *, private: bool) -> dict[str, Any]:
    found = key.private.as_dict(private=private)
    return {name: found[name] for name in ("kty", "crv", "x", "y", "d") if name in found}


def _fits(key: SigningKey) -> bool:
    """Tell whether what the private half signs is good by the public one."""
    header = {"alg": key.algorithm}
    signed = jws.serialize_compact(header, b"probe", key.private, registry=REGISTRY)
    try:
        public = _CLASSES[key.private.key_type].import_key(_numbers(key, private=False))
        jws.deserialize_compact(signed, public, registry=REGISTRY)
    except (JoseError, ValueError):
        return False
    return True
