"""What is kept of push notification configurations, and of what was told by them: values, and the port for them.

The event log is the outbox. A configuration holds the number of the last event that its receiver took, so what is still
to be told is committed with the events themselves, and costs them nothing.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from dragoman.gateway.audit import AuditEntry
from dragoman.model import Scope, TaskEvent


class HookState(StrEnum):
    """How far a configuration is.

    OPEN: there may be something to tell. DONE: its receiver took the last event that there can be. DEAD: its receiver
    did not take an event however often it was tried, so nothing more is tried until an operator says so.
    """

    OPEN = "open"
    DONE = "done"
    DEAD = "dead"


class KeptConfig(Struct, frozen=True, kw_only=True):
    """A configuration as it is kept: its secrets are sealed, and bound to the tenant and the origin of the URL."""

    id: str
    generation: str
    url: str
    scheme: str
    sealed: bytes


class Hook(Struct, frozen=True, kw_only=True):
    """A configuration and how far it is. Times are milliseconds.

    `sent` is the number of the last event that its receiver took, `tries` how often the one after it was sent in vain,
    and `error` what became of the last try. `waits` is how long the next try has to wait yet, `changed` when the state
    or the tries last did, since 1970 UTC. `visible` tells whether the task shows as one.
    """

    task_id: str
    scope: Scope
    config: KeptConfig
    state: HookState
    sent: int
    tries: int
    waits: int
    changed: int
    error: str
    visible: bool


class HookStore(Protocol):
    """Where push notification configurations are kept. What callers reach takes a Scope.

    Any method raises Unavailable when the store cannot do its work just now.
    """

    async def set_hook(
        self, scope: Scope, task_id: str, config: KeptConfig, *, audit: AuditEntry | None = None
    ) -> None:
        """Keep a configuration of a task, to be told from the next event on; one of the same id is replaced.

        What a replaced one had not been told yet is told by the new one, and it is tried again if it was given up.

        Raises:
            TaskNotFound: there is none in the scope.
            QuotaExceeded: the task has as many as it may.
        """
        ...

    async def hooks(self, scope: Scope, task_id: str) -> Sequence[Hook]:
        """Return the configurations of a task, in the order of their ids.

        Raises:
            TaskNotFound: there is none in the scope.
        """
        ...

    async def delete_hook(
        self, scope: Scope, task_id: str, config_id: str, *, audit: AuditEntry | None = None
    ) -> None:
        """Delete a configuration, if it is there.

        Raises:
            TaskNotFound: there is none in the scope.
        """
        ...

    async def open_hooks(self, task_id: str | None = None) -> Sequence[tuple[str, str, bool]]:
        """Return task and id of those that are OPEN, of one task or of all, and whether there are events to tell.

        Where servers share a store, each configuration is told by one of them at a time: these are those that this
        one tells from here on, among them all whose server is gone.
        """
        ...

    async def hook(self, task_id: str, config_id: str) -> Hook | None:
        """Return a configuration, for whoever tells it; `None` if it is gone, or another server tells it."""
        ...

    async def to_tell(self, task_id: str, after: int) -> Sequence[TaskEvent]:
        """Return some events of a task after a sequence number, the next ones first; none if there are none."""
        ...

    async def told(self, task_id: str, config_id: str, seq: int, *, done: bool) -> None:
        """Note that a receiver took the events up to `seq`; `done` if no more can follow."""
        ...

    async def not_told(self, hook: Hook, tries: int, error: str, *, wait: int | None) -> bool:
        """Note a try in vain: the next one after so many milliseconds, or none (DEAD) if `wait` is `None`.

        Nothing is noted, and false returned, if the configuration is not the one of `hook` any more.
        """
        ...

    def era(self) -> int:
        """Return a number that is another one once others may have taken over from this server, which hung."""
        ...

    def may_tell(self, era: int) -> bool:
        """Tell whether what was this server's to tell in an era is so still, for all that it can know by itself."""
        ...
