"""A store in the hands of an operator: what commands do beside a running server, or without one."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.hooks import Hook, HookState
from dragoman.gateway.ports import Purged
from dragoman.gateway.remotes import Remote, Seal
from dragoman.model import Cursor, Filters, Scope, TaskEvent, TaskFold, TaskPage, TaskState


class Wanted(Struct, frozen=True):
    """What is to be purged: tasks, of one agent if it is named, that ended before the time that their state has."""

    before: Mapping[TaskState, int]
    agent: str = ""


class StoreOperator(Protocol):
    """A store in the hands of an operator. Every task is still reached through a Scope.

    A write is one short transaction of its own; servers notice it within their heartbeat. Any method raises Unavailable
    when the store cannot do its work, and StoreError if it has another schema.

    Attributes:
        scopes: all scopes that there are.
    """

    scopes: Sequence[Scope]

    def page(self, filters: Filters, size: int, cursor: Cursor | None) -> TaskPage:
        """Return one page of a scope's tasks, newest first."""
        ...

    def find(self, task_id: str, *, hidden: bool = False) -> tuple[Scope, TaskFold] | None:
        """Return a task and the scope it belongs to, whichever that is; `None` if there is none.

        With `hidden` also a run that does not show as a task.
        """
        ...

    def events(self, task_id: str) -> tuple[TaskEvent, ...]:
        """Return all events of a task that was found before.

        Raises:
            TaskNotFound: it was purged meanwhile.
        """
        ...

    def now(self) -> int:
        """Return the time by the store's clock, in milliseconds since 1970 UTC."""
        ...

    def is_served(self) -> bool:
        """Tell whether a server uses the store, by its heartbeat."""
        ...

    def cancel(self, scope: Scope, task_id: str, audit: AuditEntry | None = None) -> TaskEvent:
        """Cancel a task; `audit` is what to note of it, if anything.

        Raises:
            TaskNotFound, TaskNotCancelable.
        """
        ...

    def note(self, entry: AuditEntry) -> None:
        """Add to the audit."""
        ...

    def count(self, before: Mapping[TaskState, int], agent: str) -> int:
        """Return how many tasks `purge` would delete; looks at every task there is."""
        ...

    def purge(self, before: Mapping[TaskState, int], agent: str, place: str) -> Purged:
        """Take one step of a thorough purge of tasks that ended before the time of their final state.

        Those of one agent, or, with an empty name, of all. Places are as in `TaskStore.purge`. Without times it only
        finishes what was begun.
        """
        ...

    def purge_task(self, scope: Scope, task_id: str) -> None:
        """Delete one finished task; what is left of a large one is deleted by the next steps of any purge.

        Raises:
            TaskNotFound, UnsupportedOperation.
        """
        ...

    def hooks(self, state: HookState | None, after: tuple[str, str], limit: int) -> Sequence[Hook]:
        """Return push notification configurations, of one state or all, in the order of task and id.

        Those after a pair of task and id, which are empty at first.
        """
        ...

    def redeliver(self, hook: Hook, audit: AuditEntry | None = None) -> bool:
        """Have a configuration that was given up tried again; false if there is none such."""
        ...

    def remotes(self, tenant: str, after: str, limit: int) -> Sequence[Remote]:
        """Return registrations of a tenant, oldest first, after the one with the id `after`."""
        ...

    def seals(self) -> Sequence[Seal]:
        """See `RemoteStore.seals`."""
        ...

    def add_remote(self, remote: Remote, audit: AuditEntry | None = None) -> Remote:
        """Keep a registration, and return it as it is kept.

        Raises:
            QuotaExceeded.
        """
        ...

    def remove_remote(self, remote: Remote, audit: AuditEntry | None = None) -> None:
        """Remove a registration.

        Raises:
            RemoteNotFound.
        """
        ...

    def close(self) -> None:
        """Let the store go."""
        ...
