"""Every value of the model that 0.3 can carry, drawn together with its wire forms.

A strategy here gives `Forms`: a JSON document with kinds, in ProtoJSON, in ProtoJSON for clients that double, and the
model value that all three mean. They are built side by side and by hand, so no codec is trusted to check itself.
"""

import base64
from collections.abc import Callable
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
    Role,
    StatusChange,
    Task,
    TaskEvent,
    TaskState,
    TaskStatus,
    TextPart,
    UrlPart,
)
from dragoman.model.payload import ABSENT, Raw, pack
from tests.wire.strategies import ids, instant, json_objects, json_values, milliseconds, texts, words

STATES = {
    TaskState.SUBMITTED: ("submitted", "TASK_STATE_SUBMITTED"),
    TaskState.WORKING: ("working", "TASK_STATE_WORKING"),
    TaskState.COMPLETED: ("completed", "TASK_STATE_COMPLETED"),
    TaskState.FAILED: ("failed", "TASK_STATE_FAILED"),
    TaskState.CANCELED: ("canceled", "TASK_STATE_CANCELLED"),
    TaskState.INPUT_REQUIRED: ("input-required", "TASK_STATE_INPUT_REQUIRED"),
    TaskState.REJECTED: ("rejected", "TASK_STATE_REJECTED"),
    TaskState.AUTH_REQUIRED: ("auth-required", "TASK_STATE_AUTH_REQUIRED"),
}
ROLES = {Role.USER: ("user", "ROLE_USER"), Role.AGENT: ("agent", "ROLE_AGENT")}
NOTE = "urn:dragoman:ext:part:v1"
WRAPPED = "data_part_compat"

Json = dict[str, Any]


class Forms(NamedTuple):
    """The wire documents of one value, and the value."""

    kinds: Json
    proto: Json
    doubled: Json
    model: Any


_uris = st.lists(words, min_size=1, max_size=2)


class _Draft:
    """The three documents of one value while it is drawn: members are put into all of them."""

    def __init__(self, draw: st.DrawFn, kinds: Json, proto: Json, doubled: Json | None = None) -> None:
        self._draw = draw
        self.documents = (kinds, proto, dict(proto) if doubled is None else doubled)

    def put(self, name: str, value: Any) -> None:
        for document in self.documents:
            document[name] = value

    def maybe(self, name: str, values: st.SearchStrategy[Any], absent: Any = "") -> Any:
        """An optional member, the same in every form: drawn and put in, or left out."""
        value = self._draw(st.none() | values)
        if value is None:
            return absent
        self.put(name, value)
        return tuple(value) if isinstance(value, list) else value

    def metadata(self) -> Raw:
        value = self._draw(st.none() | json_objects)
        if value is None:
            return ABSENT
        self.put("metadata", value)
        return pack(value)

    def done(self, model: Any) -> Forms:
        return Forms(*self.documents, model)


def _each(found: list[Forms], form: str) -> list[Any]:
    return [getattr(one, form) for one in found]


def _put_each(draft: _Draft, name: str, found: list[Forms], proto_name: str | None = None) -> None:
    kinds, proto, doubled = draft.documents
    kinds[name] = _each(found, "kinds")
    proto[proto_name or name] = _each(found, "proto")
    doubled[proto_name or name] = _each(found, "doubled")


@st.composite
def parts(draw: st.DrawFn) -> Forms:
    """A part of any kind that 0.3 has, as 0.3 callers write it."""
    kind = draw(st.sampled_from(["text", "bytes", "uri", "data"]))
    if kind == "text":
        text = draw(texts)
        draft = _Draft(draw, {"kind": "text", "text": text}, {"text": text})
        return draft.done(TextPart(text=text, metadata=draft.metadata()))
    if kind == "data":
        value = draw(json_objects | st.just({}))
        draft = _Draft(draw, {"kind": "data", "data": value}, {"data": {"data": value}})
        return draft.done(DataPart(data=pack(value), metadata=draft.metadata()))
    return draw(_files(kind))


