"""The part of the PostgreSQL store that is its `RemoteStore`."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.remotes import Delegation, Outcome, Remote, RemoteChange, RemoteStore, Seal
from dragoman.stores.postgres import remotes
from dragoman.stores.postgres.connection import Database
from dragoman.stores.postgres.transaction import Transaction

T = TypeVar("T")


class PostgresRemotes(RemoteStore):
    """Implements `RemoteStore` by the reads and the writes of the store that it is part of."""

    @abstractmethod
    async def _read(
        self, query: Callable[[Database], Coroutine[Any, Any, T]], *, snapshot: bool = False
    ) -> T: ...

    @abstractmethod
    async def _write(self, act: Callable[[Transaction], Awaitable[T]]) -> T: ...

    async def add_remote(self, remote: Remote, *, audit: AuditEntry | None = None) -> Remote:
        """See `RemoteStore.add_remote`."""
        return await self._write(lambda tx: remotes.add(tx, remote, audit))

    async def remotes(self, tenant: str, *, after: str, limit: int) -> Sequence[Remote]:
        """See `RemoteStore.remotes`."""
        return await self._read(lambda db: remotes.page(db, tenant, after, limit))

    async def remote(self, tenant: str, remote_id: str) -> Remote:
        """See `RemoteStore.remote`."""
        return await self._read(lambda db: remotes.find(db, tenant, remote_id))

    async def remotes_named(self, tenant: str, name: str) -> Sequence[Remote]:
        """See `RemoteStore.remotes_named`."""
        return await self._read(lambda db: remotes.named(db, tenant, name))

    async def change_remote(
        self, tenant: str, remote_id: str, change: RemoteChange, *, audit: AuditEntry | None = None
    ) -> Remote:
        """See `RemoteStore.change_remote`."""
        return await self._write(lambda tx: remotes.change(tx, tenant, remote_id, change, audit))

    async def remove_remote(self, tenant: str, remote_id: str, *, audit: AuditEntry | None = None) -> None:
        """See `RemoteStore.remove_remote`."""
        await self._write(lambda tx: remotes.remove(tx, tenant, remote_id, audit))

    async def begin_delegation(
        self, delegation: Delegation, *, audit: AuditEntry | None = None
    ) -> tuple[Delegation, Remote | None]:
        """See `RemoteStore.begin_delegation`."""
        return await self._write(lambda tx: remotes.begin(tx, delegation, audit))

    async def settle_delegation(
        self, delegation: Delegation, outcome: Outcome, *, audit: AuditEntry | None = None
    ) -> Delegation:
        """See `RemoteStore.settle_delegation`."""
        return await self._write(lambda tx: remotes.settle(tx, delegation, outcome, audit))

    async def delegation(self, tenant: str, principal: str, delegation_id: str) -> Delegation:
        """See `RemoteStore.delegation`."""
        return await self._read(lambda db: remotes.find_delegation(db, tenant, principal, delegation_id))

    async def delegation_of(self, tenant: str, principal: str, task_id: str) -> Delegation | None:
        """See `RemoteStore.delegation_of`."""
        return await self._read(lambda db: remotes.known_as(db, tenant, principal, task_id))

    async def abandon_delegation(self, delegation: Delegation) -> Delegation:
        """See `RemoteStore.abandon_delegation`."""
        return await self._write(lambda tx: remotes.abandon_one(tx, delegation))

    async def abandon_delegations(self) -> int:
        """See `RemoteStore.abandon_delegations`."""
        return await self._write(remotes.abandon)

    async def seals(self) -> Sequence[Seal]:
        """See `RemoteStore.seals`."""
        return await self._read(remotes.seals)
