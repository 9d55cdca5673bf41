"""The one lane of writes, with group commit.

Callers on any event loop hand in an operation and await its result. Whatever waits is taken as one batch and becomes
one transaction: while one batch is being committed, the next one gathers. Where all that it looks at is remembered,
and what it accepts is new, the transaction is one statement; else it reads and locks first. An operation that breaks a
rule fails alone; when the database itself refuses, the batch is rolled back and its operations are run one by one, so
that one bad row never fails its neighbours.

A connection that breaks while it commits leaves open what became of the batch. Before anything else is written the
database is asked for that, by the transaction's number, or by what it was to write. Until it can be asked, a caller who
wants an answer is told that the store cannot be reached: the same message sent again finds what was committed all the
same. A handler is told nothing until it is known: what it does again would be there twice.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from dragoman.gateway.ports import Acceptance, Commit, Placing
from dragoman.model import Scope
from dragoman.model.errors import DragomanError
from dragoman.stores.postgres.connection import (
    FAILURES,
    Database,
    begin,
    cause_of,
    connect,
    is_clash,
    is_lost,
    one_session,
    unavailable,
)
from dragoman.stores.postgres.loop import closed
from dragoman.stores.postgres.memory import Memory
from dragoman.stores.postgres.replicas import CHANNEL, EVENTS, HOOKS, RUNS, Replica
from dragoman.stores.postgres.single import NotAsRememberedError, Session, Single, session_of
from dragoman.stores.postgres.transaction import COMMITTED, IN_PROGRESS, Transaction, Work
from dragoman.stores.target import Target
from dragoman.stores.waiting import Operation, resolve

MAX_BATCH = 256
"""Operations in one transaction at most: bounds how long the first one waits for the last."""

BUSY_BATCH = 4
GATHER_SECONDS = 0.001
"""After a batch of at least `BUSY_BATCH` that had to read first, wait this long for the next one to gather. Its
statements cost the same for one operation as for twenty: under load this takes a tenth off the CPU of a send, a quarter
off the database's, and nothing off its rate."""

TRIES = 5
"""How often a transaction is tried that others are in the way of."""

WORK_SECONDS = 12.0
"""How long the statements of one transaction may take: those who wait for it, and behind it, are told something."""

COMMIT_SECONDS = 10.0
"""How long a commit may take before it is asked, on another connection, what became of it."""

RETRY_SECONDS = 0.5
"""Seconds between two tries to ask what became of a commit, while there is nothing else to do."""

ASK_SECONDS = 0.1
"""Seconds between two questions what became of a transaction whose session is being ended."""

PAYLOAD_BYTES = 7900
"""What one notification carries at most."""

TELL = "SELECT pg_notify($1, told) FROM unnest($2::text[]) told"
"""Tells other servers some lines, on a channel."""

_LOG = logging.getLogger("dragoman.store")


class _Undecided(Struct):
    """A batch of which it is not known whether it was committed."""

    transaction: Transaction
    batch: list[Operation[Work]]
    error: Exception


