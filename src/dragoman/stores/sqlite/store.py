"""The SQLite store: one writer thread, a reading connection for each thread that reads."""

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.dispatching import DispatchedRun
from dragoman.gateway.hooks import Hook, KeptConfig
from dragoman.gateway.operating import RunFilters, RunView
from dragoman.gateway.ports import (
    Acceptance,
    Accepted,
    ApprovalRequest,
    Commit,
    JournalEntry,
    Lease,
    LostRun,
    Placing,
    Purged,
)
from dragoman.gateway.remotes import ABANDONED, Delegation, Outcome, Remote, RemoteChange, Seal
from dragoman.gateway.tenants import Book, Kept
from dragoman.model import (
    Approval,
    Change,
    Cursor,
    Decision,
    Filters,
    Scope,
    StatusChange,
    TaskEvent,
    TaskFold,
    TaskPage,
    TaskState,
)
from dragoman.model.errors import Unavailable
from dragoman.stores import auditing
from dragoman.stores.book import version_of
from dragoman.stores.errors import StoreError
from dragoman.stores.sqlite import (
    accepting,
    approving,
    commands,
    dispatching,
    hooks,
    parking,
    purge,
    queries,
    remotes,
    runs,
)
from dragoman.stores.sqlite.connection import (
    explain,
    is_damage,
    open_reader,
    unavailable,
)
from dragoman.stores.sqlite.locks import write_lock_holder
from dragoman.stores.sqlite.migrating import open_store
from dragoman.stores.sqlite.ownership import Ownership
from dragoman.stores.sqlite.tenants import all_or_nothing, book_of, consult
from dragoman.stores.sqlite.writer import Transaction, Writer

CHECK_SECONDS = 2.0
"""How long a check waits for an answer: whoever asks whether a server is ready does not wait long."""

TELL_SECONDS = 30.0
"""Seconds between two log lines about the same trouble."""

_LOG = logging.getLogger("dragoman.store")

T = TypeVar("T")
LONG = 500
"""Events that are read on the calling loop: a few milliseconds' worth."""

CommitListener = Callable[[Commit], None]


