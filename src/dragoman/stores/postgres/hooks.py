"""Push notification configurations on PostgreSQL: what callers keep, how far their receivers are, and who tells them.

Of the servers that share a store one at a time tells a receiver, so that it is told in order and, as long as nobody
dies, once: the server whose number the row bears. That is the one that kept the configuration first; when it is gone,
whoever looks takes it over.
"""

from collections.abc import Sequence
from typing import Any

from dragoman.gateway.audit import AuditEntry, task_path
from dragoman.gateway.hooks import Hook, HookState, KeptConfig
from dragoman.model import Scope, TaskEvent
from dragoman.model.errors import TaskNotFound
from dragoman.stores.hooks import MOST_EVENTS, events_at_once, hook_from_row
from dragoman.stores.hooks import check_room as check_others
from dragoman.stores.postgres.connection import Database, plain
from dragoman.stores.postgres.replicas import LIVING
from dragoman.stores.postgres.transaction import Transaction

_COLUMNS = (
    "p.task_id, s.tenant, s.principal, s.agent, p.id, p.generation, p.url, p.scheme, p.sealed, p.state, p.sent,"
    " p.tries, greatest(0, p.due_at - (SELECT now_ms FROM store_clock)), p.changed_at, p.error, t.visible"
)
_OF_TASK = "FROM push_config p JOIN task t ON t.id = p.task_id"
_FROM = f"{_OF_TASK} JOIN scope s ON s.id = t.scope_id"

# A receiver that took the last event there can be has nothing more to be told, whoever replaces what.
_PUT = (
    "INSERT INTO push_config AS p (task_id, id, generation, url, scheme, sealed, state, sent, changed_at, teller)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (task_id, id) DO UPDATE SET"
    " generation = excluded.generation, url = excluded.url, scheme = excluded.scheme, sealed = excluded.sealed,"
    " state = CASE p.state WHEN 'done' THEN 'done' ELSE 'open' END, tries = 0, due_at = 0,"
    " changed_at = excluded.changed_at, error = '' RETURNING teller"
)

_IS_FREE = f"teller <> $1 AND teller NOT IN ({LIVING})"
# Rows that somebody else takes or changes just now are left to whoever looks next: nobody waits for anybody.
_TAKE = (
    f"UPDATE push_config SET teller = $1 WHERE (task_id, id) IN (SELECT task_id, id FROM push_config"
    f" WHERE state = 'open' AND ($2::text IS NULL OR task_id = $2) AND {_IS_FREE} FOR UPDATE SKIP LOCKED)"
)
_OPEN = (
    f"SELECT p.task_id, p.id, t.seq > p.sent {_OF_TASK} WHERE p.state = 'open' AND p.teller = $1"
    " AND ($2::text IS NULL OR p.task_id = $2)"
)
_FIND = (
    f"WITH taken AS (UPDATE push_config SET teller = $1 WHERE task_id = $2 AND id = $3 AND {_IS_FREE} RETURNING 1)"
    f" SELECT {_COLUMNS} {_FROM} WHERE p.task_id = $2 AND p.id = $3"
    " AND (p.teller = $1 OR EXISTS (SELECT 1 FROM taken))"
)


async def check_room(tx: Transaction, task_id: str, config_id: str) -> None:
    """Refuse one more configuration of a task that has as many as it may.

    Raises:
        QuotaExceeded.
    """
    others = await tx.db.fetchval(
        "SELECT count(*) FROM push_config WHERE task_id = $1 AND id <> $2", task_id, config_id.encode()
    )
    check_others(task_id, others)


async def put(tx: Transaction, task_id: str, config: KeptConfig, *, sent: int, done: bool = False) -> None:
    """Keep a configuration, to be told what comes after the event `sent`, or replace that of its id."""
    teller = await tx.db.fetchval(
        _PUT,
        task_id,
        config.id.encode(),
        config.generation,
        config.url.encode(),
        config.scheme.encode(),
        config.sealed,
        HookState.DONE if done else HookState.OPEN,
        sent,
        tx.now,
        tx.replica,
    )
    tx.hook(task_id, teller)


async def set_hook(
    tx: Transaction, scope: Scope, task_id: str, config: KeptConfig, audit: AuditEntry | None
) -> None:
    """See `HookStore.set_hook`."""
    row = tx.find(tx.scope_id(scope), task_id)
    if row is None:
        raise TaskNotFound(task_id)
    await check_room(tx, task_id, config.id)
    tx.note(audit, task_path(scope, task_id))
    await put(tx, task_id, config, sent=row.seq, done=row.state.is_terminal)


async def delete_hook(
    tx: Transaction, scope: Scope, task_id: str, config_id: str, audit: AuditEntry | None
) -> None:
    """See `HookStore.delete_hook`."""
    if tx.find(tx.scope_id(scope), task_id) is None:
        raise TaskNotFound(task_id)
    tx.note(audit, task_path(scope, task_id))
    teller = await tx.db.fetchval(
        "DELETE FROM push_config WHERE task_id = $1 AND id = $2 RETURNING teller", task_id, config_id.encode()
    )
    tx.hook(task_id, teller or tx.replica)


