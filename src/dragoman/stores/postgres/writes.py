"""The statements that write many rows at once: each takes one array a column."""

import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any

from dragoman.stores import auditing
from dragoman.stores.postgres.rows import HeldRow
from dragoman.stores.tallying import UNFINISHED

Values = tuple[Any, ...]


def columns(rows: Iterable[Sequence[Any]], count: int = 0) -> list[list[Any]]:
    """Return the columns of rows; `count` empty ones if there are none."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(count)]


_QUOTAS = 1_146_241_871
"""The first key of the advisory locks of tenants whose tasks are counted; the second tells the tenant."""

_UNFINISHED = ", ".join(str(int(state)) for state in UNFINISHED)
_KEYS = "unnest($1::bigint[], $2::bytea[]) k (scope_id, name)"

# Two servers must not both take the last place: whoever holds a quota against new tasks of a tenant does so alone. In
# the order of the locks' numbers, so that nobody waits in a circle.
LOCK_TENANTS = (
    f"SELECT pg_advisory_xact_lock({_QUOTAS}, number) FROM"
    " (SELECT DISTINCT hashtext(tenant) AS number FROM unnest($1::text[]) k (tenant) ORDER BY 1) numbers"
)
# Tasks that may still turn out to be bare messages are in no counter. They never wait for a caller.
TALLY = (
    "WITH asked AS (SELECT id, tenant, principal FROM scope WHERE tenant = ANY($1::text[]) UNION"
    " SELECT s.id, s.tenant, s.principal FROM scope s JOIN unnest($2::text[], $3::text[]) k (tenant, principal)"
    " ON s.tenant = k.tenant AND s.principal = k.principal)"
    " SELECT a.tenant, a.id, a.principal, coalesce(c.running, 0) + (SELECT count(*) FROM task t"
    " WHERE t.scope_id = a.id AND NOT t.visible AND t.state IN (1, 2)), coalesce(c.stored, 0) FROM asked a,"
    f" LATERAL (SELECT (sum(n) FILTER (WHERE state IN ({_UNFINISHED})))::bigint AS running, sum(n)::bigint AS stored"
    " FROM (SELECT state, n FROM counter WHERE scope_id = a.id AND context_id = ''"
    " UNION ALL SELECT state, n FROM counter_step WHERE scope_id = a.id AND context_id = '') every) c"
)

MAKE_SCOPES = (
    "INSERT INTO scope (tenant, principal, agent) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])"
    " ON CONFLICT DO NOTHING RETURNING id"
)
DROP_SCOPES = "DELETE FROM scope WHERE id = ANY($1::bigint[])"
FIND_SCOPES = (
    "SELECT id, tenant, principal, agent FROM scope"
    " JOIN unnest($1::text[], $2::text[], $3::text[]) k (tenant, principal, agent) USING (tenant, principal, agent)"
)

CLAIM = (
    "INSERT INTO identity (scope_id, message_id, digest, task_id)"
    " SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::text[])"
    " ON CONFLICT DO NOTHING RETURNING scope_id, message_id"
)
CLAIMED_BEFORE = (
    "SELECT i.scope_id, i.message_id, i.digest, i.task_id, EXISTS (SELECT 1 FROM task t WHERE t.id = i.task_id)"
    f" FROM {_KEYS} JOIN identity i ON i.scope_id = k.scope_id AND i.message_id = k.name"
)
DISOWN = "DELETE FROM identity WHERE scope_id = $1 AND message_id = $2 AND task_id = $3"
REMEMBER = (
    "UPDATE identity i SET digest = k.digest, task_id = k.task_id"
    " FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::text[]) k (scope_id, message_id, digest, task_id)"
    " WHERE i.scope_id = k.scope_id AND i.message_id = k.message_id"
)
UNCLAIM = f"DELETE FROM identity i USING {_KEYS} WHERE i.scope_id = k.scope_id AND i.message_id = k.name"

COUNTED = (
    "SELECT k.scope_id, k.context_id FROM unnest($1::bigint[], $2::bytea[]) k (scope_id, context_id) WHERE"
    " EXISTS (SELECT 1 FROM counter c WHERE c.scope_id = k.scope_id AND c.context_id = k.context_id)"
    " OR EXISTS (SELECT 1 FROM counter_step c WHERE c.scope_id = k.scope_id AND c.context_id = k.context_id)"
)
LOCK_CONTEXTS = (
    f"SELECT t.id FROM task t JOIN {_KEYS} ON t.scope_id = k.scope_id AND t.context_id = k.name"
    " ORDER BY t.id FOR UPDATE OF t"
)
MAKE_COUNTERS = (
    f"INSERT INTO counter (scope_id, context_id, state, n) SELECT k.scope_id, k.name, 0, 0 FROM {_KEYS}"
    " ON CONFLICT DO NOTHING RETURNING scope_id, context_id"
)
DROP_COUNTERS = (
    f"DELETE FROM counter c USING {_KEYS} WHERE c.scope_id = k.scope_id AND c.context_id = k.name AND NOT EXISTS"
    " (SELECT 1 FROM counter o WHERE o.scope_id = k.scope_id AND o.context_id = k.name AND o.n <> 0)"
)
FILL_COUNTERS = (
    "INSERT INTO counter (scope_id, context_id, state, n)"
    f" SELECT t.scope_id, t.context_id, t.state, count(*) FROM task t JOIN {_KEYS}"
    " ON t.scope_id = k.scope_id AND t.context_id = k.name WHERE t.visible AND NOT t.counted GROUP BY 1, 2, 3"
)
# Hidden ones too: they are counted for their context from the moment in which they show.
MARK_COUNTED = (
    f"UPDATE task t SET counted = true FROM {_KEYS}"
    " WHERE NOT t.counted AND t.scope_id = k.scope_id AND t.context_id = k.name"
)

TASKS = (
    "INSERT INTO task (id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq, created_at,"
    " metadata, request, epoch, attempt, dispatch, owner, deadline_at, parked_ms)"
    " SELECT *, 0 FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::boolean[], $5::boolean[], $6::smallint[],"
    " $7::bigint[], $8::integer[], $9::integer[], $10::bigint[], $11::bytea[], $12::bytea[], $13::integer[],"
    " $14::integer[], $15::text[], $16::integer[], $17::bigint[])"
)
_MOVES = (
    "UPDATE task t SET visible = k.visible, counted = k.counted, state = k.state, status_at = k.status_at,"
    " status_seq = k.status_seq, seq = k.seq, epoch = k.epoch, attempt = k.attempt, dispatch = k.dispatch,"
    " owner = k.owner, deadline_at = k.deadline_at, parked_at = k.parked_at, parked_ms = k.parked_ms"
    " FROM unnest($1::text[], $2::boolean[], $3::boolean[], $4::smallint[], $5::bigint[], $6::integer[],"
    " $7::integer[], $8::integer[], $9::integer[], $10::text[], $11::integer[], $12::bigint[], $13::bigint[],"
    " $14::bigint[]{value}) k (id, visible, counted, state, status_at, status_seq, seq, epoch, attempt, dispatch,"
    " owner, deadline_at, parked_at, parked_ms{name}) WHERE t.id = k.id{condition}"
)
MOVES = _MOVES.format(value="", name="", condition="")
# Each of these two returns a row for each task that is as it is remembered, and leaves the others as they are.
MOVES_OF_REMEMBERED = (
    _MOVES.format(value=", $15::xid[]", name=", version", condition=" AND t.xmin = k.version")
    + " RETURNING 1"
)
HOLD_REMEMBERED = (
    "SELECT 1 FROM unnest($1::text[], $2::xid[]) k (id, version) JOIN task t ON t.id = k.id AND t.xmin = k.version"
    " FOR UPDATE OF t"
)
EVENTS = (
    "INSERT INTO event (task_id, seq, attempt, at, payload)"
    " SELECT * FROM unnest($1::text[], $2::integer[], $3::integer[], $4::bigint[], $5::bytea[])"
)
JOURNAL = (
    "INSERT INTO journal (task_id, ordinal, kind, name, acts, seq, result, given) SELECT * FROM unnest($1::text[],"
    " $2::integer[], $3::text[], $4::bytea[], $5::integer[], $6::integer[], $7::bytea[], $8::bytea[])"
)
SOURCES = (
    "INSERT INTO run_source (scope_id, source, task_id)"
    " SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::text[]) ON CONFLICT DO NOTHING"
)
HAS_USED = "SELECT 1 FROM run_source WHERE scope_id = $1 AND source = $2 AND task_id = $3"
STEPS = (
    "INSERT INTO counter_step (scope_id, context_id, state, n)"
    " SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::bigint[])"
)
_RUNS = "unnest($1::text[], $2::integer[], $3::bigint[]) k (task_id, epoch, now)"
DISPATCH = (
    f"INSERT INTO dispatch SELECT task_id, 'start', epoch, 0, now FROM {_RUNS} ON CONFLICT (task_id) DO UPDATE"
    " SET notice = 'resume', epoch = excluded.epoch, tries = 0, due_at = excluded.due_at"
)
TAKEN = (
    f"UPDATE dispatch d SET notice = 'none', tries = 0 FROM {_RUNS}"
    " WHERE d.task_id = k.task_id AND d.notice <> 'stop'"
)
STOP = (
    f"UPDATE dispatch d SET notice = 'stop', tries = 0, due_at = k.now FROM {_RUNS}"
    " WHERE d.task_id = k.task_id"
)
FORGET = f"DELETE FROM dispatch d USING {_RUNS} WHERE d.task_id = k.task_id"
AUDIT = (
    "INSERT INTO audit (at, tenant, principal, credential, address, action, target, outcome, detail, times)"
    " SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],"
    " $8::text[], $9::text[], $10::bigint[])"
)


MOST_APART = 1000
"""Milliseconds that the store's clock may be from where it is thought to be."""

