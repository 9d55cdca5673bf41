"""Registrations of remote agents and what was delegated to them, on PostgreSQL.

Of the servers that share a store one sends a delegation: the one that has recorded it, whose number the row bears. As
long as that one lives, nobody else says that it is sent no more.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.remotes import (
    ABANDONED,
    LONGEST_MS,
    PUSH_CONFIGS,
    REMOTE_AGENTS,
    SEAL_BYTES,
    Delegation,
    Outcome,
    Remote,
    RemoteChange,
    Seal,
    delegation_path,
    remote_path,
)
from dragoman.model.errors import DelegationNotFound, RemoteNotFound
from dragoman.stores.postgres.connection import Database, plain
from dragoman.stores.postgres.replicas import LIVING
from dragoman.stores.postgres.transaction import Transaction
from dragoman.stores.postgres.writes import LOCK_TENANTS
from dragoman.stores.remotes import (
    DELEGATION,
    REMOTE,
    as_changed,
    check_room,
    delegation_from_row,
    remote_from_row,
)

_REMOTE = f"SELECT {REMOTE} FROM remote_agent"
_FIND = f"{_REMOTE} WHERE id = $1 AND tenant = $2"
_ADD = f"INSERT INTO remote_agent ({REMOTE}) VALUES ($1, $2, $3, $4, $5, $6, $7)"
_CHANGE = "UPDATE remote_agent SET name = $2, endpoint_url = $3, origin = $4, sealed = $5 WHERE id = $1"

_DELEGATION = f"SELECT {DELEGATION} FROM delegation"
# Gives the agent to send to, if this has recorded the delegation. Of two servers that do so at once the second one
# waits for the first, and then records nothing.
_BEGIN = (
    f"WITH agent AS ({_REMOTE} WHERE id = $5 AND tenant = $2), begun AS ("
    f"INSERT INTO delegation ({DELEGATION}, owner)"
    " SELECT $1, $2, $3, $4, $5, origin, $6, $7, $8, $9, $10, $11, $12, $12, $13 FROM agent"
    f" ON CONFLICT (tenant, principal, task_id) DO NOTHING RETURNING 1) SELECT {REMOTE} FROM agent"
    " WHERE EXISTS (SELECT 1 FROM begun)"
)
_SETTLE = (
    "UPDATE delegation SET status = $2, result = $3, remote_task_id = $4, code = $5, error = $6, changed_at = $7"
    " WHERE id = $1 AND status = $8 RETURNING 1"
)
_ABANDON = (
    "WITH abandoned AS (UPDATE delegation SET status = $1, error = $2, changed_at = $3 WHERE status = 'sending'"
    " AND ($5::text IS NULL OR id = $5)"
    f" AND (owner = $4 OR owner NOT IN ({LIVING}) OR created_at + {LONGEST_MS} < $3) RETURNING 1)"
    " SELECT count(*) FROM abandoned"
)
_SEALS = (
    "SELECT what, head, count(*) FROM ("
    f"SELECT '{REMOTE_AGENTS}' AS what, substr(sealed, 1, {SEAL_BYTES}) AS head FROM remote_agent"
    " WHERE length(sealed) > 0 UNION ALL"
    f" SELECT '{PUSH_CONFIGS}', substr(sealed, 1, {SEAL_BYTES}) FROM push_config WHERE state = 'open') sealed"
    " GROUP BY what, head"
)


async def add(tx: Transaction, remote: Remote, audit: AuditEntry | None) -> Remote:
    """See `RemoteStore.add_remote`."""
    # Two servers never both take the last place.
    await tx.db.execute(LOCK_TENANTS, [remote.tenant])
    check_room(await tx.db.fetchval("SELECT count(*) FROM remote_agent WHERE tenant = $1", remote.tenant))
    kept = structs.replace(remote, created_at=tx.now)
    await tx.db.execute(
        _ADD,
        kept.id,
        kept.tenant,
        kept.name.encode(),
        kept.endpoint_url.encode(),
        kept.origin,
        kept.sealed,
        kept.created_at,
    )
    tx.note(audit, remote_path(remote.id))
    return kept


async def find(db: Database, tenant: str, remote_id: str, *, lock: bool = False) -> Remote:
    """See `RemoteStore.remote`; nobody else changes it meanwhile if that is asked for."""
    statement = f"{_FIND} FOR UPDATE" if lock else _FIND
    row = await db.fetchrow(statement, plain(remote_id), tenant)
    if row is None:
        raise RemoteNotFound(remote_id)
    return _remote(row)


async def page(db: Database, tenant: str, after: str, limit: int) -> Sequence[Remote]:
    """See `RemoteStore.remotes`."""
    statement = f"{_REMOTE} WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3"
    return [_remote(row) for row in await db.fetch(statement, tenant, plain(after), limit)]


async def named(db: Database, tenant: str, name: str) -> Sequence[Remote]:
    """See `RemoteStore.remotes_named`."""
    statement = f"{_REMOTE} WHERE tenant = $1 AND name = $2 ORDER BY id LIMIT 2"
    return [_remote(row) for row in await db.fetch(statement, tenant, name.encode())]


async def change(
    tx: Transaction, tenant: str, remote_id: str, asked: RemoteChange, audit: AuditEntry | None
) -> Remote:
    """See `RemoteStore.change_remote`."""
    new = as_changed(await find(tx.db, tenant, remote_id, lock=True), asked)
    await tx.db.execute(_CHANGE, new.id, new.name.encode(), new.endpoint_url.encode(), new.origin, new.sealed)
    tx.note(audit, remote_path(remote_id))
    return new


async def remove(tx: Transaction, tenant: str, remote_id: str, audit: AuditEntry | None) -> None:
    """See `RemoteStore.remove_remote`."""
    await find(tx.db, tenant, remote_id, lock=True)
    await tx.db.execute("DELETE FROM remote_agent WHERE id = $1", remote_id)
    tx.note(audit, remote_path(remote_id))


async def begin(
    tx: Transaction, delegation: Delegation, audit: AuditEntry | None
) -> tuple[Delegation, Remote | None]:
    """See `RemoteStore.begin_delegation`."""
    row = await tx.db.fetchrow(
        _BEGIN,
        delegation.id,
        delegation.tenant,
        delegation.principal,
        delegation.task_id.encode(),
        delegation.remote_id,
        delegation.digest,
        *_columns(delegation.outcome),
        tx.now,
        tx.replica,
    )
    if row is None:
        # Asked in a statement of its own: it sees what was committed while the one before waited for it.
        known = await known_as(tx.db, delegation.tenant, delegation.principal, delegation.task_id)
        if known is None:
            raise RemoteNotFound(delegation.remote_id)
        return known, None
    remote = _remote(row)
    begun = structs.replace(delegation, origin=remote.origin, created_at=tx.now, changed_at=tx.now)
    tx.note(audit, delegation_path(begun), detail=begun.outcome.status)
    return begun, remote


async def settle(
    tx: Transaction, delegation: Delegation, outcome: Outcome, audit: AuditEntry | None
) -> Delegation:
    """See `RemoteStore.settle_delegation`."""
    changed = await tx.db.fetchval(
        _SETTLE, delegation.id, *_columns(outcome), tx.now, delegation.outcome.status
    )
    if changed is None:
        return await find_delegation(tx.db, delegation.tenant, delegation.principal, delegation.id)
    tx.note(audit, delegation_path(delegation), detail=outcome.status)
    return structs.replace(delegation, outcome=outcome, changed_at=tx.now)


async def find_delegation(db: Database, tenant: str, principal: str, delegation_id: str) -> Delegation:
    """See `RemoteStore.delegation`."""
    statement = f"{_DELEGATION} WHERE id = $1 AND tenant = $2 AND principal = $3"
    row = await db.fetchrow(statement, plain(delegation_id), tenant, principal)
    if row is None:
        raise DelegationNotFound(delegation_id)
    return _delegation(row)


async def known_as(db: Database, tenant: str, principal: str, task_id: str) -> Delegation | None:
    """See `RemoteStore.delegation_of`."""
    statement = f"{_DELEGATION} WHERE tenant = $1 AND principal = $2 AND task_id = $3"
    row = await db.fetchrow(statement, tenant, principal, task_id.encode())
    return None if row is None else _delegation(row)


async def abandon(tx: Transaction) -> int:
    """See `RemoteStore.abandon_delegations`."""
    return await _abandon(tx, None)


async def abandon_one(tx: Transaction, delegation: Delegation) -> Delegation:
    """See `RemoteStore.abandon_delegation`."""
    await _abandon(tx, delegation.id)
    return await find_delegation(tx.db, delegation.tenant, delegation.principal, delegation.id)


async def seals(db: Database) -> Sequence[Seal]:
    """See `RemoteStore.seals`."""
    return [Seal(what, head, number) for what, head, number in await db.fetch(_SEALS)]


async def _abandon(tx: Transaction, delegation_id: str | None) -> int:
    number: int = await tx.db.fetchval(
        _ABANDON, ABANDONED.status, ABANDONED.error.encode(), tx.now, tx.replica, delegation_id
    )
    return number


def _columns(outcome: Outcome) -> tuple[str, bytes, bytes, int | None, bytes]:
    return (
        outcome.status,
        bytes(outcome.result),
        outcome.remote_task_id.encode(),
        outcome.code,
        outcome.error.encode(),
    )


def _remote(record: Sequence[Any]) -> Remote:
    return remote_from_row(_as_text(record, _NAMES_OF_REMOTE))


def _delegation(record: Sequence[Any]) -> Delegation:
    return delegation_from_row(_as_text(record, _NAMES_OF_DELEGATION))


def _as_text(record: Sequence[Any], places: Sequence[int]) -> Sequence[Any]:
    values = list(record)
    for place in places:
        values[place] = values[place].decode()
    return values


def _places(columns: str, *names: str) -> Sequence[int]:
    return tuple(columns.split(", ").index(name) for name in names)


_NAMES_OF_REMOTE = _places(REMOTE, "name", "endpoint_url")
_NAMES_OF_DELEGATION = _places(DELEGATION, "task_id", "remote_task_id", "error")
"""The columns that hold what others name."""
