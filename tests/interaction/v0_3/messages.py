"""Messages of 0.3 to send, each under an id of its own, and what becomes of them."""

import base64
from typing import Any

from tests.harness.polling import until
from tests.interaction.messages import new_id
from tests.interaction.v0_3.callers import Caller

TERMINAL = frozenset({"completed", "failed", "canceled", "rejected"})


def text_part(text: str, **members: Any) -> dict[str, Any]:
    """A part of text."""
    return {"kind": "text", "text": text, **members}


def data_part(data: Any, **members: Any) -> dict[str, Any]:
    """A part of data."""
    return {"kind": "data", "data": data, **members}


def file_part(raw: bytes, **file: Any) -> dict[str, Any]:
    """A part with the bytes of a file."""
    return {"kind": "file", "file": {"bytes": base64.b64encode(raw).decode(), **file}}


def message(text: str = "hello", **members: Any) -> dict[str, Any]:
    """A message with one text part; `members` come over what it has."""
    made = {"kind": "message", "messageId": new_id(), "role": "user", "parts": [text_part(text)]}
    return {**made, **members}


def send_params(text: str = "hello", *, configuration: Any = None, **members: Any) -> dict[str, Any]:
    """The parameters of a send."""
    params: dict[str, Any] = {"message": message(text, **members)}
    if configuration is not None:
        params["configuration"] = configuration
    return params


def sent(caller: Caller, text: str = "hello", *, wait: bool = True, **members: Any) -> dict[str, Any]:
    """The task of a message that was sent: as it ended, or as it began."""
    params = send_params(text, configuration={"blocking": wait}, **members)
    return caller.call("SendMessage", params).value


def got(caller: Caller, task_id: str, **params: Any) -> dict[str, Any]:
    """A task as it stands."""
    return caller.call("GetTask", {"id": task_id, **params}).value


def state_of(caller: Caller, task_id: str) -> str:
    """The state of a task as it stands."""
    return str(got(caller, task_id)["status"]["state"])


def ended(caller: Caller, task_id: str, seconds: float = 15) -> dict[str, Any]:
    """A task once it is finished."""
    until(lambda: state_of(caller, task_id) in TERMINAL, what=f"task {task_id} is finished", seconds=seconds)
    return got(caller, task_id)


def texts(task: dict[str, Any]) -> list[str]:
    """The text of every artifact of a task."""
    return ["".join(part["text"] for part in artifact["parts"]) for artifact in task.get("artifacts", [])]
