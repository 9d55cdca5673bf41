"""What a remote agent answered, read from its bytes (A2A 1.0 §9, JSON-RPC 2.0 §5). Pure.

A reply counts only if it can be read in one way: JSON without duplicate keys, the id that was asked under, one result,
and in it a task or a message whose state is known. What is passed on is the remote agent's own text of it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.gateway.remotes import FAILED, UNKNOWN, Outcome
from dragoman.model import TaskState
from dragoman.model.errors import InvalidParams, MalformedJson
from dragoman.protocol.protojson import parse
from dragoman.protocol.v1_0.decode import STATE_NAMES

LONGEST_ERROR = 300
LONGEST_ID = 1024
"""Characters of a remote agent's error message that are kept, and of a task id of its."""

_ROLES = ("ROLE_AGENT", 2)
_raw_members = msgspec.json.Decoder(dict[str, Raw]).decode


class Unreadable(Exception):
    """The reply can be read in no way, or in more than one; the message says how, with nothing of the reply in it."""


def read_sent(status: int, body: bytes, request_id: str) -> Outcome:
    """Return what a reply to `SendMessage` says. What cannot be told from it is `UNKNOWN`."""
    try:
        answer = _answer(status, body, request_id)
        if isinstance(answer, Outcome):
            return answer
        value, text = answer
        members = _object(value, "the result")
        named = [name for name in ("task", "message") if members.get(name) is not None]
        if len(named) != 1:
            raise Unreadable("the result is no task and no message, or both")
        name = named[0]
        inner = _object(members[name], f"the {name}")
        if name == "message":
            _check_message(inner)
            return Outcome(status="completed", result=text)
        task_id = _task_id(inner)
    except Unreadable as error:
        return Outcome(status=UNKNOWN, error=str(error))
    try:
        return Outcome(status=_state(inner), result=text, remote_task_id=task_id)
    except Unreadable as error:
        return Outcome(status=UNKNOWN, error=str(error), remote_task_id=task_id)


def read_task(status: int, body: bytes, request_id: str, task_id: str) -> Outcome:
    """Return what a reply to `GetTask` says of a task; `FAILED` if the remote agent refused to tell.

    Raises:
        Unreadable: nothing that could be believed.
    """
    answer = _answer(status, body, request_id)
    if isinstance(answer, Outcome):
        return answer
    value, text = answer
    task = _object(value, "the task")
    if _task_id(task) != task_id:
        raise Unreadable("it is of another task")
    result = Raw(b'{"task":' + bytes(text) + b"}")
    return Outcome(status=_state(task), result=result, remote_task_id=task_id)


def cleaned(text: str) -> str:
    """Return text of somebody else's on one line, shortened, with nothing in it that a terminal would obey."""
    words = " ".join(text[: LONGEST_ERROR * 2].split())
    line = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in words)
    return line if len(line) <= LONGEST_ERROR else f"{line[: LONGEST_ERROR - 1]}…"


def _answer(status: int, body: bytes, request_id: str) -> Outcome | tuple[Any, Raw]:
    """Return the result of a reply, as a value and as its text; or the definite refusal that it is.

    Raises:
        Unreadable.
    """
    if 400 <= status < 500:
        return _refusal(status, body)
    if not 200 <= status < 300:
        redirect = ", a redirect, which is not followed" if 300 <= status < 400 else ""
        raise Unreadable(f"the remote agent answered {status}{redirect}")
    envelope = _envelope(body)
    if envelope.get("jsonrpc") != "2.0":
        raise Unreadable("the reply is not JSON-RPC 2.0")
    if envelope.get("id") != request_id:
        raise Unreadable("the reply is to another request: its id is not the one that was sent")
    if ("result" in envelope) == ("error" in envelope):
        raise Unreadable("the reply has neither a result nor an error, or both")
    if "error" in envelope:
        error = _object(envelope["error"], "the error")
        code = error.get("code")
        if isinstance(code, bool) or not isinstance(code, int):
            raise Unreadable("the error has no code")
        return Outcome(status=FAILED, code=_bounded(code), error=_message(error))
    try:
        return envelope["result"], _raw_members(body)["result"]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable("the reply is not JSON") from error


def _envelope(body: bytes) -> Mapping[str, Any]:
    try:
        value = parse(body).check()
    except MalformedJson:
        raise Unreadable("the reply is not JSON, or not UTF-8, or is nested too deeply") from None
    except InvalidParams:
        raise Unreadable(
            "the reply gives a member twice, or holds text or numbers that JSON has not"
        ) from None
    return _object(value, "the reply")


def _refusal(status: int, body: bytes) -> Outcome:
    """Return what a 4xx says: the code of its JSON-RPC error if it has one, else the status."""
    try:
        error = _object(_envelope(body).get("error"), "the error")
    except Unreadable:
        return Outcome(status=FAILED, code=status, error=f"the remote agent answered {status}")
    code = error.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        code = status
    return Outcome(status=FAILED, code=_bounded(code), error=_message(error))


def _bounded(code: int) -> int:
    return max(-(2**31), min(code, 2**31 - 1))


def _message(error: Mapping[str, Any]) -> str:
    said = error.get("message")
    return cleaned(said) if isinstance(said, str) and said.strip() else "the remote agent gave no reason"


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is no object")
    return value


def _task_id(task: Mapping[str, Any]) -> str:
    found = task.get("id")
    if not isinstance(found, str) or not 1 <= len(found) <= LONGEST_ID:
        raise Unreadable("the task has no id")
    return found


def _state(task: Mapping[str, Any]) -> str:
    state = _object(task.get("status"), "the status of the task").get("state")
    if isinstance(state, str) and state in STATE_NAMES:
        return STATE_NAMES[state].name.lower()
    if isinstance(state, int) and not isinstance(state, bool) and state in {*TaskState}:
        return TaskState(state).name.lower()
    raise Unreadable("the task is in no state that A2A 1.0 knows")


def _check_message(message: Mapping[str, Any]) -> None:
    message_id, parts, role = message.get("messageId"), message.get("parts"), message.get("role")
    if not isinstance(message_id, str) or not message_id:
        raise Unreadable("the message has no id")
    if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
        raise Unreadable("the message has no parts")
    if isinstance(role, bool) or role not in _ROLES:
        raise Unreadable("the message is not the agent's")
