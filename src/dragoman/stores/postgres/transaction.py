"""One transaction for many operations: what they need is read together, what they change is written together.

An operation says what it will look at (`Work`). Before the first one runs, all of that is read and locked in a few
statements, whatever the number of operations; then each runs in memory; then all that they changed is written, one
statement a table. Rows are locked in the order of their keys, first identities, then counters, then tasks, so that two
servers rarely wait for each other in a circle; where they do, the database ends one of them, and it begins again.
"""

import copy
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import asyncpg
from msgspec import Struct

from dragoman.gateway.audit import OK, AuditEntry
from dragoman.gateway.ports import Acceptance, JournalEntry, Lease, Placing, RunRef
from dragoman.model import Change, Scope, StatusChange, TaskEvent, TaskState
from dragoman.model.allowance import Allowance
from dragoman.model.speech import agent_message
from dragoman.stores import auditing
from dragoman.stores.postgres import writes
from dragoman.stores.postgres.connection import Database, plain
from dragoman.stores.postgres.memory import Key
from dragoman.stores.postgres.rows import COLUMNS, NOBODY, HeldRow, held_row
from dragoman.stores.records import encode
from dragoman.stores.rows import held, move
from dragoman.stores.tallying import Counted, Tallies

_TASKS = f"SELECT {COLUMNS} FROM task WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE"
# What most transactions begin with, in one round trip. The clock is looked at last: nothing is written that happened
# while others were waited for.
_BEGIN = (
    f"WITH claimed AS ({writes.CLAIM}), held AS ({_TASKS.replace('$1', '$5')})"
    " SELECT ARRAY(SELECT claimed FROM claimed), ARRAY(SELECT held FROM held), (SELECT now_ms FROM store_clock),"
    " pg_current_xact_id()::text, pg_backend_pid()"
)
_OUTCOME = "SELECT pg_xact_status($1::text::xid8)"
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_xid = $2::text::xid8::xid"
_FUTURE = "22023"
"""The SQLSTATE of a transaction that a database has never had: it was lost in a failover."""

IN_PROGRESS, COMMITTED = "in progress", "committed"


class Work(Struct, frozen=True):
    """An operation, and what it will look at: tasks by id, scopes, and what accepting a message needs.

    It must check before it changes anything: a rule that it breaks must leave nothing behind. Whoever is patient does
    it again until it is done, and is told nothing before it is known what became of it. One that acts in memory asks
    the database nothing, and what it accepts is a new task, against which no quota is held.
    """

    act: Callable[["Transaction"], Awaitable[Any]]
    tasks: Sequence[str] = ()
    scopes: Sequence[Scope] = ()
    acceptance: Acceptance | None = None
    is_patient: bool = False
    in_memory: bool = False


