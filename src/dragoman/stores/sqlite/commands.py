"""The writing operations on a run that there is, each one a function that runs inside a Transaction.

Each checks all that can be wrong before its first write, because the transaction is shared with others.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from dragoman.gateway.audit import AuditEntry, task_path
from dragoman.gateway.ports import JournalEntry, Lease, LostRun
from dragoman.model import Change, Resumed, Scope, StatusChange, TaskEvent, TaskState, Used
from dragoman.model.errors import Fenced, TaskNotFound
from dragoman.stores.records import encode
from dragoman.stores.rows import (
    COLUMNS,
    FLAT_DEADLINE,
    PAST_DEADLINE,
    RUNNING,
    UNANSWERED,
    TaskRow,
    as_shown,
    check_cancelable,
    says_nothing_new,
)
from dragoman.stores.sqlite.dispatching import note_end, note_taken
from dragoman.stores.sqlite.evidence import has_used, note_sources
from dragoman.stores.sqlite.rows import (
    NotAsBegunError,
    fail,
    find,
    leased,
    row_of,
    run_ref,
    scope_id,
    write,
)
from dragoman.stores.sqlite.writer import Transaction

SWEPT = 200
"""Runs that one sweep ends at most: others wait for the writer."""


def append(tx: Transaction, lease: Lease, changes: Sequence[Change], reveal: bool) -> tuple[TaskEvent, ...]:
    """See `TaskStore.append`."""
    begun = tx.begun.pop(lease.task_id, None)
    if begun is not None and begun.epoch == lease.epoch:
        # Mostly nobody has written to it since, and then it need not be read.
        with suppress(NotAsBegunError):
            return _append(tx, begun, changes, reveal, as_begun=True)
    return _append(tx, leased(tx, lease), changes, reveal)


def _append(
    tx: Transaction, row: TaskRow, changes: Sequence[Change], reveal: bool, *, as_begun: bool = False
) -> tuple[TaskEvent, ...]:
    changes = [as_shown(row, change) for change in changes if not _says_nothing_new(tx, row, change)]
    if not changes:
        return ()
    events = write(tx, row, changes, reveal=reveal, as_begun=as_begun)
    note_sources(tx, row, changes)
    if row.state.is_terminal:
        note_end(tx, row.id, by_handler=True)
    return events


def _says_nothing_new(tx: Transaction, row: TaskRow, change: Change) -> bool:
    if isinstance(change, Used):
        return has_used(tx, row, change.source)
    return says_nothing_new(row, change)


def wait(tx: Transaction, leases: Sequence[Lease]) -> None:
    """See `TaskStore.wait`."""
    for lease in leases:
        tx.execute(
            "UPDATE task SET dispatch = 'pending' WHERE id = ? AND epoch = ? AND dispatch = 'sent'",
            (lease.task_id, lease.epoch),
        )


def enter(tx: Transaction, lease: Lease) -> None:
    """See `TaskStore.enter`."""
    row = leased(tx, lease)
    tx.execute("UPDATE task SET dispatch = 'sent' WHERE id = ?", (row.id,))


def begin_work(tx: Transaction, leases: Sequence[Lease]) -> None:
    """See `TaskStore.begin_work`."""
    for lease in leases:
        try:
            row = leased(tx, lease)
        except Fenced:
            continue
        if row.state is TaskState.SUBMITTED:
            write(tx, row, (StatusChange(TaskState.WORKING),), reveal=True)


def cancel(tx: Transaction, scope: Scope, task_id: str, audit: AuditEntry | None = None) -> TaskEvent:
    """See `TaskStore.cancel`."""
    row = find(tx, scope_id(tx, scope), task_id)
    if row is None:
        raise TaskNotFound(task_id)
    check_cancelable(row)
    row.epoch += 1
    tx.note(audit, task_path(scope, task_id))
    note_end(tx, row.id, by_handler=False)
    return write(tx, row, (StatusChange(TaskState.CANCELED),))[0]


def expire(tx: Transaction) -> tuple[TaskEvent, ...]:
    """See `TaskStore.expire`."""
    rows = tx.execute(
        f"SELECT {COLUMNS} FROM task WHERE state IN (1, 2) AND deadline_at < ? LIMIT {SWEPT}", (tx.now,)
    ).fetchall()
    return _fail_all(tx, rows, PAST_DEADLINE)


def expire_parked(tx: Transaction, limits: Mapping[str, int], flat: Collection[str]) -> tuple[TaskEvent, ...]:
    """See `TaskStore.expire_parked`."""
    events: list[TaskEvent] = []
    if flat:
        marks = ", ".join("?" * len(flat))
        rows = tx.execute(
            f"SELECT {COLUMNS} FROM task WHERE state IN (6, 8) AND deadline_at <= ?"
            f" AND (SELECT agent FROM scope s WHERE s.id = scope_id) IN ({marks}) LIMIT {SWEPT}",
            (tx.now, *flat),
        ).fetchall()
        events += _fail_all(tx, rows, FLAT_DEADLINE)
    for limit in sorted(set(limits.values())):
        agents = [agent for agent, own in limits.items() if own == limit]
        marks = ", ".join("?" * len(agents))
        rows = tx.execute(
            f"SELECT {COLUMNS} FROM task WHERE state IN (6, 8) AND parked_at < ?"
            f" AND (SELECT agent FROM scope s WHERE s.id = scope_id) IN ({marks}) LIMIT {SWEPT}",
            (tx.now - limit, *agents),
        ).fetchall()
        events += _fail_all(tx, rows, UNANSWERED)
    return tuple(events)


def _fail_all(tx: Transaction, rows: Sequence[Sequence[object]], text: str) -> tuple[TaskEvent, ...]:
    return tuple(event for values in rows for event in fail(tx, row_of(values), text))


def record(tx: Transaction, lease: Lease, entry: JournalEntry) -> None:
    """See `TaskStore.record`."""
    row = leased(tx, lease)
    tx.execute(
        "INSERT INTO journal (task_id, ordinal, kind, name, acts, seq, result, given) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.id,
            entry.ordinal,
            entry.kind,
            entry.name,
            entry.acts,
            row.seq,
            bytes(entry.result),
            encode(entry.given) if entry.given else None,
        ),
    )


def take_over(tx: Transaction, run: LostRun, lease_ms: int) -> bool:
    """See `TaskStore.take_over`."""
    row = find(tx, scope_id(tx, run.scope), run.task_id, hidden=True)
    if row is None or row.epoch != run.epoch or row.state not in RUNNING:
        return False
    is_left = not tx.execute("SELECT owner FROM task WHERE id = ?", (row.id,)).fetchone()[0]
    row.epoch += 1
    row.attempt += row.dispatch != "pending"
    row.dispatch = "sent"
    tx.execute(
        "UPDATE task SET epoch = ?, attempt = ?, owner = ?, lease_until = ?, dispatch = 'sent' WHERE id = ?",
        (row.epoch, row.attempt, tx.epoch, tx.now + lease_ms, row.id),
    )
    if not is_left:
        # Whoever had it may have written something that starts over now.
        kept = tx.execute("SELECT max(seq) FROM journal WHERE task_id = ?", (row.id,)).fetchone()[0]
        write(tx, row, (Resumed(kept or 1),))
    note_taken(tx, row.id)
    tx.runs.append(run_ref(tx, row, run.scope))
    return True


def give_up(tx: Transaction, run: LostRun, text: str, reveal: bool) -> None:
    """See `TaskStore.give_up`."""
    row = find(tx, scope_id(tx, run.scope), run.task_id, hidden=True)
    if row is not None and row.epoch == run.epoch and row.state in RUNNING:
        fail(tx, row, text, reveal=reveal)


def probe(tx: Transaction) -> None:
    """Write something, so that a disk that takes nothing more is found out."""
    tx.execute("UPDATE server SET heartbeat_at = ?", (tx.now,))


def renew_leases(tx: Transaction, lease_ms: int) -> None:
    """Renew the leases of every run that this server holds."""
    tx.execute(
        "UPDATE task SET lease_until = ? WHERE state IN (1, 2) AND owner = ?", (tx.now + lease_ms, tx.epoch)
    )
