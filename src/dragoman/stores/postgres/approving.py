"""Approvals: deciding one, once, and reading what is open."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from dragoman.gateway.audit import AuditEntry, task_path
from dragoman.model import Approval, Decision, Scope, StatusChange, TaskState
from dragoman.model.errors import ApprovalNotFound
from dragoman.stores.postgres.connection import Database, plain
from dragoman.stores.postgres.parking import resume
from dragoman.stores.postgres.transaction import Transaction
from dragoman.stores.records import approval_from_row, encode
from dragoman.stores.rows import check_decidable

_SELECT = (
    "SELECT a.id, a.task_id, a.tenant, a.agent, a.principal, a.action, a.details, a.digest, a.created_at,"
    " t.deadline_at, a.decision, ARRAY(SELECT source FROM run_source r WHERE r.task_id = a.task_id ORDER BY source)"
    " FROM approval a JOIN task t ON t.id = a.task_id"
)


async def is_awaited(tx: Transaction, task_id: str) -> bool:
    """Tell whether a parked run waits for an approval: no message can answer it."""
    found = await tx.db.fetchval("SELECT 1 FROM approval WHERE task_id = $1 AND decision IS NULL", task_id)
    return found is not None


async def decide(
    tx: Transaction,
    tenant: str,
    approval_id: str,
    decision: Decision,
    digest: str | None,
    flat: Collection[str],
    audit: AuditEntry | None = None,
) -> Approval:
    """See `TaskStore.decide`."""
    await tx.flush()
    approval = await find_approval(tx.db, tenant, approval_id)
    await tx.load([approval.task_id])
    # Again, now that nobody else can decide it.
    approval = await find_approval(tx.db, tenant, approval_id)
    scope = Scope(approval.tenant, approval.principal, approval.agent)
    row = tx.row(approval.task_id)
    expired = scope.agent in flat and approval.expires_at <= tx.now
    check_decidable(approval, row, digest, expired=expired)
    assert row is not None  # noqa: S101 - without a row it is not decidable
    await tx.db.execute(
        "UPDATE approval SET decision = $1, decided_at = $2 WHERE id = $3",
        encode(decision),
        tx.now,
        approval_id,
    )
    await resume(
        tx,
        row,
        scope,
        flat=scope.agent in flat,
        move=lambda: tx.write(row, (StatusChange(TaskState.WORKING),)),
        result=lambda run: encode(decision),
    )
    target = f"{task_path(scope, approval.task_id)}/approvals/{approval_id}"
    tx.note(audit, target, detail="approve" if decision.approved else "deny")
    return msgspec.structs.replace(approval, decision=decision)


async def find_approval(db: Database, tenant: str, approval_id: str) -> Approval:
    """Return an approval of a tenant, decided or not.

    Raises:
        ApprovalNotFound: there is none.
    """
    found = await db.fetchrow(f"{_SELECT} WHERE a.id = $1 AND a.tenant = $2", plain(approval_id), tenant)
    if found is None:
        raise ApprovalNotFound(approval_id)
    return _approval(found)


async def open_approvals(db: Database, tenant: str, after: str, limit: int) -> tuple[Approval, ...]:
    """Return approvals of a tenant that wait to be decided, oldest first, after the one with the id `after`."""
    found = await db.fetch(
        f"{_SELECT} WHERE a.tenant = $1 AND a.id > $2 AND a.decision IS NULL AND t.dispatch = 'parked'"
        " ORDER BY a.id LIMIT $3",
        tenant,
        plain(after),
        limit,
    )
    return tuple(map(_approval, found))


def _approval(record: Sequence[Any]) -> Approval:
    values = list(record)
    values[5] = values[5].decode()
    values[11] = encode([source.decode() for source in values[11]])
    return approval_from_row(values)
