"""Frames of event streams: whoever splits lines, and however, finds one event in each."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.bindings.sse import KEEP_ALIVE, frame, one_line
from dragoman.protocol.jsonrpc import request_id, result_frame
from dragoman.protocol.v1_0.encode import encode_item
from tests.wire.sameness import shape
from tests.wire.strategies import BREAKS, Pair, ids, json_values, stream_items

properties = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@properties
@given(stream_items, st.integers(1, 2**53))
def test_a_frame_is_one_event_for_every_reader_of_lines(pair: Pair, seq: int) -> None:
    written = frame(one_line(encode_item(pair.model)), event_id=seq)
    text = written.decode()
    assert not any(character in text for character in BREAKS)
    # str.splitlines knows every end of a line that Unicode has, and more.
    first, second, third = text.splitlines()
    assert first == f"id: {seq}"
    assert third == ""
    assert shape(json.loads(second.removeprefix("data: "))) == shape(pair.wire)


@properties
@given(stream_items, ids)
def test_the_frame_of_a_jsonrpc_stream_holds_the_response_under_the_requests_id(
    pair: Pair, identifier: str
) -> None:
    response = result_frame(request_id({"id": identifier}), encode_item(pair.model))
    identity, data, end = frame(one_line(response), event_id=7).decode().splitlines()
    assert (identity, end) == ("id: 7", "")
    document = json.loads(data.removeprefix("data: "))
    assert document.keys() == {"jsonrpc", "id", "result"}
    assert (document["jsonrpc"], document["id"]) == ("2.0", identifier)
    assert shape(document["result"]) == shape(pair.wire)


@properties
@given(json_values)
def test_escaping_line_breaks_changes_nothing_else(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    escaped = one_line(text.encode())
    assert json.dumps(json.loads(escaped)) == json.dumps(value)
    expected = text
    for character in BREAKS:
        expected = expected.replace(character, f"\\u{ord(character):04x}")
    assert escaped == expected.encode()


def test_an_event_without_id_or_name_is_data_alone() -> None:
    assert frame(b"{}") == b"data: {}\n\n"


def test_an_error_frame_names_its_event() -> None:
    assert frame(b"{}", event=b"error") == b"event: error\ndata: {}\n\n"


def test_the_keep_alive_is_a_comment() -> None:
    # No empty line: a reader that has seen an id may take it for the end of an event.
    assert KEEP_ALIVE == b": keep-alive\n"
