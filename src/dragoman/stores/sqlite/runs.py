"""Runs as operators see them, over all scopes. Reads a bounded number of rows, whatever the filters let through."""

import sqlite3
from collections.abc import Sequence

from dragoman.gateway.operating import RunFilters, RunView
from dragoman.stores.records import passes, run_from_row

LOOKED_AT = 2000
"""Runs that are looked at for one page at most."""

_SELECT = (
    "SELECT t.id, s.tenant, s.principal, s.agent, t.context_id, t.state, t.status_at, t.created_at, t.deadline_at,"
    " t.attempt, t.dispatch FROM task t JOIN scope s ON s.id = t.scope_id"
)
_LAST = "~"
"""Comes after every id."""


def runs(
    db: sqlite3.Connection, filters: RunFilters, before: str, limit: int
) -> tuple[Sequence[RunView], str]:
    """See `RunStore.runs`."""
    rows = db.execute(f"{_SELECT} WHERE t.id < ? ORDER BY t.id DESC LIMIT {LOOKED_AT}", (before or _LAST,))
    found: list[RunView] = []
    seen, place = 0, ""
    for row in rows:
        seen, place = seen + 1, row[0]
        view = run_from_row(row)
        if passes(view, filters):
            found.append(view)
            if len(found) == limit:
                return found, place
    return found, place if seen == LOOKED_AT else ""


def run(db: sqlite3.Connection, task_id: str) -> RunView | None:
    """See `RunStore.run`."""
    row = db.execute(f"{_SELECT} WHERE t.id = ?", (task_id,)).fetchone()
    return run_from_row(row) if row is not None else None
