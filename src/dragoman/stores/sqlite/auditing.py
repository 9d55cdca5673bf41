"""The audit in SQLite: rows are added in the transaction of what they are about, and never touched again."""

from collections.abc import Callable, Sequence
from typing import Any

from dragoman.gateway.audit import OK, AuditEntry, AuditRow

Row = tuple[str | int, ...]

_COLUMNS = "at, tenant, principal, credential, address, action, target, outcome, detail, times"
ADD = f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
"""With the values of a `row`."""


def row(at: int, entry: AuditEntry) -> Row:
    """Return the values of an entry."""
    return completed(at, entry, entry.target, entry.outcome, entry.detail)


def completed(at: int, entry: AuditEntry, target: str, outcome: str = OK, detail: str = "") -> Row:
    """Return the values of an entry that came with a request, with what came of that."""
    return (
        at,
        entry.tenant,
        entry.principal,
        entry.credential,
        entry.address,
        entry.action,
        target,
        outcome,
        detail,
        entry.times,
    )


def audited(execute: Callable[..., Any], *, since: int, after: int, limit: int) -> Sequence[AuditRow]:
    """Return rows, oldest first: those since a time, after the row with the id `after`."""
    rows = execute(
        f"SELECT id, {_COLUMNS} FROM audit WHERE id > ? AND at >= ? ORDER BY id LIMIT ?",
        (after, since, limit),
    )
    return [AuditRow(number, at, _entry(columns)) for number, at, *columns in rows]


def _entry(columns: Sequence[Any]) -> AuditEntry:
    tenant, principal, credential, address, action, target, outcome, detail, times = columns
    return AuditEntry(
        tenant=tenant,
        principal=principal,
        credential=credential,
        address=address,
        action=action,
        target=target,
        outcome=outcome,
        detail=detail,
        times=times,
    )
