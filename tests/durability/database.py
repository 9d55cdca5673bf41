"""The PostgreSQL database behind a server, looked at from outside as the SQLite file is."""

import json
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from tests.durability.ledger_store import STATES, StoreView, check_task
from tests.harness import stores
from tests.harness.postgres import ask

_LEFT = (
    "INSERT INTO task (id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq, created_at,"
    " request, epoch, attempt, dispatch, owner, deadline_at, parked_ms)"
    " SELECT $1, scope_id, $2, visible, false, $3::integer, $4, $3, $3, $4, request, 1, $5, 'sent',"
    " (SELECT max(id) FROM replica), $6, 0 FROM task WHERE id = $7"
)
_COUNTED = (
    "SELECT scope_id, context_id, state, sum(n)::integer FROM (TABLE counter UNION ALL TABLE counter_step) every"
    " GROUP BY 1, 2, 3 HAVING sum(n) <> 0"
)


class StoreDatabase(StoreView):
    """A database, and what tests do to it behind its server's back."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return stores.query(self._data, statement, *values)

    def shift_clock(self, seconds: float) -> bool:
        stores.shift_clock(self._data, int(seconds * 1000))
        return True

    def leave_lying(self, pattern: str, text: str, *, state: str = "SUBMITTED", attempt: int = 1) -> str:
        made, number = f"left-lying-{uuid.uuid4()}", STATES.index(state)

        async def leave(db: Any) -> None:
            async with db.transaction():
                now = await db.fetchval("SELECT now_ms FROM store_clock")
                payload = await db.fetchval(
                    "SELECT payload FROM event WHERE task_id = $1 AND seq = 1", pattern
                )
                received = json.loads(payload)
                received["message"]["message_id"], received["message"]["parts"][0]["text"] = made, text
                values = made, made.encode(), number, now - 60_000, attempt, now + 60_000, pattern
                await db.execute(_LEFT, *values)
                for seq, event in enumerate([received, {"c": "status", "state": 2}][:number], 1):
                    stored = json.dumps(event, separators=(",", ":")).encode()
                    await db.execute(
                        "INSERT INTO event VALUES ($1, $2, $3, $4, $5)",
                        made,
                        seq,
                        attempt,
                        now - 60_000,
                        stored,
                    )
                await db.execute(
                    "INSERT INTO counter_step SELECT scope_id, '', $2, 1 FROM task WHERE id = $1",
                    made,
                    number,
                )

        ask(stores.url_of(self._data), leave)
        return made

    def leases(self) -> list[int]:
        found = self.rows(
            "SELECT r.beat_at + r.lease_ms - now_ms FROM task t JOIN replica r ON r.id = t.owner"
            " CROSS JOIN store_clock WHERE t.state IN (1, 2)"
        )
        return [left for (left,) in found]

    def check(self) -> None:
        ask(stores.url_of(self._data), check_database)

    def messages(self) -> dict[str, str]:
        found = self.rows("SELECT message_id, task_id FROM identity")
        return {message_id.decode(): task_id for message_id, task_id in found}


async def check_database(db: Any) -> None:
    """Check that all rows of a database fit together."""
    async with db.transaction(isolation="repeatable_read", readonly=True):
        tasks = await db.fetch(
            "SELECT id, seq, state, status_at, status_seq, attempt, scope_id, context_id, visible, counted FROM task"
        )
        for task_id, *facts in tasks:
            statement = "SELECT seq, at, attempt, payload FROM event WHERE task_id = $1 ORDER BY seq"
            check_task(await db.fetch(statement, task_id), task_id, *facts[:5])
        for table in ("event", "identity", "journal"):
            orphans = (
                f"SELECT task_id FROM {table} WHERE task_id <> '' AND task_id NOT IN (SELECT id FROM task"  # noqa: S608
                " UNION ALL SELECT convert_from(name, 'UTF8') FROM journal WHERE task_id = '')"
            )
            assert await db.fetch(orphans) == [], table
        counted = {tuple(row[:3]): row[3] for row in await db.fetch(_COUNTED)}
    expected: Counter[tuple[int, bytes, int]] = Counter()
    for row in tasks:
        _, _, state, *_, scope, context, visible, has_counters = row
        if visible:
            expected[scope, b"", state] += 1
        if visible and has_counters:
            expected[scope, context, state] += 1
    assert counted == dict(expected)
