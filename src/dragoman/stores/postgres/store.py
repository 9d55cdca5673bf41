"""The PostgreSQL store: one lane of writes with group commit, a pool for reads, one connection that listens."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.dispatching import DispatchedRun
from dragoman.gateway.elsewhere import Spans
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
from dragoman.stores.postgres import (
    approving,
    commands,
    dispatching,
    folding,
    hooks,
    parking,
    purge,
    queries,
    runs,
)
from dragoman.stores.postgres.accepting import accepting
from dragoman.stores.postgres.connection import (
    FAILURES,
    Database,
    cause_of,
    check_sessions,
    unavailable,
)
from dragoman.stores.postgres.loop import StoreLoop
from dragoman.stores.postgres.migrating import admit, migrations, unreachable
from dragoman.stores.postgres.places import PostgresPlaces
from dragoman.stores.postgres.reader import Readers
from dragoman.stores.postgres.remote_store import PostgresRemotes
from dragoman.stores.postgres.replicas import (
    CHANNEL,
    EVENTS,
    HOOKS,
    IDENTITIES,
    ORPHANS,
    RUNS,
    SPENT,
    Replica,
)
from dragoman.stores.postgres.tenants import in_thread, with_book
from dragoman.stores.postgres.transaction import Transaction, Work
from dragoman.stores.postgres.writer import TELL, Writer, packed
from dragoman.stores.target import Target

CHECK_SECONDS = 2.0
"""How long a check waits for an answer: whoever asks whether a server is ready does not wait long."""

FOLD_SECONDS = 5.0
TELL_SECONDS = 30.0
"""Seconds between two log lines about the same trouble."""

_LOG = logging.getLogger("dragoman.store")

T = TypeVar("T")
Act = Callable[[Transaction], Awaitable[T]]
CommitListener = Callable[[Commit], None]


class PostgresStore(PostgresRemotes):
    """Implements `TaskStore`, `HookStore`, `TenantStore`, `RunStore`, `RemoteStore` and `Shared` on PostgreSQL.

    See `gateway`; `RemoteStore` is in `remote_store`.

    Attributes:
        places: see `Shared`.
    """

    def __init__(
        self,
        target: Target,
        *,
        lease: float,
        placing: Placing = Placing.HERE,
        on_noticed: Callable[[], None] | None = None,
        on_elsewhere: Callable[[Spans], None] | None = None,
        on_hooked: Callable[[Sequence[str]], None] | None = None,
        on_missed: Callable[[], None] | None = None,
        on_orphaned: Callable[[], None] | None = None,
        on_offered: Callable[[], None] | None = None,
        on_spent: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        """Connect, and join the servers that share the store. To be called on the serving loop.

        Args:
            target: the database.
            lease: how long a run stays ours without a heartbeat, in seconds.
            placing: who executes the runs of what is accepted here.
            on_noticed: called on the serving loop when another process has changed what is kept of tenants.
            on_elsewhere: called on the serving loop with what another server has committed.
            on_hooked: called on the serving loop with tasks whose webhooks another process has changed.
            on_missed: called on the serving loop when something of that may have been missed.
            on_orphaned: called on the serving loop when another server has died or left.
            on_offered: called on the serving loop when there are runs for whoever executes some.
            on_spent: called on the serving loop with what callers have drawn at another server.

        Raises:
            StoreError: the database cannot be used.
        """
        self._target = target
        self._lease_ms = int(lease * 1000)
        self._serving = asyncio.get_running_loop()
        self._listeners: list[CommitListener] = []
        self._on_noticed = on_noticed or (lambda: None)
        self._on_elsewhere = on_elsewhere or (lambda spans: None)
        self._on_hooked = on_hooked or (lambda task_ids: None)
        on_missed = on_missed or (lambda: None)
        self._on_orphaned = on_orphaned or (lambda: None)
        self._on_offered = on_offered or (lambda: None)
        self._on_spent = on_spent or (lambda spent: None)
        self._trouble = ""
        self._told_at = 0.0
        self._folding: asyncio.Task[None] | None = None
        self._loop = StoreLoop()
        self._readers = Readers(target)
        self.places = PostgresPlaces(self._loop, target)
        self._replica = Replica(
            target,
            self._lease_ms,
            migrations()[-1].number,
            heard=self._hear,
            missed=lambda: self._serve(on_missed),
            orphaned=lambda: self._serve(self._on_orphaned),
            reconnected=self._readers.renew,
        )
        self._writer = Writer(
            self._loop.loop,
            target,
            self._replica,
            placing=placing,
            announce=self._announce,
            troubled=self._note,
        )
        try:
            self._loop.run(self._open())
        except BaseException:
            self._loop.run(self._close())
            self._loop.close()
            raise

    async def _open(self) -> None:
        try:
            await self._readers.open()
            if not self._target.by_transaction:
                async with self._readers.acquire() as connection, self._readers.acquire() as other:
                    await check_sessions([connection, other])
            await self._replica.join(lambda connection: admit(connection, self._target))
            await self._writer.open()
        except (*FAILURES, ValueError) as error:
            raise unreachable(self._target, error) from error
        self._folding = asyncio.create_task(self._fold())

    def close(self) -> None:
        """Finish what is being written and disconnect; what runs here is anybody's now."""
        self._loop.run(self._close())
        self._loop.close()

    async def _close(self) -> None:
        if self._folding is not None:
            self._folding.cancel()
            await asyncio.wait([self._folding])
        await self._writer.close()
        await self._replica.leave()
        await self._readers.close()
        await self.places.close()

    async def _fold(self) -> None:
        while True:
            await asyncio.sleep(FOLD_SECONDS)
            try:
                async with self._readers.acquire() as connection:
                    await folding.fold(connection)
            except FAILURES as error:
                self._note(error)

    async def check(self) -> None:
        """Make sure that the store can be written to.

        Raises:
            Unavailable: it is not so; the message is for the operator.
        """

        async def probe(tx: Transaction) -> None:
            await tx.db.execute("UPDATE replica SET beat_at = beat_at WHERE id = $1", tx.replica)

        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._writer.run(Work(act=probe))
        except TimeoutError:
            raise Unavailable(f"The task store has not answered for {CHECK_SECONDS:g} s") from None

    def on_commit(self, listener: CommitListener) -> None:
        """See `TaskStore.on_commit`."""
        self._listeners.append(listener)

    async def accept(
        self, acceptance: Acceptance, *, decided: Callable[[], object] | None = None
    ) -> Accepted:
        """See `TaskStore.accept`."""
        accepted: Accepted = await self._writer.run(accepting(acceptance), decided)
        return accepted

    async def known(self, acceptance: Acceptance) -> Accepted | None:
        """See `TaskStore.known`."""
        return await self._read(lambda db: queries.known(db, acceptance))

    async def append(
        self, lease: Lease, changes: Sequence[Change], *, reveal: bool = False
    ) -> tuple[TaskEvent, ...]:
        """See `TaskStore.append`."""
        appended: tuple[TaskEvent, ...] = await self._writer.run(commands.appending(lease, changes, reveal))
        return appended

    async def wait(self, leases: Sequence[Lease]) -> None:
        """See `TaskStore.wait`."""
        await self._write(lambda tx: commands.wait(tx, leases), leases, in_memory=True)

    async def enter(self, lease: Lease) -> None:
        """See `TaskStore.enter`."""
        await self._write(lambda tx: commands.enter(tx, lease), [lease], in_memory=True)

    async def begin_work(self, leases: Sequence[Lease]) -> None:
        """See `TaskStore.begin_work`."""
        await self._write(lambda tx: commands.begin_work(tx, leases), leases, in_memory=True)

    async def cancel(self, scope: Scope, task_id: str, *, audit: AuditEntry | None = None) -> TaskEvent:
        """See `TaskStore.cancel`."""
        work = Work(
            act=lambda tx: commands.cancel(tx, scope, task_id, audit), tasks=(task_id,), scopes=(scope,)
        )
        event: TaskEvent = await self._writer.run(work)
        return event

    async def expire(self) -> tuple[TaskEvent, ...]:
        """See `TaskStore.expire`."""
        return await self._write(commands.expire)

    async def expire_parked(
        self, limits: Mapping[str, int], flat: Collection[str] = ()
    ) -> tuple[TaskEvent, ...]:
        """See `TaskStore.expire_parked`."""
        return await self._write(lambda tx: commands.expire_parked(tx, limits, flat))

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
        return await self._write(lambda tx: parking.park(tx, lease, change, entry, reveal, approval), [lease])

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
        return await self._write(
            lambda tx: approving.decide(tx, tenant, approval_id, decision, digest, flat, audit)
        )

    async def approval(self, tenant: str, approval_id: str) -> Approval:
        """See `TaskStore.approval`."""
        return await self._read(lambda db: approving.find_approval(db, tenant, approval_id))

    async def approvals(self, tenant: str, *, after: str, limit: int) -> tuple[Approval, ...]:
        """See `TaskStore.approvals`."""
        return await self._read(lambda db: approving.open_approvals(db, tenant, after, limit))

    async def record(self, lease: Lease, entry: JournalEntry) -> None:
        """See `TaskStore.record`."""
        await self._write(lambda tx: commands.record(tx, lease, entry), [lease], in_memory=True)

    async def take_over(self, run: LostRun) -> bool:
        """See `TaskStore.take_over`."""
        work = Work(act=lambda tx: commands.take_over(tx, run), tasks=(run.task_id,), scopes=(run.scope,))
        taken: bool = await self._writer.run(work)
        return taken

    async def offered(self) -> Mapping[str, int]:
        """See `Backlogged.offered`."""
        return await self._read(queries.offered)

    async def due(self, limit: int, hold: int) -> tuple[DispatchedRun, ...]:
        """See `DispatchStore.due`."""
        return await self._write(lambda tx: dispatching.due(tx, limit, hold))

    async def told_engine(self, run: DispatchedRun, wait: int) -> None:
        """See `DispatchStore.told_engine`."""
        await self._write(lambda tx: dispatching.told(tx, run, wait))

    async def not_told_engine(self, run: DispatchedRun, wait: int) -> None:
        """See `DispatchStore.not_told_engine`."""
        await self._write(lambda tx: dispatching.not_told(tx, run, wait))

    async def standing(self, task_id: str) -> DispatchedRun | None:
        """See `DispatchStore.standing`."""
        return await self._read(lambda db: dispatching.standing(db, self._replica.number, task_id))

    async def take_offered(self, room: Mapping[str, int], most: int) -> int:
        """See `Offers.take_offered`."""
        return await self._write(lambda tx: commands.take_offered(tx, room, most))

    async def give_up(self, run: LostRun, text: str, *, reveal: bool) -> None:
        """See `TaskStore.give_up`."""
        await self._writer.run(
            Work(
                act=lambda tx: commands.give_up(tx, run, text, reveal),
                tasks=(run.task_id,),
                scopes=(run.scope,),
            )
        )

    async def purge(self, ages: Mapping[TaskState, int], place: str, *, thorough: bool = True) -> Purged:
        """See `TaskStore.purge`."""
        return await self._write(lambda tx: purge.purge(tx, ages, place, thorough))

    async def read(
        self, scope: Scope, task_id: str, *, hidden: bool = False, until: int | None = None
    ) -> TaskFold:
        """See `TaskStore.read`."""
        found = await self._read(
            lambda db: queries.read(db, scope, task_id, hidden, until, limit=queries.LONG)
        )
        if len(found.rows) < queries.LONG:
            return found.fold()
        return await self._read_long(lambda db: queries.read_long(db, scope, task_id, hidden, until))

    async def events(self, task_id: str, after: int) -> tuple[TaskEvent, ...]:
        """See `TaskStore.events`."""
        context_id, rows = await self._read(lambda db: queries.events(db, task_id, after, limit=queries.LONG))
        if len(rows) < queries.LONG:
            return queries.events_of(task_id, context_id, rows)
        return await self._read_long(lambda db: queries.events_long(db, task_id, after))

    async def committed(self, spans: Spans) -> Sequence[TaskEvent]:
        """See `Shared.committed`."""
        asked = [(task_id, first, last) for task_id, (first, last) in spans.items()]
        return await self._read(lambda db: queries.committed(db, asked))

    async def heads(self, task_ids: Sequence[str]) -> Mapping[str, int]:
        """See `Shared.heads`."""
        return await self._read(lambda db: queries.heads(db, task_ids))

    async def tell_spent(self, spent: Sequence[str]) -> None:
        """See `Shared.tell_spent`."""
        if self._replica.has_peers:
            told = packed(f"{self._replica.number} {SPENT}", spent)
            await self._read(lambda db: db.fetch(TELL, CHANNEL, told))

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
        return await self._read(
            lambda db: queries.page(db, filters, size, cursor, history_length, artifacts, withheld),
            snapshot=True,
        )

    async def journal(self, lease: Lease) -> tuple[JournalEntry, ...]:
        """See `TaskStore.journal`."""
        return await self._read(lambda db: queries.journal(db, lease))

    async def fenced(self, leases: Sequence[Lease]) -> tuple[str, ...]:
        """See `TaskStore.fenced`."""
        return await self._read(lambda db: queries.fenced(db, leases))

    async def lost(self) -> tuple[LostRun, ...]:
        """See `TaskStore.lost`."""
        return await self._read(lambda db: queries.lost(db, self._replica.number))

    async def quiet(self) -> tuple[LostRun, ...]:
        """See `TaskStore.quiet`."""
        return await self._read(lambda db: queries.quiet(db, self._replica.number, self._lease_ms))

    async def scopes(self) -> tuple[Scope, ...]:
        """See `TaskStore.scopes`."""
        return await self._read(queries.scopes)

    async def set_hook(
        self, scope: Scope, task_id: str, config: KeptConfig, *, audit: AuditEntry | None = None
    ) -> None:
        """See `HookStore.set_hook`."""
        work = Work(
            act=lambda tx: hooks.set_hook(tx, scope, task_id, config, audit),
            tasks=(task_id,),
            scopes=(scope,),
        )
        await self._writer.run(work)

    async def hooks(self, scope: Scope, task_id: str) -> Sequence[Hook]:
        """See `HookStore.hooks`."""
        return await self._read(lambda db: hooks.of_task(db, scope, task_id), snapshot=True)

    async def delete_hook(
        self, scope: Scope, task_id: str, config_id: str, *, audit: AuditEntry | None = None
    ) -> None:
        """See `HookStore.delete_hook`."""
        work = Work(
            act=lambda tx: hooks.delete_hook(tx, scope, task_id, config_id, audit),
            tasks=(task_id,),
            scopes=(scope,),
        )
        await self._writer.run(work)

    async def open_hooks(self, task_id: str | None = None) -> Sequence[tuple[str, str, bool]]:
        """See `HookStore.open_hooks`."""
        return await self._read(lambda db: hooks.open_hooks(db, self._replica.number, task_id))

    async def hook(self, task_id: str, config_id: str) -> Hook | None:
        """See `HookStore.hook`."""
        return await self._read(lambda db: hooks.find(db, self._replica.number, task_id, config_id))

    async def to_tell(self, task_id: str, after: int) -> Sequence[TaskEvent]:
        """See `HookStore.to_tell`."""
        return await self._read(lambda db: hooks.to_tell(db, task_id, after))

    async def told(self, task_id: str, config_id: str, seq: int, *, done: bool) -> None:
        """See `HookStore.told`."""
        await self._write(lambda tx: hooks.told(tx, task_id, config_id, seq, done))

    async def not_told(self, hook: Hook, tries: int, error: str, *, wait: int | None) -> bool:
        """See `HookStore.not_told`."""
        return await self._write(lambda tx: hooks.not_told(tx, hook, tries, error, wait))

    def era(self) -> int:
        """See `HookStore.era`."""
        return self._replica.era

    def may_tell(self, era: int) -> bool:
        """See `HookStore.may_tell`."""
        # In this order: what hung may beat again in between.
        return self._replica.lives() and self._replica.era == era

    async def runs(self, filters: RunFilters, *, before: str, limit: int) -> tuple[Sequence[RunView], str]:
        """See `RunStore.runs`."""
        return await self._read(lambda db: runs.runs(db, filters, before, limit))

    async def run(self, task_id: str) -> RunView | None:
        """See `RunStore.run`."""
        return await self._read(lambda db: runs.run(db, task_id))

    async def add_to_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `TenantStore.add_to_audit`."""

        async def add(tx: Transaction) -> None:
            for entry in entries:
                tx.note(entry, entry.target, entry.outcome, entry.detail)

        await self._write(add)

    async def purge_audit(self, age: int) -> int:
        """See `TenantStore.purge_audit`."""

        async def purged(tx: Transaction) -> int:
            return await in_thread(tx.db, lambda execute: auditing.purge(execute, tx.now - age))

        return await self._write(purged)

    async def kept(self, known: int) -> Kept | None:
        """See `TenantStore.kept`."""
        version = await self._read(lambda db: db.fetchval("SELECT version FROM identities"))
        if version == known:
            return None
        return await self.consult(lambda book: book.read())

    async def consult(self, work: Callable[[Book], T]) -> T:
        """See `TenantStore.consult`."""
        return await self._read(lambda db: with_book(db, work), snapshot=True)

    async def administer(self, work: Callable[[Book], T]) -> T:
        """See `TenantStore.administer`."""

        async def run() -> T:
            async with self._readers.acquire() as connection, connection.transaction():
                result = await with_book(connection, work)
                told = f"{self._replica.number} {IDENTITIES}"
                await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, told)
                return result

        return await self._loop.call(lambda: self._answered(run))

    async def _write(self, act: Act[T], leases: Sequence[Lease] = (), *, in_memory: bool = False) -> T:
        tasks = tuple(lease.task_id for lease in leases)
        work = Work(act=act, tasks=tasks, is_patient=bool(leases), in_memory=in_memory)
        result: T = await self._writer.run(work)
        return result

    async def _read(
        self, query: Callable[[Database], Coroutine[Any, Any, T]], *, snapshot: bool = False
    ) -> T:
        return await self._loop.call(
            lambda: self._answered(lambda: self._readers.read(query, snapshot=snapshot))
        )

    async def _read_long(self, query: Callable[[Database], Coroutine[Any, Any, T]]) -> T:
        return await self._loop.call(lambda: self._answered(lambda: self._readers.read_long(query)))

    async def _answered(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await work()
        except FAILURES as error:
            self._note(error)
            raise unavailable(error) from error

    def _note(self, error: Exception) -> None:
        """Tell the operator what is the matter with the database, now and then."""
        words = cause_of(error) or "does not answer"
        now = time.monotonic()
        if words != self._trouble or now - self._told_at >= TELL_SECONDS:
            self._trouble, self._told_at = words, now
            _LOG.error("the store %s %s: %s", self._target, words, type(error).__name__)

    def _hear(self, told: str) -> None:
        kind, *words = told.split(" ")
        if kind == IDENTITIES:
            self._serve(self._on_noticed)
        elif kind == HOOKS:
            self._serve(lambda: self._on_hooked(words))
        elif kind == ORPHANS:
            self._serve(self._on_orphaned)
        elif kind == RUNS:
            self._serve(self._on_offered)
        elif kind == SPENT:
            self._serve(lambda: self._on_spent(words))
        elif kind == EVENTS:
            found = dict(map(_span, words))
            self._serve(lambda: self._on_elsewhere(found))

    def _announce(self, commit: Commit) -> None:
        # It can be written to again: what is the matter next is news.
        self._trouble = ""
        self._serve(lambda: [listener(commit) for listener in self._listeners])

    def _serve(self, call: Callable[[], object]) -> None:
        """Have the serving loop call `call`, from any thread."""
        try:
            self._serving.call_soon_threadsafe(call)
        except RuntimeError:
            # The loop has ended, and with it everybody who could be told.
            return


def _span(text: str) -> tuple[str, tuple[int, int]]:
    task_id, _, numbers = text.rpartition(":")
    first, _, last = numbers.partition("-")
    return task_id, (int(first), int(last))
