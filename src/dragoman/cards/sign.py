"""Signing a card: JWS over its canonical bytes, which are not sent along (A2A 1.0 §8.4.2, RFC 7515 appendix F)."""

from collections.abc import Mapping, Sequence
from typing import Any

from joserfc import jws

from dragoman.cards.canonical import canonical
from dragoman.cards.keys import REGISTRY, SigningKey


def signatures(card: Mapping[str, Any], version: str, keys: Sequence[SigningKey], jku: str) -> list[Any]:
    """Return an AgentCardSignature of each key over what a version of A2A reads of a card.

    Args:
        card: the card, as it is served.
        version: the version of A2A whose verifiers must accept it.
        keys: what to sign with, in the order of the signatures.
        jku: where the public keys are; empty if they are nowhere.

    Raises:
        CanonicalError: the card has no canonical form.
    """
    payload = canonical(card, version)
    return [_signature(payload, key, jku) for key in keys]


def _signature(payload: bytes, key: SigningKey, jku: str) -> dict[str, str]:
    protected = {"alg": key.algorithm, "kid": key.kid, "typ": "JOSE", **({"jku": jku} if jku else {})}
    signed = jws.serialize_compact(protected, payload, key.private, registry=REGISTRY)
    header, _, signature = signed.split(".")
    return {"protected": header, "signature": signature}
