"""What a caller may still see: grants count as they are now, not as they were when a run was begun."""

from typing import Protocol

from dragoman.gateway.ports import TaskStore
from dragoman.model import Principal

LOOK = 1.0
"""Seconds after which a quiet stream looks again whether its caller may still see it."""


class Grants(Protocol):
    """What principals are granted, asked anew whenever it matters."""

    def may_enter(self, principal: Principal, workspace: str) -> bool:
        """Tell whether a principal is granted a workspace, now."""
        ...

    def may_use(self, principal: Principal, source: str) -> bool:
        """Tell whether a principal is granted a source, now."""
        ...


class Access:
    """One caller's grants on what the runs of one workspace hold."""

    __slots__ = ("_grants", "_principal", "_workspace")

    def __init__(self, grants: Grants, principal: Principal, workspace: str) -> None:
        self._grants = grants
        self._principal = principal
        self._workspace = workspace

    @property
    def is_lost(self) -> bool:
        """Whether the caller may see nothing of the workspace any more."""
        return not self._grants.may_enter(self._principal, self._workspace)

    def lacks(self, source: str) -> bool:
        """Tell whether the caller may not see what comes from a source."""
        return not self._grants.may_use(self._principal, source)

    async def withholds(self, store: TaskStore, task_id: str) -> bool:
        """Tell whether what a task holds is to be kept from the caller.

        To be asked after the task was read: a run records a source before it gives anything that comes from it.
        """
        return self.is_lost or any(map(self.lacks, await store.sources(task_id)))


async def is_withheld(access: Access | None, store: TaskStore, task_id: str) -> bool:
    """Tell whether what a task holds is to be kept from a caller with this access; `None` sees everything."""
    return access is not None and await access.withholds(store, task_id)
