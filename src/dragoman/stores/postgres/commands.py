"""The writing operations on a run that there is, each one a function that runs inside a Transaction."""

from collections.abc import Collection, Mapping, Sequence

from dragoman.gateway.audit import AuditEntry, task_path
from dragoman.gateway.ports import JournalEntry, Lease, LostRun, RunRef
from dragoman.model import Change, Message, Received, Resumed, Scope, StatusChange, TaskEvent, TaskState, Used
from dragoman.model.errors import Fenced, TaskNotFound
from dragoman.stores.postgres.rows import NOBODY, OURS, HeldRow
from dragoman.stores.postgres.transaction import Transaction, Work
from dragoman.stores.records import RECEIVED, decode_change, decode_request
from dragoman.stores.rows import (
    FLAT_DEADLINE,
    PAST_DEADLINE,
    RUNNING,
    UNANSWERED,
    as_shown,
    check_cancelable,
    says_nothing_new,
)

SWEPT = 200
"""Runs that one sweep ends at most: others wait for the writer."""

# Of each agent as many as there is room for, its callers in turn: the first of each, then the second of each.
_OFFERED = (
    "SELECT id, tenant, principal, agent FROM (SELECT q.*, row_number() OVER (PARTITION BY agent ORDER BY turn, id)"
    " AS place FROM (SELECT t.id, s.tenant, s.principal, s.agent, row_number() OVER (PARTITION BY t.scope_id"
    " ORDER BY t.id) AS turn FROM task t JOIN scope s ON s.id = t.scope_id"
    f" WHERE t.state IN (1, 2) AND t.owner = {NOBODY} AND {OURS}"
    " AND s.agent = ANY($1::text[])) q) p"
    " JOIN unnest($1::text[], $2::integer[]) k (agent, room) USING (agent) WHERE place <= room"
    " ORDER BY place, id LIMIT $3"
)
_OF_AGENTS = "scope_id IN (SELECT s.id FROM scope s WHERE s.agent = ANY($2::text[]))"
_MESSAGES = (
    "SELECT payload FROM event WHERE task_id = $1 AND substring(payload FROM 1 FOR $2) = $3 ORDER BY seq"
)


def appending(lease: Lease, changes: Sequence[Change], reveal: bool) -> Work:
    """Return the operation that appends changes to a task: see `TaskStore.append`."""
    return Work(
        act=lambda tx: _append(tx, lease, changes, reveal),
        tasks=(lease.task_id,),
        is_patient=True,
        # Whether a source was used before is asked.
        in_memory=not any(isinstance(change, Used) for change in changes),
    )


async def _append(
    tx: Transaction, lease: Lease, changes: Sequence[Change], reveal: bool
) -> tuple[TaskEvent, ...]:
    row = tx.leased(lease)
    changes = [as_shown(row, change) for change in changes if not await _says_nothing_new(tx, row, change)]
    if not changes:
        return ()
    events = tx.write(row, changes, reveal=reveal)
    if row.state.is_terminal:
        tx.note_end(row, by_handler=True)
    for change in changes:
        if isinstance(change, Used):
            tx.use(row, change.source)
    return events


async def _says_nothing_new(tx: Transaction, row: HeldRow, change: Change) -> bool:
    if isinstance(change, Used):
        return await tx.has_used(row, change.source)
    return says_nothing_new(row, change)


async def wait(tx: Transaction, leases: Sequence[Lease]) -> None:
    """See `TaskStore.wait`."""
    for lease in leases:
        row = tx.row(lease.task_id)
        if row is not None and row.epoch == lease.epoch and row.dispatch == "sent":
            row.dispatch = "pending"
            tx.save(row)


async def enter(tx: Transaction, lease: Lease) -> None:
    """See `TaskStore.enter`."""
    row = tx.leased(lease)
    row.dispatch = "sent"
    tx.save(row)


async def begin_work(tx: Transaction, leases: Sequence[Lease]) -> None:
    """See `TaskStore.begin_work`."""
    for lease in leases:
        try:
            row = tx.leased(lease)
        except Fenced:
            continue
        if row.state is TaskState.SUBMITTED:
            tx.write(row, (StatusChange(TaskState.WORKING),), reveal=True)


async def cancel(tx: Transaction, scope: Scope, task_id: str, audit: AuditEntry | None = None) -> TaskEvent:
    """See `TaskStore.cancel`."""
    row = tx.find(tx.scope_id(scope), task_id)
    if row is None:
        raise TaskNotFound(task_id)
    check_cancelable(row)
    row.epoch += 1
    tx.note(audit, task_path(scope, task_id))
    tx.note_end(row, by_handler=False)
    return tx.write(row, (StatusChange(TaskState.CANCELED),))[0]