async def told(tx: Transaction, task_id: str, config_id: str, seq: int, done: bool) -> None:
    """See `HookStore.told`: true whoever tells the receiver now."""
    await tx.db.execute(
        "UPDATE push_config SET sent = $3, state = $4, tries = 0, due_at = 0, changed_at = $5, error = ''"
        " WHERE task_id = $1 AND id = $2 AND sent < $3",
        task_id,
        config_id.encode(),
        seq,
        HookState.DONE if done else HookState.OPEN,
        tx.now,
    )


async def not_told(tx: Transaction, hook: Hook, tries: int, error: str, wait: int | None) -> bool:
    """See `HookStore.not_told`; only for the server that tells the receiver."""
    # No two sealings are alike, so they tell a configuration from what replaced it.
    changed = await tx.db.fetchval(
        "UPDATE push_config SET tries = $3, error = $4, changed_at = $5, due_at = $6, state = $7"
        " WHERE task_id = $1 AND id = $2 AND state = 'open' AND sealed = $8 AND teller = $9 RETURNING 1",
        hook.task_id,
        hook.config.id.encode(),
        tries,
        plain(error),
        tx.now,
        tx.now + (wait or 0),
        HookState.DEAD if wait is None else HookState.OPEN,
        hook.config.sealed,
        tx.replica,
    )
    return changed is not None


async def redeliver(tx: Transaction, hook: Hook, audit: AuditEntry | None) -> bool:
    """See `StoreOperator.redeliver`."""
    teller = await tx.db.fetchval(
        "UPDATE push_config SET state = 'open', tries = 0, due_at = 0, changed_at = $3"
        " WHERE task_id = $1 AND id = $2 AND state = 'dead' RETURNING teller",
        hook.task_id,
        hook.config.id.encode(),
        tx.now,
    )
    if teller is None:
        return False
    tx.note(audit, task_path(hook.scope, hook.task_id))
    tx.hook(hook.task_id, teller)
    return True


async def of_task(db: Database, scope: Scope, task_id: str) -> Sequence[Hook]:
    """See `HookStore.hooks`; to be called in one snapshot."""
    seen = await db.fetchval(
        "SELECT t.id FROM task t JOIN scope s ON s.id = t.scope_id WHERE t.id = $1 AND t.visible"
        " AND s.tenant = $2 AND s.principal = $3 AND s.agent = $4",
        plain(task_id),
        scope.tenant,
        scope.principal,
        scope.agent,
    )
    if seen is None:
        raise TaskNotFound(task_id)
    rows = await db.fetch(f"SELECT {_COLUMNS} {_FROM} WHERE p.task_id = $1 ORDER BY p.id", seen)
    return [_hook(row) for row in rows]


async def open_hooks(db: Database, replica: int, task_id: str | None) -> Sequence[tuple[str, str, bool]]:
    """See `HookStore.open_hooks`: those that this server tells from here on, with what nobody else tells any more."""
    await db.execute(_TAKE, replica, task_id)
    rows = await db.fetch(_OPEN, replica, task_id)
    return [(task, config_id.decode(), waiting) for task, config_id, waiting in rows]


async def find(db: Database, replica: int, task_id: str, config_id: str) -> Hook | None:
    """See `HookStore.hook`: `None` too if another server tells it."""
    row = await db.fetchrow(_FIND, replica, task_id, config_id.encode())
    return None if row is None else _hook(row)


async def page(db: Database, state: HookState | None, after: tuple[str, str], limit: int) -> Sequence[Hook]:
    """See `StoreOperator.hooks`."""
    # The state stands in the statement, so that its index is used.
    of_state = "" if state is None else f" AND p.state = '{state.value}'"
    rows = await db.fetch(
        f"SELECT {_COLUMNS} {_FROM} WHERE (p.task_id, p.id) > ($1, $2){of_state}"
        " ORDER BY p.task_id, p.id LIMIT $3",
        plain(after[0]),
        after[1].encode(),
        limit,
    )
    return [_hook(row) for row in rows]


async def to_tell(db: Database, task_id: str, after: int) -> Sequence[TaskEvent]:
    """See `HookStore.to_tell`."""
    rows = await db.fetch(
        "SELECT t.context_id, e.seq, e.attempt, e.at, e.payload FROM task t JOIN event e ON e.task_id = t.id"
        f" WHERE t.id = $1 AND e.seq > $2 ORDER BY e.seq LIMIT {MOST_EVENTS}",
        plain(task_id),
        after,
    )
    if not rows:
        return ()
    return events_at_once(task_id, rows[0][0].decode(), [row[1:] for row in rows])


def _hook(record: Sequence[Any]) -> Hook:
    values = list(record)
    for number in _BYTES:
        values[number] = values[number].decode()
    return hook_from_row(values)


_BYTES = (4, 6, 7)
"""The places of `_COLUMNS` that hold what callers name: id, URL and scheme."""