class Writer:
    """The lane. `run` may be called on any loop; everything else happens on the store's."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: Target,
        replica: Replica,
        *,
        placing: Placing,
        announce: Callable[[Commit], None],
        troubled: Callable[[Exception], None],
    ) -> None:
        """Prepare the lane.

        Args:
            loop: the store's loop.
            target: the database.
            replica: this server.
            placing: who executes the runs of what is accepted here.
            announce: called on the store's loop with what each commit made known.
            troubled: called on the store's loop when the database cannot be written to.
        """
        self._loop = loop
        self._target = target
        self._replica = replica
        self._placing = placing
        self._announce = announce
        self._troubled = troubled
        self._waiting: deque[Operation[Work]] = deque()
        self._wake = asyncio.Event()
        self._is_idle = False
        self._is_begun = False
        self._is_single = False
        self._closing = False
        self._connection: Any = None
        self._session: Session | None = None
        self._memory = Memory()
        self._scopes: dict[Scope, int] = {}
        self._undecided: _Undecided | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and begin to write.

        Raises:
            FAILURES: the database cannot be reached.
        """
        await self._connect()
        self._task = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Finish what is waiting and disconnect."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        if self._undecided is not None:
            self._fail(self._undecided.batch, self._undecided.error)
        if self._connection is not None:
            await self._connection.close(timeout=1)

    async def run(self, work: Work, decided: Callable[[], object] | None = None) -> Any:
        """Run `work` in a transaction and return its result once that is committed.

        `decided` is called on the calling loop when it is, or when it has failed, whether somebody still waits or not.

        Raises:
            DragomanError: as the work raised it, or Unavailable when the store cannot do its work.
        """
        if self._closing:
            raise closed()
        operation = Operation(work, decided)
        self._waiting.append(operation)
        # A lane that is at work looks for more by itself: waking it costs both threads a turn.
        if self._is_idle:
            self._loop.call_soon_threadsafe(self._wake.set)
        return await operation.future

    async def _work(self) -> None:
        busy = False
        while self._waiting or not self._closing:
            if not self._waiting:
                self._wake.clear()
                self._is_idle = True
                # What came just before was told by nobody.
                if not self._waiting and not self._closing:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(RETRY_SECONDS if self._undecided else None):
                            await self._wake.wait()
                self._is_idle = False
                await self._settle()
                continue
            if busy:
                await asyncio.sleep(GATHER_SECONDS)
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
            await self._run_batch(batch)
            busy = len(batch) >= BUSY_BATCH and not self._is_single

    async def _run_batch(self, batch: list[Operation[Work]]) -> None:
        error = await self._settle() or await self._try(batch)
        if error is None:
            resolve(batch)
        elif self._undecided is not None and self._undecided.batch is batch:
            told = [operation for operation in batch if not operation.work.is_patient]
            self._undecided.batch = [operation for operation in batch if operation.work.is_patient]
            self._fail(told, error)
        elif len(batch) > 1 and not is_lost(error):
            for operation in batch:
                await self._run_batch([operation])
        else:
            self._fail(batch, error)

    def _fail(self, batch: list[Operation[Work]], error: Exception) -> None:
        for operation in batch:
            operation.error = unavailable(error) if isinstance(error, FAILURES) else error
        resolve(batch)

    async def _try(self, batch: list[Operation[Work]]) -> Exception | None:
        """Run a batch in one transaction and return what it failed by."""
        for attempt in range(1, TRIES + 1):
            try:
                await self._transact(batch)
                return None
            except FAILURES as error:
                await self._roll_back(error)
                if not is_clash(error) or attempt == TRIES:
                    if cause_of(error):
                        self._troubled(error)
                    else:
                        _LOG.error("a write failed", exc_info=error)
                    if self._undecided is not None:
                        return await self._settle(batch)
                    return error
            except (
                Exception
            ) as error:  # a fault of ours in one operation must not end the lane that serves all
                await self._roll_back(error)
                return error
        return None

    async def _transact(self, batch: list[Operation[Work]]) -> None:
        db = await self._connected()
        works = [operation.work for operation in batch]
        self._is_single = not self._is_begun and self._fits(works) and await self._in_one(db, batch)
        if self._is_single:
            return
        async with asyncio.timeout(WORK_SECONDS):
            if not self._is_begun:
                await begin(db, self._target)
            self._is_begun = False
            transaction = Transaction(db, self._replica.number, self._scopes, self._placing)
            await transaction.prepare(works)
            self._memory.note_clock(transaction.now)
            await _act(batch, transaction)
            await transaction.finish()
            if self._replica.has_peers:
                await tell(transaction)
        # What waits already is the next transaction: beginning it now saves a round trip.
        goes_on = (
            bool(self._waiting)
            and not self._target.by_transaction
            and not self._fits([operation.work for operation in self._waiting])
        )
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                await db.execute("COMMIT AND CHAIN" if goes_on else "COMMIT")
        except FAILURES as error:
            if is_lost(error):
                self._undecided = _Undecided(transaction, batch, error)
            raise
        self._is_begun = goes_on
        self._remember(transaction)
        self._committed(transaction)

    def _fits(self, works: Sequence[Work]) -> bool:
        """Tell whether operations can be one statement: all that they look at is remembered."""
        return all(
            work.in_memory
            and self._memory.covers(work.tasks)
            and all(scope in self._scopes for scope in work.scopes)
            and (work.acceptance is None or self._may_be_begun(work.acceptance))
            for work in works
        )

    def _may_be_begun(self, acceptance: Acceptance) -> bool:
        """Tell whether, as far as is remembered, a message is new, and counters are there for the context it names."""
        scope, message = self._scopes[acceptance.scope], acceptance.message
        if acceptance.idempotent and not self._memory.is_new((scope, message.message_id.encode())):
            return False
        return not message.context_id or self._memory.is_counted((scope, message.context_id.encode()))

    async def _in_one(self, db: Database, batch: list[Operation[Work]]) -> bool:
        """Run a batch that fits in one statement; return whether all was as it is remembered."""
        session, now = self._session, self._memory.now
        if session is None or now is None:
            return False
        tasks = {task_id for operation in batch for task_id in operation.work.tasks}
        single = Single(
            session,
            self._replica.number,
            self._scopes,
            self._placing,
            now=now,
            rows=self._memory.rows(tasks),
        )
        await _act(batch, single)
        told = notifications(single) if self._replica.has_peers else []
        try:
            async with asyncio.timeout(WORK_SECONDS):
                await single.commit(db, CHANNEL, told)
        except NotAsRememberedError:
            self._memory.forget(tasks)
            return False
        except FAILURES as error:
            if is_lost(error):
                self._undecided = _Undecided(single, batch, error)
            raise
        self._memory.note_clock(single.now)
        self._remember(single)
        self._committed(single)
        return True

    def _remember(self, transaction: Transaction) -> None:
        self._memory.keep(transaction.written.values(), self._replica.number, transaction.version)
        self._memory.note_messages(transaction.messages())
        self._memory.note_contexts(transaction.contexts())

    async def _connected(self) -> Any:
        if self._connection is None or self._connection.is_closed():
            await self._connect()
            _LOG.info("the store can be written to again")
        return self._connection

    async def _connect(self) -> None:
        self._connection, self._session, self._is_begun = await connect(self._target), None, False
        # It may be another server's database by now, which has lost the last commits: nothing of before counts there.
        self._memory.clear()
        self._scopes.clear()
        if not self._target.by_transaction:
            self._session = await session_of(self._connection)

    def _committed(self, transaction: Transaction) -> None:
        self._scopes.update(transaction.new_scopes)
        if transaction.events or transaction.runs or transaction.hooked:
            tx = transaction
            self._announce(Commit(tx.events, tx.runs, tx.hooked, tx.offered))

    async def _settle(self, batch: list[Operation[Work]] | None = None) -> Exception | None:
        """Find out what became of a batch that is undecided, and tell those who wait; return why that cannot be.

        Those of `batch` are not told here: what is returned is what it failed by.
        """
        undecided = self._undecided
        if undecided is None:
            return None
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                is_committed = await self._outcome(undecided)
        except FAILURES as error:
            await self._roll_back(error)
            self._troubled(error)
            return error
        self._undecided = None
        if is_committed:
            self._committed(undecided.transaction)
        if undecided.batch is batch:
            return None if is_committed else undecided.error
        if is_committed:
            resolve(undecided.batch)
        else:
            self._fail(undecided.batch, undecided.error)
        return None

    async def _outcome(self, undecided: _Undecided) -> bool:
        """Ask the database whether a transaction was committed; end its session if that goes on without us."""
        db = await self._connected()
        while True:
            async with one_session(db, self._target):
                outcome = await undecided.transaction.outcome(db)
            if outcome != IN_PROGRESS:
                return outcome == COMMITTED
            await asyncio.sleep(ASK_SECONDS)

    async def _roll_back(self, error: Exception) -> None:
        connection = self._connection
        if connection is None or connection.is_closed():
            return
        try:
            if not is_lost(error):
                if connection.is_in_transaction():
                    await connection.execute("ROLLBACK")
                return
        except FAILURES:
            # It is given up then.
            pass
        connection.terminate()
        self._connection = None