class SqliteStore:
    """Implements `TaskStore`, `HookStore`, `RemoteStore`, `TenantStore` and `RunStore` (see `gateway`) on one file."""

    def __init__(
        self,
        path: Path,
        *,
        lease: float,
        on_lost: Callable[[], None],
        placing: Placing = Placing.HERE,
        on_noticed: Callable[[], None] | None = None,
    ) -> None:
        """Open the file and take it for this server. To be called on the serving loop.

        Args:
            path: the file; it and its folder are made if missing (folder 0700, file 0600).
            lease: how long a run stays ours without a renewal, in seconds.
            placing: who executes the runs of what is accepted.
            on_lost: called on the serving loop when another server took the file over.
            on_noticed: called on the serving loop when another process has written to the file.

        Raises:
            StoreError: the file cannot be used, or another server has it.
        """
        self._path = path
        self._lease_ms = int(lease * 1000)
        self._loop = asyncio.get_running_loop()
        self._listeners: list[CommitListener] = []
        self._on_lost = on_lost
        self._on_noticed = on_noticed or (lambda: None)
        self._threads = threading.local()
        # One thread: more of them would only take turns with each other, and the serving loop's turn would come later.
        self._long_reads = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._trouble = ""
        self._told_at = 0.0
        self._damage = ""
        connection = open_store(path)
        try:
            self._ownership = Ownership.take(connection, path)
        except StoreError:
            connection.close()
            raise
        self._connection = connection
        self._writer = Writer(
            connection,
            self._ownership,
            placing=placing,
            announce=self._announce,
            tend=lambda tx: commands.renew_leases(tx, self._lease_ms),
            tend_seconds=lease / 3,
            noticed=lambda: self._serve(self._on_noticed),
            lost=lambda: self._serve(self._on_lost),
            troubled=self._note,
        )
        self._writer.start()

    def close(self) -> None:
        """Finish what is being written and let the file go."""
        self._long_reads.shutdown(wait=False, cancel_futures=True)
        self._writer.stop()
        self._ownership.release(self._connection)
        self._connection.close()

    async def check(self) -> None:
        """Make sure that the store can be written to, and that nothing damaged was met in it.

        Raises:
            Unavailable: it is not so; the message is for the operator.
        """
        if self._damage:
            raise Unavailable(f"The task store {self._damage}")
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._writer.run(commands.probe)
        except TimeoutError:
            holder = write_lock_holder(self._path)
            locked = f": it is locked by {holder}" if holder is not None else ""
            raise Unavailable(f"The task store has not answered for {CHECK_SECONDS:g} s{locked}") from None
        except Unavailable as error:
            if isinstance(error.__cause__, sqlite3.Error):
                raise Unavailable(f"The task store {explain(error.__cause__, self._path)}") from error
            raise

    def on_commit(self, listener: CommitListener) -> None:
        """See `TaskStore.on_commit`."""
        self._listeners.append(listener)

    def accept(
        self, acceptance: Acceptance, *, decided: Callable[[], object] | None = None
    ) -> Awaitable[Accepted]:
        """See `TaskStore.accept`."""
        return self._writer.run(lambda tx: accepting.accept(tx, acceptance, self._lease_ms), decided)

    async def known(self, acceptance: Acceptance) -> Accepted | None:
        """See `TaskStore.known`."""
        return self._read(lambda db: queries.known(db, acceptance))

    def append(
        self, lease: Lease, changes: Sequence[Change], *, reveal: bool = False
    ) -> Awaitable[tuple[TaskEvent, ...]]:
        """See `TaskStore.append`."""
        return self._writer.run(lambda tx: commands.append(tx, lease, changes, reveal))

    async def wait(self, leases: Sequence[Lease]) -> None:
        """See `TaskStore.wait`."""
        await self._writer.run(lambda tx: commands.wait(tx, leases))

    async def enter(self, lease: Lease) -> None:
        """See `TaskStore.enter`."""
        await self._writer.run(lambda tx: commands.enter(tx, lease))

    async def begin_work(self, leases: Sequence[Lease]) -> None:
        """See `TaskStore.begin_work`."""
        await self._writer.run(lambda tx: commands.begin_work(tx, leases))

    async def cancel(self, scope: Scope, task_id: str, *, audit: AuditEntry | None = None) -> TaskEvent:
        """See `TaskStore.cancel`."""
        event: TaskEvent = await self._writer.run(lambda tx: commands.cancel(tx, scope, task_id, audit))
        return event

    async def expire(self) -> tuple[TaskEvent, ...]:
        """See `TaskStore.expire`."""
        events: tuple[TaskEvent, ...] = await self._writer.run(commands.expire)
        return events

    async def expire_parked(
        self, limits: Mapping[str, int], flat: Collection[str] = ()
    ) -> tuple[TaskEvent, ...]:
        """See `TaskStore.expire_parked`."""
        events: tuple[TaskEvent, ...] = await self._writer.run(
            lambda tx: commands.expire_parked(tx, limits, flat)
        )
        return events

    async def park(
        self,
        lease: Lease,
        change: StatusChange,
        entry: JournalEntry,
        *,
        reveal: bool = False,
        approval: ApprovalRequest | None = None,
    ) -> TaskEvent:
        """See `TaskStore.park`."""

        def park(tx: Transaction) -> TaskEvent:
            event = parking.park(tx, lease, change, entry, reveal)
            if approval is not None:
                approving.open_approval(tx, lease.task_id, entry, approval)
            return event

        event: TaskEvent = await self._writer.run(park)
        return event

    async def decide(
        self,
        tenant: str,
        approval_id: str,
        decision: Decision,
        *,
        digest: str | None,
        flat: Collection[str],
        audit: AuditEntry | None = None,
    ) -> Approval:
        """See `TaskStore.decide`."""
        approval: Approval = await self._writer.run(
            lambda tx: approving.decide(
                tx, tenant, approval_id, decision, digest, flat, self._lease_ms, audit
            )
        )
        return approval

    async def approval(self, tenant: str, approval_id: str) -> Approval:
        """See `TaskStore.approval`."""
        return self._read(lambda db: approving.find_approval(db, tenant, approval_id))

    async def approvals(self, tenant: str, *, after: str, limit: int) -> tuple[Approval, ...]:
        """See `TaskStore.approvals`."""
        return self._read(lambda db: approving.open_approvals(db, tenant, after, limit))

    async def record(self, lease: Lease, entry: JournalEntry) -> None:
        """See `TaskStore.record`."""
        await self._writer.run(lambda tx: commands.record(tx, lease, entry))

    async def take_over(self, run: LostRun) -> bool:
        """See `TaskStore.take_over`."""
        taken: bool = await self._writer.run(lambda tx: commands.take_over(tx, run, self._lease_ms))
        return taken

    async def give_up(self, run: LostRun, text: str, *, reveal: bool) -> None:
        """See `TaskStore.give_up`."""
        await self._writer.run(lambda tx: commands.give_up(tx, run, text, reveal))

    async def purge(self, ages: Mapping[TaskState, int], place: str, *, thorough: bool = True) -> Purged:
        """See `TaskStore.purge`."""
        purged: Purged = await self._writer.run(lambda tx: purge.purge(tx, ages, place, thorough))
        return purged

    async def read(
        self, scope: Scope, task_id: str, *, hidden: bool = False, until: int | None = None
    ) -> TaskFold:
        """See `TaskStore.read`."""
        return await self._read_long(lambda db, most: queries.read(db, scope, task_id, hidden, until, most))

    async def events(self, task_id: str, after: int) -> tuple[TaskEvent, ...]:
        """See `TaskStore.events`."""
        return await self._read_long(lambda db, most: queries.events(db, task_id, after, most))

    async def page(
        self,
        filters: Filters,
        *,
        size: int,
        cursor: Cursor | None,
        history_length: int,
        artifacts: bool,
        withheld: Callable[[str], bool] | None = None,
    ) -> TaskPage:
        """See `TaskStore.page`."""

        def read(patient: bool) -> TaskPage:
            return self._read(
                lambda db: queries.page(
                    db, filters, size, cursor, history_length, artifacts, withheld, patient=patient
                )
            )

        # With whole tasks it may have to read a megabyte of events.
        if not (history_length or artifacts):
            with contextlib.suppress(queries.TooLong):
                return read(patient=False)
        return await self._aside(lambda: read(patient=True))

    async def offered(self) -> Mapping[str, int]:
        """See `DispatchStore.offered`."""
        return self._read(dispatching.offered)

    async def due(self, limit: int, hold: int) -> tuple[DispatchedRun, ...]:
        """See `DispatchStore.due`."""
        runs: tuple[DispatchedRun, ...] = await self._writer.run(lambda tx: dispatching.due(tx, limit, hold))
        return runs

    async def told_engine(self, run: DispatchedRun, wait: int) -> None:
        """See `DispatchStore.told_engine`."""
        await self._writer.run(lambda tx: dispatching.told(tx, run, wait))

    async def not_told_engine(self, run: DispatchedRun, wait: int) -> None:
        """See `DispatchStore.not_told_engine`."""
        await self._writer.run(lambda tx: dispatching.not_told(tx, run, wait))

    async def standing(self, task_id: str) -> DispatchedRun | None:
        """See `DispatchStore.standing`."""
        return self._read(lambda db: dispatching.standing(db, task_id))

    async def journal(self, lease: Lease) -> tuple[JournalEntry, ...]:
        """See `TaskStore.journal`."""
        return self._read(lambda db: queries.journal(db, lease))

    async def fenced(self, leases: Sequence[Lease]) -> tuple[str, ...]:
        """See `TaskStore.fenced`."""
        return self._read(lambda db: queries.fenced(db, leases))

    async def lost(self) -> tuple[LostRun, ...]:
        """See `TaskStore.lost`."""
        return self._read(lambda db: queries.lost(db, self._ownership.epoch))

    async def quiet(self) -> tuple[LostRun, ...]:
        """See `TaskStore.quiet`."""
        return self._read(lambda db: queries.quiet(db, self._ownership.epoch, self._lease_ms))

    async def scopes(self) -> tuple[Scope, ...]:
        """See `TaskStore.scopes`."""
        return self._read(queries.scopes)

    async def _read_long(self, query: Callable[[sqlite3.Connection, int | None], T]) -> T:
        """Read something that may be long; in a thread if it is, so that nobody else on this loop waits for it."""
        try:
            return self._read(lambda db: query(db, LONG))
        except queries.TooLong:
            return await self._aside(lambda: self._read(lambda db: query(db, None)))

    async def _aside(self, read: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._long_reads, read)

    async def set_hook(
        self, scope: Scope, task_id: str, config: KeptConfig, *, audit: AuditEntry | None = None
    ) -> None:
        """See `HookStore.set_hook`."""
        await self._writer.run(lambda tx: hooks.set_hook(tx, scope, task_id, config, audit))

    async def hooks(self, scope: Scope, task_id: str) -> Sequence[Hook]:
        """See `HookStore.hooks`."""
        return self._read(lambda db: hooks.of_task(db, scope, task_id))

    async def delete_hook(
        self, scope: Scope, task_id: str, config_id: str, *, audit: AuditEntry | None = None
    ) -> None:
        """See `HookStore.delete_hook`."""
        await self._writer.run(lambda tx: hooks.delete_hook(tx, scope, task_id, config_id, audit))

    async def open_hooks(self, task_id: str | None = None) -> Sequence[tuple[str, str, bool]]:
        """See `HookStore.open_hooks`."""
        return self._read(lambda db: hooks.open_hooks(db, task_id))

    async def hook(self, task_id: str, config_id: str) -> Hook | None:
        """See `HookStore.hook`."""
        return self._read(lambda db: hooks.find(db, task_id, config_id))

    async def to_tell(self, task_id: str, after: int) -> Sequence[TaskEvent]:
        """See `HookStore.to_tell`."""
        return self._read(lambda db: hooks.to_tell(db, task_id, after))

    async def told(self, task_id: str, config_id: str, seq: int, *, done: bool) -> None:
        """See `HookStore.told`."""
        await self._writer.run(lambda tx: hooks.told(tx, task_id, config_id, seq, done))

    async def not_told(self, hook: Hook, tries: int, error: str, *, wait: int | None) -> bool:
        """See `HookStore.not_told`."""
        noted: bool = await self._writer.run(lambda tx: hooks.not_told(tx, hook, tries, error, wait))
        return noted

    def era(self) -> int:
        """See `HookStore.era`: no other server has the file."""
        return 0

    def may_tell(self, era: int) -> bool:
        """See `HookStore.may_tell`."""
        return True

    async def add_remote(self, remote: Remote, *, audit: AuditEntry | None = None) -> Remote:
        """See `RemoteStore.add_remote`."""
        kept: Remote = await self._writer.run(lambda tx: remotes.add(tx, remote, audit))
        return kept

    async def remotes(self, tenant: str, *, after: str, limit: int) -> Sequence[Remote]:
        """See `RemoteStore.remotes`."""
        return self._read(lambda db: remotes.page(db, tenant, after, limit))

    async def remote(self, tenant: str, remote_id: str) -> Remote:
        """See `RemoteStore.remote`."""
        return self._read(lambda db: remotes.find(db, tenant, remote_id))

    async def remotes_named(self, tenant: str, name: str) -> Sequence[Remote]:
        """See `RemoteStore.remotes_named`."""
        return self._read(lambda db: remotes.named(db, tenant, name))

    async def change_remote(
        self, tenant: str, remote_id: str, change: RemoteChange, *, audit: AuditEntry | None = None
    ) -> Remote:
        """See `RemoteStore.change_remote`."""
        kept: Remote = await self._writer.run(lambda tx: remotes.change(tx, tenant, remote_id, change, audit))
        return kept

    async def remove_remote(self, tenant: str, remote_id: str, *, audit: AuditEntry | None = None) -> None:
        """See `RemoteStore.remove_remote`."""
        await self._writer.run(lambda tx: remotes.remove(tx, tenant, remote_id, audit))

    async def begin_delegation(
        self, delegation: Delegation, *, audit: AuditEntry | None = None
    ) -> tuple[Delegation, Remote | None]:
        """See `RemoteStore.begin_delegation`."""
        begun: tuple[Delegation, Remote | None] = await self._writer.run(
            lambda tx: remotes.begin(tx, delegation, audit)
        )
        return begun

    async def settle_delegation(
        self, delegation: Delegation, outcome: Outcome, *, audit: AuditEntry | None = None
    ) -> Delegation:
        """See `RemoteStore.settle_delegation`."""
        settled: Delegation = await self._writer.run(
            lambda tx: remotes.settle(tx, delegation, outcome, audit)
        )
        return settled

    async def delegation(self, tenant: str, principal: str, delegation_id: str) -> Delegation:
        """See `RemoteStore.delegation`."""
        return self._read(lambda db: remotes.find_delegation(db, tenant, principal, delegation_id))

    async def delegation_of(self, tenant: str, principal: str, task_id: str) -> Delegation | None:
        """See `RemoteStore.delegation_of`."""
        return self._read(lambda db: remotes.known_as(db, tenant, principal, task_id))

    async def abandon_delegations(self) -> int:
        """See `RemoteStore.abandon_delegations`."""
        if not self._read(remotes.under_way):
            return 0
        number: int = await self._writer.run(remotes.abandon)
        return number

    async def abandon_delegation(self, delegation: Delegation) -> Delegation:
        """See `RemoteStore.abandon_delegation`: no other server has the file."""
        return await self.settle_delegation(delegation, ABANDONED)

    async def seals(self) -> Sequence[Seal]:
        """See `RemoteStore.seals`."""
        return self._read(remotes.seals)

    async def runs(self, filters: RunFilters, *, before: str, limit: int) -> tuple[Sequence[RunView], str]:
        """See `RunStore.runs`."""
        # Aside, because many rows may be looked at.
        return await self._aside(lambda: self._read(lambda db: runs.runs(db, filters, before, limit)))

    async def run(self, task_id: str) -> RunView | None:
        """See `RunStore.run`."""
        return self._read(lambda db: runs.run(db, task_id))

    async def add_to_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `TenantStore.add_to_audit`."""
        await self._writer.run(lambda tx: tx.audit.extend(auditing.row(tx.now, entry) for entry in entries))

    async def purge_audit(self, age: int) -> int:
        """See `TenantStore.purge_audit`."""
        purged: int = await self._writer.run(lambda tx: auditing.purge(tx.execute, tx.now - age))
        return purged

    async def kept(self, known: int) -> Kept | None:
        """See `TenantStore.kept`."""
        if self._read(lambda db: version_of(db.execute)) == known:
            return None
        return await self.consult(lambda book: book.read())

    async def consult(self, work: Callable[[Book], T]) -> T:
        """See `TenantStore.consult`."""
        # In a thread: what is kept may be much.
        try:
            return await asyncio.to_thread(consult, self._path, work)
        except StoreError as error:
            # The file was good when it was opened: somebody has taken it away, or changed it.
            raise Unavailable("The task store cannot be read; its file is not what it was") from error

    async def administer(self, work: Callable[[Book], T]) -> T:
        """See `TenantStore.administer`."""

        def run(tx: Transaction) -> T:
            with all_or_nothing(tx.execute):
                return work(book_of(tx.execute, tx.now))

        result: T = await self._writer.run(run)
        return result

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        # On the calling loop, without a hop to a thread: an indexed read costs less than the hop.
        connection: sqlite3.Connection | None = getattr(self._threads, "reader", None)
        try:
            if connection is None:
                connection = self._threads.reader = open_reader(self._path)
            return query(connection)
        except sqlite3.Error as error:
            self._note(error)
            raise unavailable(error) from error

    def _note(self, error: sqlite3.Error) -> None:
        """Tell the operator what is the matter with the file, now and then; remember that it is damaged for good."""
        words = explain(error, self._path)
        if is_damage(error):
            self._damage = words
        now = time.monotonic()
        if words != self._trouble or now - self._told_at >= TELL_SECONDS:
            self._trouble, self._told_at = words, now
            _LOG.error("the store %s %s (%s)", self._path, words, error)

    def _announce(self, commit: Commit) -> None:
        self._serve(lambda: [listener(commit) for listener in self._listeners])

    def _serve(self, call: Callable[[], object]) -> None:
        """Have the serving loop call `call`, from any thread."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            # The loop has ended, and with it everybody who could be told.
            return
