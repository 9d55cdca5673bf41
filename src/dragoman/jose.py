"""Signatures by JOSE as Dragoman believes them: which key of a JWK Set (RFC 7517) may check which one (RFC 7518).

Imported only by what checks or makes signatures: the libraries behind it cost a command memory and time.
"""

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.util import urlsafe_b64decode

_LOG = logging.getLogger("dragoman.jose")

RSA_BITS = range(2048, 8193)

Key = ECKey | OKPKey | RSAKey

KINDS: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        **{f"{family}{bits}": ("RSA", None) for family in ("RS", "PS") for bits in (256, 384, 512)},
        "ES256": ("EC", "P-256"),
        "ES384": ("EC", "P-384"),
        "ES512": ("EC", "P-521"),
        "EdDSA": ("OKP", "Ed25519"),
        "Ed25519": ("OKP", "Ed25519"),
    }
)
"""Algorithm → the kind of key, and the curve, that it is used with here (RFC 7518 §3.1, RFC 8037, RFC 9864).

None of them has a secret that both sides share, so no public key can be taken for one.
"""

_KEYS: Mapping[str, tuple[type[Key], tuple[str, ...]]] = MappingProxyType(
    {"EC": (ECKey, ("x", "y")), "OKP": (OKPKey, ("x",)), "RSA": (RSAKey, ("n", "e"))}
)
"""Kind of key → its class, and the members that are the key itself."""


class Algorithms(jws.JWSRegistry):
    """Algorithms that are believed, under both names of the one that has two (RFC 9864 §2.2)."""

    max_header_length = 4096
    max_signature_length = 2048

    def get_alg(self, name: str) -> JWSAlgModel:
        """Return the algorithm of a header. The older name would bring a warning, for the curves that we refuse."""
        return super().get_alg("Ed25519" if name == "EdDSA" else name)


class PublicKeys:
    """Public signing keys of a JWK Set."""

    def __init__(self, members: list[Mapping[str, Any]]) -> None:
        """Take members of a set that `is_usable` lets pass."""
        self.members = members
        self._by_kid: dict[str, list[Mapping[str, Any]]] = {}
        for one in members:
            self._by_kid.setdefault(one["kid"], []).append(one)
        self._made: dict[tuple[str, str], Key | None] = {}

    def __contains__(self, kid: str) -> bool:
        return kid in self._by_kid

    def __len__(self) -> int:
        return len(self.members)

    def find(self, kid: str, algorithm: str) -> Key | None:
        """Return the key of this name that checks signatures of this algorithm, if there is one."""
        if kid not in self._by_kid:
            return None
        if (kid, algorithm) not in self._made:
            fitting = (_key(one, algorithm) for one in self._by_kid[kid])
            self._made[kid, algorithm] = next((key for key in fitting if key is not None), None)
        return self._made[kid, algorithm]


def is_usable(one: object) -> bool:
    """Tell whether a member of a JWK Set has a name, is for signatures, and holds no secret.

    Whatever else is in a set is passed over, as RFC 7517 §5 asks for.
    """
    if not isinstance(one, dict) or not isinstance(one.get("kid"), str) or not one["kid"]:
        return False
    if one.get("kty") not in ("EC", "OKP", "RSA") or "d" in one or one.get("use", "sig") != "sig":
        return False
    operations = one.get("key_ops", ["verify"])
    return isinstance(operations, list) and "verify" in operations


def _key(one: Mapping[str, Any], algorithm: str) -> Key | None:
    """Return the key in a member of a JWK Set, or `None` if it is not for an algorithm."""
    names = ("EdDSA", "Ed25519") if algorithm in ("EdDSA", "Ed25519") else (algorithm,)
    if (one["kty"], one.get("crv")) != KINDS.get(algorithm) or one.get("alg", algorithm) not in names:
        return None
    kind, members = _KEYS[one["kty"]]
    try:
        if kind is RSAKey and _bits(one["n"]) not in RSA_BITS:
            return None
        # Without what else it says: that was looked at, and the older name of EdDSA would be taken for another one.
        return kind.import_key({name: one[name] for name in ("kty", "crv", *members) if name in one})
    except (JoseError, ValueError, KeyError, TypeError, AttributeError):
        _LOG.warning("a key in a JWK Set cannot be read, and is passed over")
        return None


def _bits(number: str) -> int:
    return int.from_bytes(urlsafe_b64decode(number.encode())).bit_length()
