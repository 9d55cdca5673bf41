"""Runs as operators see them, over all scopes. Reads a bounded number of rows, whatever the filters let through."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from dragoman.gateway.operating import RunFilters, RunView
from dragoman.model import Scope, TaskState

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
        view = _view(row)
        if _passes(view, filters):
            found.append(view)
            if len(found) == limit:
                return found, place
    return found, place if seen == LOOKED_AT else ""


def run(db: sqlite3.Connection, task_id: str) -> RunView | None:
    """See `RunStore.run`."""
    row = db.execute(f"{_SELECT} WHERE t.id = ?", (task_id,)).fetchone()
    return _view(row) if row is not None else None


def _passes(view: RunView, filters: RunFilters) -> bool:
    return (
        filters.tenant in ("", view.scope.tenant)
        and filters.principal in ("", view.scope.principal)
        and filters.agent in ("", view.scope.agent)
        and filters.state in (None, view.state)
    )


def _view(row: Sequence[Any]) -> RunView:
    (
        task_id,
        tenant,
        principal,
        agent,
        context_id,
        state,
        since,
        created_at,
        deadline_at,
        attempt,
        dispatch,
    ) = row
    return RunView(
        task_id=task_id,
        scope=Scope(tenant, principal, agent),
        context_id=context_id,
        state=TaskState(state),
        since=since,
        created_at=created_at,
        deadline_at=deadline_at,
        attempt=attempt,
        waits=dispatch == "pending",
        parked=dispatch == "parked",
    )
