"""What a handler returns or says, as parts, messages and artifacts."""

from collections.abc import Callable
from typing import Any

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    DataPart,
    Message,
    Part,
    RawPart,
    Role,
    StatusChange,
    TaskState,
    TextPart,
    UrlPart,
)
from dragoman.model.ids import new_id
from dragoman.model.payload import pack_object

_PARTS = (TextPart, RawPart, UrlPart, DataPart)


def as_parts(content: Any) -> tuple[Part, ...]:
    """Return `content` as parts: a string, a part, bytes, a list of parts, or any JSON value (a data part).

    Raises:
        TypeError, ValueError: it is nothing of the kind; the message says what it is.
    """
    if isinstance(content, str):
        return (TextPart(text=_unicode(content)),)
    if isinstance(content, _PARTS):
        return (content,)
    if isinstance(content, bytes):
        return (RawPart(raw=content, media_type="application/octet-stream"),)
    if isinstance(content, list | tuple) and content and all(isinstance(item, _PARTS) for item in content):
        return tuple(content)
    if isinstance(content, dict | list | tuple | int | float | bool):
        return (DataPart.of(content),)
    raise TypeError(
        f"a handler can give text, parts, artifacts or JSON values, but not {type(content).__name__}"
    )


def as_message(content: Any, *, task_id: str, context_id: str) -> Message:
    """Return `content` as a message of the agent about a task.

    Raises:
        TypeError, ValueError: as `as_parts`.
    """
    if isinstance(content, Message):
        return content
    return Message(
        message_id=new_id(), role=Role.AGENT, parts=as_parts(content), task_id=task_id, context_id=context_id
    )


def as_artifact(
    content: Any,
    *,
    artifact_id: str | None = None,
    name: str = "",
    description: str = "",
    metadata: dict[str, Any] | None = None,
) -> Artifact:
    """Return `content` as an artifact; one that is whole already stays as it is.

    Raises:
        TypeError, ValueError: as `as_parts`.
    """
    if isinstance(content, Artifact):
        return content
    return Artifact(
        artifact_id=artifact_id or new_id(),
        parts=as_parts(content),
        name=name,
        description=description,
        metadata=pack_object(metadata),
    )


def as_changes(result: Any, artifact_id: Callable[[], str]) -> tuple[Change, ...]:
    """Return what a handler's return value does: its artifacts, then COMPLETED. `artifact_id` makes ids for them.

    Raises:
        TypeError, ValueError: as `as_parts`.
    """
    done = StatusChange(TaskState.COMPLETED)
    if result is None:
        return (done,)
    if isinstance(result, (list, tuple)) and result and all(isinstance(item, Artifact) for item in result):
        return (*(ArtifactChunk(item, last_chunk=True) for item in result), done)
    artifact = result if isinstance(result, Artifact) else as_artifact(result, artifact_id=artifact_id())
    return ArtifactChunk(artifact, last_chunk=True), done


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("text holds a lone surrogate, which no UTF-8 can carry") from error
    return text
