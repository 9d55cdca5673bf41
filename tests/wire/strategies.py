"""Every value of the model that the 1.0 wire can carry, drawn together with its wire form.

A strategy here gives a `Pair`: the JSON document as the standard writes it, and the model value that it means. The
two are built side by side and by hand, so neither the codecs nor the storage form are trusted to check themselves.
"""

import base64
from typing import Any, NamedTuple

from hypothesis import strategies as st

from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    DataPart,
    Message,
    Part,
    RawPart,
    Received,
    Reply,
    Resumed,
    Role,
    StatusChange,
    Task,
    TaskEvent,
    TaskState,
    TaskStatus,
    TextPart,
    UrlPart,
    Used,
)
from dragoman.model.payload import ABSENT, Raw, pack

BREAKS = "\u2028\u2029\u0085"
"""Characters that some readers take for the end of a line."""

STATES = {
    TaskState.SUBMITTED: "TASK_STATE_SUBMITTED",
    TaskState.WORKING: "TASK_STATE_WORKING",
    TaskState.COMPLETED: "TASK_STATE_COMPLETED",
    TaskState.FAILED: "TASK_STATE_FAILED",
    TaskState.CANCELED: "TASK_STATE_CANCELED",
    TaskState.INPUT_REQUIRED: "TASK_STATE_INPUT_REQUIRED",
    TaskState.REJECTED: "TASK_STATE_REJECTED",
    TaskState.AUTH_REQUIRED: "TASK_STATE_AUTH_REQUIRED",
}
ROLES = {Role.USER: "ROLE_USER", Role.AGENT: "ROLE_AGENT"}


class Pair(NamedTuple):
    """A wire document and the model value that it means."""

    wire: dict[str, Any]
    model: Any


_odd = st.sampled_from(
    ["\0", "a\0b", *BREAKS, f"one{BREAKS}two", '"\\/\b\f\n\r\t', "\x7f", "é", "\U0001f680", "{}"]
)
texts = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), _odd)
"""Any Unicode text, with the characters that break something more often than chance has them."""

words = texts.filter(bool)
ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=16)
integers = st.one_of(
    st.integers(-10, 10),
    st.integers(),
    st.sampled_from([2**53 - 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64, 2**70, -(2**70), 10**400]),
)
floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1.0, -0.0, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, 0.1]),
)
names = st.one_of(
    st.sampled_from(
        "kind role status state file text raw url data parts metadata messageId message_id".split()
    ),
    texts,
)
"""Keys of user payloads: those that mean something on the wire, too, where they are nobody's business."""

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), integers, floats, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)
json_objects = st.dictionaries(names, json_values, min_size=1, max_size=3)

milliseconds = st.one_of(
    st.sampled_from([0, 1, 999, 1000, 1_900_000_000_123, 253_402_300_799_999]),
    st.integers(0, 253_402_300_799_999),
)
"""Times from 1970 to the end of the year 9999."""


@st.composite
def metadata(draw: st.DrawFn, wire: dict[str, Any]) -> Raw:
    """A metadata map or none; put into `wire` if there is one."""
    value = draw(st.none() | json_objects)
    if value is None:
        return ABSENT
    wire["metadata"] = value
    return pack(value)


def _some(
    draw: st.DrawFn, wire: dict[str, Any], name: str, values: st.SearchStrategy[Any], absent: Any
) -> Any:
    """An optional member: drawn and put into `wire`, or left out."""
    value = draw(st.none() | values)
    if value is None:
        return absent
    wire[name] = list(value) if isinstance(value, tuple) else value
    return value


_uris = st.lists(words, min_size=1, max_size=2).map(tuple)


@st.composite
def parts(draw: st.DrawFn) -> Pair:
    """A part of any kind."""
    kind = draw(st.sampled_from(["text", "raw", "url", "data"]))
    content: Any
    wire: dict[str, Any] = {}
    if kind == "raw":
        content = draw(st.binary(max_size=9))
        wire["raw"] = base64.b64encode(content).decode()
    elif kind == "data":
        wire["data"] = draw(json_values)
        content = pack(wire["data"])
    else:
        content = wire[kind] = draw(texts if kind == "text" else words)
    shared = {
        "filename": _some(draw, wire, "filename", words, ""),
        "media_type": _some(draw, wire, "mediaType", words, ""),
        "metadata": draw(metadata(wire)),
    }
    classes: dict[str, type[Any]] = {"text": TextPart, "raw": RawPart, "url": UrlPart, "data": DataPart}
    part: Part = classes[kind](**{kind: content}, **shared)
    return Pair(wire, part)


