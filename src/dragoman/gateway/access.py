"""What a caller may still see: grants count as they are now, not as they were when a run was begun."""

from collections.abc import Iterable
from typing import Protocol

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

    def withholds(self, sources: Iterable[str]) -> bool:
        """Tell whether what comes from these sources is to be kept from the caller."""
        return self.is_lost or any(map(self.lacks, sources))


def is_withheld(access: Access | None, sources: Iterable[str]) -> bool:
    """Tell whether what comes from these sources is to be kept from a caller; without an `access` nothing is."""
    return access is not None and access.withholds(sources)
