"""What happened to a task, in words: the timeline of its events, and its attempts."""

from collections.abc import Sequence

from dragoman.cli.output import tame
from dragoman.model import ArtifactChunk, Change, Received, Reply, Resumed, StatusChange, TaskEvent, Used
from dragoman.model.message import text_of
from dragoman.protocol.protojson import timestamp_text


def timeline(events: Sequence[TaskEvent], *, text: bool) -> list[dict[str, str]]:
    """Return a row for each event; with `text` also what was said in it, on one line and shortened."""
    rows = []
    for event in events:
        row = {
            "seq": str(event.seq),
            "time": timestamp_text(event.at),
            "attempt": str(event.attempt),
            "event": _describe(event.change),
        }
        rows.append(row | {"text": _said(event.change)} if text else row)
    return rows


def attempts(events: Sequence[TaskEvent]) -> list[dict[str, str]]:
    """Return a row for each attempt of a run that wrote something: from when to when, and what became of it."""
    rows = []
    numbers = sorted({event.attempt for event in events})
    for number in numbers:
        own = [event for event in events if event.attempt == number]
        rows.append(
            {
                "attempt": str(number),
                "began": timestamp_text(own[0].at),
                "last": timestamp_text(own[-1].at),
                "events": str(len(own)),
                "outcome": "lost, and taken over" if number != numbers[-1] else _outcome(events),
            }
        )
    return rows


def _outcome(events: Sequence[TaskEvent]) -> str:
    if isinstance(events[-1].change, Reply):
        return "a bare message"
    return next(event.state.name for event in reversed(events) if event.state is not None)


def _describe(change: Change) -> str:
    """Say what an event did, without any text of the conversation."""
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
        case Reply():
            return "a bare message was the answer"
        case Used(source=source):
            return f"source {tame(source)} used"


def _said(change: Change) -> str:
    """Return the text of an event."""
    match change:
        case ArtifactChunk(artifact=artifact):
            return tame(text_of(artifact.parts))
        case Received(message=message) | Reply(message=message) | StatusChange(message=message):
            return tame(message.text) if message is not None else ""
        case Resumed() | Used():
            return ""
