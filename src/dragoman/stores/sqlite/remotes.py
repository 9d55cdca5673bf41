"""Registrations of remote agents and what was delegated to them, in SQLite."""

import sqlite3
from collections.abc import Sequence

from msgspec import structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.remotes import (
    ABANDONED,
    PUSH_CONFIGS,
    REMOTE_AGENTS,
    SEAL_BYTES,
    SENDING,
    Delegation,
    Outcome,
    Remote,
    RemoteChange,
    Seal,
    delegation_path,
    remote_path,
)
from dragoman.model.errors import DelegationNotFound, RemoteNotFound
from dragoman.stores.remotes import (
    DELEGATION,
    REMOTE,
    as_changed,
    check_room,
    delegation_from_row,
    remote_from_row,
)
from dragoman.stores.sqlite.writer import Transaction

_REMOTE = f"SELECT {REMOTE} FROM remote_agent"
_DELEGATION = f"SELECT {DELEGATION} FROM delegation"
Source = sqlite3.Connection | Transaction


def add(tx: Transaction, remote: Remote, audit: AuditEntry | None) -> Remote:
    """See `RemoteStore.add_remote`."""
    there = tx.execute("SELECT count(*) FROM remote_agent WHERE tenant = ?", (remote.tenant,)).fetchone()[0]
    check_room(there)
    kept = structs.replace(remote, created_at=tx.now)
    tx.execute("INSERT INTO remote_agent VALUES (?, ?, ?, ?, ?, ?, ?)", structs.astuple(kept))
    tx.note(audit, remote_path(remote.id))
    return kept


def find(db: Source, tenant: str, remote_id: str) -> Remote:
    """See `RemoteStore.remote`."""
    row = db.execute(f"{_REMOTE} WHERE id = ? AND tenant = ?", (remote_id, tenant)).fetchone()
    if row is None:
        raise RemoteNotFound(remote_id)
    return remote_from_row(row)


def page(db: Source, tenant: str, after: str, limit: int) -> Sequence[Remote]:
    """See `RemoteStore.remotes`."""
    found = db.execute(
        f"{_REMOTE} WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?", (tenant, after, limit)
    ).fetchall()
    return [remote_from_row(row) for row in found]


def named(db: Source, tenant: str, name: str) -> Sequence[Remote]:
    """See `RemoteStore.remotes_named`."""
    found = db.execute(f"{_REMOTE} WHERE tenant = ? AND name = ? ORDER BY id LIMIT 2", (tenant, name))
    return [remote_from_row(row) for row in found.fetchall()]


def change(
    tx: Transaction, tenant: str, remote_id: str, asked: RemoteChange, audit: AuditEntry | None
) -> Remote:
    """See `RemoteStore.change_remote`."""
    new = as_changed(find(tx, tenant, remote_id), asked)
    tx.execute(
        "UPDATE remote_agent SET name = ?, endpoint_url = ?, origin = ?, sealed = ? WHERE id = ?",
        (new.name, new.endpoint_url, new.origin, new.sealed, remote_id),
    )
    tx.note(audit, remote_path(remote_id))
    return new


def remove(tx: Transaction, tenant: str, remote_id: str, audit: AuditEntry | None) -> None:
    """See `RemoteStore.remove_remote`."""
    find(tx, tenant, remote_id)
    tx.execute("DELETE FROM remote_agent WHERE id = ?", (remote_id,))
    tx.note(audit, remote_path(remote_id))


def begin(
    tx: Transaction, delegation: Delegation, audit: AuditEntry | None
) -> tuple[Delegation, Remote | None]:
    """See `RemoteStore.begin_delegation`."""
    known = known_as(tx, delegation.tenant, delegation.principal, delegation.task_id)
    if known is not None:
        return known, None
    remote = find(tx, delegation.tenant, delegation.remote_id)
    begun = structs.replace(delegation, origin=remote.origin, created_at=tx.now, changed_at=tx.now)
    tx.execute(
        "INSERT INTO delegation (id, tenant, principal, task_id, remote_id, origin, digest, created_at, changed_at,"
        " status, result, remote_task_id, code, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            begun.id,
            begun.tenant,
            begun.principal,
            begun.task_id,
            begun.remote_id,
            begun.origin,
            begun.digest,
            begun.created_at,
            begun.changed_at,
            *_columns(begun.outcome),
        ),
    )
    tx.note(audit, delegation_path(begun), detail=begun.outcome.status)
    return begun, remote


def settle(tx: Transaction, delegation: Delegation, outcome: Outcome, audit: AuditEntry | None) -> Delegation:
    """See `RemoteStore.settle_delegation`."""
    changed = tx.execute(
        "UPDATE delegation SET status = ?, result = ?, remote_task_id = ?, code = ?, error = ?, changed_at = ?"
        " WHERE id = ? AND status = ?",
        (*_columns(outcome), tx.now, delegation.id, delegation.outcome.status),
    ).rowcount
    if not changed:
        return find_delegation(tx, delegation.tenant, delegation.principal, delegation.id)
    tx.note(audit, delegation_path(delegation), detail=outcome.status)
    return structs.replace(delegation, outcome=outcome, changed_at=tx.now)


def find_delegation(db: Source, tenant: str, principal: str, delegation_id: str) -> Delegation:
    """See `RemoteStore.delegation`."""
    row = db.execute(
        f"{_DELEGATION} WHERE id = ? AND tenant = ? AND principal = ?", (delegation_id, tenant, principal)
    ).fetchone()
    if row is None:
        raise DelegationNotFound(delegation_id)
    return delegation_from_row(row)


def known_as(db: Source, tenant: str, principal: str, task_id: str) -> Delegation | None:
    """See `RemoteStore.delegation_of`."""
    row = db.execute(
        f"{_DELEGATION} WHERE tenant = ? AND principal = ? AND task_id = ?", (tenant, principal, task_id)
    ).fetchone()
    return None if row is None else delegation_from_row(row)


def under_way(db: Source) -> int:
    """Return how many delegations are noted as under way."""
    number: int = db.execute("SELECT count(*) FROM delegation WHERE status = 'sending'").fetchone()[0]
    return number


def abandon(tx: Transaction) -> int:
    """See `RemoteStore.abandon_delegations`."""
    changed: int = tx.execute(
        f"UPDATE delegation SET status = ?, error = ?, changed_at = ? WHERE status = '{SENDING}'",
        (ABANDONED.status, ABANDONED.error, tx.now),
    ).rowcount
    return changed


def seals(db: Source) -> Sequence[Seal]:
    """See `RemoteStore.seals`."""
    found = db.execute(
        "SELECT what, substr(sealed, 1, ?) AS head, count(*) FROM"
        " (SELECT ? AS what, sealed FROM remote_agent WHERE length(sealed) > 0 UNION ALL"
        " SELECT ?, sealed FROM push_config WHERE state = 'open') GROUP BY what, head",
        (SEAL_BYTES, REMOTE_AGENTS, PUSH_CONFIGS),
    ).fetchall()
    return [Seal(what, bytes(head), number) for what, head, number in found]


def _columns(outcome: Outcome) -> tuple[str, bytes, str, int | None, str]:
    return outcome.status, bytes(outcome.result), outcome.remote_task_id, outcome.code, outcome.error
