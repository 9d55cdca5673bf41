"""The one writer thread, with group commit.

Callers on any event loop hand in an operation and await its result. The thread takes whatever is waiting as one
batch, runs it in one transaction and commits it: while one batch is being synced, the next one gathers. An
operation that breaks a rule fails alone; when the database itself refuses, the batch is rolled back and its
operations are run one by one, so that one bad row never fails its neighbours.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from dragoman.gateway.audit import OK, AuditEntry
from dragoman.gateway.ports import Commit, Placing, RunRef
from dragoman.gateway.quota import Tally
from dragoman.model import Scope, TaskEvent, TaskState
from dragoman.model.errors import DragomanError, Unavailable
from dragoman.stores import auditing
from dragoman.stores.rows import TaskRow
from dragoman.stores.sqlite.connection import BUSY_SECONDS, cause_of, is_busy, unavailable
from dragoman.stores.sqlite.ownership import HEARTBEAT_SECONDS, Ownership, OwnershipLost
from dragoman.stores.sqlite.tallying import count
from dragoman.stores.tallying import Tallies
from dragoman.stores.waiting import Operation, resolve

MAX_BATCH = 256
"""Operations in one transaction at most: bounds how long the first one waits for the last."""

BUSY_BATCH = 4
GATHER_SECONDS = 0.001
"""After a batch of at least `BUSY_BATCH`, wait this long for the next one to gather. A commit costs the same for one
operation as for twenty: under load this takes a tenth off the CPU of a send and nothing off its rate."""

MOST_BEGUN = 10_000
"""Rows of runs that are remembered; those that nobody ever asks for again are among them."""

MIN_BEAT_SECONDS = 0.05

STILL_BUSY_SECONDS = 0.25
"""How long a write waits for the lock of another process once one has waited in vain (`BUSY_SECONDS`)."""

_LOG = logging.getLogger("dragoman.store")


class _CannotBegin(Exception):
    """The database refuses even to begin a transaction."""

    def __init__(self, cause: sqlite3.Error) -> None:
        super().__init__()
        self.cause = cause


class Transaction:
    """What an operation works with. It must check before it writes: a rule it breaks must leave nothing behind.

    Attributes:
        now: milliseconds since 1970 UTC, by the store's clock, the same for a whole batch.
        epoch: the server's epoch.
        placing: who executes the runs of what is accepted.
        audit: rows of the audit, to be written at the end of the batch.
        events: the events to announce after the commit.
        hooked: the tasks whose push notification configurations were changed, to announce after the commit.
        runs: the runs to execute here after the commit.
        offered: the runs that others are to execute after the commit.
        scopes: numbers of scopes that are known from commits before this one.
        new_scopes: numbers given out in this transaction.
        tallies: how many tasks there are, for quotas.
        begun: the rows of runs that were begun here and not written to since, as far as this process knows; what is
            done with one must make sure that it still is so.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        epoch: int,
        now: int,
        scopes: dict[Scope, int],
        tallies: Tallies | None = None,
        placing: Placing = Placing.HERE,
        begun: dict[str, TaskRow] | None = None,
    ) -> None:
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.epoch = epoch
        self.placing = placing
        self.now = now
        self.audit: list[auditing.Row] = []
        self.events: list[TaskEvent] = []
        self.hooked: list[str] = []
        self.runs: list[RunRef] = []
        self.offered: list[RunRef] = []
        self.scopes = scopes
        self.new_scopes: dict[Scope, int] = {}
        self.tallies = tallies if tallies is not None else Tallies()
        self.begun = begun if begun is not None else {}
        self._counts: defaultdict[tuple[int, str], list[int]] = defaultdict(lambda: [0] * len(TaskState))

    def tally(self, scope: Scope) -> tuple[Tally, Tally]:
        """Return the tallies of a principal and of its tenant, which is counted if it has not been."""
        if self.tallies.find(scope) is None:
            self.write_counts()
            self.tallies.fill(scope.tenant, count(self.execute, scope.tenant))
        return self.tallies.find(scope) or (Tally(), Tally())

    def count(self, scope_id: int, context_id: str, state: TaskState, step: int) -> None:
        """Note that a visible task entered (`step` 1) or left (-1) a state; written once a batch.

        `context_id` is empty for a task whose context has no counters.
        """
        self._counts[scope_id, ""][state - 1] += step
        self.tallies.move(scope_id, stored=step)
        if context_id:
            self._counts[scope_id, context_id][state - 1] += step

    def count_moved(self, scope_id: int, context_id: str, before: TaskState, after: TaskState) -> None:
        """Note that a visible task went from one state to another; otherwise as `count`."""
        for key in ((scope_id, ""), (scope_id, context_id)) if context_id else ((scope_id, ""),):
            counts = self._counts[key]
            counts[before - 1] -= 1
            counts[after - 1] += 1

    def note(self, entry: AuditEntry | None, target: str, outcome: str = OK, detail: str = "") -> None:
        """Add to the audit what came of a request that is audited; nothing for `None`."""
        if entry is not None:
            self.audit.append(auditing.completed(self.now, entry, target, outcome, detail))

    def write_audit(self) -> None:
        """Write what was added to the audit."""
        if self.audit:
            self.executemany(auditing.ADD, self.audit)

    def write_counts(self) -> None:
        """Write the counters that were moved since they were last written."""
        for (scope_id, context_id), steps in self._counts.items():
            if any(steps):
                statement = _MOVE_CONTEXT if context_id else _MOVE_SCOPE
                self.execute(statement, (*steps, scope_id, context_id))
        self._counts.clear()


