"""Keys that an issuer would have, and tokens signed with them: also such as no honest issuer makes."""

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, OKPKey, RSAKey

Key = ECKey | OKPKey | RSAKey

TYPES: Mapping[str, tuple[type[Any], Any]] = {
    "ES256": (ECKey, "P-256"),
    "ES384": (ECKey, "P-384"),
    "ES512": (ECKey, "P-521"),
    "RS256": (RSAKey, 2048),
    "PS256": (RSAKey, 2048),
    "Ed25519": (OKPKey, "Ed25519"),
    "EdDSA": (OKPKey, "Ed25519"),
}
"""Algorithm → class and curve or size of its keys."""


class Signer:
    """A key pair with a name."""

    def __init__(self, algorithm: str = "ES256", kid: str = "k1") -> None:
        kind, size = TYPES[algorithm]
        self.algorithm = algorithm
        self.kid = kid
        self.key: Key = kind.generate_key(size, private=True)

    def public(self, **members: Any) -> dict[str, Any]:
        """The public key as a member of a JWK Set; `members` come over what it has, `None` takes one away."""
        found = {
            **self.key.as_dict(private=False),
            "kid": self.kid,
            "alg": self.algorithm,
            "use": "sig",
            **members,
        }
        return {name: value for name, value in found.items() if value is not None}

    def sign(self, claims: Any, **header: Any) -> str:
        """A token; `header` comes over what it has, `None` takes a member away. Claims may be bytes of any kind."""
        merged = {"alg": self.algorithm, "kid": self.kid, "typ": "JWT", **header}
        merged = {name: value for name, value in merged.items() if value is not None}
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        return sign_with(self.key, self.algorithm, merged, payload)


def sign_with(key: Key, algorithm: str, header: Mapping[str, Any] | bytes, payload: bytes) -> str:
    """A token with exactly this header, signed by this algorithm whatever the header says."""
    signed = _signed(header, payload)
    model = jws.JWSRegistry.algorithms["Ed25519" if algorithm == "EdDSA" else algorithm]
    return f"{signed}.{encoded(model.sign(signed.encode(), key))}"


def sign_with_secret(secret: bytes, header: Mapping[str, Any], payload: bytes) -> str:
    """A token signed by HMAC with SHA-256, whatever the header says. The library would refuse some of these secrets."""
    signed = _signed(header, payload)
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _signed(header: Mapping[str, Any] | bytes, payload: bytes) -> str:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return f"{encoded(text)}.{encoded(payload)}"


def encoded(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwks(*members: Any) -> bytes:
    """A JWK Set."""
    return json.dumps({"keys": list(members)}).encode()