async def expire(tx: Transaction) -> tuple[TaskEvent, ...]:
    """See `TaskStore.expire`."""
    rows = await tx.select(f"state IN (1, 2) AND deadline_at < $1 LIMIT {SWEPT}", tx.now)
    return _fail_all(tx, rows, PAST_DEADLINE)


async def expire_parked(
    tx: Transaction, limits: Mapping[str, int], flat: Collection[str]
) -> tuple[TaskEvent, ...]:
    """See `TaskStore.expire_parked`."""
    events: list[TaskEvent] = []
    if flat:
        over = f"state IN (6, 8) AND deadline_at <= $1 AND {_OF_AGENTS} LIMIT {SWEPT}"
        events += _fail_all(tx, await tx.select(over, tx.now, list(flat)), FLAT_DEADLINE)
    for limit in sorted(set(limits.values())):
        agents = [agent for agent, own in limits.items() if own == limit]
        over = f"state IN (6, 8) AND parked_at < $1 AND {_OF_AGENTS} LIMIT {SWEPT}"
        events += _fail_all(tx, await tx.select(over, tx.now - limit, agents), UNANSWERED)
    return tuple(events)


def _fail_all(tx: Transaction, rows: Sequence[HeldRow], text: str) -> tuple[TaskEvent, ...]:
    return tuple(event for row in rows for event in tx.fail(row, text))


async def record(tx: Transaction, lease: Lease, entry: JournalEntry) -> None:
    """See `TaskStore.record`."""
    tx.record(tx.leased(lease), entry, bytes(entry.result))


async def take_over(tx: Transaction, run: LostRun) -> bool:
    """See `TaskStore.take_over`."""
    row = tx.find(tx.scope_id(run.scope), run.task_id, hidden=True)
    if row is None or row.epoch != run.epoch or row.state not in RUNNING:
        return False
    is_left = row.owner == NOBODY
    row.epoch += 1
    row.attempt += row.dispatch != "pending"
    row.dispatch = "sent"
    row.owner = tx.replica
    tx.note_taken(row)
    tx.save(row)
    if not is_left:
        # Whoever had it may have written something that starts over now.
        await tx.flush()
        kept = await tx.db.fetchval("SELECT max(seq) FROM journal WHERE task_id = $1", row.id)
        tx.write(row, (Resumed(kept or 1),))
    tx.runs.append(await run_ref(tx, row, run.scope))
    return True


async def take_offered(tx: Transaction, room: Mapping[str, int], most: int) -> int:
    """See `Offers.take_offered`."""
    await tx.flush()
    found = await tx.db.fetch(_OFFERED, list(room), list(room.values()), most)
    scopes = {task_id: Scope(*names) for task_id, *names in found}
    rows = await tx.select(f"id = ANY($1::text[]) AND owner = {NOBODY} AND state IN (1, 2)", list(scopes))
    for row in rows:
        row.epoch += 1
        row.dispatch = "sent"
        row.owner = tx.replica
        tx.save(row)
        tx.runs.append(await run_ref(tx, row, scopes[row.id]))
    return len(rows)


async def give_up(tx: Transaction, run: LostRun, text: str, reveal: bool) -> None:
    """See `TaskStore.give_up`."""
    row = tx.find(tx.scope_id(run.scope), run.task_id, hidden=True)
    if row is not None and row.epoch == run.epoch and row.state in RUNNING:
        tx.fail(row, text, reveal=reveal)


async def run_ref(tx: Transaction, row: HeldRow, scope: Scope) -> RunRef:
    """Return what an engine needs to execute the run of a row."""
    await tx.flush()
    request = await tx.db.fetchval("SELECT request FROM task WHERE id = $1", row.id)
    return RunRef(
        scope=scope,
        lease=Lease(row.id, row.epoch),
        context_id=row.context_id,
        attempt=row.attempt,
        deadline_at=row.deadline_at,
        request=decode_request(request),
        messages=await _messages(tx, row.id),
        state=row.state,
        visible=bool(row.visible),
        again=True,
    )


async def _messages(tx: Transaction, task_id: str) -> tuple[Message, ...]:
    # Told by how their records begin: a run may have written far more than it was told.
    found = await tx.db.fetch(_MESSAGES, task_id, len(RECEIVED), RECEIVED)
    changes = (decode_change(payload) for (payload,) in found)
    return tuple(change.message for change in changes if isinstance(change, Received))
