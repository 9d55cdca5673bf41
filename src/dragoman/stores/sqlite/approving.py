"""Approvals: opening one with the run that waits for it, deciding it once, and reading what is open."""

import sqlite3
from collections.abc import Collection

import msgspec

from dragoman.gateway.audit import AuditEntry, task_path
from dragoman.gateway.ports import ApprovalRequest, JournalEntry
from dragoman.model import Approval, Decision, Scope, StatusChange, TaskState
from dragoman.model.approval import approval_digest
from dragoman.model.errors import ApprovalNotFound
from dragoman.stores.records import approval_from_row, encode
from dragoman.stores.rows import check_decidable
from dragoman.stores.sqlite.parking import resume
from dragoman.stores.sqlite.rows import find, scope_id, write
from dragoman.stores.sqlite.writer import Transaction

_SELECT = (
    "SELECT a.id, a.task_id, a.tenant, a.agent, a.principal, a.action, a.details, a.digest, a.created_at,"
    " t.deadline_at, a.decision,"
    " (SELECT json_group_array(source) FROM run_source r WHERE r.task_id = a.task_id)"
    " FROM approval a JOIN task t ON t.id = a.task_id"
)
_OPEN = "a.decision IS NULL AND t.dispatch = 'parked'"


def open_approval(tx: Transaction, task_id: str, entry: JournalEntry, asked: ApprovalRequest) -> None:
    """Save what a run that was just parked waits for."""
    scope = tx.execute(
        "SELECT tenant, agent, principal FROM scope WHERE id = (SELECT scope_id FROM task WHERE id = ?)",
        (task_id,),
    ).fetchone()
    tx.execute(
        "INSERT INTO approval (id, task_id, ordinal, tenant, agent, principal, action, details, digest, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            asked.id,
            task_id,
            entry.ordinal,
            *scope,
            asked.action,
            bytes(asked.details),
            approval_digest(asked.action, asked.details),
            tx.now,
        ),
    )


def is_awaited(tx: Transaction, task_id: str) -> bool:
    """Tell whether a parked run waits for an approval: no message can answer it."""
    found = tx.execute("SELECT 1 FROM approval WHERE task_id = ? AND decision IS NULL", (task_id,)).fetchone()
    return found is not None


def decide(
    tx: Transaction,
    tenant: str,
    approval_id: str,
    decision: Decision,
    digest: str | None,
    flat: Collection[str],
    lease_ms: int,
    audit: AuditEntry | None = None,
) -> Approval:
    """See `TaskStore.decide`."""
    approval = find_approval(tx, tenant, approval_id)
    scope = Scope(approval.tenant, approval.principal, approval.agent)
    row = find(tx, scope_id(tx, scope), approval.task_id, hidden=True)
    row = check_decidable(
        approval, row, digest, expired=scope.agent in flat and approval.expires_at <= tx.now
    )
    tx.execute(
        "UPDATE approval SET decision = ?, decided_at = ? WHERE id = ?",
        (encode(decision), tx.now, approval_id),
    )
    resume(
        tx,
        row,
        scope,
        lease_ms,
        flat=scope.agent in flat,
        move=lambda: write(tx, row, (StatusChange(TaskState.WORKING),)),
        result=lambda run: encode(decision),
    )
    target = f"{task_path(scope, approval.task_id)}/approvals/{approval_id}"
    tx.note(audit, target, detail="approve" if decision.approved else "deny")
    return msgspec.structs.replace(approval, decision=decision)


def find_approval(db: sqlite3.Connection | Transaction, tenant: str, approval_id: str) -> Approval:
    """Return an approval of a tenant, decided or not.

    Raises:
        ApprovalNotFound: there is none.
    """
    found = db.execute(f"{_SELECT} WHERE a.id = ? AND a.tenant = ?", (approval_id, tenant)).fetchone()
    if found is None:
        raise ApprovalNotFound(approval_id)
    return approval_from_row(found)


def open_approvals(db: sqlite3.Connection, tenant: str, after: str, limit: int) -> tuple[Approval, ...]:
    """Return approvals of a tenant that wait to be decided, oldest first, after the one with the id `after`."""
    rows = db.execute(
        f"{_SELECT} WHERE a.tenant = ? AND a.id > ? AND {_OPEN} ORDER BY a.id LIMIT ?", (tenant, after, limit)
    ).fetchall()
    return tuple(map(approval_from_row, rows))
