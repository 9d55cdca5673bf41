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
    load_config,
    refuse,
)

app = typer.Typer(help="List, show and cancel tasks of every caller (for operators).", no_args_is_help=True)

TaskArgument = Annotated[str, typer.Argument(help="The task's id.")]
_STATES = "submitted, working, completed, failed, canceled, input_required, rejected, auth_required"


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
    from dragoman.model import Filters, TaskState
    from dragoman.protocol.protojson import timestamp_text

    wanted = None
    if state is not None:
        wanted = TaskState.__members__.get(state.upper().replace("-", "_"))
        if wanted is None:
            refuse(f"--state {state}: no such state; one of {_STATES}")
    operator = _open(data, config)
    found = []
    for scope in operator.scopes:
        if agent is None or scope.agent == agent:
            page = operator.page(Filters(scope, None, wanted, None), limit, None)
            found += [(task, scope) for task in page.tasks]
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
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a task and the timeline of its events."""
    from dragoman.protocol.protojson import timestamp_text

    operator = _open(data, config)
    scope, fold = _find(operator, task_id)
    events = [
        {
            "seq": str(event.seq),
            "time": timestamp_text(event.at),
            "attempt": str(event.attempt),
            "event": _describe(event.change),
        }
        for event in operator.events(task_id)
    ]
    operator.close()
    task = fold.task()
    facts = {
        "id": task.id,
        "agent": scope.agent,
        "tenant": scope.tenant,
        "principal": scope.principal,
        "context": task.context_id,
        "state": task.status.state.name,
        "since": timestamp_text(task.status.timestamp),
        "messages": len(task.history),
        "artifacts": len(task.artifacts or ()),
    }
    if as_json:
        print(json.dumps({**facts, "events": events}, ensure_ascii=False, indent=2))
        return
    for name, value in facts.items():
        print(f"{name:10} {value}")
    print()
    print_table(events)


@app.command("cancel")
def cancel_task(
    task_id: TaskArgument,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Cancel a task; a running server stops its handler within 5 seconds."""
    from dragoman.model.errors import DragomanError

    operator = _open(data, config)
    scope, _ = _find(operator, task_id)
    try:
        operator.cancel(scope, task_id)
    except DragomanError as error:
        refuse(error.message, 1)
    operator.close()
    print(f"task {task_id} is CANCELED")


def _open(data: Path, config: Path | None) -> Any:
    from dragoman import app as server
    from dragoman.config import ConfigError
    from dragoman.stores.sqlite import Operator, StoreError

    try:
        return Operator(server.database_path(load_config(config), data))
    except ConfigError as error:
        refuse(error)
    except StoreError as error:
        refuse(error, 1)


def _find(operator: Any, task_id: str) -> Any:
    """A task's scope and what it has become; ends the command if there is no such task."""
    found = operator.find(task_id)
    if found is None:
        refuse(f"there is no task {task_id} here; `dragoman tasks list` shows what there is", 1)
    return found


def _describe(change: object) -> str:
    """Say what an event did, without any text of the conversation."""
    from dragoman.model import ArtifactChunk, Received, Resumed, StatusChange

    match change:
        case Received(message=message, state=state):
            moved = f", now {state.name}" if state is not None else ""
            return f"message {message.message_id} received{moved}"
        case StatusChange(state=state, message=message):
            return f"{state.name}{' with a message' if message is not None else ''}"
        case ArtifactChunk(artifact=artifact, append=append):
            parts = "1 part" if len(artifact.parts) == 1 else f"{len(artifact.parts)} parts"
            return f"artifact {artifact.artifact_id}{' (more)' if append else ''}: {parts}"
        case Resumed(kept=kept):
            return f"taken over; events after {kept} of the lost attempt do not count"
        case _:
            return "a bare message was the answer"
