"""The reading operations on a PostgreSQL store. Each sees one state of the database: one statement, or one snapshot."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

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
from dragoman.stores.postgres.connection import Database, plain
from dragoman.stores.postgres.replicas import IS_HELD
from dragoman.stores.postgres.rows import NOBODY, OURS, scope_from
from dragoman.stores.records import (
    accepted_from_row,
    change_from_row,
    decode_given,
    event_from_row,
    folded,
)

LONG = 500
"""Events that are read, and decoded, at once on the store's loop: a few milliseconds' worth."""

PAGE_BYTES = 1024 * 1024
"""Stored bytes after which a page takes no further task."""

_SCOPE = "(SELECT id FROM scope WHERE tenant = $1 AND principal = $2 AND agent = $3)"
_EVENTS = "e.seq, e.attempt, e.at, e.payload FROM task t LEFT JOIN event e ON e.task_id = t.id"
_ROW = (
    "id, context_id, state, status_at, seq, attempt, deadline_at, deadline_at - parked_ms AS first_deadline,"
    " metadata, status_seq"
)


class _Values:
    """The values of a statement that is put together; gives each its placeholder."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(self, value: Any) -> str:
        self.all.append(value)
        return f"${len(self.all)}"


async def known(db: Database, acceptance: Acceptance) -> Accepted | None:
    """See `TaskStore.known`."""
    scope = acceptance.scope
    row = await db.fetchrow(
        f"SELECT digest, task_id FROM identity WHERE scope_id = {_SCOPE} AND message_id = $4"
        " AND EXISTS (SELECT 1 FROM task WHERE id = task_id)",
        scope.tenant,
        scope.principal,
        scope.agent,
        acceptance.message.message_id.encode(),
    )
    return accepted_from_row(row, acceptance)


class Folding(Struct):
    """What `TaskStore.read` folds, as it was read."""

    task_id: str
    context_id: str
    metadata: bytes | None
    deadline: int
    rows: list[Any]

    def fold(self) -> TaskFold:
        """Return the fold."""
        found = (event_from_row(self.task_id, self.context_id, row) for row in self.rows)
        return folded(self.task_id, self.context_id, found, metadata=self.metadata, deadline=self.deadline)


async def read(
    db: Database,
    scope: Scope,
    task_id: str,
    hidden: bool,
    until: int | None,
    *,
    after: int = 0,
    limit: int | None = None,
) -> Folding:
    """Read what `TaskStore.read` folds: what comes after an event, and of that not more than the limit."""
    bound = "" if until is None else f" AND e.seq <= {int(until)}"
    rows = await db.fetch(
        f"SELECT t.context_id, t.visible, t.metadata, t.deadline_at - t.parked_ms, {_EVENTS}{bound} AND e.seq > $5"
        f" WHERE t.id = $4 AND t.scope_id = {_SCOPE} ORDER BY e.seq LIMIT $6",
        scope.tenant,
        scope.principal,
        scope.agent,
        plain(task_id),
        after,
        limit,
    )
    if not rows or not (rows[0][1] or hidden):
        raise TaskNotFound(task_id)
    context_id, _, metadata, deadline = rows[0][:4]
    found = [row[4:] for row in rows if row[4] is not None]
    return Folding(task_id, context_id.decode(), metadata, deadline, found)


async def read_long(db: Database, scope: Scope, task_id: str, hidden: bool, until: int | None) -> TaskFold:
    """Read and fold a task of many events, page by page; to be called in one snapshot.

    The store's loop takes in a whole answer at once: as long as that takes, nobody else's is taken in.
    """
    found = page = await read(db, scope, task_id, hidden, until, limit=LONG)
    while len(page.rows) == LONG:
        page = await read(db, scope, task_id, hidden, until, after=page.rows[-1][0], limit=LONG)
        found.rows += page.rows
    return await asyncio.to_thread(found.fold)


async def scope_of(db: Database, task_id: str) -> Scope | None:
    """Return the scope of a task, for operators; `None` if there is no such task."""
    row = await db.fetchrow(
        "SELECT s.tenant, s.principal, s.agent FROM task t JOIN scope s ON s.id = t.scope_id WHERE t.id = $1",
        plain(task_id),
    )
    return None if row is None else scope_from(row)


