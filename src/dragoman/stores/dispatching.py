"""Rows of runs that an engine outside executes, as values."""

from collections.abc import Sequence
from typing import Any

from dragoman.gateway.dispatching import DispatchedRun, Notice
from dragoman.gateway.ports import LostRun
from dragoman.model import Scope, TaskState

COLUMNS = (
    "d.task_id, d.notice, d.epoch, d.tries, t.state, t.epoch, t.attempt, t.dispatch,"
    " s.tenant, s.principal, s.agent"
)
"""The columns of a DispatchedRun, in order; whether it is held comes after them."""

JOINED = "dispatch d LEFT JOIN task t ON t.id = d.task_id LEFT JOIN scope s ON s.id = t.scope_id"


def dispatched(row: Sequence[Any]) -> DispatchedRun:
    """Return the run of a row."""
    task_id, notice, noted, tries, state, epoch, attempt, dispatch, *names, is_held = row
    run = None
    if state is not None:
        run = LostRun(
            scope=Scope(*names), task_id=task_id, epoch=epoch, attempt=attempt, entered=dispatch != "pending"
        )
    return DispatchedRun(
        task_id=task_id,
        notice=Notice(notice),
        epoch=noted,
        tries=tries,
        run=run,
        state=TaskState(state) if state is not None else None,
        is_held=bool(is_held),
    )
