"""Payloads keep what they are given: every digit, the order of keys, any text."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from dragoman.model.payload import (
    ABSENT,
    Raw,
    canonical,
    is_present,
    members,
    pack,
    pack_object,
    unpack,
    with_members,
)
from tests.wire.sameness import exact
from tests.wire.strategies import json_objects, json_values

properties = settings(max_examples=100, deadline=None)


@properties
@given(json_values)
def test_unpack_gives_back_what_was_packed(value: Any) -> None:
    assert exact(unpack(pack(value))) == exact(value)


@properties
@given(json_values)
def test_a_payload_is_json_text_of_the_value(value: Any) -> None:
    assert exact(json.loads(bytes(pack(value)))) == exact(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**53 + 1, "9007199254740993"),
        (-(2**70), "-1180591620717411303424"),
        (10**400, "1" + "0" * 400),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e22, "1e+22"),
        (True, "true"),
        (None, "null"),
        ("", '""'),
        ({}, "{}"),
        ("\0", r'"\u0000"'),
        ("ü\u2028", '"ü\u2028"'),
        ({"z": 1, "a": [1, {"y": 2, "b": 3}]}, '{"z":1,"a":[1,{"y":2,"b":3}]}'),
        ((1, "two"), '[1,"two"]'),
    ],
)
def test_a_value_is_packed_as_this_text(value: Any, text: str) -> None:
    assert bytes(pack(value)) == text.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_has_not_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        pack({"deep": [value]})


@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\ud83d": 1}])
def test_text_that_is_not_unicode_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="lone surrogate"):
        pack(value)


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), {"deep": [1j]}, {(1, 2): 3}])
def test_a_value_without_json_form_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        pack(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: dict[str, Any] = {"a": [1]}
    value["a"].append(value)
    with pytest.raises(ValueError, match="Circular"):
        pack(value)


@pytest.mark.parametrize("key", [1, 1.5, True, None])
def test_a_key_that_is_no_text_is_refused(key: Any) -> None:
    with pytest.raises(TypeError):
        pack([{"deep": {key: 1}}])


def test_keys_that_would_be_one_in_json_are_refused() -> None:
    with pytest.raises((TypeError, ValueError)):
        pack({1: "one", "1": "another"})


def test_an_integer_with_more_digits_than_are_read_is_not_written_either() -> None:
    assert unpack(pack(10**4299)) == 10**4299
    with pytest.raises(ValueError, match="4300"):
        pack(10**4300)


def test_absent_and_null_are_different() -> None:
    assert not is_present(ABSENT)
    assert is_present(pack(None))
    assert unpack(ABSENT) is None
    assert unpack(pack(None)) is None
    assert unpack(Raw(b"")) is None and not is_present(Raw(b""))


@pytest.mark.parametrize("value", [None, {}])
def test_an_empty_metadata_map_is_absent(value: Any) -> None:
    assert pack_object(value) is ABSENT


def test_a_metadata_map_is_packed_like_any_object() -> None:
    assert pack_object({"b": 1, "a": None}) == Raw(b'{"b":1,"a":null}')


def shuffled(value: Any) -> Any:
    """The same value with its keys the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@properties
@given(json_objects)
def test_the_canonical_form_knows_neither_order_of_keys_nor_white_space(value: dict[str, Any]) -> None:
    plain = canonical(pack(value))
    assert canonical(pack(shuffled(value))) == plain
    assert canonical(Raw(json.dumps(value, indent=3).encode())) == plain
    assert canonical(Raw(json.dumps(value, ensure_ascii=True).encode())) == plain


@properties
@given(json_values)
def test_the_canonical_form_means_the_same_and_is_its_own(value: Any) -> None:
    form = canonical(pack(value))
    assert canonical(form) == form
    assert json.dumps(json.loads(bytes(form)), sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (1, "1"),
        (0, False),
        (0.0, -0.0),
        (None, "null"),
        (None, {}),
        ([], {}),
        ([1, 2], [2, 1]),
        (2**53, 2**53 + 1),
        (2**70, 2**70 + 1),
        (float(2**70), 2**70),
        ("a", "A"),
        ("é", "e\u0301"),
        ({"a": None}, {}),
        ({"a": {"b": 1}}, {"a": {"b": 1.0}}),
    ],
)
def test_the_canonical_form_keeps_different_values_apart(one: Any, other: Any) -> None:
    assert canonical(pack(one)) != canonical(pack(other))
    assert canonical(pack({"k": [one]})) != canonical(pack({"k": [other]}))


def test_the_canonical_form_of_an_absent_payload_is_absent() -> None:
    assert canonical(ABSENT) is ABSENT
    assert canonical(Raw(b"")) is ABSENT


def test_members_of_an_object_are_the_text_that_they_are() -> None:
    found = members(Raw(b'{"b": [1.0, 1] , "a":{"z":1,"y" : 12345678901234567890123}}'))
    assert [(key, bytes(text)) for key, text in found.items()] == [
        ("b", b"[1.0, 1]"),
        ("a", b'{"z":1,"y" : 12345678901234567890123}'),
    ]
    assert members(ABSENT) == {}


def test_further_members_come_behind_those_that_are_there_and_never_over_them() -> None:
    own = Raw(b'{"b": 1.0}')
    joined = with_members(own, {"a": Raw(b"[ 2]"), "b": Raw(b"3")})
    assert bytes(joined) == b'{"b":1.0,"a":[ 2]}'
    assert bytes(with_members(ABSENT, {"a": Raw(b"null")})) == b'{"a":null}'
    assert with_members(own, {"b": Raw(b"3")}) is own
    assert with_members(ABSENT, {}) is ABSENT
