"""Nothing is lost or changed between the 1.0 wire, the model and storage, whatever the payloads hold."""

import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.gateway.ports import RunRequest
from dragoman.model import Change, Message, Received, Role, Task, TaskEvent, TaskState
from dragoman.model.payload import pack
from dragoman.protocol.protojson import parse
from dragoman.protocol.v1_0.decode import decode_send
from dragoman.protocol.v1_0.encode import encode_answer, encode_item, encode_task
from dragoman.stores import records
from tests.wire.sameness import exact, shape
from tests.wire.strategies import (
    Pair,
    changes,
    json_objects,
    json_values,
    messages,
    stream_items,
    tasks,
    words,
)

properties = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def decode(document: Any) -> Any:
    """Send a request document through the wire: text, strict parser, decoder."""
    return decode_send(parse(json.dumps(document, ensure_ascii=False).encode()).check(), "demo")


@properties
@given(messages(Role.USER))
def test_a_message_of_a_caller_means_what_the_standard_says(pair: Pair) -> None:
    assert decode({"message": pair.wire}).message == pair.model


@properties
@given(messages(Role.USER))
def test_a_message_comes_back_from_the_model_as_it_was_sent(pair: Pair) -> None:
    answer = json.loads(encode_answer(decode({"message": pair.wire}).message))
    assert shape(answer) == shape({"message": pair.wire})


@properties
@given(messages(Role.USER))
def test_a_message_comes_back_from_storage_as_it_was_sent(pair: Pair) -> None:
    stored = records.encode(Received(decode({"message": pair.wire}).message, TaskState.SUBMITTED))
    read = records.decode_change(stored)
    assert isinstance(read, Received)
    assert shape(json.loads(encode_answer(read.message))) == shape({"message": pair.wire})


@properties
@given(json_values)
def test_a_data_part_keeps_any_json_value_to_its_last_digit(value: Any) -> None:
    wire = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": value}]}
    (part,) = json.loads(encode_answer(decode({"message": wire}).message))["message"]["parts"]
    assert exact(part) == exact({"data": value})


@properties
@given(json_objects)
def test_request_metadata_is_kept_in_storage(value: dict[str, Any]) -> None:
    wire = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    request = RunRequest(metadata=decode({"message": wire, "metadata": value}).metadata)
    read = records.decode_request(records.encode(request))
    assert read == request
    assert exact(json.loads(bytes(read.metadata))) == exact(value)


@properties
@given(st.lists(words, max_size=3).map(tuple), st.lists(words, max_size=3).map(tuple))
def test_what_a_run_must_know_of_its_request_is_kept_in_storage(
    modes: tuple[str, ...], extensions: tuple[str, ...]
) -> None:
    request = RunRequest(accepted_output_modes=modes, extensions=extensions, metadata=pack({"n": 2**70}))
    assert records.decode_request(records.encode(request)) == request


@properties
@given(changes)
def test_every_change_is_the_same_after_storage(change: Change) -> None:
    assert records.decode_change(records.encode(change)) == change


@properties
@given(changes, st.integers(1, 99), st.integers(1, 3), st.integers(0, 2**53))
def test_an_event_is_rebuilt_from_its_row(change: Change, seq: int, attempt: int, at: int) -> None:
    event = records.event_from_row("t", "c", (seq, attempt, at, records.encode(change)))
    assert event == TaskEvent("t", "c", seq, at, attempt, change)


@properties
@given(tasks())
def test_a_task_is_written_as_the_standard_says(pair: Pair) -> None:
    assert shape(json.loads(encode_task(pair.model))) == shape(pair.wire)
    assert shape(json.loads(encode_answer(pair.model))) == shape({"task": pair.wire})


@properties
@given(tasks())
def test_a_task_is_the_same_after_storage(pair: Pair) -> None:
    assert msgspec.json.decode(records.encode(pair.model), type=Task) == pair.model


@properties
@given(stream_items)
def test_a_stream_item_is_written_as_the_standard_says(pair: Pair) -> None:
    assert shape(json.loads(encode_item(pair.model))) == shape(pair.wire)


@properties
@given(stream_items)
def test_an_event_is_written_the_same_after_storage(pair: Pair) -> None:
    item: Task | Message | TaskEvent = pair.model
    if isinstance(item, TaskEvent):
        row = (item.seq, item.attempt, item.at, records.encode(item.change))
        item = records.event_from_row(item.task_id, item.context_id, row)
    assert encode_item(item) == encode_item(pair.model)
