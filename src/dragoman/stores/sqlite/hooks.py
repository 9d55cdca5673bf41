"""Push notification configurations on SQLite: what callers keep, and how far their receivers are."""

import sqlite3
from collections.abc import Sequence

from dragoman.gateway.audit import AuditEntry, task_path
from dragoman.gateway.hooks import Hook, HookState, KeptConfig
from dragoman.model import Scope, TaskEvent
from dragoman.model.errors import TaskNotFound
from dragoman.stores.hooks import MOST_EVENTS, events_at_once, hook_from_row
from dragoman.stores.hooks import check_room as check_others
from dragoman.stores.sqlite.queries import scope_id as scope_number
from dragoman.stores.sqlite.rows import find as find_task
from dragoman.stores.sqlite.rows import scope_id
from dragoman.stores.sqlite.writer import Transaction

_COLUMNS = (
    "p.task_id, s.tenant, s.principal, s.agent, p.id, p.generation, p.url, p.scheme, p.sealed, p.state, p.sent,"
    " p.tries, max(0, p.due_at - (SELECT now_ms FROM store_clock)), p.changed_at, p.error, t.visible"
)
_OF_TASK = "FROM push_config p CROSS JOIN task t ON t.id = p.task_id"
_FROM = f"{_OF_TASK} JOIN scope s ON s.id = t.scope_id"

# A receiver that took the last event there can be has nothing more to be told, whoever replaces what.
_PUT = (
    "INSERT INTO push_config (task_id, id, generation, url, scheme, sealed, state, sent, changed_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET generation = excluded.generation,"
    " url = excluded.url, scheme = excluded.scheme, sealed = excluded.sealed,"
    " state = CASE state WHEN 'done' THEN 'done' ELSE 'open' END, tries = 0, due_at = 0,"
    " changed_at = excluded.changed_at, error = ''"
)


def check_room(tx: Transaction, task_id: str, config_id: str) -> None:
    """Refuse one more configuration of a task that has as many as it may.

    Raises:
        QuotaExceeded.
    """
    others = tx.execute(
        "SELECT count(*) FROM push_config WHERE task_id = ? AND id <> ?", (task_id, config_id)
    ).fetchone()[0]
    check_others(task_id, others)


def put(tx: Transaction, task_id: str, config: KeptConfig, *, sent: int, done: bool = False) -> None:
    """Keep a configuration, to be told what comes after the event `sent`, or replace that of its id."""
    state = HookState.DONE if done else HookState.OPEN
    tx.execute(
        _PUT,
        (
            task_id,
            config.id,
            config.generation,
            config.url,
            config.scheme,
            config.sealed,
            state,
            sent,
            tx.now,
        ),
    )
    tx.hooked.append(task_id)


def set_hook(
    tx: Transaction, scope: Scope, task_id: str, config: KeptConfig, audit: AuditEntry | None
) -> None:
    """See `HookStore.set_hook`."""
    row = find_task(tx, scope_id(tx, scope), task_id)
    if row is None:
        raise TaskNotFound(task_id)
    check_room(tx, task_id, config.id)
    tx.note(audit, task_path(scope, task_id))
    put(tx, task_id, config, sent=row.seq, done=row.state.is_terminal)


def delete_hook(
    tx: Transaction, scope: Scope, task_id: str, config_id: str, audit: AuditEntry | None
) -> None:
    """See `HookStore.delete_hook`."""
    if find_task(tx, scope_id(tx, scope), task_id) is None:
        raise TaskNotFound(task_id)
    tx.note(audit, task_path(scope, task_id))
    tx.execute("DELETE FROM push_config WHERE task_id = ? AND id = ?", (task_id, config_id))
    tx.hooked.append(task_id)


