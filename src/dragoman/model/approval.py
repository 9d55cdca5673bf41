"""Approvals: what an agent wants to do and somebody must allow, and what they said."""

import hashlib

from msgspec import Raw, Struct

from dragoman.model.payload import ABSENT, canonical


class Decision(Struct, frozen=True, kw_only=True):
    """What somebody decided: `by` names them, `note` is what they said with it."""

    approved: bool
    by: str
    note: str = ""


class Approval(Struct, frozen=True, kw_only=True):
    """One action that waits, or waited, to be allowed. Times are milliseconds since 1970 UTC by the store's clock.

    `digest` stands for exactly what was shown: action and details. `expires_at` is when the run ends that waits for it,
    and `sources` are those that the run has used.
    """

    id: str
    task_id: str
    tenant: str
    agent: str
    principal: str
    action: str
    details: Raw = ABSENT
    digest: str
    created_at: int
    expires_at: int
    sources: tuple[str, ...] = ()
    decision: Decision | None = None


def approval_digest(action: str, details: Raw) -> str:
    """Return the digest of an action and its details: equal exactly if they say the same."""
    return hashlib.sha256(action.encode() + b"\0" + bytes(canonical(details))).hexdigest()