async def events(
    db: Database, task_id: str, after: int, *, limit: int | None = None
) -> tuple[str, list[Any]]:
    """Read the context of a task, and the rows of what `TaskStore.events` returns, not more than the limit."""
    rows = await db.fetch(
        f"SELECT t.context_id, {_EVENTS} AND e.seq > $2 WHERE t.id = $1 ORDER BY e.seq LIMIT $3",
        plain(task_id),
        after,
        limit,
    )
    if not rows:
        raise TaskNotFound(task_id)
    return rows[0][0].decode(), [row[1:] for row in rows if row[1] is not None]


async def events_long(db: Database, task_id: str, after: int) -> tuple[TaskEvent, ...]:
    """Read and decode many events, page by page, as `read_long` does."""
    context_id, rows = await events(db, task_id, after, limit=LONG)
    page = rows
    while len(page) == LONG:
        _, page = await events(db, task_id, page[-1][0], limit=LONG)
        rows += page
    return await asyncio.to_thread(events_of, task_id, context_id, rows)


def events_of(task_id: str, context_id: str, rows: Sequence[Any]) -> tuple[TaskEvent, ...]:
    """Return the events of rows."""
    return tuple(event_from_row(task_id, context_id, row) for row in rows)


async def committed(db: Database, spans: Sequence[tuple[str, int, int]]) -> list[TaskEvent]:
    """Return the events of tasks from a sequence number to another, in order."""
    tasks, first, last = zip(*spans, strict=True)
    rows = await db.fetch(
        "SELECT e.task_id, t.context_id, e.seq, e.attempt, e.at, e.payload"
        " FROM unnest($1::text[], $2::integer[], $3::integer[]) k (id, low, high)"
        " JOIN task t ON t.id = k.id JOIN event e ON e.task_id = k.id AND e.seq BETWEEN k.low AND k.high"
        " ORDER BY e.task_id, e.seq",
        list(tasks),
        list(first),
        list(last),
    )
    return [event_from_row(row[0], row[1].decode(), row[2:]) for row in rows]


async def heads(db: Database, task_ids: Sequence[str]) -> dict[str, int]:
    """Return the last sequence numbers of tasks."""
    rows = await db.fetch("SELECT id, seq FROM task WHERE id = ANY($1::text[])", list(task_ids))
    return {row[0]: row[1] for row in rows}


async def page(
    db: Database,
    filters: Filters,
    size: int,
    cursor: Cursor | None,
    history_length: int,
    artifacts: bool,
    withheld: Callable[[str], bool] | None,
) -> TaskPage:
    """See `TaskStore.page`; to be called in one snapshot."""
    scope = await db.fetchval(
        f"SELECT {_SCOPE}", filters.scope.tenant, filters.scope.principal, filters.scope.agent
    )
    tasks: list[Task] = []
    total, has_more = 0, False
    if scope is not None:
        lost = await _lost_sources(db, scope, withheld)
        total = await _total(db, scope, filters, lost)
        rows = await _newest(db, scope, filters, cursor, lost, size + 1)
        has_more = len(rows) > size
        if history_length > 0 or artifacts:
            tasks = await _whole_tasks(db, rows[:size], history_length, artifacts)
            has_more = has_more or len(tasks) < len(rows)
        else:
            tasks = [_outline(row) for row in rows[:size]]
    return TaskPage(tasks=tuple(tasks), filters=filters, page_size=size, total=total, has_more=has_more)


async def _lost_sources(db: Database, scope: int, withheld: Callable[[str], bool] | None) -> list[bytes]:
    """Return those sources of a scope's runs that are withheld from its caller."""
    if withheld is None:
        return []
    # From one source to the next: what a scope has of them is a few, however many tasks they are in.
    found = await db.fetch(
        "WITH RECURSIVE used (source) AS ((SELECT source FROM run_source WHERE scope_id = $1"
        " ORDER BY source LIMIT 1) UNION ALL SELECT (SELECT r.source FROM run_source r WHERE r.scope_id = $1"
        " AND r.source > used.source ORDER BY r.source LIMIT 1) FROM used WHERE used.source IS NOT NULL)"
        " SELECT source FROM used WHERE source IS NOT NULL",
        scope,
    )
    return [source for (source,) in found if withheld(source.decode())]