async def _act(batch: Sequence[Operation[Work]], transaction: Transaction) -> None:
    for operation in batch:
        operation.error = None
        try:
            operation.result = await operation.work.act(transaction)
        except DragomanError as error:
            operation.error = error


async def tell(transaction: Transaction) -> None:
    """Tell other servers of a transaction that is about to be committed; they hear of it when it is."""
    told = notifications(transaction)
    if told:
        await transaction.db.execute(TELL, CHANNEL, told)


def notifications(transaction: Transaction) -> list[str]:
    """Return what to tell other servers.

    Of each task from which event to which, whose webhooks were changed, and whether there are runs for others.
    """
    spans: dict[str, tuple[int, int]] = {}
    for event in transaction.events:
        first, last = spans.get(event.task_id, (event.seq, event.seq))
        spans[event.task_id] = min(first, event.seq), max(last, event.seq)
    events = (f"{task_id}:{first}-{last}" for task_id, (first, last) in spans.items())
    number, hooked = transaction.replica, dict.fromkeys(transaction.hooked_elsewhere)
    offered = [f"{number} {RUNS}"] if transaction.offered else []
    return [*packed(f"{number} {EVENTS}", events), *packed(f"{number} {HOOKS}", hooked), *offered]


def packed(begin: str, words: Iterable[str]) -> list[str]:
    """Return lines that begin alike and hold the words, none longer than a notification may be."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= PAYLOAD_BYTES:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{begin} {word}")
    return lines
