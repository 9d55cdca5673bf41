"""How many tasks tenants and their principals have, for quotas: counted once, and from then on kept in step.

Every task that comes, shows, ends or goes moves the numbers by one, in memory: a send pays for no statement.
"""

from collections.abc import Iterable

from dragoman.gateway.quota import Tally
from dragoman.model import Scope, TaskState

UNFINISHED = tuple(state for state in TaskState if not state.is_terminal)
"""The states of tasks that count as running."""

Counted = tuple[int, str, int, int]
"""The number of a scope, its principal, and how many tasks of it are running and stored."""


class Tallies:
    """The tallies of the tenants that have been counted. For the writer of a store alone."""

    def __init__(self) -> None:
        self._tenants: dict[str, tuple[Tally, dict[str, Tally]]] = {}
        self._homes: dict[int, tuple[Tally, Tally]] = {}

    def find(self, scope: Scope) -> tuple[Tally, Tally] | None:
        """Return the tallies of a principal and of its tenant, if that was counted."""
        found = self._tenants.get(scope.tenant)
        if found is None:
            return None
        tenant, principals = found
        return principals.get(scope.principal) or Tally(), tenant

    def fill(self, tenant: str, counted: Iterable[Counted]) -> None:
        """Note what was counted of a tenant."""
        whole, principals = Tally(), dict[str, Tally]()
        self._tenants[tenant] = whole, principals
        for scope_id, principal, running, stored in counted:
            self._homes[scope_id] = (principals.setdefault(principal, Tally()), whole)
            self.move(scope_id, running=running, stored=stored)

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
