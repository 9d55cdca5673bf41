"""Who calls: tokens, the registry of principals and what they are granted, and the gate that every request passes."""

from dragoman.identity.failures import Failures
from dragoman.identity.gate import Gate, Rejected, Verifier
from dragoman.identity.keeping import Keeper
from dragoman.identity.rates import Rates
from dragoman.identity.registry import Credential, Registry
from dragoman.identity.sharing import RateSharing
from dragoman.identity.tokens import hash_token, new_token

__all__ = [
    "Credential",
    "Failures",
    "Gate",
    "Keeper",
    "RateSharing",
    "Rates",
    "Registry",
    "Rejected",
    "Verifier",
    "hash_token",
    "new_token",
]
