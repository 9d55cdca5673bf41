"""How many tasks tenants and their principals have, for quotas: counted once, and from then on kept in step.

A tenant is counted when its first message comes that a quota is to be held against, from the counters there are. Every
task that comes, shows, ends or goes after that moves its numbers by one, in memory: a send pays for no statement. What
makes them doubtful, such as a rollback or another process that wrote to the file, has them counted anew.
"""

from collections.abc import Callable
from typing import Any

from dragoman.gateway.quota import Tally
from dragoman.model import Scope, TaskState

_UNFINISHED = [state.name.lower() for state in TaskState if not state.is_terminal]
_ALL = [state.name.lower() for state in TaskState]
_COUNTED = (
    f"SELECT s.id, s.principal, coalesce({' + '.join(_UNFINISHED)}, 0), coalesce({' + '.join(_ALL)}, 0)"
    " FROM scope s LEFT JOIN counter c ON c.scope_id = s.id AND c.context_id = '' WHERE s.tenant = ?"
)
# Those that may still turn out to be bare messages are in no counter. They never wait for a caller.
_HIDDEN = (
    "SELECT t.scope_id, count(*) FROM task t INDEXED BY task_running"
    " WHERE t.state IN (1, 2) AND NOT t.visible GROUP BY t.scope_id"
)


class Tallies:
    """The tallies of the tenants that have been counted. For the writer thread alone."""

    def __init__(self) -> None:
        self._tenants: dict[str, tuple[Tally, dict[str, Tally]]] = {}
        self._homes: dict[int, tuple[Tally, Tally]] = {}

    def of(
        self, scope: Scope, execute: Callable[..., Any], settle: Callable[[], None]
    ) -> tuple[Tally, Tally]:
        """Return the tallies of a principal and of its tenant, which is counted if it has not been.

        Args:
            scope: whose.
            execute: reads what is to be counted.
            settle: writes the counters that are still to be written, which is done before they are read.
        """
        found = self._tenants.get(scope.tenant)
        if found is None:
            settle()
            found = self._count(scope.tenant, execute)
        tenant, principals = found
        return principals.get(scope.principal) or Tally(), tenant

    def add(self, scope: Scope, scope_id: int) -> None:
        """Note that there is a new scope."""
        found = self._tenants.get(scope.tenant)
        if found is not None:
            tenant, principals = found
            self._homes[scope_id] = (principals.setdefault(scope.principal, Tally()), tenant)

    def move(self, scope_id: int, *, running: int = 0, stored: int = 0) -> None:
        """Note that there are more or fewer tasks of a scope by so many."""
        for tally in self._homes.get(scope_id, ()):
            tally.running += running
            tally.stored += stored

    def forget(self) -> None:
        """Count anew when the numbers are needed again."""
        self._tenants.clear()
        self._homes.clear()

    def _count(self, tenant: str, execute: Callable[..., Any]) -> tuple[Tally, dict[str, Tally]]:
        hidden = dict(execute(_HIDDEN).fetchall())
        whole, principals = Tally(), dict[str, Tally]()
        for scope_id, principal, unfinished, stored in execute(_COUNTED, (tenant,)).fetchall():
            own = principals.setdefault(principal, Tally())
            self._homes[scope_id] = (own, whole)
            self.move(scope_id, running=unfinished + hidden.get(scope_id, 0), stored=stored)
        self._tenants[tenant] = whole, principals
        return whole, principals
