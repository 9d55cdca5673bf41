"""Who calls, what they may do, and what they may see."""

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

LOCAL = "local"
"""The implicit tenant and principal of a server without configured identities."""

ANONYMOUS = "anonymous"
"""The principal that all callers of a public agent share who show no credential."""

RESERVED = (LOCAL, ANONYMOUS)
"""Names that nobody else can have."""

NAME_PATTERN = r"[a-z0-9][a-z0-9._@-]{0,127}"
"""Tenants, principals and workspaces."""


FEATURES = ("agent_api",)
"""What a tenant can be given beyond the open surfaces."""


def is_name(text: str) -> bool:
    """Tell whether a tenant or a principal can be called so."""
    return re.fullmatch(NAME_PATTERN, text) is not None and text not in RESERVED


class Right(StrEnum):
    """What a credential's scopes can allow. The values are the scopes that name exactly that."""

    ANSWER = "ai:answer"
    READ = "a2a:read"
    DELEGATE = "a2a:delegate"
    APPROVE = "a2a:approve"
    ADMIN = "admin:*"


def rights_of(scopes: Iterable[str]) -> frozenset[Right]:
    """Return the rights that scopes cover.

    A scope covers itself; `ai:*` and `a2a:*` cover their families, `*` both families. Only `admin:*` covers itself.
    Upper and lower case differ, and nothing else that looks alike counts.
    """
    granted = frozenset(scopes)
    covered = {right for right in Right if right.value in granted}
    for right in Right:
        if right is not Right.ADMIN and ("*" in granted or f"{right.partition(':')[0]}:*" in granted):
            covered.add(right)
    return frozenset(covered)


ALL_BUT_ADMIN = rights_of(["*"])

SCOPES = ("ai:answer", "a2a:read", "a2a:delegate", "a2a:approve", "ai:*", "a2a:*", "*", "admin:*")
"""Every scope that a credential can have."""


class Principal(Struct, frozen=True):
    """A caller. Tenant and name come from the credential alone, never from a request; `rights` from its scopes.

    `credential` is the id of the token that was shown, if it has one, and `expires_at` when that stops being good, in
    seconds since 1970 UTC.
    """

    tenant: str
    name: str
    rights: frozenset[Right] = ALL_BUT_ADMIN
    credential: str = ""
    expires_at: float | None = None

    @property
    def is_anonymous(self) -> bool:
        """Many callers share this principal, so nothing may be told to one that another did."""
        return self.name == ANONYMOUS


class Scope(Struct, frozen=True):
    """What a caller may see: the tasks of one principal, of one tenant, with one agent.

    Every store method that reaches a task takes one; there is no other way to a task.
    """

    tenant: str
    principal: str
    agent: str
