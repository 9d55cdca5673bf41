"""Opaque bearer tokens. Only their hashes are kept, so that whoever reads the store learns none of them."""

import hashlib
import secrets

PREFIX = "dgm_"
SHORTEST = 24
"""Characters that a token needs which somebody chose: shorter ones can be guessed."""


def new_token() -> str:
    """Return a token that nobody can guess (256 bits)."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_token(token: str) -> bytes:
    """Return the 32 bytes under which a token is known. The token is random, so a plain hash is enough."""
    return hashlib.sha256(token.encode()).digest()
