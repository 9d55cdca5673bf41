"""Nothing is lost or changed between the 0.3 wire, the model and storage, whatever the payloads hold."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.model import Received, Role, TaskEvent, TaskState
from dragoman.model.operation import SendMessage
from dragoman.protocol.protojson import parse
from dragoman.protocol.v0_3 import decode
from dragoman.stores import records
from tests.wire.sameness import exact, shape
from tests.wire.strategies import json_objects
from tests.wire.v0_3.golden import CODECS, READERS
from tests.wire.v0_3.strategies import NOTE, WRAPPED, Forms, Item, messages, parts, stream_items, tasks

properties = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(form: str, document: Any) -> SendMessage:
    """Send a request document through the wire: text, strict parser, decoder."""
    params = parse(json.dumps(document, ensure_ascii=False).encode()).check()
    if form == "kinds":
        return decode.decode_send(params, "demo")
    return READERS[form].decode_send(params, "demo")


def without_references(message: Any) -> Any:
    """A message as the 0.3 proto has it: without references."""
    return {name: value for name, value in message.items() if name != "referenceTaskIds"}


def written(form: str, message: Any) -> Any:
    """A message of the model as one form shows it."""
    answer = json.loads(CODECS[form].answer(message))
    return answer if form == "kinds" else answer["message"]


@properties
@given(messages(Role.USER))
def test_a_message_of_a_caller_means_the_same_in_every_form(forms: Forms) -> None:
    assert read("kinds", {"message": forms.kinds}).message == forms.model
    # No official client can write references, but one that is written is read.
    references = {"referenceTaskIds": list(forms.model.reference_task_ids)}
    for form in READERS:
        assert read(form, {"message": {**getattr(forms, form), **references}}).message == forms.model


@properties
@given(messages(Role.USER))
def test_a_message_comes_back_from_model_and_storage_as_it_was_sent(forms: Forms) -> None:
    for form in CODECS:
        sent = getattr(forms, form)
        message = read(form, {"message": sent}).message
        assert shape(written(form, message)) == shape(sent)
        kept = records.decode_change(records.encode(Received(message, TaskState.SUBMITTED)))
        assert isinstance(kept, Received)
        assert shape(written(form, kept.message)) == shape(sent)


@properties
@given(messages(Role.USER))
def test_a_message_of_one_form_is_shown_in_the_others_as_they_would_have_sent_it(forms: Forms) -> None:
    for sender in CODECS:
        message = read(sender, {"message": getattr(forms, sender)}).message
        for reader in CODECS:
            expected = getattr(forms, reader)
            if "kinds" in (sender, reader):
                expected = without_references(expected)
            shown = written(reader, message)
            assert shape(without_references(shown)) == shape(without_references(expected))


@properties
@given(json_objects, json_objects)
def test_request_metadata_is_kept_with_order_and_digits(value: dict[str, Any], other: dict[str, Any]) -> None:
    parts = {"kinds": {"parts": [{"kind": "text", "text": "x"}]}}
    for form in CODECS:
        content = parts.get(form, {"content": [{"text": "x"}]})
        role = "user" if form == "kinds" else "ROLE_USER"
        message = {"messageId": "m", "role": role, "metadata": other, **content}
        request = read(form, {"message": message, "metadata": value})
        assert exact(json.loads(bytes(request.metadata))) == exact(value)
        assert exact(json.loads(bytes(request.message.metadata))) == exact(other)


keys = st.sampled_from([NOTE, WRAPPED, "x", "filename", "value"])
notes = st.dictionaries(
    keys, st.sampled_from([True, False, None, 1, "a", {}, {"filename": "a"}, {"mediaType": ""}])
)
odd_metadata = st.dictionaries(
    keys, st.one_of(notes, st.sampled_from([True, False, 1, NOTE, WRAPPED, {"filename": "a"}])), min_size=1
)
odd_data = st.dictionaries(
    st.sampled_from(["value", "x"]), st.sampled_from([1, None, [], {}, {"value": 1}, WRAPPED]), max_size=2
)


@settings(properties, max_examples=200)
@given(odd_metadata, odd_data)
def test_metadata_that_looks_like_our_notes_comes_back_all_the_same(
    metadata: dict[str, Any], data: dict[str, Any]
) -> None:
    """What was a note is written at the end again, so only the order of the part's own keys may differ."""
    for content in ({"kind": "text", "text": "x"}, {"kind": "data", "data": data}):
        part = {**content, "metadata": metadata}
        message = {"messageId": "m", "role": "user", "parts": [part]}
        (shown,) = written("kinds", read("kinds", {"message": message}).message)["parts"]
        assert json.dumps(shown, sort_keys=True) == json.dumps(part, sort_keys=True)


@properties
@given(st.lists(parts(), min_size=1, max_size=3))
def test_a_part_without_notes_has_none_added(drawn: list[Forms]) -> None:
    message = {"messageId": "m", "role": "user", "parts": [one.kinds for one in drawn]}
    shown = written("kinds", read("kinds", {"message": message}).message)["parts"]
    assert [one.get("metadata") for one in shown] == [one.kinds.get("metadata") for one in drawn]


@properties
@given(tasks())
def test_a_task_is_written_as_each_form_has_it(forms: Forms) -> None:
    for form, codec in CODECS.items():
        assert shape(json.loads(codec.task(forms.model))) == shape(getattr(forms, form))
    assert json.loads(CODECS["kinds"].answer(forms.model))["kind"] == "task"
    assert shape(json.loads(CODECS["proto"].answer(forms.model))) == shape({"task": forms.proto})


@properties
@given(stream_items)
def test_a_stream_item_is_written_as_each_form_has_it(item: Item) -> None:
    for form, codec in CODECS.items():
        assert shape(json.loads(codec.item(item.forms.model, item.last))) == shape(getattr(item.forms, form))


@properties
@given(stream_items)
def test_an_event_is_written_the_same_after_storage(item: Item) -> None:
    event = item.forms.model
    if isinstance(event, TaskEvent):
        row = (event.seq, event.attempt, event.at, records.encode(event.change))
        event = records.event_from_row(event.task_id, event.context_id, row)
    for codec in CODECS.values():
        assert codec.item(event, item.last) == codec.item(item.forms.model, item.last)
