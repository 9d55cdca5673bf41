"""What `dragoman tasks purge` does: find out what is meant, ask, and delete it a few at a time."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dragoman.cli.administering import done_here
from dragoman.cli.settings import make_sure, refuse
from dragoman.model import Scope, TaskState
from dragoman.model.errors import DragomanError
from dragoman.stores.errors import StoreError
from dragoman.stores.operating import StoreOperator
from dragoman.tables import ConfigError, seconds

STEP_REST = 4
"""After each step, rest so many times as long as it took, if a server is writing too."""

FINAL = tuple(state for state in TaskState if state.is_terminal)


class Purge:
    """One call of the command."""

    def __init__(
        self, ids: Sequence[str], older_than: str | None, states: Sequence[TaskState], agent: str
    ) -> None:
        """Find out what is meant; ends the command if that is nothing, or too much at once."""
        self._ids = list(dict.fromkeys(ids))
        self._agent = agent
        self._ages: Mapping[TaskState, int] = {}
        if ids:
            if older_than is not None or states or agent:
                refuse("name tasks, or say which ones with --older-than, --state and --agent; not both")
            return
        if older_than is None:
            refuse(
                "name the tasks, or say how old they must be: --older-than 30d (0s for every finished one)"
            )
        for state in states:
            if not state.is_terminal:
                refuse(f"--state {state.name.lower()}: only finished tasks are purged; cancel it first")
        try:
            age = int(seconds(older_than, "--older-than") * 1000)
        except ConfigError as error:
            refuse(error)
        self._ages = dict.fromkeys(states or FINAL, age)

    def carry_out(self, operator: StoreOperator, *, dry_run: bool, yes: bool, as_json: bool) -> None:
        """Ask, unless told not to, and delete; says how many tasks there were and how many are gone."""
        named = [_find(operator, task_id) for task_id in self._ids]
        # One moment for the whole command: what grows old meanwhile stays.
        now = operator.now()
        before = {state: now - age for state, age in self._ages.items()}
        matching = None
        if dry_run or not yes:
            matching = len(named) if self._ids else operator.count(before, self._agent)
            if not dry_run and matching:
                _ask(matching)
        purged = 0 if dry_run or matching == 0 else self._delete(operator, named, before)
        if purged:
            target = f"agents/{self._agent}/tasks" if self._agent else "tasks"
            operator.note(done_here("tasks.purge", target, _tasks(purged)))
        operator.close()
        if as_json:
            print(json.dumps({"purged": purged} | ({"would_purge": matching} if dry_run else {})))
        elif dry_run:
            print(f"{_tasks(matching or 0)} would be purged")
        else:
            print(f"{_tasks(purged)} purged")

    def _delete(
        self, operator: StoreOperator, named: Sequence[tuple[Scope, str]], before: Mapping[TaskState, int]
    ) -> int:
        """Delete tasks, resting in between if a server is writing too; return how many were deleted."""
        rest = STEP_REST if operator.is_served() else 0
        purged, place, left = 0, "", list(named)
        try:
            with _progress() as show:
                while True:
                    began = time.monotonic()
                    if left:
                        operator.purge_task(*left.pop())
                        purged += 1
                    else:
                        step = operator.purge(before, self._agent, place)
                        purged, place = purged + step.tasks, step.place
                        if not place:
                            return purged
                    show(purged)
                    time.sleep((time.monotonic() - began) * rest)
        except (DragomanError, StoreError) as error:
            refuse(f"{error} ({_tasks(purged)} purged until then)", 1)


def _find(operator: StoreOperator, task_id: str) -> tuple[Scope, str]:
    """Return how to reach a task; ends the command if it is none that can be purged."""
    found = operator.find(task_id, hidden=True)
    if found is None:
        refuse(f"there is no task {task_id} here; nothing was purged", 1)
    scope, fold = found
    state = fold.status.state if fold.status is not None else TaskState.SUBMITTED
    if fold.reply is None and not state.is_terminal:
        refuse(f"task {task_id} is {state.name}; cancel it first. Nothing was purged", 1)
    return scope, task_id


def _ask(count: int) -> None:
    make_sure(
        f"Purge {_tasks(count)} for ever?",
        unasked=f"{_tasks(count)} would be purged for ever; say --yes if that is right",
        declined="nothing was purged",
    )


def _tasks(count: int) -> str:
    return f"{count:,} task" if count == 1 else f"{count:,} tasks"


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Show how many are gone on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda purged: None
        return
    from rich.console import Console

    with Console(stderr=True).status("purging") as status:
        yield lambda purged: status.update(f"{_tasks(purged)} purged")
