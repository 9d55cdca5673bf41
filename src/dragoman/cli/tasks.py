"""`dragoman tasks`: what an operator sees of the tasks in a store, also beside a running server."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.output import print_table
from dragoman.cli.settings import (
    DATA_FOLDER,
    ConfigOption,
    DataOption,
    JsonOption,
    open_operator,
    refuse,
)

app = typer.Typer(
    help="List, show, cancel and purge tasks of every caller (for operators).", no_args_is_help=True
)

TaskArgument = Annotated[str, typer.Argument(help="The task's id.")]
_STATES = "submitted, working, completed, failed, canceled, input_required, rejected, auth_required"
_FINAL = "completed, failed, canceled, rejected"


@app.command("list")
def list_tasks(
    agent: Annotated[str | None, typer.Option("--agent", help="Only tasks of this agent.")] = None,
    state: Annotated[
        str | None, typer.Option("--state", help=f"Only tasks in this state: {_STATES}.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, newest first.")] = 50,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List tasks, newest status change first."""
    from dragoman.cli.administering import guarded
    from dragoman.model import Filters
    from dragoman.protocol.protojson import timestamp_text

    wanted = None if state is None else _state(state)
    operator = open_operator(data, config)
    found = guarded(
        lambda: [
            (task, scope)
            for scope in operator.scopes
            if agent is None or scope.agent == agent
            for task in operator.page(Filters(scope, None, wanted, None), limit, None).tasks
        ]
    )
    operator.close()
    found.sort(key=lambda item: (item[0].status.timestamp, item[0].id), reverse=True)
    rows = [
        {
            "id": task.id,
            "agent": scope.agent,
            "state": task.status.state.name,
            "since": timestamp_text(task.status.timestamp),
            "tenant": scope.tenant,
            "principal": scope.principal,
            "context": task.context_id,
        }
        for task, scope in found[:limit]
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(rows, empty="no tasks")


@app.command("show")
def show_task(
    task_id: TaskArgument,
    text: Annotated[bool, typer.Option("--text", help="Show what was said, too.")] = False,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a task, its attempts and the timeline of its events."""
    from dragoman.cli.timeline import attempts, timeline
    from dragoman.model.errors import DragomanError
    from dragoman.protocol.protojson import timestamp_text

    operator = open_operator(data, config)
    scope, fold = _find(operator, task_id, hidden=True)
    try:
        events = operator.events(task_id)
    except DragomanError as error:
        refuse(error.message, 1)
    operator.close()
    task, tries = fold.task(), attempts(events)
    facts = {
        "id": task.id,
        "agent": scope.agent,
        "tenant": scope.tenant,
        "principal": scope.principal,
        "context": task.context_id,
        "state": task.status.state.name if fold.reply is None else "answered with a bare message",
        "since": timestamp_text(task.status.timestamp if fold.reply is None else events[-1].at),
        "messages": len(task.history),
        "artifacts": len(task.artifacts or ()),
    }
    rows = timeline(events, text=text)
    if as_json:
        print(json.dumps({**facts, "attempts": tries, "events": rows}, ensure_ascii=False, indent=2))
        return
    for name, value in facts.items():
        print(f"{name:10} {value}")
    print()
    print_table(tries)
    print()
    print_table(rows)


@app.command("cancel")
def cancel_task(
    task_id: TaskArgument,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Cancel a task; a running server stops its handler within 5 seconds."""
    from dragoman.cli.administering import done_here
    from dragoman.model.errors import DragomanError
    from dragoman.stores.errors import StoreError

    operator = open_operator(data, config)
    scope, _ = _find(operator, task_id)
    try:
        operator.cancel(scope, task_id, done_here("CancelTask"))
    except DragomanError as error:
        refuse(error.message, 1)
    except StoreError as error:
        refuse(error, 1)
    operator.close()
    print(f"task {task_id} is CANCELED")


@app.command("purge")
def purge_tasks(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Tasks to delete.")] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Those that ended longer ago than this, such as 30d; 0s is all."),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help=f"Only those that ended so: {_FINAL}; may be repeated."),
    ] = None,
    agent: Annotated[str, typer.Option("--agent", help="Only those of this agent.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete finished tasks for ever: those named, or those that ended long ago.

    Nothing of them is left: not the messages, not the results, and a message that is sent again is a new one. It is
    done a few at a time, so that a running server goes on serving.
    """
    from dragoman.cli.purge import Purge

    purge = Purge(ids or [], older_than, [_state(name) for name in state or []], agent)
    purge.carry_out(open_operator(data, config), dry_run=dry_run, yes=yes, as_json=as_json)


def _find(operator: Any, task_id: str, *, hidden: bool = False) -> Any:
    """A task's scope and what it has become; ends the command if there is no such task."""
    from dragoman.cli.administering import guarded

    found = guarded(lambda: operator.find(task_id, hidden=hidden))
    if found is None:
        refuse(f"there is no task {task_id} here; `dragoman tasks list` shows what there is", 1)
    return found


def _state(name: str) -> Any:
    """The state of a name; ends the command if there is none."""
    from dragoman.model import TaskState

    state = TaskState.__members__.get(name.upper().replace("-", "_"))
    if state is None:
        refuse(f"--state {name}: no such state; one of {_STATES}")
    return state
