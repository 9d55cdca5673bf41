"""Folding: the steps that writers have appended are added to the counters, now and then, by one server at a time."""

from typing import Any

_LOCK = 1_146_241_870
_MOST = 20_000

_FOLD = (
    "WITH gone AS (DELETE FROM counter_step WHERE ctid = ANY(ARRAY("
    f"SELECT ctid FROM counter_step LIMIT {_MOST})) RETURNING scope_id, context_id, state, n)"
    " INSERT INTO counter AS c (scope_id, context_id, state, n)"
    " SELECT scope_id, context_id, state, sum(n) FROM gone GROUP BY 1, 2, 3"
    " ON CONFLICT (scope_id, context_id, state) DO UPDATE SET n = c.n + excluded.n"
    " RETURNING scope_id, context_id"
)
# A context without any task left needs no counters: if it is named again, it gets new ones.
_FORGET = (
    "DELETE FROM counter c USING unnest($1::bigint[], $2::bytea[]) k (scope_id, name)"
    " WHERE c.scope_id = k.scope_id AND c.context_id = k.name AND k.name <> ''"
    " AND NOT EXISTS (SELECT 1 FROM counter o WHERE o.scope_id = k.scope_id AND o.context_id = k.name AND o.n <> 0)"
    " AND NOT EXISTS (SELECT 1 FROM counter_step o WHERE o.scope_id = k.scope_id AND o.context_id = k.name)"
)


async def fold(connection: Any) -> None:
    """Add to the counters what has gathered, unless another server does so just now."""
    async with connection.transaction():
        if not await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", _LOCK):
            return
        touched = {(scope, context_id) for scope, context_id in await connection.fetch(_FOLD)}
        if touched:
            scopes, contexts = zip(*touched, strict=True)
            await connection.execute(_FORGET, list(scopes), list(contexts))
