"""The audit of a store: rows are added in the transaction of what they are about, and go when their time is over."""

from collections.abc import Callable, Sequence
from typing import Any

from dragoman.gateway.audit import OK, AuditEntry, AuditRow

Row = tuple[str | int, ...]

_COLUMNS = "at, tenant, principal, credential, address, action, target, outcome, detail, times"
PURGED = 256
"""Rows that are deleted at a time: about a millisecond's work."""

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


def purge(execute: Callable[..., Any], before: int) -> int:
    """Delete a few rows, the oldest first, that are from before a time; return how many.

    First the horizon is moved there: nothing that is later can be deleted at all.
    """
    oldest = execute("SELECT at FROM audit ORDER BY id LIMIT 1", ()).fetchone()
    if oldest is None or oldest[0] >= before:
        return 0
    execute("UPDATE audit_horizon SET kept_since = ? WHERE kept_since < ?", (before, before))
    # Up to the first row that is younger: rows are in the order of their times, but for a clock that was set back.
    deleted: int = execute(
        "DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT ?) AND at < ?"
        " AND at < (SELECT kept_since FROM audit_horizon)",
        (PURGED, before),
    ).rowcount
    return deleted


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
