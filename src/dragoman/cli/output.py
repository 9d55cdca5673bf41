"""Printing: tables and progress for people, plain tab-separated lines where no terminal is."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


def print_table(rows: Sequence[dict[str, str]], *, empty: str = "nothing there") -> None:
    """Print rows that all have the same keys; `empty` is said on standard error where there are none."""
    if not rows:
        print(empty, file=sys.stderr)
        return
    if not sys.stdout.isatty():
        print("\t".join(rows[0]))
        for row in rows:
            print("\t".join(row.values()))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in rows[0]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(value) for value in row.values()))
    Console().print(table)


def tame(text: str, longest: int = 300) -> str:
    """Return text of somebody else's on one line, shortened, with nothing in it that a terminal would obey."""
    line = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in " ".join(text[: longest * 2].split())
    )
    return line if len(line) <= longest else line[: longest - 1] + "…"


@contextmanager
def copying() -> Iterator[Callable[[int, int], None]]:
    """Show on standard error, if that is a terminal, how far the copy of a store is."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("copying", total=None)

        def update(done: int, total: int) -> None:
            words = "verifying" if done == total else "copying"
            bar.update(shown, completed=done, total=total, description=words)

        yield update