@st.composite
def _files(draw: st.DrawFn, kind: str) -> Forms:
    named = _Draft(draw, {}, {})
    names = {"filename": named.maybe("name", words), "media_type": named.maybe("mimeType", words)}
    part: Callable[..., Part]
    if kind == "bytes":
        raw = draw(st.binary(max_size=9))
        once = base64.b64encode(raw).decode()
        twice = base64.b64encode(once.encode()).decode()
        members = ({"bytes": once}, {"fileWithBytes": once}, {"fileWithBytes": twice})
        part, content = RawPart, {"raw": raw}
    else:
        url = draw(words)
        members = ({"uri": url}, {"fileWithUri": url}, {"fileWithUri": url})
        part, content = UrlPart, {"url": url}
    files = [document | member for document, member in zip(named.documents, members, strict=True)]
    draft = _Draft(draw, {"kind": "file", "file": files[0]}, {"file": files[1]}, {"file": files[2]})
    return draft.done(part(**content, **names, metadata=draft.metadata()))


@st.composite
def noted_parts(draw: st.DrawFn) -> Forms:
    """A part with what 0.3 has no member for, in the notes that we make of it."""
    note = draw(st.dictionaries(st.sampled_from(["filename", "mediaType"]), words, min_size=1))
    own = draw(st.none() | json_objects)
    names = {"filename": note.get("filename", ""), "media_type": note.get("mediaType", "")}
    metadata = ABSENT if own is None else pack(own)
    notes: Json = {NOTE: {name: note[name] for name in ("filename", "mediaType") if name in note}}
    if draw(st.booleans()):
        text = draw(texts)
        draft = _Draft(draw, {"kind": "text", "text": text}, {"text": text})
        model: Part = TextPart(text=text, metadata=metadata, **names)
    else:
        value = draw(json_values)
        shown = value if isinstance(value, dict) else {"value": value}
        if not isinstance(value, dict):
            notes[WRAPPED] = True
        draft = _Draft(draw, {"kind": "data", "data": shown}, {"data": {"data": shown}})
        model = DataPart(data=pack(value), metadata=metadata, **names)
    draft.put("metadata", {**(own or {}), **notes})
    return draft.done(model)


any_parts = parts() | noted_parts()
"""A part as 0.3 callers are shown it."""


@st.composite
def messages(draw: st.DrawFn, role: Role | None = None) -> Forms:
    """A message of either role, or of the one that is named. References are in the form with kinds alone."""
    who = draw(st.sampled_from(Role)) if role is None else role
    drawn = draw(st.lists(any_parts, min_size=1, max_size=3))
    with_kinds, in_proto = ROLES[who]
    draft = _Draft(draw, {"kind": "message", "role": with_kinds}, {"role": in_proto})
    message_id = draw(ids)
    draft.put("messageId", message_id)
    _put_each(draft, "parts", drawn, "content")
    references = tuple(draw(st.none() | st.lists(ids, min_size=1, max_size=2)) or ())
    if references:
        draft.documents[0]["referenceTaskIds"] = list(references)
    return draft.done(
        Message(
            message_id=message_id,
            role=who,
            parts=tuple(_each(drawn, "model")),
            context_id=draft.maybe("contextId", ids),
            task_id=draft.maybe("taskId", ids),
            metadata=draft.metadata(),
            extensions=draft.maybe("extensions", _uris, ()),
            reference_task_ids=references,
        )
    )


@st.composite
def artifacts(draw: st.DrawFn) -> Forms:
    """An artifact."""
    drawn = draw(st.lists(any_parts, min_size=1, max_size=3))
    artifact_id = draw(ids)
    draft = _Draft(draw, {"artifactId": artifact_id}, {"artifactId": artifact_id})
    _put_each(draft, "parts", drawn)
    return draft.done(
        Artifact(
            artifact_id=artifact_id,
            parts=tuple(_each(drawn, "model")),
            name=draft.maybe("name", words),
            description=draft.maybe("description", words),
            metadata=draft.metadata(),
            extensions=draft.maybe("extensions", _uris, ()),
        )
    )