NOT_AS_REMEMBERED = "somebody else was quicker, or the clock was moved: this is tried again, seen at"
"""What the database says then, in a line that its operator may find in its log."""


@cache
def together(statements: tuple[str, ...]) -> str:
    """Return one statement that does all of these and takes the values of each, in order.

    They touch different rows, so it does not matter which of them is the first.
    """
    parts, _ = _parts(statements)
    return f"{parts} SELECT 1"


@cache
def at_once(expecting: tuple[str, ...], others: tuple[str, ...]) -> str:
    """Return one statement that does all of these and fails unless all is as it is expected; else as `together`.

    Its values go on with how many rows those of `expecting` are to return together, with what the store's clock is
    thought to say, and with a channel and what to tell others there. It returns what the clock says, and the version of
    the rows that it wrote.
    """
    parts, count = _parts((*expecting, *others))
    found = " + ".join(f"(SELECT count(*) FROM part_{number})" for number in range(len(expecting))) or "0"
    rows, now, channel, lines = (f"${count + number}" for number in range(1, 5))
    return (
        f"{parts} SELECT CASE WHEN abs(now_ms - {now}::bigint) < {MOST_APART} AND {found} = {rows}::bigint THEN now_ms"
        f" ELSE ('{NOT_AS_REMEMBERED} ' || now_ms)::bigint END, pg_current_xact_id()::xid,"
        f" (SELECT count(pg_notify({channel}, told)) FROM unnest({lines}::text[]) told) FROM store_clock"
    )


