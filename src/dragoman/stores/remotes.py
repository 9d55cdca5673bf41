"""Remote agents and delegations as every store keeps them: rows as values, and the rules that hold in all."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, structs

from dragoman.gateway.remotes import MOST_REMOTES, Delegation, Outcome, Remote, RemoteChange
from dragoman.model.errors import EntryConflict, QuotaExceeded
from dragoman.model.payload import ABSENT

REMOTE = "id, tenant, name, endpoint_url, origin, sealed, created_at"
DELEGATION = (
    "id, tenant, principal, task_id, remote_id, origin, digest, status, result, remote_task_id, code, error,"
    " created_at, changed_at"
)
"""The columns of their tables, in the order of the rows here."""


def check_room(there: int) -> None:
    """Refuse one more registration of a tenant that has `there`, if those are as many as it may have.

    Raises:
        QuotaExceeded.
    """
    if there >= MOST_REMOTES:
        raise QuotaExceeded(
            f"The tenant has {MOST_REMOTES} remote agents, as many as it may; remove one first",
            metadata={"limit": "remotes"},
        )


def as_changed(old: Remote, asked: RemoteChange) -> Remote:
    """Return a registration as a change makes it. A new origin drops the bearer token of the old one.

    Raises:
        EntryConflict: the token is for another origin than that of the endpoint by now.
    """
    origin = old.origin if asked.origin is None else asked.origin
    if asked.sealed and asked.sealed_for != origin:
        raise EntryConflict("The endpoint was changed meanwhile; look at it, and then set the token again")
    sealed = asked.sealed
    if sealed is None:
        sealed = old.sealed if origin == old.origin else b""
    return structs.replace(
        old,
        name=old.name if asked.name is None else asked.name,
        endpoint_url=old.endpoint_url if asked.endpoint_url is None else asked.endpoint_url,
        origin=origin,
        sealed=sealed,
    )


def remote_from_row(row: Sequence[Any]) -> Remote:
    """Return the registration of a row."""
    remote_id, tenant, name, endpoint_url, origin, sealed, created_at = row
    return Remote(
        id=remote_id,
        tenant=tenant,
        name=name,
        endpoint_url=endpoint_url,
        origin=origin,
        sealed=sealed,
        created_at=created_at,
    )


def delegation_from_row(row: Sequence[Any]) -> Delegation:
    """Return the delegation of a row."""
    delegation_id, tenant, principal, task_id, remote_id, origin, digest, *rest = row
    status, result, remote_task_id, code, error, created_at, changed_at = rest
    return Delegation(
        id=delegation_id,
        tenant=tenant,
        principal=principal,
        task_id=task_id,
        remote_id=remote_id,
        origin=origin,
        digest=digest,
        outcome=Outcome(
            status=status,
            result=Raw(result) if result else ABSENT,
            remote_task_id=remote_task_id,
            code=code,
            error=error,
        ),
        created_at=created_at,
        changed_at=changed_at,
    )
