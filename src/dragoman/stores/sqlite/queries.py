"""The reading operations on a SQLite store. Each runs in one read transaction: it sees one state of the file."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman.gateway.ports import Acceptance, Accepted, JournalEntry, Lease, LostRun
from dragoman.model import (
    Cursor,
    Filters,
    RunFacts,
    Scope,
    StatusChange,
    Task,
    TaskEvent,
    TaskFold,
    TaskPage,
    TaskState,
    TaskStatus,
)
from dragoman.model.errors import TaskNotFound
from dragoman.model.payload import ABSENT
from dragoman.stores.records import (
    accepted_from_row,
    change_from_row,
    decode_given,
    event_from_row,
    folded,
)
from dragoman.stores.sqlite.evidence import count_with, has_source, lost_sources

PAGE_BYTES = 1024 * 1024
"""Stored bytes after which a page takes no further task."""


class TooLong(Exception):
    """There is more to read than was allowed for; nothing was read."""


_Row = tuple[str, str, int, int, int, int, int, int, bytes | None, bytes]
_STATES = [state.name.lower() for state in TaskState]


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Make all reads inside see the same state of the file."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def scope_id(connection: sqlite3.Connection, scope: Scope) -> int | None:
    """Return the number of a scope, or `None` if it never had a task."""
    row = connection.execute(
        "SELECT id FROM scope WHERE tenant = ? AND principal = ? AND agent = ?",
        (scope.tenant, scope.principal, scope.agent),
    ).fetchone()
    return row[0] if row else None


def scope_of(connection: sqlite3.Connection, task_id: str) -> Scope | None:
    """Return the scope of a task, for operators; `None` if there is no such task."""
    row = connection.execute(
        "SELECT s.tenant, s.principal, s.agent FROM task t JOIN scope s ON s.id = t.scope_id WHERE t.id = ?",
        (task_id,),
    ).fetchone()
    return Scope(*row) if row else None


def known(connection: sqlite3.Connection, acceptance: Acceptance) -> Accepted | None:
    """See `TaskStore.known`."""
    scope = acceptance.scope
    row = connection.execute(
        "SELECT digest, task_id FROM identity WHERE message_id = ? AND scope_id ="
        " (SELECT id FROM scope WHERE tenant = ? AND principal = ? AND agent = ?)"
        " AND EXISTS (SELECT 1 FROM task WHERE id = task_id)",
        (acceptance.message.message_id, scope.tenant, scope.principal, scope.agent),
    ).fetchone()
    return accepted_from_row(row, acceptance)


def read(
    connection: sqlite3.Connection,
    scope: Scope,
    task_id: str,
    hidden: bool,
    until: int | None = None,
    most: int | None = None,
) -> TaskFold:
    """See `TaskStore.read`.

    Raises:
        TooLong: it has more than `most` events.
    """
    with snapshot(connection):
        row = connection.execute(
            "SELECT context_id, visible, seq, metadata, deadline_at - parked_ms FROM task WHERE id = ? AND scope_id ="
            " (SELECT id FROM scope WHERE tenant = ? AND principal = ? AND agent = ?)",
            (task_id, scope.tenant, scope.principal, scope.agent),
        ).fetchone()
        if row is None or not (row[1] or hidden):
            raise TaskNotFound(task_id)
        last = row[2] if until is None else min(until, row[2])
        if most is not None and last > most:
            raise TooLong
        found = _events(connection, task_id, row[0], 0, last)
        return folded(task_id, row[0], found, metadata=row[3], deadline=row[4])


def peek(connection: sqlite3.Connection, scope: Scope, task_id: str, hidden: bool) -> TaskFold | None:
    """Return what `read` does, or `None` where that finds nothing."""
    try:
        return read(connection, scope, task_id, hidden)
    except TaskNotFound:
        return None


def events(
    connection: sqlite3.Connection, task_id: str, after: int, most: int | None = None
) -> tuple[TaskEvent, ...]:
    """See `TaskStore.events`.

    Raises:
        TooLong: they are more than `most`.
    """
    with snapshot(connection):
        row = connection.execute("SELECT context_id, seq FROM task WHERE id = ?", (task_id,)).fetchone()
        if row is None:
            raise TaskNotFound(task_id)
        if most is not None and row[1] - after > most:
            raise TooLong
        return tuple(_events(connection, task_id, row[0], after, row[1]))


def _events(
    connection: sqlite3.Connection, task_id: str, context_id: str, after: int, last: int
) -> Iterator[TaskEvent]:
    rows = connection.execute(
        "SELECT seq, attempt, at, payload FROM event WHERE task_id = ? AND seq BETWEEN ? AND ? ORDER BY seq",
        (task_id, after + 1, last),
    )
    return (event_from_row(task_id, context_id, row) for row in rows)


def page(
    connection: sqlite3.Connection,
    filters: Filters,
    size: int,
    cursor: Cursor | None,
    history_length: int,
    artifacts: bool,
    withheld: Callable[[str], bool] | None = None,
    *,
    patient: bool = True,
) -> TaskPage:
    """See `TaskStore.page`.

    Raises:
        TooLong: some tasks are withheld, each of which has to be looked at, and whoever asks is not `patient`.
    """
    with snapshot(connection):
        scope = scope_id(connection, filters.scope)
        tasks: list[Task] = []
        total, has_more = 0, False
        if scope is not None:
            lost = lost_sources(connection, scope, withheld)
            if lost and not patient:
                raise TooLong
            total = _total(connection, scope, filters, lost)
            rows = _newest(connection, scope, filters, cursor, lost, size + 1)
            has_more = len(rows) > size
            if history_length > 0 or artifacts:
                tasks = _whole_tasks(connection, rows[:size], history_length, artifacts)
                has_more = has_more or len(tasks) < len(rows)
            else:
                tasks = [_outline(row) for row in rows[:size]]
    return TaskPage(tasks=tuple(tasks), filters=filters, page_size=size, total=total, has_more=has_more)


def _newest(
    connection: sqlite3.Connection,
    scope: int,
    filters: Filters,
    cursor: Cursor | None,
    lost: tuple[str, ...],
    limit: int,
) -> list[_Row]:
    """Read the newest tasks after a cursor. Without a filter the states are read one by one and merged."""
    where, values = _conditions(scope, filters, cursor)
    if lost:
        where, values = f"{where} AND NOT {has_source(lost)}", [*values, *lost]
    columns = (
        "id, context_id, state, status_at, seq, attempt, deadline_at, deadline_at - parked_ms AS first_deadline,"
        " metadata, status_seq"
    )
    if filters.state is not None or filters.context_id is not None:
        source, bound = f"SELECT {columns} FROM task WHERE {where}", values
    else:
        one = (
            f"SELECT * FROM (SELECT {columns} FROM task WHERE {where} AND state = ?"
            " ORDER BY status_at DESC, id DESC LIMIT ?)"
        )
        source = " UNION ALL ".join([one] * len(TaskState))
        bound = [value for state in TaskState for value in (*values, state, limit)]
    return connection.execute(
        f"WITH newest AS ({source} ORDER BY status_at DESC, id DESC LIMIT ?)"
        " SELECT n.id, n.context_id, n.state, n.status_at, n.seq, n.attempt, n.deadline_at, n.first_deadline,"
        " n.metadata, coalesce(e.payload, x'') FROM newest n"
        " LEFT JOIN event e ON e.task_id = n.id AND e.seq = n.status_seq ORDER BY n.status_at DESC, n.id DESC",
        (*bound, limit),
    ).fetchall()


def _conditions(scope: int, filters: Filters, cursor: Cursor | None) -> tuple[str, list[Any]]:
    where = "visible AND scope_id = ?"
    values: list[Any] = [scope]
    terms: list[tuple[str, Any]] = [
        ("context_id = ?", filters.context_id),
        ("state = ?", filters.state),
        ("status_at >= ?", filters.after),
    ]
    for term, value in terms:
        if value is not None:
            where += f" AND {term}"
            values.append(value)
    if cursor is not None:
        where += " AND (status_at, id) < (?, ?)"
        values += [cursor.timestamp, cursor.task_id]
    return where, values


def _total(connection: sqlite3.Connection, scope: int, filters: Filters, lost: tuple[str, ...]) -> int:
    """Count what a listing has on all its pages, less what comes from a lost source."""
    if lost:
        where, values = _conditions(scope, filters, None)
        return _total(connection, scope, filters, ()) - count_with(connection, scope, lost, where, values)
    if filters.after is None:
        columns = "+".join(_STATES) if filters.state is None else filters.state.name.lower()
        row = connection.execute(
            f"SELECT {columns} FROM counter WHERE scope_id = ? AND context_id = ?",
            (scope, filters.context_id or ""),
        ).fetchone()
        if row is not None or filters.context_id is None:
            return row[0] if row else 0
        # A context without counters never had more than one task: counting it is looking at one row.
    where, values = _conditions(scope, filters, None)
    if filters.state is None and filters.context_id is None:
        where += f" AND state IN ({', '.join(str(int(state)) for state in TaskState)})"
    total: int = connection.execute(f"SELECT count(*) FROM task WHERE {where}", values).fetchone()[0]
    return total


def _outline(row: _Row) -> Task:
    task_id, context_id, number, at, seq, attempt, deadline, _, metadata, payload = row
    change = change_from_row(task_id, payload)
    message = change.message if isinstance(change, StatusChange) else None
    state = TaskState(number)
    runs = not state.is_terminal and not state.is_interrupted
    return Task(
        id=task_id,
        context_id=context_id,
        status=TaskStatus(state=state, timestamp=at, message=message),
        artifacts=None,
        metadata=msgspec.Raw(metadata) if metadata else ABSENT,
        run=RunFacts(sequence=seq, attempt=attempt, deadline=deadline if runs else None),
    )


def _whole_tasks(
    connection: sqlite3.Connection, rows: Sequence[_Row], history_length: int, artifacts: bool
) -> list[Task]:
    """Read tasks with their events, as many as a page may hold: at least one, and not what would be cut off again."""
    tasks: list[Task] = []
    size = 0
    for task_id, context_id, _, _, _, _, _, deadline, metadata, _ in rows:
        stored = connection.execute(
            "SELECT seq, attempt, at, payload FROM event WHERE task_id = ? ORDER BY seq", (task_id,)
        ).fetchall()
        found = (event_from_row(task_id, context_id, row) for row in stored)
        fold = folded(task_id, context_id, found, metadata=metadata, deadline=deadline)
        tasks.append(fold.task(history_length=history_length, artifacts=artifacts))
        size += sum(len(payload) for *_, payload in stored)
        if size > PAGE_BYTES:
            break
    return tasks


def journal(connection: sqlite3.Connection, lease: Lease) -> tuple[JournalEntry, ...]:
    """See `TaskStore.journal`."""
    rows = connection.execute(
        "SELECT ordinal, kind, name, acts, result, given FROM journal WHERE task_id = ? ORDER BY ordinal",
        (lease.task_id,),
    )
    return tuple(
        JournalEntry(
            ordinal=ordinal,
            kind=kind,
            name=name,
            acts=acts,
            result=msgspec.Raw(result or b""),
            given=decode_given(given) if given else (),
        )
        for ordinal, kind, name, acts, result, given in rows
    )


def fenced(connection: sqlite3.Connection, leases: Sequence[Lease]) -> tuple[str, ...]:
    """See `TaskStore.fenced`."""
    with snapshot(connection):
        rows = [
            connection.execute("SELECT state, epoch FROM task WHERE id = ?", (lease.task_id,)).fetchone()
            for lease in leases
        ]
    return tuple(
        lease.task_id
        for lease, row in zip(leases, rows, strict=True)
        if row is None or row[1] != lease.epoch or TaskState(row[0]).is_terminal
    )


# An engine outside looks after those that it executes.
_OURS = "NOT EXISTS (SELECT 1 FROM dispatch d WHERE d.task_id = t.id)"


def lost(connection: sqlite3.Connection, epoch: int) -> tuple[LostRun, ...]:
    """See `TaskStore.lost`: with one server a file, every running task that is not this server's."""
    return _running(connection, f"t.owner <> ? AND {_OURS} ORDER BY t.id", epoch)


