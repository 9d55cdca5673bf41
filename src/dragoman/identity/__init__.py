"""Who calls: tokens, the registry of principals and what they are granted, and the gate that every request passes."""

from dragoman.identity.gate import Failures, Gate
from dragoman.identity.registry import Credential, Registry
from dragoman.identity.tokens import hash_token, new_token

__all__ = ["Credential", "Failures", "Gate", "Registry", "hash_token", "new_token"]
