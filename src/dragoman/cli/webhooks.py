"""`dragoman webhooks`: how far the receivers of push notifications are, and trying again what was given up."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.output import print_table, tame
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, JsonOption, open_operator, refuse

app = typer.Typer(
    help="List push notification configurations, and redeliver what was given up (for operators).",
    no_args_is_help=True,
)

PAGE = 500
_STATES = "open, done, dead"


@app.command("list")
def list_webhooks(
    state: Annotated[
        str | None,
        typer.Option("--state", help=f"Only those in this state: {_STATES}. dead ones were given up."),
    ] = None,
    task: Annotated[str, typer.Option("--task", help="Only those of this task.")] = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List configurations by task: how many events their receivers took, and what became of the last try.

    A URL may hold a secret, so only its origin is shown.
    """
    from dragoman.cli.administering import guarded
    from dragoman.protocol.protojson import timestamp_text

    wanted, operator = _state(state), open_operator(data, config)
    rows = [
        {
            "task": hook.task_id,
            "id": hook.config.id if as_json else tame(hook.config.id),
            "agent": hook.scope.agent,
            "tenant": hook.scope.tenant,
            "principal": hook.scope.principal,
            "state": hook.state.value,
            "sent": str(hook.sent),
            "tries": str(hook.tries),
            "to": _origin(hook.config.url),
            "since": timestamp_text(hook.changed),
            "error": hook.error,
        }
        for hook in guarded(lambda: list(_hooks(operator, wanted, task)))
    ]
    operator.close()
    if as_json:
        counted = [{**row, "sent": int(row["sent"]), "tries": int(row["tries"])} for row in rows]
        print(json.dumps(counted, ensure_ascii=False, indent=2))
    else:
        print_table(rows, empty="no push notification configurations")


@app.command("redeliver")
def redeliver(
    task: Annotated[str, typer.Argument(metavar="[TASK]", help="The task's id.")] = "",
    config_id: Annotated[
        str, typer.Argument(metavar="[ID]", help="The configuration's id; all of the task's if left out.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every one that was given up.")] = False,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Try again what was given up, from the event on that was not taken; a running server begins within 5 seconds."""
    from dragoman.cli.administering import done_here, guarded
    from dragoman.gateway.hooks import HookState

    if everything == bool(task):
        refuse("name a task, or say --all; `dragoman webhooks list --state dead` shows what was given up")
    operator = open_operator(data, config)
    dead = [
        hook
        for hook in guarded(lambda: list(_hooks(operator, HookState.DEAD, task)))
        if not config_id or hook.config.id == config_id
    ]
    entry = done_here("RedeliverPushNotifications")
    again = guarded(lambda: sum(operator.redeliver(one, entry) for one in dead))
    operator.close()
    if not again and not everything:
        refuse(
            f"nothing of task {task} was given up; `dragoman webhooks list --state dead` shows what was", 1
        )
    print(f"{again} to be redelivered")


def _hooks(operator: Any, state: Any, task: str) -> Iterator[Any]:
    after = ("", "")
    while page := operator.hooks(state, after, PAGE):
        yield from (hook for hook in page if not task or hook.task_id == task)
        after = (page[-1].task_id, page[-1].config.id)


def _origin(url: str) -> str:
    from dragoman.egress.policy import origin_of

    return str(origin_of(url))


def _state(name: str | None) -> Any:
    """The state of a name; ends the command if there is none."""
    from dragoman.gateway.hooks import HookState

    if name is None:
        return None
    try:
        return HookState(name)
    except ValueError:
        refuse(f"--state {name}: no such state; one of {_STATES}")