def told(tx: Transaction, task_id: str, config_id: str, seq: int, done: bool) -> None:
    """See `HookStore.told`."""
    tx.execute(
        "UPDATE push_config SET sent = ?, state = ?, tries = 0, due_at = 0, changed_at = ?, error = ''"
        " WHERE task_id = ? AND id = ? AND sent < ?",
        (seq, HookState.DONE if done else HookState.OPEN, tx.now, task_id, config_id, seq),
    )


def not_told(tx: Transaction, hook: Hook, tries: int, error: str, wait: int | None) -> bool:
    """See `HookStore.not_told`."""
    # No two sealings are alike, so they tell a configuration from what replaced it.
    changed = tx.execute(
        "UPDATE push_config SET tries = ?, error = ?, changed_at = ?, due_at = ?, state = ?"
        " WHERE task_id = ? AND id = ? AND state = 'open' AND sealed = ?",
        (
            tries,
            error,
            tx.now,
            tx.now + (wait or 0),
            HookState.DEAD if wait is None else HookState.OPEN,
            hook.task_id,
            hook.config.id,
            hook.config.sealed,
        ),
    ).rowcount
    return bool(changed)


def redeliver(tx: Transaction, hook: Hook, audit: AuditEntry | None) -> bool:
    """See `StoreOperator.redeliver`."""
    changed = tx.execute(
        "UPDATE push_config SET state = 'open', tries = 0, due_at = 0, changed_at = ?"
        " WHERE task_id = ? AND id = ? AND state = 'dead'",
        (tx.now, hook.task_id, hook.config.id),
    ).rowcount
    if changed:
        tx.note(audit, task_path(hook.scope, hook.task_id))
    return bool(changed)


def of_task(db: sqlite3.Connection, scope: Scope, task_id: str) -> Sequence[Hook]:
    """See `HookStore.hooks`."""
    number = scope_number(db, scope)
    seen = db.execute("SELECT 1 FROM task WHERE id = ? AND scope_id = ? AND visible", (task_id, number))
    if number is None or seen.fetchone() is None:
        raise TaskNotFound(task_id)
    rows = db.execute(f"SELECT {_COLUMNS} {_FROM} WHERE p.task_id = ? ORDER BY p.id", (task_id,))
    return [hook_from_row(row) for row in rows]


def open_hooks(db: sqlite3.Connection, task_id: str | None) -> Sequence[tuple[str, str, bool]]:
    """See `HookStore.open_hooks`."""
    found = f"SELECT p.task_id, p.id, t.seq > p.sent {_OF_TASK} WHERE p.state = 'open'"
    rows = db.execute(found) if task_id is None else db.execute(f"{found} AND p.task_id = ?", (task_id,))
    return [(task, config_id, bool(waiting)) for task, config_id, waiting in rows]


def find(db: sqlite3.Connection, task_id: str, config_id: str) -> Hook | None:
    """See `HookStore.hook`."""
    row = db.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE p.task_id = ? AND p.id = ?", (task_id, config_id)
    ).fetchone()
    return None if row is None else hook_from_row(row)


def page(
    db: sqlite3.Connection, state: HookState | None, after: tuple[str, str], limit: int
) -> Sequence[Hook]:
    """See `StoreOperator.hooks`."""
    # The state stands in the statement, so that its index is used.
    of_state = "" if state is None else f" AND p.state = '{state.value}'"
    rows = db.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE (p.task_id, p.id) > (?, ?){of_state} ORDER BY p.task_id, p.id LIMIT ?",
        (*after, limit),
    )
    return [hook_from_row(row) for row in rows]


def to_tell(db: sqlite3.Connection, task_id: str, after: int) -> Sequence[TaskEvent]:
    """See `HookStore.to_tell`."""
    task = db.execute("SELECT context_id FROM task WHERE id = ?", (task_id,)).fetchone()
    if task is None:
        return ()
    rows = db.execute(
        "SELECT seq, attempt, at, payload FROM event WHERE task_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (task_id, after, MOST_EVENTS),
    )
    events = events_at_once(task_id, task[0], rows)
    rows.close()
    return events
