"""The JSON-RPC envelope."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.errors import InvalidParams, InvalidRequest
from dragoman.protocol.jsonrpc import (
    Envelope,
    error_frame,
    notification,
    read_envelope,
    request_id,
    result_frame,
)

GOOD: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}}


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        (1, b"1"),
        (0, b"0"),
        (-7, b"-7"),
        (2**53 + 1, b"9007199254740993"),
        (2**70, b"1180591620717411303424"),
        ("", b'""'),
        ("a", b'"a"'),
        ("ü", '"ü"'.encode()),
        ('"\n\0', rb'"\"\n\u0000"'),
        (None, b"null"),
    ],
)
def test_an_id_is_echoed_as_it_came(identifier: Any, text: bytes) -> None:
    asked = GOOD | {"id": identifier}
    assert request_id(asked) == text
    assert read_envelope(asked) == Envelope("GetTask", {"id": "t"})


@pytest.mark.parametrize("params", [None, {}])
def test_params_may_be_left_out(params: Any) -> None:
    assert read_envelope(GOOD | {"params": params}).params == {}
    assert read_envelope({name: GOOD[name] for name in ("jsonrpc", "id", "method")}).params == {}


def test_unknown_members_are_ignored() -> None:
    assert read_envelope(GOOD | {"extra": 1}).method == "GetTask"


@pytest.mark.parametrize(
    "change",
    [
        {"jsonrpc": "1.0"},
        {"jsonrpc": 2.0},
        {"jsonrpc": "2.0 "},
        {"jsonrpc": None},
        {"jsonrpc": ["2.0"]},
        {"id": 1.5},
        {"id": 1.0},
        {"id": True},
        {"id": False},
        {"id": {}},
        {"id": [1]},
        {"method": None},
        {"method": ""},
        {"method": 5},
        {"method": ["GetTask"]},
    ],
)
def test_a_wrong_envelope_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        read_envelope(GOOD | change)


@pytest.mark.parametrize("missing", ["jsonrpc", "method"])
def test_an_envelope_without_a_member_is_refused(missing: str) -> None:
    with pytest.raises(InvalidRequest):
        read_envelope({name: value for name, value in GOOD.items() if name != missing})


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "GetTask", "", [], [GOOD], [GOOD, GOOD], [[]]])
def test_what_is_no_object_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest):
        read_envelope(value)
    assert request_id(value) == b"null"


def test_a_batch_is_told_what_is_wrong() -> None:
    with pytest.raises(InvalidRequest, match="Batches are not served"):
        read_envelope([GOOD])


def test_a_request_without_an_id_is_known_to_be_a_notification() -> None:
    assert read_envelope(GOOD).has_id and read_envelope(GOOD | {"id": None}).has_id
    assert not read_envelope({"jsonrpc": "2.0", "method": "GetTask"}).has_id
    assert "give the request an id" in notification().message


@pytest.mark.parametrize("params", [[], ["t"], "t", 5, True])
def test_params_that_are_no_object_are_wrong_params(params: Any) -> None:
    with pytest.raises(InvalidParams) as refusal:
        read_envelope(GOOD | {"params": params})
    assert [violation.field for violation in refusal.value.violations] == ["params"]


@pytest.mark.parametrize("identifier", [1.5, True, {}, [], "\ud800"])
def test_an_id_that_may_not_be_echoed_is_null_in_the_answer(identifier: Any) -> None:
    assert request_id({"id": identifier}) == b"null"
    assert request_id({}) == b"null"


@given(st.one_of(st.none(), st.integers(), st.text(st.characters(exclude_categories=["Cs"]))))
def test_frames_are_responses_under_the_requests_id(identifier: Any) -> None:
    echoed = request_id({"id": identifier})
    assert json.loads(result_frame(echoed, b'{"a":1}')) == {
        "jsonrpc": "2.0",
        "id": identifier,
        "result": {"a": 1},
    }
    assert json.loads(error_frame(echoed, b'{"code":-1}')) == {
        "jsonrpc": "2.0",
        "id": identifier,
        "error": {"code": -1},
    }
