"""Waiting for what a task becomes."""

from typing import Any

from tests.harness.polling import until
from tests.interaction.callers import Caller
from tests.interaction.messages import send_params

TERMINAL = frozenset(
    {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
)


def sent(caller: Caller, text: str = "hello", *, wait: bool = True, **members: Any) -> dict[str, Any]:
    """The task of a message that was sent: as it ended, or as it began."""
    configuration = None if wait else {"returnImmediately": True}
    return caller.call("SendMessage", send_params(text, configuration=configuration, **members)).task


def got(caller: Caller, task_id: str, **params: Any) -> dict[str, Any]:
    """A task as it stands."""
    task: dict[str, Any] = caller.call("GetTask", {"id": task_id, **params}).result
    return task


def state_of(caller: Caller, task_id: str) -> str:
    """The state of a task as it stands."""
    return str(got(caller, task_id, historyLength=0)["status"]["state"])


def ended(caller: Caller, task_id: str, seconds: float = 15) -> dict[str, Any]:
    """A task once it is finished."""
    until(lambda: state_of(caller, task_id) in TERMINAL, what=f"task {task_id} is finished", seconds=seconds)
    return got(caller, task_id)


def texts(task: dict[str, Any]) -> list[str]:
    """The text of every artifact of a task."""
    return ["".join(part["text"] for part in artifact["parts"]) for artifact in task.get("artifacts", [])]
