"""One verified result: what an agent gives, gathered into a single text artifact that can be checked for ever."""

import hashlib
from collections.abc import Sequence

from msgspec import structs

from dragoman.model import Artifact, ArtifactChunk, Change, StatusChange, Task, TaskState, TextPart
from dragoman.model.errors import ArtifactUnverified
from dragoman.model.message import text_of
from dragoman.model.payload import ABSENT, pack, unpack

MEDIA_TYPE = "text/markdown"
MAX_BYTES = 1024 * 1024
"""Bytes of UTF-8 that a result may have."""


class ResultRefused(Exception):
    """What an agent gave cannot be a result; the message says why, to its caller."""


class Gathered:
    """Gathers what one attempt of a run gives, instead of showing it piece by piece."""

    def __init__(self, artifact_id: str) -> None:
        self._artifact_id = artifact_id
        self._texts: dict[str, str] = {}

    def take(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        """Keep the artifacts among changes and return the rest; a completion brings the result along before it.

        Raises:
            ResultRefused: an artifact is no text, or the result too large, or there is none.
        """
        rest: list[Change] = []
        for change in changes:
            if isinstance(change, ArtifactChunk):
                self._keep(change)
            elif isinstance(change, StatusChange) and change.state is TaskState.COMPLETED:
                rest += [ArtifactChunk(self._result(change), last_chunk=True), StatusChange(change.state)]
            else:
                rest.append(change)
        return tuple(rest)

    def _keep(self, chunk: ArtifactChunk) -> None:
        artifact = chunk.artifact
        if not all(isinstance(part, TextPart) for part in artifact.parts):
            raise ResultRefused("The agent gave something else than text.")
        before = self._texts.get(artifact.artifact_id, "") if chunk.append else ""
        pieces = "".join(part.text for part in artifact.parts if isinstance(part, TextPart))
        self._texts[artifact.artifact_id] = before + pieces
        if sum(map(len, self._texts.values())) > MAX_BYTES:
            raise ResultRefused(f"The agent gave more than {MAX_BYTES} bytes.")

    def _result(self, completion: StatusChange) -> Artifact:
        said = text_of(completion.message.parts) if completion.message is not None else ""
        text = "\n\n".join(piece for piece in (*self._texts.values(), said) if piece)
        if not text:
            raise ResultRefused("The agent ended without a result.")
        content = text.encode()
        if len(content) > MAX_BYTES:
            raise ResultRefused(f"The agent gave more than {MAX_BYTES} bytes.")
        return Artifact(
            artifact_id=self._artifact_id,
            name="result",
            parts=(TextPart(text=text, media_type=MEDIA_TYPE),),
            metadata=pack({"sha256": hashlib.sha256(content).hexdigest(), "byteCount": len(content)}),
        )


def verify(task: Task) -> Task:
    """Return a task as it may be shown: each of its artifacts is what was written of it.

    Raises:
        ArtifactUnverified: one is not.
    """
    for artifact in task.artifacts or ():
        verify_artifact(artifact)
    return task


def verify_artifact(artifact: Artifact) -> None:
    """Check an artifact against its checksum and byte count.

    Raises:
        ArtifactUnverified: it is not what was written.
    """
    content = "".join(part.text for part in artifact.parts if isinstance(part, TextPart)).encode()
    wanted = unpack(artifact.metadata)
    found = {"sha256": hashlib.sha256(content).hexdigest(), "byteCount": len(content)}
    if not isinstance(wanted, dict) or {name: wanted.get(name) for name in found} != found:
        raise ArtifactUnverified(artifact.artifact_id)


def without_content(task: Task) -> Task:
    """Return a task of which only its state is told."""
    return structs.replace(
        task, artifacts=None, history=(), metadata=ABSENT, status=structs.replace(task.status, message=None)
    )