@st.composite
def messages(draw: st.DrawFn, role: Role | None = None) -> Pair:
    """A message of either role, or of the one that is named."""
    who = draw(st.sampled_from(Role)) if role is None else role
    drawn = draw(st.lists(parts(), min_size=1, max_size=3))
    wire: dict[str, Any] = {
        "messageId": draw(ids),
        "role": ROLES[who],
        "parts": [part.wire for part in drawn],
    }
    message = Message(
        message_id=wire["messageId"],
        role=who,
        parts=tuple(part.model for part in drawn),
        context_id=_some(draw, wire, "contextId", ids, ""),
        task_id=_some(draw, wire, "taskId", ids, ""),
        metadata=draw(metadata(wire)),
        extensions=_some(draw, wire, "extensions", _uris, ()),
        reference_task_ids=_some(draw, wire, "referenceTaskIds", _uris, ()),
    )
    return Pair(wire, message)


@st.composite
def artifacts(draw: st.DrawFn) -> Pair:
    """An artifact."""
    drawn = draw(st.lists(parts(), min_size=1, max_size=3))
    wire: dict[str, Any] = {"artifactId": draw(ids), "parts": [part.wire for part in drawn]}
    artifact = Artifact(
        artifact_id=wire["artifactId"],
        parts=tuple(part.model for part in drawn),
        name=_some(draw, wire, "name", words, ""),
        description=_some(draw, wire, "description", words, ""),
        metadata=draw(metadata(wire)),
        extensions=_some(draw, wire, "extensions", _uris, ()),
    )
    return Pair(wire, artifact)


@st.composite
def statuses(draw: st.DrawFn) -> Pair:
    """A task's status."""
    state, at = draw(st.sampled_from(TaskState)), draw(milliseconds)
    said = draw(st.none() | messages())
    wire: dict[str, Any] = {"state": STATES[state], "timestamp": instant(at)}
    if said is not None:
        wire["message"] = said.wire
    return Pair(wire, TaskStatus(state=state, timestamp=at, message=said.model if said else None))


@st.composite
def tasks(draw: st.DrawFn) -> Pair:
    """A task, with history and artifacts or without."""
    status = draw(statuses())
    history = draw(st.lists(messages(), max_size=2))
    results = draw(st.lists(artifacts(), max_size=2))
    wire: dict[str, Any] = {"id": draw(ids), "contextId": draw(ids), "status": status.wire}
    if history:
        wire["history"] = [message.wire for message in history]
    if results:
        wire["artifacts"] = [artifact.wire for artifact in results]
    task = Task(
        id=wire["id"],
        context_id=wire["contextId"],
        status=status.model,
        history=tuple(message.model for message in history),
        artifacts=tuple(artifact.model for artifact in results),
        metadata=draw(metadata(wire)),
    )
    return Pair(wire, task)


@st.composite
def status_events(draw: st.DrawFn) -> Pair:
    """A statusUpdate of a stream, and the event behind it."""
    status = draw(statuses())
    change: Change
    update: dict[str, Any] = {"status": status.wire}
    if draw(st.booleans()):
        change = StatusChange(status.model.state, status.model.message, draw(metadata(update)))
    else:
        # A caller's message moved the task: the update tells the state alone.
        change = Received(draw(messages(Role.USER)).model, status.model.state)
        status.wire.pop("message", None)
    return _event(draw, "statusUpdate", update, change, status.model.timestamp)


@st.composite
def artifact_events(draw: st.DrawFn) -> Pair:
    """An artifactUpdate of a stream, and the event behind it."""
    artifact = draw(artifacts())
    append, last = draw(st.booleans()), draw(st.booleans())
    update: dict[str, Any] = {"artifact": artifact.wire}
    update |= {"append": True} if append else {}
    update |= {"lastChunk": True} if last else {}
    change = ArtifactChunk(artifact.model, append, last, draw(metadata(update)))
    return _event(draw, "artifactUpdate", update, change, draw(milliseconds))


def _event(draw: st.DrawFn, kind: str, update: dict[str, Any], change: Change, at: int) -> Pair:
    update |= {"taskId": draw(ids), "contextId": draw(ids)}
    seq, attempt = draw(st.integers(1, 10_000)), draw(st.integers(1, 3))
    return Pair({kind: update}, TaskEvent(update["taskId"], update["contextId"], seq, at, attempt, change))


stream_items = st.one_of(
    tasks().map(lambda pair: Pair({"task": pair.wire}, pair.model)),
    messages(Role.AGENT).map(lambda pair: Pair({"message": pair.wire}, pair.model)),
    status_events(),
    artifact_events(),
)
"""Everything that a stream can hold: StreamResponse documents."""

changes = st.one_of(
    status_events().map(lambda pair: pair.model.change),
    artifact_events().map(lambda pair: pair.model.change),
    messages(Role.USER).map(lambda pair: Received(pair.model)),
    messages(Role.AGENT).map(lambda pair: Reply(pair.model)),
    st.integers(1, 10_000).map(Resumed),
    st.text(min_size=1).map(Used),
)
"""Every change that a log can hold."""


def instant(milliseconds_since_1970: int) -> str:
    """A time in the form that the standard asks for, computed by the calendar alone."""
    days, rest = divmod(milliseconds_since_1970, 86_400_000)
    # Days to civil date (Howard Hinnant's algorithm), so that no date library checks another.
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, fraction = divmod(rest, 1000)
    return f"{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{fraction:03}Z"
