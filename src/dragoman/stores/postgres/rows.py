"""Rows of PostgreSQL as values: tasks as they are held while they are written to, and the scopes they are in."""

from collections.abc import Sequence
from typing import Any

from dragoman.model import Scope, TaskState
from dragoman.stores.rows import TaskRow

NOBODY = 0
"""The owner of a run that no server has: it waits for its caller, or for whoever executes it."""


OURS = "NOT EXISTS (SELECT 1 FROM dispatch d WHERE d.task_id = t.id)"
"""The condition that a row `t` of `task` is no run of an engine outside, which looks after those that it executes."""


class HeldRow(TaskRow):
    """A task's row that is locked by this transaction, with what taking a run up changes.

    Attributes:
        version: what the database knows the row by as it is (`xmin`), if it is remembered; a change gives it another.
    """

    owner: int = 0
    deadline_at: int = 0
    parked_at: int | None = None
    parked_ms: int = 0
    version: int = 0


COLUMNS = (
    "id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq, epoch, attempt, dispatch,"
    " owner, deadline_at, parked_at, parked_ms"
)
"""The columns of a HeldRow, in order."""


def held_row(record: Sequence[Any]) -> HeldRow:
    """Return the row that `COLUMNS` were read of."""
    task_id, scope_id, context_id, visible, counted, state, *rest = record
    return HeldRow(task_id, scope_id, context_id.decode(), visible, counted, TaskState(state), *rest)


def scope_from(record: Sequence[Any]) -> Scope:
    """Return the scope of a record that begins with tenant, principal and agent."""
    return Scope(record[0], record[1], record[2])
