"""Which version a request speaks: every value, exactly."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model.errors import VersionNotSupported
from dragoman.protocol.negotiation import (
    HEADER,
    UNNAMED,
    http_version,
    jsonrpc_version,
    requested_version,
    unsupported,
)

BOTH = ("1.0", "0.3")
properties = settings(max_examples=200, deadline=None)

NEVER = [
    "1",
    "01.0",
    "1.00",
    "1.01",
    "00.3",
    "v1.0",
    "V1.0",
    "1.0v",
    " 1.0",
    "1.0 ",
    "\t1.0",
    "1.0\n",
    "1.0\r",
    "1.0\0",
    "1,0",
    "1.0,1.0",
    "1.0, 0.3",
    "1.0;q=1",
    "1.",
    ".0",
    ".",
    "1..0",
    "1.0.",
    "+1.0",
    "-1.0",
    "1.-0",
    "1e0.0",
    "0x1.0",
    "1.0-rc1",
    "1.0+build",
    "1_0.0",
    "2.0",
    "1.1",
    "0.4",
    "0.2",
    "0.0",
    "10.0",
    "1.10",
    "99999.0",
    "null",
    "None",
    "latest",
    "*",
    "1.*",
    '"1.0"',
    "garbage",
    "１.０",
    "1.٠",
    "1․0",
    "²",
    "A2A/1.0",
    "x" * 10_000,
]
"""Values that no binding takes."""

PATCHES = ["1.0.0", "1.0.1", "1.0.2", "1.0.99", "1.0.9999"]
BAD_PATCHES = [
    "1.0.01",
    "1.0.1.0",
    "1.0.x",
    "1.0.1-rc1",
    "1.0. 1",
    "1.0.-1",
    "1.1.0",
    "2.0.0",
    "01.0.1",
    "1.0.10000",
]


@pytest.mark.parametrize(("requested", "version"), [("1.0", "1.0"), ("0.3", "0.3"), (None, "0.3")])
def test_http_serves_exactly_the_version_that_is_named_and_0_3_for_none(
    requested: str | None, version: str
) -> None:
    assert http_version(requested, BOTH) == version


@pytest.mark.parametrize("requested", [*NEVER, *PATCHES, *BAD_PATCHES, "0.3.0", "0.3.1"])
def test_http_refuses_every_other_value(requested: str) -> None:
    with pytest.raises(VersionNotSupported) as refusal:
        http_version(requested, BOTH)
    assert refusal.value.metadata["supported"] == "1.0,0.3"


@pytest.mark.parametrize(
    ("requested", "version"),
    [("1.0", "1.0"), ("0.3", "0.3"), (None, "0.3"), *((patch, "1.0") for patch in PATCHES)],
)
def test_jsonrpc_takes_patch_revisions_as_well(requested: str | None, version: str) -> None:
    assert jsonrpc_version(requested, BOTH) == version


@pytest.mark.parametrize("requested", [*NEVER, *BAD_PATCHES])
def test_jsonrpc_refuses_every_other_value(requested: str) -> None:
    with pytest.raises(VersionNotSupported) as refusal:
        jsonrpc_version(requested, BOTH)
    assert refusal.value.metadata["supported"] == "1.0,0.3"


@pytest.mark.parametrize("choose", [http_version, jsonrpc_version])
@pytest.mark.parametrize("requested", [None, "0.3"])
def test_a_version_that_is_switched_off_is_refused_by_name(choose: object, requested: str | None) -> None:
    assert callable(choose)
    with pytest.raises(VersionNotSupported) as refusal:
        choose(requested, ("1.0",))
    assert refusal.value.metadata == {"requested": "0.3", "supported": "1.0"}
    assert "served here: 1.0" in refusal.value.message


@pytest.mark.parametrize("requested", [None, "0.3", "1.0"])
def test_a_path_that_serves_no_version_sends_its_caller_to_the_card(requested: str | None) -> None:
    # The alias of 0.3, at an agent that is served in 1.0 alone.
    with pytest.raises(VersionNotSupported) as refusal:
        http_version(requested, ())
    assert "no version is served at this path. The agent card" in refusal.value.message
    assert refusal.value.metadata == {"requested": requested or UNNAMED, "supported": ""}


def test_a_request_without_version_is_told_what_that_means() -> None:
    refusal = unsupported(None, ("1.0",))
    assert HEADER in refusal.message and UNNAMED in refusal.message


@pytest.mark.parametrize(
    ("headers", "query", "requested"),
    [
        ([], [], None),
        ([b""], [], None),
        ([], [""], None),
        ([b"", b""], [""], None),
        ([b"1.0"], [], "1.0"),
        ([], ["1.0"], "1.0"),
        ([b"1.0", b"1.0"], [], "1.0"),
        ([b"1.0"], ["1.0"], "1.0"),
        ([b"0.3"], ["0.3", "0.3"], "0.3"),
        ([b"garbage"], [], "garbage"),
        ([b" 1.0\t"], [], "1.0"),
        ([], ["\u0661.\u0660"], "\u0661.\u0660"),
    ],
)
def test_a_version_may_be_named_once_or_several_times_alike(
    headers: Sequence[bytes], query: Sequence[str], requested: str | None
) -> None:
    assert requested_version(headers, query, BOTH) == requested


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([b"1.0", b"0.3"], []),
        ([b"1.0", b"1.0", b"0.3"], []),
        ([b"1.0", b"1.0.0"], []),
        ([b"1.0", b""], []),
        ([b"1.0"], ["0.3"]),
        ([b"1.0"], ["1.0", "0.3"]),
        ([b"1.0"], [""]),
        ([b""], ["1.0"]),
        ([], ["1.0", "0.3"]),
        ([b"1.0"], [" 1.0"]),
    ],
)
def test_versions_that_disagree_are_refused(headers: Sequence[bytes], query: Sequence[str]) -> None:
    with pytest.raises(VersionNotSupported) as refusal:
        requested_version(headers, query, BOTH)
    assert refusal.value.metadata["supported"] == "1.0,0.3"
    named = {value.decode() for value in headers} | set(query)
    assert all(value in refusal.value.metadata["requested"] for value in named)


@pytest.mark.parametrize(
    "value", [b"1.0\xa0", b"\xc2\xa01.0", b"1.0\xff", b"\xef\xbc\x91.0", "１.０".encode(), b"\x80"]
)
def test_a_header_that_is_not_ascii_is_refused(value: bytes) -> None:
    for headers in ([value], [b"1.0", value], [value, value]):
        with pytest.raises(VersionNotSupported) as refusal:
            requested_version(headers, [], BOTH)
        assert refusal.value.metadata == {"requested": "not printable ASCII", "supported": "1.0,0.3"}


@pytest.mark.parametrize("value", ["\u0661.\u0660", "1.0\n", "1.0\x1b[31m", "\0"])
def test_a_value_that_cannot_be_shown_is_not_shown(value: str) -> None:
    refusal = unsupported(value, BOTH)
    assert refusal.metadata["requested"] == "not printable ASCII"
    assert value not in refusal.message


def test_a_long_value_is_cut_in_the_refusal() -> None:
    refusal = unsupported("9" * 10_000, BOTH)
    assert refusal.metadata["requested"] == "9" * 32
    assert len(refusal.message) < 300
    with pytest.raises(VersionNotSupported) as several:
        requested_version([b"1" * 10_000, *(b"%d" % number for number in range(100))], ["2" * 10_000], BOTH)
    assert len(several.value.message) < 300
    assert len(several.value.metadata["requested"]) <= 128


@properties
@given(st.text(max_size=8))
def test_http_serves_what_it_lists_and_nothing_else(requested: str) -> None:
    try:
        assert http_version(requested, BOTH) == requested in BOTH
    except VersionNotSupported:
        assert requested not in BOTH


@properties
@given(st.from_regex(r"[0-2]{1,2}\.[0-3]{1,2}(\.[0-9]{1,2})?", fullmatch=True))
def test_jsonrpc_never_serves_another_major_or_minor(requested: str) -> None:
    try:
        version = jsonrpc_version(requested, BOTH)
    except VersionNotSupported:
        return
    assert requested == version or requested.startswith(version + ".")


@properties
@given(st.lists(st.binary(max_size=5), max_size=3), st.lists(st.text(max_size=5), max_size=2))
def test_naming_a_version_never_fails_in_another_way(headers: list[bytes], query: list[str]) -> None:
    try:
        requested = requested_version(headers, query, BOTH)
    except VersionNotSupported:
        return
    assert {value.strip(b" \t").decode("ascii") for value in headers} | set(query) <= {requested or ""}
