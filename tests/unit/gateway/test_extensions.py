"""Extensions: which are active in a call, and what those of ours do there."""

import pytest
from msgspec import Raw, structs

from dragoman.gateway.extensions import (
    FLOW_GRAPH,
    IDEMPOTENCY,
    RUN_FACTS,
    SHIPPED,
    accepted,
    activated,
    check_required,
    marked,
    retold,
)
from dragoman.gateway.ports import Acceptance, RunRequest
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    Extension,
    Message,
    Received,
    Reply,
    Resumed,
    Role,
    RunFacts,
    Scope,
    StatusChange,
    Task,
    TaskEvent,
    TaskFold,
    TaskState,
    TaskStatus,
    TextPart,
    Used,
)
from dragoman.model.errors import ExtensionSupportRequired
from dragoman.model.payload import ABSENT, members, unpack

DECLARED = (Extension(uri="urn:a"), Extension(uri="urn:b", required=True))
ALL = tuple(SHIPPED)
PLACE = Raw(b'{ "node" : 123456789012345678901234567890,"kind":"task", "\\u0000":[1.0 ,null]}')
"""JSON as no encoder of ours writes it."""


def message(metadata: Raw = ABSENT) -> Message:
    return Message(message_id="m", role=Role.USER, parts=(TextPart(text="go"),), metadata=metadata)


def acceptance(metadata: Raw = ABSENT) -> Acceptance:
    return Acceptance(
        scope=Scope("t", "p", "a"),
        message=message(metadata),
        digest=b"",
        idempotent=False,
        task_id="t",
        context_id="c",
        request=RunRequest(),
        deadline=60_000,
        visible=True,
    )


def fold_of(*changes: Change, metadata: Raw = ABSENT) -> tuple[TaskFold, TaskEvent]:
    """The changes folded, one a second, and the last of them as an event."""
    fold = TaskFold("t", "c", metadata, deadline=60_000)
    events = [TaskEvent("t", "c", at, at * 1000, 1, change) for at, change in enumerate(changes, 1)]
    fold.apply_all(events)
    return fold, events[-1]


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ([], ()),
        (["urn:b"], ("urn:b",)),
        (["urn:b", "urn:a"], ("urn:b", "urn:a")),
        (["urn:a", "urn:a"], ("urn:a",)),
        (["urn:c", "URN:A", "urn:a ", ""], ()),
    ],
)
def test_what_is_asked_for_and_declared_is_active_in_the_order_of_the_request(
    requested: list[str], expected: tuple[str, ...]
) -> None:
    assert activated(requested, DECLARED) == expected


def test_nothing_is_active_that_the_agent_does_not_declare() -> None:
    assert activated([IDEMPOTENCY.uri], ()) == ()
    assert activated([IDEMPOTENCY.uri], (IDEMPOTENCY,)) == ("urn:dragoman:ext:idempotency:v1",)


@pytest.mark.parametrize("active", [("urn:b",), ("urn:a", "urn:b")])
def test_a_required_extension_that_is_active_is_enough(active: tuple[str, ...]) -> None:
    check_required(active, DECLARED)
    check_required((), DECLARED[:1])


@pytest.mark.parametrize("active", [(), ("urn:a",)])
def test_a_required_extension_that_is_missing_is_named(active: tuple[str, ...]) -> None:
    declared = (*DECLARED, Extension(uri="urn:c", required=True))
    with pytest.raises(ExtensionSupportRequired, match="A2A-Extensions: urn:b, urn:c") as refusal:
        check_required(active, declared)
    assert refusal.value.metadata == {"required": "urn:b, urn:c"}


def test_idempotency_has_a_message_accepted_once() -> None:
    assert accepted((IDEMPOTENCY.uri,), acceptance()).idempotent
    assert not accepted((RUN_FACTS.uri, FLOW_GRAPH.uri, "urn:own"), acceptance()).idempotent


def test_a_place_in_a_flow_graph_is_kept_as_the_text_that_it_is() -> None:
    sent = acceptance(Raw(b'{"other":1,"%s":%s}' % (FLOW_GRAPH.uri.encode(), bytes(PLACE))))
    kept = members(accepted(ALL, sent).metadata)
    assert {uri: bytes(text) for uri, text in kept.items()} == {FLOW_GRAPH.uri: bytes(PLACE)}
    assert accepted((), sent) == sent