def _parts(statements: tuple[str, ...]) -> tuple[str, int]:
    """Return what a statement that does all of these begins with, and how many values they take together."""
    parts: list[str] = []
    count = 0
    for number, statement in enumerate(statements):
        shifted = _PLACE.sub(partial(_shifted, count), statement)
        parts.append(f"part_{number} AS ({shifted})")
        count += max(int(found) for found in _PLACE.findall(statement))
    return f"WITH {', '.join(parts)}", count


def _shifted(by: int, place: re.Match[str]) -> str:
    return f"${int(place[1]) + by}"


_PLACE = re.compile(r"\$(\d+)")


def new_task(row: HeldRow, now: int, metadata: bytes, request: bytes) -> Values:
    """Return the values of a task that is new, for `TASKS`."""
    return (
        row.id,
        row.scope_id,
        row.context_id.encode(),
        bool(row.visible),
        bool(row.counted),
        int(row.state),
        row.status_at,
        row.status_seq,
        row.seq,
        now,
        metadata or None,
        request,
        row.epoch,
        row.attempt,
        row.dispatch,
        row.owner,
        row.deadline_at,
    )


def moved_task(row: HeldRow) -> Values:
    """Return the values of a task that was moved, for `MOVES`."""
    return (
        row.id,
        bool(row.visible),
        bool(row.counted),
        int(row.state),
        row.status_at,
        row.status_seq,
        row.seq,
        row.epoch,
        row.attempt,
        row.dispatch,
        row.owner,
        row.deadline_at,
        row.parked_at,
        row.parked_ms,
    )


def audit_row(row: auditing.Row) -> Values:
    """Return the values of a row of the audit, for `AUDIT`: text of PostgreSQL has no U+0000."""
    return tuple(
        value.replace("\0", "\N{SYMBOL FOR NULL}") if isinstance(value, str) else value for value in row
    )
