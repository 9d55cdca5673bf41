"""One verified result: what an agent gives, gathered into a single text artifact that can be checked for ever."""

import hashlib
import logging
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw, structs

from dragoman.model import Artifact, ArtifactChunk, Change, Part, StatusChange, Task, TaskState, TextPart
from dragoman.model.errors import ArtifactUnverified
from dragoman.model.message import text_of
from dragoman.model.payload import ABSENT

_LOG = logging.getLogger("dragoman.result")

MEDIA_TYPE = "text/markdown"
MAX_BYTES = 1024 * 1024
"""Bytes of JSON that a reply with a result may have."""

FRAME = 4096
"""Bytes of such a reply that are kept free for the task around the result, its history aside."""


class ResultRefused(Exception):
    """What an agent gave cannot be a result; the message says why, to its caller."""


class Gathered:
    """Gathers what one attempt of a run gives, instead of showing it piece by piece."""

    def __init__(self, artifact_id: str) -> None:
        self._artifact_id = artifact_id
        self._pieces: dict[str, list[str]] = {}
        self._size = 0

    def take(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Keep the artifacts among changes and return the rest; a completion brings the result along before it.

        Raises:
            ResultRefused: something is no text, or the result too large, or there is none.
        """
        rest: list[Change] = []
        for change in changes:
            if isinstance(change, ArtifactChunk):
                self._keep(change)
                continue
            if isinstance(change, StatusChange):
                check_words(change)
            if isinstance(change, StatusChange) and change.state is TaskState.COMPLETED:
                rest += [ArtifactChunk(self._result(change), last_chunk=True), StatusChange(change.state)]
            else:
                rest.append(change)
        return tuple(rest)

    def _keep(self, chunk: ArtifactChunk) -> None:
        pieces = self._pieces.setdefault(chunk.artifact.artifact_id, [])
        if not chunk.append:
            self._size -= sum(map(len, pieces))
            pieces.clear()
        pieces.append(_text(chunk.artifact.parts))
        self._size += len(pieces[-1])
        if self._size > MAX_BYTES:
            raise _too_large()

    def _result(self, completion: StatusChange) -> Artifact:
        texts = ["".join(pieces) for pieces in self._pieces.values()]
        if completion.message is not None:
            texts.append(text_of(completion.message.parts))
        text = "\n\n".join(filter(None, texts))
        if not text:
            raise ResultRefused("The agent ended without a result.")
        # As JSON, because that is how it has to fit into a reply: what could never be read is no success. No character
        # takes more than six bytes there.
        if len(text) * 6 + 2 > MAX_BYTES - FRAME < len(msgspec.json.encode(text)):
            raise _too_large()
        return Artifact(
            artifact_id=self._artifact_id,
            name="result",
            parts=(TextPart(text=text, media_type=MEDIA_TYPE),),
            metadata=_proof(text),
        )


def _proof(text: str) -> Raw:
    """Return what is written with a text, by which it can be checked: its checksum and its number of bytes."""
    content = text.encode()
    return Raw(
        b'{"sha256":"%s","byteCount":%d}' % (hashlib.sha256(content).hexdigest().encode(), len(content))
    )


def check_words(change: StatusChange) -> None:
    """Refuse a status that says something else than text.

    Raises:
        ResultRefused: it does.
    """
    if change.message is not None:
        _text(change.message.parts)


def _text(parts: Sequence[Part]) -> str:
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if len(texts) < len(parts):
        raise ResultRefused("The agent gave something else than text.")
    return "".join(texts)


def _too_large() -> ResultRefused:
    return ResultRefused(f"The agent gave more than fits into a reply of {MAX_BYTES} bytes.")


def verify(task: Task) -> Task:
    """Return a task as it may be shown: each of its artifacts is what was written of it, and none is missing.

    Raises:
        ArtifactUnverified: that is not so.
    """
    if task.artifacts is None:
        return task
    if task.status.state is TaskState.COMPLETED and len(task.artifacts) != 1:
        raise _unverified(task.id, "")
    for artifact in task.artifacts:
        verify_artifact(task.id, artifact)
    return task


def verify_artifact(task_id: str, artifact: Artifact) -> None:
    """Check an artifact of a task against its checksum and byte count.

    Raises:
        ArtifactUnverified: it is not what was written.
    """
    text = "".join([part.text for part in artifact.parts if isinstance(part, TextPart)])
    # Payloads are kept as the text that they are, so it is the very one that was written.
    if artifact.metadata != _proof(text):
        raise _unverified(task_id, artifact.artifact_id)


def _unverified(task_id: str, artifact_id: str) -> ArtifactUnverified:
    _LOG.error("a stored result is not what was written", extra={"task_id": task_id})
    return ArtifactUnverified(task_id, artifact_id)


def without_content(task: Task) -> Task:
    """Return a task of which only its state is told."""
    return structs.replace(
        task,
        artifacts=None,
        history=(),
        metadata=ABSENT,
        run=None,
        status=structs.replace(task.status, message=None),
    )
