"""What one generation says is what the other one reads, but for the differences that the code names.

A property may allow a loss only by the name of its difference: `loses` fails for one that the table does not have, or
that loses nothing.
"""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.model import ArtifactChunk, Role, TaskEvent
from dragoman.protocol.protojson import parse
from dragoman.protocol.v0_3.differences import DIFFERENCES, Dialect, Difference
from dragoman.protocol.v1_0 import encode as newer_encode
from dragoman.protocol.v1_0.decode import decode_send
from tests.interaction.v0_3.dialects import Dialect as Reader
from tests.interaction.v0_3.dialects import Kinds, Proto
from tests.wire import strategies as newer
from tests.wire.sameness import shape
from tests.wire.strategies import Pair
from tests.wire.v0_3.golden import CODECS
from tests.wire.v0_3.strategies import NOTE, WRAPPED, Forms, messages
from tests.wire.v0_3.test_round_trips import read, written

properties = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMED: dict[str, Difference] = {one.name: one for one in DIFFERENCES}
READERS: dict[str, Reader] = {"kinds": Kinds(), "proto": Proto(), "doubled": Proto(doubled=True)}
"""Readers of the interaction tests, which know no codec of ours and refuse what a form does not have."""


def loses(name: str, form: str) -> bool:
    """Whether a difference, by its name, loses something in a form."""
    difference = NAMED[name]
    assert difference.lost, f"{name} loses nothing"
    shown_in = {"kinds": Dialect.KINDS, "proto": Dialect.PROTO, "doubled": Dialect.PROTO}[form]
    return difference.dialect in (Dialect.EITHER, shown_in)


def newer_message(document: Any) -> Any:
    """A 1.0 message as the model has it."""
    return decode_send(parse(json.dumps({"message": document}).encode()).check(), "demo").message


@st.composite
def newer_messages(draw: st.DrawFn) -> Pair:
    """A caller's message of 1.0; now and then a part's own metadata has the keys that our notes are kept under."""
    pair = draw(newer.messages(Role.USER))
    for part in pair.wire["parts"]:
        if draw(st.integers(0, 9)) == 0:
            value = draw(st.sampled_from([True, False, {"filename": "a"}, {"mediaType": ""}, "x", None]))
            part["metadata"] = {**part.get("metadata", {}), draw(st.sampled_from([NOTE, WRAPPED])): value}
    return pair


def is_taken(part: Any) -> bool:
    """Whether a part of 1.0 has, as its own, a key of our notes. Files have members of their own, and no notes."""
    metadata = part.get("metadata", {})
    return ("text" in part or "data" in part) and (NOTE in metadata or WRAPPED in metadata)


@properties
@given(newer_messages())
def test_a_message_of_1_0_comes_back_from_0_3_but_for_what_is_named(pair: Pair) -> None:
    message = newer_message(pair.wire)
    for form in CODECS:
        shown = written(form, message)
        again = read(form, {"message": shown}).message
        back = json.loads(newer_encode.encode_answer(again))["message"]
        expected = json.loads(json.dumps(pair.wire))
        if loses("reference-task-ids", form):
            expected.pop("referenceTaskIds", None)
        for index, part in enumerate(expected["parts"]):
            if is_taken(part) and loses("note-keys-taken", form):
                back["parts"][index] = part
        assert shape(back) == shape(expected)


@properties
@given(newer_messages())
def test_metadata_with_our_keys_in_it_is_shown_to_0_3_as_it_is(pair: Pair) -> None:
    message = newer_message(pair.wire)
    for form in CODECS:
        shown = written(form, message)
        parts = shown["parts" if form == "kinds" else "content"]
        for part, old in zip(pair.wire["parts"], parts, strict=True):
            needed = {NOTE} if part.get("filename") or part.get("mediaType") else set()
            needed |= {WRAPPED} if "data" in part and not isinstance(part["data"], dict) else set()
            if is_taken(part) and needed & set(part["metadata"]):
                assert shape({"metadata": old["metadata"]}) == shape({"metadata": part["metadata"]})


@properties
@given(messages(Role.USER))
def test_a_message_of_0_3_comes_back_from_1_0_as_it_was(forms: Forms) -> None:
    for form in CODECS:
        sent = getattr(forms, form)
        message = read(form, {"message": sent}).message
        again = newer_message(json.loads(newer_encode.encode_answer(message))["message"])
        assert again == message
        assert shape(written(form, again)) == shape(sent)


@properties
@given(newer.stream_items, st.booleans())
def test_both_forms_of_whatever_happened_say_the_same_to_strict_readers(pair: Pair, last: bool) -> None:
    """Also of what no 0.3 caller could have sent: the one thing that ProtoJSON leaves out is references."""
    said = [READERS[form].item(json.loads(CODECS[form].item(pair.model, last))) for form in CODECS]
    assert loses("reference-task-ids", "proto") and not loses("reference-task-ids", "kinds")
    assert shape(said[1]) == shape(said[2]) == shape(_without_references(said[0]))


def _without_references(value: Any) -> Any:
    if isinstance(value, dict):
        payloads = ("metadata", "data")
        return {
            name: inner if name in payloads else _without_references(inner)
            for name, inner in value.items()
            if name != "referenceTaskIds"
        }
    return [_without_references(one) for one in value] if isinstance(value, list) else value


@properties
@given(newer.artifacts())
def test_an_artifact_shown_to_0_3_is_understood_when_its_parts_are_sent_back(pair: Pair) -> None:
    for form, codec in CODECS.items():
        update = json.loads(codec.item(_chunk(pair.model), False))
        artifact = update["artifact"] if form == "kinds" else update["artifactUpdate"]["artifact"]
        sent = {"messageId": "m", "role": "user" if form == "kinds" else "ROLE_USER"}
        sent["parts" if form == "kinds" else "content"] = artifact["parts"]
        assert read(form, {"message": sent}).message.parts == pair.model.parts


def _chunk(artifact: Any) -> Any:
    return TaskEvent("t", "c", 1, 0, 1, ArtifactChunk(artifact))
