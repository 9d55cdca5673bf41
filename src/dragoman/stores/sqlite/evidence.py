"""Evidence: the sources that runs have used, and leaving out of listings what comes from sources that are withheld."""

import sqlite3
from collections.abc import Callable, Iterable

from dragoman.model import Change, Used
from dragoman.stores.rows import TaskRow
from dragoman.stores.sqlite.writer import Transaction

# From one source to the next: what a scope has of them is a few, however many tasks they are in.
_SOURCES = (
    "WITH RECURSIVE used (source) AS ("
    "SELECT min(source) FROM run_source WHERE scope_id = ?1 UNION ALL"
    " SELECT (SELECT min(source) FROM run_source WHERE scope_id = ?1 AND source > used.source)"
    " FROM used WHERE used.source IS NOT NULL)"
    " SELECT source FROM used WHERE source IS NOT NULL"
)


def has_used(tx: Transaction, row: TaskRow, source: str) -> bool:
    """Tell whether a run has used a source before."""
    found = tx.execute(
        "SELECT 1 FROM run_source WHERE scope_id = ? AND source = ? AND task_id = ?",
        (row.scope_id, source, row.id),
    ).fetchone()
    return found is not None


def note_sources(tx: Transaction, row: TaskRow, changes: Iterable[Change]) -> None:
    """Note the sources among changes that were written, for listings; reads find them in the events."""
    for change in changes:
        if isinstance(change, Used):
            tx.execute(
                "INSERT INTO run_source (scope_id, source, task_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (row.scope_id, change.source, row.id),
            )


def lost_sources(
    db: sqlite3.Connection, scope: int, withheld: Callable[[str], bool] | None
) -> tuple[str, ...]:
    """Return those sources of a scope's runs that are withheld from its caller."""
    if withheld is None:
        return ()
    return tuple(source for (source,) in db.execute(_SOURCES, (scope,)) if withheld(source))


def has_source(lost: tuple[str, ...]) -> str:
    """Return the condition that a row of `task` has one of so many sources."""
    marks = ", ".join("?" * len(lost))
    return f"EXISTS (SELECT 1 FROM run_source r WHERE r.task_id = task.id AND r.source IN ({marks}))"


def count_with(
    db: sqlite3.Connection, scope: int, lost: tuple[str, ...], where: str, values: list[object]
) -> int:
    """Return how many of a scope's tasks that fulfil a condition have one of these sources; looks at those alone."""
    marks = ", ".join("?" * len(lost))
    found: int = db.execute(
        "SELECT count(*) FROM (SELECT DISTINCT task_id FROM run_source"
        f" WHERE scope_id = ? AND source IN ({marks})) CROSS JOIN task ON task.id = task_id WHERE {where}",
        (scope, *lost, *values),
    ).fetchone()[0]
    return found
