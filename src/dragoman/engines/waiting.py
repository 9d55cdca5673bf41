"""Runs that wait for a place, in the order in which they get one."""

from collections import deque

from dragoman.gateway.ports import Lease, RunRef
from dragoman.model import Scope


class WaitingRuns:
    """The waiting runs of one agent. Its callers take turns; each one's own runs go by the order of arrival.

    So the first run of a caller has at most one run of every other caller before it, however many those have waiting.
    """

    def __init__(self) -> None:
        self._turns: deque[Scope] = deque()
        self._runs: dict[Scope, deque[RunRef]] = {}

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, run: RunRef) -> None:
        """Have a run wait."""
        runs = self._runs.get(run.scope)
        if runs is None:
            runs = self._runs[run.scope] = deque()
            self._turns.append(run.scope)
        runs.append(run)

    @property
    def first(self) -> RunRef:
        """The run whose turn it is; there must be one."""
        return self._runs[self._turns[0]][0]

    def remove_first(self) -> None:
        """Take the first run away; its caller's next one comes after those of the others."""
        scope = self._turns.popleft()
        runs = self._runs[scope]
        runs.popleft()
        if runs:
            self._turns.append(scope)
        else:
            del self._runs[scope]

    def leases(self) -> list[Lease]:
        """Return the leases of all that wait."""
        return [run.lease for runs in self._runs.values() for run in runs]

    def remove(self, task_id: str, lease: Lease | None = None) -> RunRef | None:
        """Take the run of a task away, or only one that has `lease`, and return it if it was there."""
        for scope, runs in self._runs.items():
            for place, run in enumerate(runs):
                if run.lease.task_id == task_id and lease in (None, run.lease):
                    del runs[place]
                    if not runs:
                        del self._runs[scope]
                        self._turns.remove(scope)
                    return run
        return None