@st.composite
def statuses(draw: st.DrawFn, said: st.SearchStrategy[Forms | None] | None = None) -> Forms:
    """A status, with a word of the agent or without."""
    state, at = draw(st.sampled_from(TaskState)), draw(milliseconds)
    with_kinds, in_proto = STATES[state]
    draft = _Draft(draw, {"state": with_kinds}, {"state": in_proto})
    draft.put("timestamp", instant(at))
    word = draw(st.none() | messages(Role.AGENT) if said is None else said)
    if word is not None:
        for document, spoken in zip(draft.documents, word, strict=False):
            document["message"] = spoken
    return draft.done(TaskStatus(state=state, timestamp=at, message=word.model if word else None))


@st.composite
def tasks(draw: st.DrawFn) -> Forms:
    """A task, with history and artifacts or without."""
    status = draw(statuses())
    draft = _Draft(draw, {"kind": "task", "status": status.kinds}, {"status": status.proto})
    draft.documents[2]["status"] = status.doubled
    task_id, context_id = draw(ids), draw(ids)
    draft.put("id", task_id)
    draft.put("contextId", context_id)
    history, results = draw(st.lists(messages(), max_size=2)), draw(st.lists(artifacts(), max_size=2))
    if history:
        _put_each(draft, "history", history)
    if results:
        _put_each(draft, "artifacts", results)
    return draft.done(
        Task(
            id=task_id,
            context_id=context_id,
            status=status.model,
            history=tuple(_each(history, "model")),
            artifacts=tuple(_each(results, "model")),
            metadata=draft.metadata(),
        )
    )


class Item(NamedTuple):
    """An item of a stream, and whether it is the last one."""

    forms: Forms
    last: bool


@st.composite
def status_events(draw: st.DrawFn) -> Item:
    """A status update and the event behind it."""
    last, moved = draw(st.booleans()), draw(st.booleans())
    status = draw(statuses(st.none() if moved else None))
    draft = _Draft(draw, {"kind": "status-update", "status": status.kinds}, {"status": status.proto})
    draft.documents[2]["status"] = status.doubled
    draft.documents[0]["final"] = last
    if last:
        draft.put("final", True)
    change: Change
    if moved:
        # A caller's message moved the task: the update tells the state alone.
        change = Received(draw(messages(Role.USER)).model, status.model.state)
    else:
        change = StatusChange(status.model.state, status.model.message, draft.metadata())
    return Item(_event(draw, draft, "statusUpdate", change, status.model.timestamp), last)


@st.composite
def artifact_events(draw: st.DrawFn) -> Item:
    """An artifact update and the event behind it."""
    artifact = draw(artifacts())
    draft = _Draft(
        draw, {"kind": "artifact-update", "artifact": artifact.kinds}, {"artifact": artifact.proto}
    )
    draft.documents[2]["artifact"] = artifact.doubled
    append, last_chunk = draw(st.booleans()), draw(st.booleans())
    if append:
        draft.put("append", True)
    if last_chunk:
        draft.put("lastChunk", True)
    change = ArtifactChunk(artifact.model, append, last_chunk, draft.metadata())
    return Item(_event(draw, draft, "artifactUpdate", change, draw(milliseconds)), draw(st.booleans()))


def _event(draw: st.DrawFn, draft: _Draft, name: str, change: Change, at: int) -> Forms:
    task_id, context_id = draw(ids), draw(ids)
    draft.put("taskId", task_id)
    draft.put("contextId", context_id)
    event = TaskEvent(task_id, context_id, draw(st.integers(1, 10_000)), at, draw(st.integers(1, 3)), change)
    kinds, proto, doubled = draft.documents
    return Forms(kinds, {name: proto}, {name: doubled}, event)


def _wrapped(forms: Forms, name: str) -> Item:
    return Item(Forms(forms.kinds, {name: forms.proto}, {name: forms.doubled}, forms.model), False)


stream_items = st.one_of(
    tasks().map(lambda forms: _wrapped(forms, "task")),
    messages(Role.AGENT).map(lambda forms: _wrapped(forms, "message")),
    status_events(),
    artifact_events(),
)
"""Everything that a stream can hold."""