async def _newest(
    db: Database, scope: int, filters: Filters, cursor: Cursor | None, lost: Sequence[bytes], limit: int
) -> list[Any]:
    """Read the newest tasks after a cursor. Without a filter the states are read one by one and merged."""
    values = _Values()
    where = _conditions(values, scope, filters, cursor)
    if lost:
        where += f" AND NOT {_has_source(values, lost)}"
    order = f"ORDER BY status_at DESC, id DESC LIMIT {int(limit)}"
    if filters.state is not None or filters.context_id is not None:
        source = f"SELECT {_ROW} FROM task WHERE {where} {order}"
    else:
        parts = (
            f"(SELECT {_ROW} FROM task WHERE {where} AND state = {int(state)} {order})" for state in TaskState
        )
        source = f"SELECT * FROM ({' UNION ALL '.join(parts)}) every {order}"
    return await db.fetch(
        f"WITH newest AS ({source}) SELECT n.id, n.context_id, n.state, n.status_at, n.seq, n.attempt, n.deadline_at,"
        " n.first_deadline, n.metadata, coalesce(e.payload, '')"
        " FROM newest n LEFT JOIN event e ON e.task_id = n.id AND e.seq = n.status_seq"
        " ORDER BY n.status_at DESC, n.id DESC",
        *values.all,
    )


def _conditions(values: _Values, scope: int, filters: Filters, cursor: Cursor | None) -> str:
    where = f"visible AND scope_id = {values.add(scope)}"
    if filters.context_id is not None:
        where += f" AND context_id = {values.add(filters.context_id.encode())}"
    if filters.state is not None:
        where += f" AND state = {int(filters.state)}"
    if filters.after is not None:
        where += f" AND status_at >= {values.add(filters.after)}::bigint"
    if cursor is not None:
        where += f" AND (status_at, id) < ({values.add(cursor.timestamp)}::bigint, {values.add(plain(cursor.task_id))})"
    return where


def _has_source(values: _Values, lost: Sequence[bytes]) -> str:
    return (
        "EXISTS (SELECT 1 FROM run_source r WHERE r.task_id = task.id"
        f" AND r.source = ANY({values.add(list(lost))}::bytea[]))"
    )


async def _total(db: Database, scope: int, filters: Filters, lost: Sequence[bytes]) -> int:
    """Count what a listing has on all its pages, less what comes from a lost source."""
    if lost:
        values = _Values()
        where = _conditions(values, scope, filters, None)
        sources = values.add(list(lost))
        with_lost: int = await db.fetchval(
            f"SELECT count(*) FROM task WHERE {where} AND id IN"
            f" (SELECT task_id FROM run_source WHERE scope_id = $1 AND source = ANY({sources}::bytea[]))",
            *values.all,
        )
        return await _total(db, scope, filters, ()) - with_lost
    if filters.after is None:
        counted = await _counted(db, scope, filters)
        if counted is not None:
            return counted
    # A context without counters never had more than one task: counting it is looking at one row.
    values = _Values()
    where = _conditions(values, scope, filters, None)
    if filters.state is None and filters.context_id is None:
        where += f" AND state IN ({', '.join(str(int(state)) for state in TaskState)})"
    total: int = await db.fetchval(f"SELECT count(*) FROM task WHERE {where}", *values.all)
    return total


async def _counted(db: Database, scope: int, filters: Filters) -> int | None:
    """Return a total by the counters; `None` of a context that has none."""
    which = "scope_id = $1 AND context_id = $2"
    row = await db.fetchrow(
        f"SELECT count(*), coalesce(sum(n) FILTER (WHERE $3 = 0 OR state = $3), 0)::bigint FROM"
        f" (SELECT state, n FROM counter WHERE {which}"
        f" UNION ALL SELECT state, n FROM counter_step WHERE {which}) every",
        scope,
        (filters.context_id or "").encode(),
        int(filters.state or 0),
    )
    if not row[0] and filters.context_id is not None:
        return None
    total: int = row[1]
    return total


