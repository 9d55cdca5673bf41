"""Counting the tasks of a tenant in SQLite, from the counters there are.

A tenant is counted when its first message comes that a quota is to be held against. What makes its numbers doubtful
after that, such as a rollback or another process that wrote to the file, has them counted anew.
"""

from collections.abc import Callable, Iterator
from typing import Any

from dragoman.model import TaskState
from dragoman.stores.tallying import UNFINISHED, Counted

_UNFINISHED = " + ".join(state.name.lower() for state in UNFINISHED)
_ALL = " + ".join(state.name.lower() for state in TaskState)
_COUNTED = (
    f"SELECT s.id, s.principal, coalesce({_UNFINISHED}, 0), coalesce({_ALL}, 0)"
    " FROM scope s LEFT JOIN counter c ON c.scope_id = s.id AND c.context_id = '' WHERE s.tenant = ?"
)
# Those that may still turn out to be bare messages are in no counter. They never wait for a caller.
_HIDDEN = (
    "SELECT t.scope_id, count(*) FROM task t INDEXED BY task_running"
    " WHERE t.state IN (1, 2) AND NOT t.visible GROUP BY t.scope_id"
)


def count(execute: Callable[..., Any], tenant: str) -> Iterator[Counted]:
    """Count the tasks of a tenant, by scope; the counters must have been written."""
    hidden = dict(execute(_HIDDEN).fetchall())
    for scope_id, principal, unfinished, stored in execute(_COUNTED, (tenant,)).fetchall():
        yield scope_id, principal, unfinished + hidden.get(scope_id, 0), stored
