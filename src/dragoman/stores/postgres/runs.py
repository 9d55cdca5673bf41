"""Runs as operators see them, over all scopes. Reads a bounded number of rows, whatever the filters let through."""

from collections.abc import Sequence
from typing import Any

from dragoman.gateway.operating import RunFilters, RunView
from dragoman.stores.postgres.connection import Database, plain
from dragoman.stores.records import passes, run_from_row

LOOKED_AT = 2000
"""Runs that are looked at for one page at most."""

_SELECT = (
    "SELECT t.id, s.tenant, s.principal, s.agent, t.context_id, t.state, t.status_at, t.created_at, t.deadline_at,"
    " t.attempt, t.dispatch FROM task t JOIN scope s ON s.id = t.scope_id"
)
_LAST = "~"
"""Comes after every id."""


async def runs(db: Database, filters: RunFilters, before: str, limit: int) -> tuple[Sequence[RunView], str]:
    """See `RunStore.runs`."""
    rows = await db.fetch(
        f"{_SELECT} WHERE t.id < $1 ORDER BY t.id DESC LIMIT {LOOKED_AT}", plain(before) or _LAST
    )
    found: list[RunView] = []
    for row in rows:
        view = _run(row)
        if passes(view, filters):
            found.append(view)
            if len(found) == limit:
                return found, view.task_id
    return found, rows[-1][0] if len(rows) == LOOKED_AT else ""


async def run(db: Database, task_id: str) -> RunView | None:
    """See `RunStore.run`."""
    row = await db.fetchrow(f"{_SELECT} WHERE t.id = $1", plain(task_id))
    return _run(row) if row is not None else None


def _run(record: Sequence[Any]) -> RunView:
    values = list(record)
    values[4] = values[4].decode()
    return run_from_row(values)
