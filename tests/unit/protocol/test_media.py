"""Media types of requests and replies."""

import pytest

from dragoman.model.errors import UnsupportedMediaType
from dragoman.protocol.media import (
    A2A_JSON,
    EVENT_STREAM,
    JSON,
    accepts,
    check_content_type,
    essence,
    names,
    unsupported,
)

BOTH = (JSON, A2A_JSON)


@pytest.mark.parametrize(
    ("value", "media_type"),
    [
        (b"application/json", JSON),
        (b"Application/JSON", JSON),
        (b"application/json; charset=utf-8", JSON),
        (b"application/json;charset=UTF-16;x=y", JSON),
        (b"  application/json  ", JSON),
        (b"application/json ;", JSON),
        (b"application/a2a+json", A2A_JSON),
        (b"APPLICATION/A2A+JSON; version=1", A2A_JSON),
    ],
)
def test_a_known_type_is_taken_in_any_case_and_with_any_parameters(value: bytes, media_type: str) -> None:
    assert check_content_type(value, BOTH) == media_type
    assert essence(value) == media_type


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b";charset=utf-8",
        b"text/plain",
        b"text/json",
        b"application/problem+json",
        b"application/jsonp",
        b"application/json5",
        b"application",
        b"json",
        b"*/*",
        b"application/*",
        b"application/json, text/plain",
        b"multipart/form-data; boundary=application/json",
        b"application/x-www-form-urlencoded",
        b"\xff\xfe",
    ],
)
def test_another_type_is_refused_with_those_that_are_taken(value: bytes) -> None:
    with pytest.raises(UnsupportedMediaType, match="application/json or application/a2a\\+json"):
        check_content_type(value, BOTH)


def test_a_type_that_another_binding_takes_is_refused() -> None:
    with pytest.raises(UnsupportedMediaType):
        check_content_type(b"application/a2a+json", (JSON,))


def test_a_request_without_type_has_none() -> None:
    assert check_content_type(None, BOTH) is None


def test_the_refusal_carries_the_reason_of_the_standard() -> None:
    assert unsupported(BOTH).reason == "CONTENT_TYPE_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, True),
        (b"*/*", True),
        (b"application/json", True),
        (b"APPLICATION/JSON", True),
        (b"application/*", True),
        (b"application/a2a+json", True),
        (b"text/html, application/json", True),
        (b"text/html;q=0.9,application/json;q=0.1", True),
        (b"application/json;charset=utf-8", True),
        (b"application/json ; q=0.5", True),
        (b"application/json;q=1.000", True),
        (b"text/html, */*;q=0.1", True),
        (b"text/html", False),
        (b"text/event-stream", False),
        (b"text/*", False),
        (b"application/xml", False),
        (b"application/json;q=0", False),
        (b"application/json;q=0.0", False),
        (b"application/json;q=0, application/a2a+json;q=0", False),
        (b"application/json;q=0, */*;q=0", False),
        (b"application/json;q=garbage", False),
        (b"*/*;q=0", False),
        (b"json", False),
    ],
)
def test_an_accept_header_allows_json_or_not(accept: bytes | None, expected: bool) -> None:
    assert accepts(accept, (JSON,)) == (expected and accept != b"application/a2a+json")
    assert accepts(accept, BOTH) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (b"application/json;q=0, */*", False),
        (b"*/*, application/json;q=0", False),
        (b"application/json, application/*;q=0", True),
        (b"application/*;q=0, application/json;q=0.1", True),
        (b"application/*;q=0, */*", False),
        (b"*/*;q=0, application/*", True),
    ],
)
def test_the_most_specific_range_decides_wherever_it_stands(accept: bytes, expected: bool) -> None:
    assert accepts(accept, (JSON,)) is expected


def test_a_stream_is_acceptable_by_its_own_type() -> None:
    assert accepts(b"text/event-stream", (*BOTH, EVENT_STREAM))
    assert not accepts(b"text/event-stream;q=0", (EVENT_STREAM,))


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, False),
        (b"*/*", False),
        (b"application/*", False),
        (b"application/json", False),
        (b"application/a2a+json;q=0", False),
        (b"application/a2a+json", True),
        (b"application/json, Application/A2A+json;q=0.2", True),
        (b"application/a2a+jsonx", False),
    ],
)
def test_only_the_exact_name_names_a_type(accept: bytes | None, expected: bool) -> None:
    assert names(accept, A2A_JSON) is expected