_STATES = [state.name.lower() for state in TaskState]
_STEPS = ", ".join(f"{name} = {name} + ?" for name in _STATES)
_MOVE_CONTEXT = f"UPDATE counter SET {_STEPS} WHERE scope_id = ? AND context_id = ?"
_MOVE_SCOPE = (
    f"INSERT INTO counter ({', '.join(_STATES)}, scope_id, context_id) VALUES (?{', ?' * (len(_STATES) + 1)}) "
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in _STATES)}"
)

Work = Callable[[Transaction], Any]


class Writer:
    """The writer thread. `run` may be called from any thread that runs an event loop."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        ownership: Ownership,
        *,
        placing: Placing,
        announce: Callable[[Commit], None],
        tend: Work,
        tend_seconds: float,
        noticed: Callable[[], None],
        lost: Callable[[], None],
        troubled: Callable[[sqlite3.Error], None],
    ) -> None:
        """Prepare the thread.

        Args:
            connection: for this thread alone from now on.
            ownership: checked in every transaction.
            placing: who executes the runs of what is accepted.
            announce: called on the writer thread with what each commit made known.
            tend: run with every heartbeat (renewing leases).
            tend_seconds: how often that must be at least; a heartbeat comes every `HEARTBEAT_SECONDS` or sooner.
            noticed: called on the writer thread when another process (a CLI command) has written to the file.
            lost: called on the writer thread, once, when another server has taken the file.
            troubled: called on the writer thread when the file cannot be written to.
        """
        self._connection = connection
        self._ownership = ownership
        self._placing = placing
        self._announce = announce
        self._tend = tend
        self._beat_seconds = max(MIN_BEAT_SECONDS, min(HEARTBEAT_SECONDS, tend_seconds))
        self._noticed = noticed
        self._lost = lost
        self._troubled = troubled
        self._is_troubled = False
        self._queue: queue.SimpleQueue[Operation[Work] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._refusal: Exception | None = None
        self._scopes: dict[Scope, int] = {}
        self._tallies = Tallies()
        self._begun: dict[str, TaskRow] = {}
        self._foreign_writes = self._data_version()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is waiting and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def run(self, work: Work, decided: Callable[[], object] | None = None) -> asyncio.Future[Any]:
        """Have `work` run in a transaction; the future has its result once that is committed.

        `decided` is called on the calling loop when it is, or when it has failed, whether somebody still waits or not.

        Raises:
            DragomanError: as `work` raised it, or Unavailable when the store cannot do its work.
        """
        operation = Operation(work, decided)
        self._queue.put(operation)
        return operation.future

    def _work(self) -> None:
        beat_at = time.monotonic() + self._beat_seconds
        running = True
        batch: list[Operation[Work]] = []
        while running:
            busy = len(batch) >= BUSY_BATCH
            batch = []
            try:
                item = self._queue.get(timeout=max(0.0, beat_at - time.monotonic()))
                if busy and item is not None:
                    time.sleep(GATHER_SECONDS)
                while item is not None:
                    batch.append(item)
                    if len(batch) == MAX_BATCH:
                        break
                    item = self._queue.get_nowait()
                else:
                    running = False
            except queue.Empty:
                pass
            if batch:
                self._run_batch(batch)
            if time.monotonic() >= beat_at:
                self._beat()
                beat_at = time.monotonic() + self._beat_seconds

    def _run_batch(self, batch: list[Operation[Work]]) -> None:
        try:
            self._transact(batch)
        except _CannotBegin as error:
            self._roll_back()
            self._note_trouble(error.cause)
            for operation in batch:
                operation.error = unavailable(error.cause)
        except sqlite3.Error as error:
            self._roll_back()
            if len(batch) == 1:
                self._note_trouble(error)
                batch[0].error = unavailable(error)
            else:
                for operation in batch:
                    self._run_batch([operation])
                return
        except OwnershipLost:
            self._roll_back()
            self._give_up(batch)
        except Exception as error:  # a fault of ours in one operation must not end the thread that serves all
            self._roll_back()
            if len(batch) > 1:
                for operation in batch:
                    self._run_batch([operation])
                return
            batch[0].error = error
        resolve(batch)

    def _transact(self, batch: list[Operation[Work]]) -> None:
        if self._refusal is not None:
            raise OwnershipLost
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            transaction = self._begin()
        except sqlite3.Error as error:
            # It is nobody's own fault, so there is no use in trying them one by one.
            raise _CannotBegin(error) from error
        for operation in batch:
            operation.error = None
            try:
                operation.result = operation.work(transaction)
            except DragomanError as error:
                operation.error = error
        transaction.write_counts()
        transaction.write_audit()
        self._commit()
        self._scopes.update(transaction.new_scopes)
        if transaction.events or transaction.runs or transaction.hooked:
            tx = transaction
            self._announce(Commit(tx.events, tx.runs, tx.hooked, tx.offered))

    def _begin(self) -> Transaction:
        now = self._ownership.check(self._connection)
        if len(self._begun) > MOST_BEGUN:
            self._begun.clear()
        return Transaction(
            self._connection,
            self._ownership.epoch,
            now,
            self._scopes,
            self._tallies,
            self._placing,
            self._begun,
        )

    def _beat(self) -> None:
        if self._refusal is not None:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            transaction = self._begin()
            self._ownership.beat(self._connection, transaction.now)
            self._tend(transaction)
            self._commit()
            version = self._data_version()
            if version != self._foreign_writes:
                self._foreign_writes = version
                self._tallies.forget()
                self._noticed()
        except sqlite3.Error as error:
            self._roll_back()
            self._note_trouble(error)
        except OwnershipLost:
            self._roll_back()
            self._give_up([])

    def _commit(self) -> None:
        self._connection.execute("COMMIT")
        if self._is_troubled:
            self._is_troubled = False
            self._be_patient(BUSY_SECONDS)
            _LOG.info("the store can be written to again")

    def _note_trouble(self, error: sqlite3.Error) -> None:
        if not cause_of(error):
            _LOG.error("a write failed", exc_info=error)
            return
        if is_busy(error) and not self._is_troubled:
            # Whoever holds the lock has had its time: from now on nobody waits so long for the same answer.
            self._be_patient(STILL_BUSY_SECONDS)
        self._is_troubled = True
        self._troubled(error)

    def _be_patient(self, seconds: float) -> None:
        """Wait so long for another process's lock from now on."""
        self._connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def _data_version(self) -> int:
        # Changes when a connection other than this one has written.
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _give_up(self, batch: list[Operation[Work]]) -> None:
        if self._refusal is None:
            self._refusal = Unavailable("This server no longer owns its store; another one has taken over")
            _LOG.critical("another server has taken the store over while this one did not run; ending")
            self._lost()
        for operation in batch:
            operation.error = self._refusal

    def _roll_back(self) -> None:
        self._tallies.forget()
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                _LOG.error("a rollback failed: %s", error)