def _outline(row: Sequence[Any]) -> Task:
    task_id, context_id, number, at, seq, attempt, deadline, _, metadata, payload = row
    change = change_from_row(task_id, payload)
    message = change.message if isinstance(change, StatusChange) else None
    state = TaskState(number)
    runs = not state.is_terminal and not state.is_interrupted
    return Task(
        id=task_id,
        context_id=context_id.decode(),
        status=TaskStatus(state=state, timestamp=at, message=message),
        artifacts=None,
        metadata=msgspec.Raw(metadata) if metadata else ABSENT,
        run=RunFacts(sequence=seq, attempt=attempt, deadline=deadline if runs else None),
    )


async def _whole_tasks(db: Database, rows: Sequence[Any], history_length: int, artifacts: bool) -> list[Task]:
    """Read tasks with their events, as many as a page may hold: at least one, and not what would be cut off again."""
    tasks: list[Task] = []
    size = 0
    for task_id, context_id, _, _, _, _, _, deadline, metadata, _ in rows:
        stored = await db.fetch(
            "SELECT seq, attempt, at, payload FROM event WHERE task_id = $1 ORDER BY seq", task_id
        )
        fold = Folding(task_id, context_id.decode(), metadata, deadline, stored).fold()
        tasks.append(fold.task(history_length=history_length, artifacts=artifacts))
        size += sum(len(row[3]) for row in stored)
        if size > PAGE_BYTES:
            break
    return tasks


async def journal(db: Database, lease: Lease) -> tuple[JournalEntry, ...]:
    """See `TaskStore.journal`."""
    rows = await db.fetch(
        "SELECT ordinal, kind, name, acts, result, given FROM journal WHERE task_id = $1 ORDER BY ordinal",
        lease.task_id,
    )
    return tuple(
        JournalEntry(
            ordinal=ordinal,
            kind=kind,
            name=name.decode(),
            acts=acts,
            result=msgspec.Raw(result or b""),
            given=decode_given(given) if given else (),
        )
        for ordinal, kind, name, acts, result, given in rows
    )


async def fenced(db: Database, leases: Sequence[Lease]) -> tuple[str, ...]:
    """See `TaskStore.fenced`."""
    rows = await db.fetch(
        "SELECT id, epoch, state FROM task WHERE id = ANY($1::text[])", [lease.task_id for lease in leases]
    )
    good = {(row[0], row[1]) for row in rows if not TaskState(row[2]).is_terminal}
    return tuple(lease.task_id for lease in leases if (lease.task_id, lease.epoch) not in good)


async def lost(db: Database, replica: int) -> tuple[LostRun, ...]:
    """See `TaskStore.lost`: every running task that a replica held which does not live any more."""
    return await _running(
        db, f"t.owner NOT IN ({NOBODY}, $1) AND NOT {IS_HELD} AND {OURS} ORDER BY t.id", replica
    )


async def offered(db: Database) -> dict[str, int]:
    """See `Backlogged.offered`."""
    rows = await db.fetch(
        "SELECT s.agent, count(*) FROM task t JOIN scope s ON s.id = t.scope_id"
        f" WHERE t.state IN (1, 2) AND t.owner = {NOBODY} GROUP BY 1"
    )
    return {row[0]: row[1] for row in rows}


async def quiet(db: Database, replica: int, lease_ms: int) -> tuple[LostRun, ...]:
    """See `TaskStore.quiet`."""
    since = "t.status_at <= (SELECT now_ms FROM store_clock) - $2::bigint"
    return await _running(db, f"t.owner = $1 AND {since} AND {OURS}", replica, lease_ms)


async def _running(db: Database, which: str, *values: int) -> tuple[LostRun, ...]:
    rows = await db.fetch(
        "SELECT s.tenant, s.principal, s.agent, t.id, t.epoch, t.attempt, t.dispatch"
        f" FROM task t JOIN scope s ON s.id = t.scope_id WHERE t.state IN (1, 2) AND {which}",
        *values,
    )
    return tuple(
        LostRun(
            scope=scope_from(row), task_id=row[3], epoch=row[4], attempt=row[5], entered=row[6] != "pending"
        )
        for row in rows
    )


async def scopes(db: Database) -> tuple[Scope, ...]:
    """See `TaskStore.scopes`."""
    return tuple(map(scope_from, await db.fetch("SELECT tenant, principal, agent FROM scope ORDER BY id")))
