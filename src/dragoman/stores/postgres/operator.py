"""An operator at work on a PostgreSQL store, beside running servers or without any.

A write is one transaction of its own, of which servers are told.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.hooks import Hook, HookState
from dragoman.gateway.ports import Purged
from dragoman.gateway.remotes import Remote, Seal
from dragoman.model import Cursor, Filters, Scope, TaskEvent, TaskFold, TaskPage, TaskState
from dragoman.model.errors import TaskNotFound, Unavailable
from dragoman.stores.operating import StoreOperator, Wanted
from dragoman.stores.postgres import commands, hooks, purge, queries, remotes
from dragoman.stores.postgres.connection import FAILURES, Database, cause_of, connect
from dragoman.stores.postgres.migrating import check_current, unreachable
from dragoman.stores.postgres.replicas import ARE_SERVED, OPERATOR
from dragoman.stores.postgres.transaction import Transaction, Work
from dragoman.stores.postgres.writer import tell
from dragoman.stores.target import Target

T = TypeVar("T")


OPERATOR_SECONDS = 60.0
"""How long a statement may take that an operator waits for: some count all tasks."""


class Operator(StoreOperator):
    """See `StoreOperator`. For a thread that runs no event loop."""

    def __init__(self, target: Target) -> None:
        """Connect.

        Raises:
            StoreError: the database cannot be used, or is no store of the newest schema.
        """
        self._target = target
        self._runner = asyncio.Runner()
        try:
            self._connection: Any = self._runner.run(connect(target, seconds=OPERATOR_SECONDS))
        except FAILURES as error:
            self._runner.close()
            raise unreachable(target, error) from error
        try:
            self._run(lambda db: check_current(db, target))
            self.scopes = self._run(queries.scopes)
        except BaseException:
            self.close()
            raise

    def page(self, filters: Filters, size: int, cursor: Cursor | None) -> TaskPage:
        """See `StoreOperator.page`."""
        return self._run(lambda db: queries.page(db, filters, size, cursor, 0, False, None))

    def find(self, task_id: str, *, hidden: bool = False) -> tuple[Scope, TaskFold] | None:
        """See `StoreOperator.find`."""

        async def found(db: Database) -> tuple[Scope, TaskFold] | None:
            scope = await queries.scope_of(db, task_id)
            if scope is None:
                return None
            try:
                read = await queries.read(db, scope, task_id, hidden, None)
            except TaskNotFound:
                return None
            return scope, read.fold()

        return self._run(found)

    def events(self, task_id: str) -> tuple[TaskEvent, ...]:
        """See `StoreOperator.events`."""
        context_id, rows = self._run(lambda db: queries.events(db, task_id, 0))
        return queries.events_of(task_id, context_id, rows)

    def now(self) -> int:
        """See `StoreOperator.now`."""
        now: int = self._run(lambda db: db.fetchval("SELECT now_ms FROM store_clock"))
        return now

    def is_served(self) -> bool:
        """See `StoreOperator.is_served`."""
        return bool(self._run(lambda db: db.fetchval(ARE_SERVED)))

    def cancel(self, scope: Scope, task_id: str, audit: AuditEntry | None = None) -> TaskEvent:
        """See `StoreOperator.cancel`."""
        return self._write(lambda tx: commands.cancel(tx, scope, task_id, audit), scope, task_id)

    def note(self, entry: AuditEntry) -> None:
        """See `StoreOperator.note`."""

        async def noted(tx: Transaction) -> None:
            tx.note(entry, entry.target, entry.outcome, entry.detail)

        self._write(noted)

    def count(self, before: Mapping[TaskState, int], agent: str) -> int:
        """See `StoreOperator.count`."""
        return self._run(lambda db: purge.count(db, Wanted(before, agent)))

    def purge(self, before: Mapping[TaskState, int], agent: str, place: str) -> Purged:
        """See `StoreOperator.purge`."""
        return self._write(lambda tx: purge.step(tx, Wanted(before, agent), place, thorough=True))

    def purge_task(self, scope: Scope, task_id: str) -> None:
        """See `StoreOperator.purge_task`."""
        self._write(lambda tx: purge.purge_task(tx, scope, task_id), scope, task_id)

    def hooks(self, state: HookState | None, after: tuple[str, str], limit: int) -> Sequence[Hook]:
        """See `StoreOperator.hooks`."""
        return self._run(lambda db: hooks.page(db, state, after, limit))

    def redeliver(self, hook: Hook, audit: AuditEntry | None = None) -> bool:
        """See `StoreOperator.redeliver`."""
        return self._write(lambda tx: hooks.redeliver(tx, hook, audit))

    def remotes(self, tenant: str, after: str, limit: int) -> Sequence[Remote]:
        """See `StoreOperator.remotes`."""
        return self._run(lambda db: remotes.page(db, tenant, after, limit))

    def seals(self) -> Sequence[Seal]:
        """See `StoreOperator.seals`."""
        return self._run(remotes.seals)

    def add_remote(self, remote: Remote, audit: AuditEntry | None = None) -> Remote:
        """See `StoreOperator.add_remote`."""
        return self._write(lambda tx: remotes.add(tx, remote, audit))

    def remove_remote(self, remote: Remote, audit: AuditEntry | None = None) -> None:
        """See `StoreOperator.remove_remote`."""
        self._write(lambda tx: remotes.remove(tx, remote.tenant, remote.id, audit))

    def close(self) -> None:
        """See `StoreOperator.close`."""
        self._connection.terminate()
        self._runner.close()

    def _run(self, query: Callable[[Database], Coroutine[Any, Any, T]], *, writes: bool = False) -> T:
        async def run() -> T:
            isolation = None if writes else "repeatable_read"
            async with self._connection.transaction(isolation=isolation, readonly=not writes):
                return await query(self._connection)

        try:
            return self._runner.run(run())
        except FAILURES as error:
            nothing = ". Nothing was written" if writes else ""
            raise Unavailable(
                f"The store {self._target} {cause_of(error) or 'does not answer'} ({error}){nothing}"
            ) from error

    def _write(
        self,
        act: Callable[[Transaction], Coroutine[Any, Any, T]],
        scope: Scope | None = None,
        task_id: str = "",
    ) -> T:
        """Have `act` write in a transaction; it looks at one task at most, which is named."""

        async def write(db: Database) -> T:
            await check_current(db, self._target)
            transaction = Transaction(db, OPERATOR, {})
            await transaction.prepare(
                [Work(act=act, tasks=(task_id,) if task_id else (), scopes=(scope,) if scope else ())]
            )
            result = await act(transaction)
            await transaction.finish()
            await tell(transaction)
            return result

        return self._run(write, writes=True)