class Transaction:
    """What an operation works with.

    Attributes:
        db: the connection; whoever reads what may have been changed before flushes first.
        replica: the number of this server.
        now: milliseconds since 1970 UTC, by the store's clock, the same for a whole batch; known once it is prepared.
        number: the transaction's own, by which the database can be asked what became of it; known then too.
        process: the number of the database's process that performs it; known then too.
        version: what its rows are known by (`HeldRow.version`); known then too.
        written: the rows of tasks that were begun or changed, by id, as they are now.
        events: the events to announce after the commit.
        hooked: the tasks whose push notification configurations were changed, to announce after the commit.
        hooked_elsewhere: those of them that other servers tell of.
        runs: the runs to execute here after the commit.
        offered: the runs that others are to execute after the commit.
        scopes: numbers of scopes that are known from commits before this one.
        new_scopes: numbers that became known in this transaction.
        tallies: how many tasks there are of those against whom quotas are held in this transaction.
    """

    def __init__(
        self,
        db: Database,
        replica: int,
        scopes: dict[Scope, int],
        placing: Placing = Placing.HERE,
    ) -> None:
        self.db = db
        self.replica = replica
        self.now = 0
        self.number = ""
        self.process = 0
        self.version = 0
        self.written: dict[str, HeldRow] = {}
        self.events: list[TaskEvent] = []
        self.hooked: list[str] = []
        self.hooked_elsewhere: list[str] = []
        self.runs: list[RunRef] = []
        self.offered: list[RunRef] = []
        self._placing = placing
        self.scopes = scopes
        self.new_scopes: dict[Scope, int] = {}
        self.tallies = Tallies()
        self._rows: dict[str, HeldRow | None] = {}
        self._dirty: set[str] = set()
        self._tasks: list[writes.Values] = []
        self._events: list[writes.Values] = []
        self._journal: list[writes.Values] = []
        self._sources: dict[writes.Values, None] = {}
        self._audit: list[auditing.Row] = []
        self._told: dict[str, tuple[str, int]] = {}
        self._steps: defaultdict[tuple[int, bytes, int], int] = defaultdict(int)
        self._identities: dict[Key, tuple[bytes, str]] = {}
        self._claimed: dict[Key, tuple[bytes, str]] = {}
        self._unused_scopes: set[int] = set()
        self._contexts: set[Key] = set()
        self._unused_counters: set[Key] = set()

    async def prepare(self, works: Sequence[Work]) -> None:
        """Read and lock what operations will look at."""
        accepting = [work.acceptance for work in works if work.acceptance is not None]
        bounded = [one for one in accepting if not one.message.task_id and is_bounded(one.allowance)]
        if bounded:
            await self.db.execute(writes.LOCK_TENANTS, list({one.scope.tenant for one in bounded}))
        await self._find_scopes({scope for work in works for scope in work.scopes}, accepting)
        if bounded:
            await self._tally(bounded)
        tasks = {task_id for work in works for task_id in work.tasks}
        contexts = self._named_contexts(accepting)
        # Contexts' counters come before tasks; without any, tasks are read with the rest.
        await self._begin(self._claims(accepting), () if contexts else tasks)
        await self._count_contexts(contexts)
        await self.load(tasks)

    async def _begin(self, claims: Mapping[Key, tuple[bytes, str]], task_ids: Collection[str]) -> None:
        """Claim messages, lock tasks, and look at the clock."""
        self._rows.update(dict.fromkeys(task_ids))
        values = writes.columns(((*key, *claim) for key, claim in claims.items()), 4)
        begun = await self.db.fetchrow(_BEGIN, *values, list(map(plain, task_ids)))
        claimed, held, self.now, self.number, self.process = begun
        self.version = int(self.number) & 0xFFFF_FFFF
        await self._claim(claims, claimed)
        self._adopt(held)

    async def _find_scopes(self, wanted: Iterable[Scope], accepting: Sequence[Acceptance]) -> None:
        unknown = sorted(
            {scope for scope in wanted if scope not in self.scopes and scope not in self.new_scopes},
            key=_names,
        )
        if not unknown:
            return
        begun = {one.scope for one in accepting if not one.message.task_id}
        made = [scope for scope in unknown if scope in begun]
        if made:
            found = await self.db.fetch(writes.MAKE_SCOPES, *writes.columns(map(_names, made)))
            self._unused_scopes.update(number for (number,) in found)
        for number, *names in await self.db.fetch(writes.FIND_SCOPES, *writes.columns(map(_names, unknown))):
            self.new_scopes[Scope(*names)] = number

    async def _tally(self, bounded: Sequence[Acceptance]) -> None:
        """Count the tasks of those against whom a quota is held; of a whole tenant only if it has one itself."""
        whole = {one.scope.tenant for one in bounded if _bounds_tenant(one.allowance)}
        single = {(one.scope.tenant, one.scope.principal) for one in bounded if one.scope.tenant not in whole}
        counted: defaultdict[str, list[Counted]] = defaultdict(list)
        values = writes.columns(single, 2)
        for tenant, *numbers in await self.db.fetch(writes.TALLY, list(whole), *values):
            scope_id, principal, running, stored = numbers
            counted[tenant].append((scope_id, principal, running, stored))
        for tenant, numbers in counted.items():
            self.tallies.fill(tenant, numbers)

    def scope_id(self, scope: Scope) -> int:
        """Return the number of a scope that was asked for; 0, which no task has, if it never had a task."""
        return self.scopes.get(scope) or self.new_scopes.get(scope, 0)

    def _claims(self, accepting: Sequence[Acceptance]) -> dict[Key, tuple[bytes, str]]:
        """Return the messages that are not to be accepted twice, in the order in which everybody claims them."""
        claims: dict[Key, tuple[bytes, str]] = {}
        for one in accepting:
            scope = self.scope_id(one.scope) if one.idempotent else 0
            if scope:
                key = scope, one.message.message_id.encode()
                claims.setdefault(key, (one.digest, plain(one.message.task_id) or one.task_id))
        return dict(sorted(claims.items()))

    async def _claim(self, claims: Mapping[Key, tuple[bytes, str]], claimed: Iterable[Key]) -> None:
        """Find out which messages were accepted before, and keep others from accepting the rest meanwhile."""
        ahead = dict(claims)
        while True:
            for key in claimed:
                self._claimed[key] = ahead.pop(key)
            if not ahead:
                return
            # Asked in a statement of its own: it sees what was committed while the one before waited for it.
            values = writes.columns(ahead)
            found = await self.db.fetch(writes.CLAIMED_BEFORE, *values)
            for scope, message_id, digest, task_id, lives in found:
                if lives:
                    self._identities[scope, message_id] = digest, task_id
                    del ahead[scope, message_id]
                else:
                    # What is left of a purged task. If somebody else is quicker, look again.
                    await self.db.execute(writes.DISOWN, scope, message_id, task_id)
            if not ahead:
                return
            values = writes.columns((*key, *ahead[key]) for key in ahead)
            claimed = [(scope, name) for scope, name in await self.db.fetch(writes.CLAIM, *values)]

    def known(self, key: Key) -> tuple[bytes, str] | None:
        """Return digest and task of a message that was accepted before."""
        return self._identities.get(key)

    def messages(self) -> Collection[Key]:
        """Return the messages that are accepted, now or before."""
        return self._identities.keys()

    def contexts(self) -> Collection[Key]:
        """Return the contexts that callers have named for new tasks, and that have counters."""
        return self._contexts - self._unused_counters

    def remember(self, key: Key, digest: bytes, task_id: str) -> None:
        """Note that a message is accepted."""
        self._identities[key] = digest, task_id

    def _named_contexts(self, accepting: Sequence[Acceptance]) -> list[Key]:
        """Return the contexts that callers name for new tasks, in order."""
        named = {
            (self.scope_id(one.scope), one.message.context_id.encode())
            for one in accepting
            if one.message.context_id and not one.message.task_id
        }
        return sorted(named)

    async def _count_contexts(self, named: Sequence[Key]) -> None:
        """Give contexts that are named by callers, and so may see more tasks, counters if they have none."""
        self._contexts.update(named)
        if not named:
            return
        found = await self.db.fetch(writes.COUNTED, *writes.columns(named))
        counted = {(scope, context_id) for scope, context_id in found}
        missing = [key for key in named if key not in counted]
        if missing:
            values = writes.columns(missing)
            # Whoever moves one of these tasks just now does not count it for its context yet: wait for them.
            tasks = await self.db.fetch(writes.LOCK_CONTEXTS, *values)
            made = await self.db.fetch(writes.MAKE_COUNTERS, *values)
            self._unused_counters.update((scope, context_id) for scope, context_id in made)
            if tasks and made:
                values = writes.columns(made)
                await self.db.execute(writes.FILL_COUNTERS, *values)
                await self.db.execute(writes.MARK_COUNTED, *values)

    async def load(self, task_ids: Collection[str]) -> None:
        """Lock the rows of tasks, unless they are locked already."""
        missing = [task_id for task_id in task_ids if task_id not in self._rows]
        if missing:
            self._rows.update(dict.fromkeys(missing))
            self._adopt(await self.db.fetch(_TASKS, list(map(plain, missing))))

    async def select(self, where: str, *values: Any) -> list[HeldRow]:
        """Lock the rows that fulfil a condition and that nobody else has locked, and return them."""
        await self.flush()
        found = await self.db.fetch(
            f"SELECT {COLUMNS} FROM task WHERE {where} FOR UPDATE SKIP LOCKED", *values
        )
        self._adopt(found)
        return [held_row(record) for record in found]

    def _adopt(self, records: Iterable[Sequence[Any]]) -> None:
        self._rows.update((row.id, row) for row in map(held_row, records))

    def find(self, scope: int, task_id: str, *, hidden: bool = False) -> HeldRow | None:
        """Return the row of a task in a scope; one that nobody may see yet only if `hidden` is asked for."""
        row = self.row(task_id)
        return row if row is not None and row.scope_id == scope and (row.visible or hidden) else None

    def row(self, task_id: str) -> HeldRow | None:
        """Return the row of a task that was locked, for the caller to change and to save; `None` if there is none."""
        return copy.copy(self._rows[task_id])

    def leased(self, lease: Lease) -> HeldRow:
        """Return the row of a run to somebody who may write to it.

        Raises:
            Fenced: the lease is not good any more.
        """
        row = self.row(lease.task_id)
        held(row, lease)
        assert row is not None  # noqa: S101 - a row that is not there is fenced
        return row

    def place(self, row: HeldRow) -> list[RunRef]:
        """Give a run that is to be executed to whoever executes it; return where to add it: `runs`, or `offered`."""
        if self._placing is Placing.HERE:
            row.dispatch, row.owner = "sent", self.replica
            return self.runs
        row.dispatch, row.owner = "pending", NOBODY
        if self._placing is Placing.ENGINE:
            self._told[row.id] = writes.DISPATCH, row.epoch
        return self.offered

    def note_taken(self, row: HeldRow) -> None:
        """Know that an engine outside was told of a run: somebody executes it now."""
        if self._placing is Placing.ENGINE:
            self._told[row.id] = writes.TAKEN, row.epoch

    def note_end(self, row: HeldRow, *, by_handler: bool) -> None:
        """Have an engine outside told that a run is over, unless its own handler ended it: then the engine sees."""
        if not by_handler:
            self._told[row.id] = writes.STOP, row.epoch
        elif self._placing is Placing.ENGINE:
            self._told[row.id] = writes.FORGET, row.epoch

    def save(self, row: HeldRow) -> None:
        """Keep a row as it is now."""
        self._rows[row.id] = self.written[row.id] = row
        self._dirty.add(row.id)

    def begin(self, row: HeldRow, metadata: bytes, request: bytes, event: TaskEvent) -> None:
        """Add a new task with its first event."""
        self._unused_scopes.discard(row.scope_id)
        self._unused_counters.discard((row.scope_id, row.context_id.encode()))
        self.written[row.id] = row
        self.tallies.move(row.scope_id, running=1)
        self._tasks.append(writes.new_task(row, self.now, metadata, request))
        self._note_events([event])
        if row.visible:
            self.count(row, TaskState.SUBMITTED, 1)

    def write(
        self, row: HeldRow, changes: Sequence[Change], *, reveal: bool = False
    ) -> tuple[TaskEvent, ...]:
        """Add events to a task and move its row with them; the one place where states, times and counters move.

        Raises:
            IllegalChange: the lifecycle does not allow it.
        """
        before, was_visible = row.state, row.visible
        # Nothing can fail by our rules after this.
        events = move(row, changes, self.now)
        if reveal and not was_visible:
            row.visible = True
        if row.state.is_terminal:
            row.dispatch = "done"
        elif row.state.is_interrupted:
            row.dispatch = "parked"
        if row.status_seq >= events[0].seq:
            row.parked_at = events[0].at if row.state.is_interrupted else None
        self.save(row)
        if was_visible and row.state is not before:
            self.count(row, before, -1)
        if row.visible and (not was_visible or row.state is not before):
            self.count(row, row.state, 1)
        if row.state.is_terminal and not before.is_terminal:
            self.tallies.move(row.scope_id, running=-1)
        self._note_events(events)
        return tuple(events)

    def fail(self, row: HeldRow, text: str, *, reveal: bool = False) -> tuple[TaskEvent, ...]:
        """End a run as FAILED, saying `text`, and fence its handler out."""
        row.epoch += 1
        self.note_end(row, by_handler=False)
        message = agent_message(text, task_id=row.id, context_id=row.context_id)
        return self.write(row, (StatusChange(TaskState.FAILED, message),), reveal=reveal)

    def _note_events(self, events: Sequence[TaskEvent]) -> None:
        self.events.extend(events)
        self._events.extend(
            (event.task_id, event.seq, event.attempt, event.at, encode(event.change)) for event in events
        )

    def count(self, row: HeldRow, state: TaskState, step: int) -> None:
        """Note that a visible task entered (`step` 1) or left (-1) a state."""
        self._steps[row.scope_id, b"", state] += step
        self.tallies.move(row.scope_id, stored=step)
        if row.counted and row.context_id:
            key = row.scope_id, row.context_id.encode()
            self._unused_counters.discard(key)
            self._steps[*key, state] += step

    def hook(self, task_id: str, teller: int) -> None:
        """Note that a push notification configuration was changed that the server `teller` tells the receiver of."""
        self.hooked.append(task_id)
        if teller != self.replica:
            self.hooked_elsewhere.append(task_id)

    def forget(self, row: HeldRow) -> None:
        """Note that a row was deleted."""
        self._rows[row.id] = None
        self._dirty.discard(row.id)
        self.written.pop(row.id, None)

    def use(self, row: HeldRow, source: str) -> None:
        """Note that a run has used a source, for listings."""
        self._sources[row.scope_id, source.encode(), row.id] = None

    async def has_used(self, row: HeldRow, source: str) -> bool:
        """Tell whether a run has used a source before."""
        values = row.scope_id, source.encode(), row.id
        if values in self._sources:
            return True
        found = await self.db.fetchval(writes.HAS_USED, *values)
        return found is not None

    def record(self, row: HeldRow, entry: JournalEntry, result: bytes | None) -> None:
        """Add to the journal of a run."""
        given = encode(entry.given) if entry.given else None
        self._journal.append(
            (row.id, entry.ordinal, entry.kind, entry.name.encode(), entry.acts, row.seq, result, given)
        )

    def note(self, entry: AuditEntry | None, target: str, outcome: str = OK, detail: str = "") -> None:
        """Add to the audit what came of a request that is audited; nothing for `None`."""
        if entry is not None:
            self._audit.append(auditing.completed(self.now, entry, target, outcome, detail))

    async def flush(self) -> None:
        """Write what was changed until now."""
        changes = [(statement, rows) for statement, rows in self._changes() if rows]
        if changes:
            statement = writes.together(tuple(statement for statement, _ in changes))
            await self.db.execute(
                statement, *(column for _, rows in changes for column in writes.columns(rows))
            )
        for written in (
            self._tasks,
            self._dirty,
            self._events,
            self._steps,
            self._journal,
            self._audit,
            self._sources,
            self._told,
        ):
            written.clear()

    def _changes(self) -> list[tuple[str, list[writes.Values]]]:
        """Return what was changed and is not written yet: the statement for each kind of change, and its rows."""
        moved = (self._rows[task_id] for task_id in sorted(self._dirty))
        return [
            (writes.TASKS, self._tasks),
            (writes.MOVES, [writes.moved_task(row) for row in moved if row is not None]),
            (writes.EVENTS, self._events),
            (writes.STEPS, [(*key, step) for key, step in self._steps.items() if step]),
            (writes.JOURNAL, self._journal),
            (writes.AUDIT, [writes.audit_row(row) for row in self._audit]),
            (writes.SOURCES, list(self._sources)),
            *self._to_tell().items(),
        ]

    def _to_tell(self) -> dict[str, list[writes.Values]]:
        """Return what an engine outside is to be told, or was, of runs that it executes, by the statement for it."""
        by_statement: defaultdict[str, list[writes.Values]] = defaultdict(list)
        for task_id, (statement, epoch) in sorted(self._told.items()):
            by_statement[statement].append((task_id, epoch, self.now))
        return by_statement

    async def finish(self) -> None:
        """Write all that is left, before the commit."""
        await self.flush()
        wrong = {key: self._identities.get(key) for key in self._claimed}
        changed = [(*key, *new) for key, new in wrong.items() if new and new != self._claimed[key]]
        unused = [key for key, new in wrong.items() if new is None]
        if changed:
            await self.db.execute(writes.REMEMBER, *writes.columns(changed))
        if unused:
            await self.db.execute(writes.UNCLAIM, *writes.columns(unused))
        await self._drop_unused()

    async def outcome(self, db: Database) -> str:
        """Return what became of it: `COMMITTED`, or `IN_PROGRESS`, in which case it is ended; anything else is neither.

        For another connection, after the one that performed it was lost.
        """
        try:
            status = await db.fetchval(_OUTCOME, self.number)
        except asyncpg.PostgresError as error:
            if error.sqlstate == _FUTURE:
                return ""
            raise
        if status == IN_PROGRESS:
            await db.execute(_END, self.process, self.number)
        return status or ""

    async def _drop_unused(self) -> None:
        """Delete what was made for messages that were refused after all."""
        if self._unused_counters:
            await self.db.execute(writes.DROP_COUNTERS, *writes.columns(sorted(self._unused_counters)))
        if self._unused_scopes:
            await self.db.execute(writes.DROP_SCOPES, sorted(self._unused_scopes))
            kept = (
                (scope, number)
                for scope, number in self.new_scopes.items()
                if number not in self._unused_scopes
            )
            self.new_scopes = dict(kept)


def is_bounded(allowance: Allowance | None) -> bool:
    """Tell whether a quota is held against new tasks."""
    if allowance is None:
        return False
    return any(most is not None for most in (allowance.running.principal, allowance.stored.principal)) or (
        _bounds_tenant(allowance)
    )


def _bounds_tenant(allowance: Allowance | None) -> bool:
    return allowance is not None and not (
        allowance.running.tenant is None and allowance.stored.tenant is None
    )


def _names(scope: Scope) -> tuple[str, str, str]:
    return scope.tenant, scope.principal, scope.agent
