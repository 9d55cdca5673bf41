"""Runs of callers of one agent, to be queued."""

from dragoman.gateway.ports import Lease, RunRef, RunRequest
from dragoman.model import Scope, TaskState


def scope_of(caller: str, agent: str = "agent") -> Scope:
    """Where a caller's tasks with an agent are."""
    return Scope("tenant", caller, agent)


def run_of(caller: str, task_id: str, agent: str = "agent") -> RunRef:
    """A new run."""
    return RunRef(
        scope=scope_of(caller, agent),
        lease=Lease(task_id, 1),
        context_id="context",
        attempt=1,
        deadline_at=0,
        request=RunRequest(),
        messages=(),
        state=TaskState.SUBMITTED,
        visible=True,
    )