def quiet(connection: sqlite3.Connection, epoch: int, lease_ms: int) -> tuple[LostRun, ...]:
    """See `TaskStore.quiet`."""
    since = "t.status_at <= (SELECT now_ms FROM store_clock) - ?"
    return _running(connection, f"t.owner = ? AND {since} AND {_OURS}", epoch, lease_ms)


def _running(connection: sqlite3.Connection, which: str, *values: int) -> tuple[LostRun, ...]:
    rows = connection.execute(
        "SELECT s.tenant, s.principal, s.agent, t.id, t.epoch, t.attempt, t.dispatch"
        f" FROM task t JOIN scope s ON s.id = t.scope_id WHERE t.state IN (1, 2) AND {which}",
        values,
    )
    return tuple(
        LostRun(
            scope=Scope(tenant, principal, agent),
            task_id=task_id,
            epoch=run_epoch,
            attempt=attempt,
            entered=dispatch != "pending",
        )
        for tenant, principal, agent, task_id, run_epoch, attempt, dispatch in rows
    )


def scopes(connection: sqlite3.Connection) -> tuple[Scope, ...]:
    """See `TaskStore.scopes`."""
    return tuple(
        Scope(*row) for row in connection.execute("SELECT tenant, principal, agent FROM scope ORDER BY id")
    )
