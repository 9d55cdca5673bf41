"""What the configuration says of signing. Read by every command, so nothing that signs is imported here."""

from msgspec import Struct

ALGORITHMS = ("ES256", "EdDSA")
"""What a card may be signed with. EdDSA is by its older name: the official SDKs know no other (RFC 9864)."""

SHORTEST_OVERLAP = 600.0
"""Seconds that an old key signs beside a new one at least: cards and keys may be kept for some minutes."""


class SigningTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[signing]`: what cards are signed with. `alg` is for new keys; `key_file` holds the keys, which many may share.

    `overlap` is how long a key still signs beside the one that takes its place.
    """

    alg: str = "ES256"
    key_file: str = ""
    overlap: str = "7d"


def flaw(alg: str, overlap: float) -> str:
    """Return what is wrong with an algorithm or an overlap in seconds, after the name of its key; empty if nothing."""
    if alg not in ALGORITHMS:
        return f'alg = "{alg}" is none of {", ".join(ALGORITHMS)}'
    if overlap < SHORTEST_OVERLAP:
        return 'overlap must be "10m" or more: for so long cards and keys may be kept by whoever fetched them'
    return ""