@pytest.mark.parametrize("metadata", [ABSENT, Raw(b"{}"), Raw(b'{"urn:dragoman:ext:flow-graph:v2":1}')])
def test_a_message_without_a_place_gives_its_task_none(metadata: Raw) -> None:
    assert accepted((FLOW_GRAPH.uri,), acceptance(metadata)).metadata is ABSENT


def test_run_facts_stand_beside_what_the_task_has() -> None:
    task = Task(
        id="t",
        context_id="c",
        status=TaskStatus(state=TaskState.WORKING, timestamp=0),
        metadata=Raw(b'{"own":1}'),
        run=RunFacts(sequence=7, attempt=2, deadline=1_700_000_000_123),
    )
    facts = {"sequence": 7, "attempt": 2, "deadline": "2023-11-14T22:13:20.123Z"}
    assert unpack(marked(ALL, task).metadata) == {"own": 1, RUN_FACTS.uri: facts}
    assert marked((IDEMPOTENCY.uri, "urn:own"), task) is task
    ended = structs.replace(task, run=RunFacts(sequence=8, attempt=2))
    assert unpack(marked(ALL, ended).metadata)[RUN_FACTS.uri] == {"sequence": 8, "attempt": 2}
    assert marked(ALL, structs.replace(task, run=None)).metadata is task.metadata


def test_every_change_of_state_has_what_the_task_keeps_and_what_is_said_of_the_run() -> None:
    kept = Raw(b'{"%s":%s}' % (FLOW_GRAPH.uri.encode(), bytes(PLACE)))
    changes = (
        Received(message(), TaskState.SUBMITTED),
        StatusChange(TaskState.WORKING, metadata=Raw(b'{"own":1.0}')),
        StatusChange(TaskState.INPUT_REQUIRED),
        Received(message(), TaskState.WORKING),
        StatusChange(TaskState.COMPLETED),
    )
    deadlines = ("1970-01-01T00:01:00.000Z", None, "1970-01-01T00:01:01.000Z", None)
    for count, deadline in enumerate(deadlines, 2):
        told = retold(ALL, *fold_of(*changes[:count], metadata=kept)).change
        assert isinstance(told, StatusChange)
        assert told.state is changes[count - 1].state  # type: ignore[union-attr]
        found = dict(members(told.metadata))
        assert bytes(found.pop(FLOW_GRAPH.uri)) == bytes(PLACE)
        facts = unpack(found.pop(RUN_FACTS.uri))
        assert facts == {"sequence": count, "attempt": 1} | ({"deadline": deadline} if deadline else {})
        assert {key: bytes(text) for key, text in found.items()} == ({"own": b"1.0"} if count == 2 else {})


def test_what_the_agent_writes_under_a_uri_itself_stays() -> None:
    own = Raw(b'{"%s": "mine"}' % RUN_FACTS.uri.encode())
    change = StatusChange(TaskState.WORKING, metadata=own)
    fold, event = fold_of(Received(message(), TaskState.SUBMITTED), change)
    assert retold((RUN_FACTS.uri,), fold, event) is event


def test_an_artifact_has_what_is_said_of_the_run_and_not_what_the_task_keeps() -> None:
    artifact = ArtifactChunk(
        Artifact(artifact_id="a", parts=(TextPart(text="x"),), metadata=Raw(b'{"own":1}'))
    )
    fold, event = fold_of(Received(message(), TaskState.SUBMITTED), artifact, metadata=Raw(b'{"kept":1}'))
    told = retold(ALL, fold, event).change
    assert isinstance(told, ArtifactChunk)
    assert told.artifact is artifact.artifact
    assert unpack(told.metadata).keys() == {RUN_FACTS.uri}
    assert retold((), fold, event) is event


@pytest.mark.parametrize(
    "change",
    [Received(message()), Reply(message()), Resumed(1), Used("wiki")],
    ids=lambda change: type(change).__name__,
)
def test_what_no_stream_shows_stays_as_it_is(change: Change) -> None:
    fold, event = fold_of(Received(message(), TaskState.SUBMITTED), change, metadata=Raw(b'{"kept":1}'))
    assert retold(ALL, fold, event) is event


def test_without_anything_to_add_an_event_is_the_one_that_was_committed() -> None:
    for change in (StatusChange(TaskState.WORKING), Received(message(), TaskState.WORKING)):
        fold, event = fold_of(Received(message(), TaskState.SUBMITTED), change)
        assert retold((IDEMPOTENCY.uri, "urn:own"), fold, event) is event
