"""What became of a call to a remote agent, as a handler sees it."""

from typing import Any

from msgspec import Struct

from dragoman.gateway.remotes import FAILED, UNKNOWN, Outcome
from dragoman.model.payload import unpack


class Called(Struct, frozen=True, kw_only=True):
    """What became of `Run.call`. It is the same in every attempt of the run.

    Attributes:
        status: the state of the remote task in lower case, such as `completed` or `input_required`; `completed` also
            for a bare message, `failed` also if it is certain that nothing was done, and `unknown` if nothing is.
        task: the remote task as it came, in the JSON form of A2A 1.0; empty if none came.
        message: the bare message that came instead, in that form; empty if none did.
        remote_task_id: the id of the remote task; empty if none came.
        code: the code of the remote agent's error, if it sent one.
        error: what went wrong, in a few words.
    """

    status: str
    task: dict[str, Any]
    message: dict[str, Any]
    remote_task_id: str = ""
    code: int | None = None
    error: str = ""

    @property
    def text(self) -> str:
        """The text that came: of the message, or of the task's artifacts, or else of its status; joined by newlines."""
        artifacts = self.task.get("artifacts")
        holders = [self.message, *(artifacts if isinstance(artifacts, list) else [])]
        found = [text for holder in holders for text in _texts(holder)]
        return "\n".join(found or _texts(self.task.get("status", {}).get("message")))

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows what the remote agent did: a reason to find out, and none to call it again."""
        return self.status == UNKNOWN

    @property
    def has_failed(self) -> bool:
        """Whether the remote agent failed, or did nothing at all."""
        return self.status == FAILED


def as_called(outcome: Outcome) -> Called:
    """Return an outcome as a handler sees it."""
    result = unpack(outcome.result) or {}
    return Called(
        status=outcome.status,
        task=result.get("task") or {},
        message=result.get("message") or {},
        remote_task_id=outcome.remote_task_id,
        code=outcome.code,
        error=outcome.error,
    )


def _texts(holder: Any) -> list[str]:
    # What else than id and status is in a task, nobody has looked at.
    parts = holder.get("parts") if isinstance(holder, dict) else None
    return [
        part["text"]
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]
