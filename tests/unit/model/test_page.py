"""Cursors: opaque, exact, and safe against whatever is sent in their place."""

import base64
from itertools import combinations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model import Cursor, Filters, Scope, Task, TaskPage, TaskState, TaskStatus
from dragoman.model.errors import InvalidParams

properties = settings(max_examples=200, deadline=None)
SCOPE = Scope("tenant", "principal", "agent")
FILTERS = Filters(SCOPE, None, None, None)
CURSOR = Cursor(1_767_225_600_000, "task-1", FILTERS.fingerprint())


def packed(value: object) -> str:
    """A token around any MessagePack value."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(value)).rstrip(b"=").decode()


@properties
@given(
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(max_size=20),
)
def test_a_token_leads_back_to_its_cursor(timestamp: int, task_id: str, fingerprint: bytes) -> None:
    cursor = Cursor(timestamp, task_id, fingerprint)
    assert Cursor.parse(cursor.token()) == cursor


@properties
@given(st.integers(0, 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_token_is_safe_in_a_url(timestamp: int, task_id: str) -> None:
    token = Cursor(timestamp, task_id, b"12345678").token()
    assert token.isascii() and token.replace("-", "").replace("_", "").isalnum()


def refused(token: str) -> None:
    with pytest.raises(InvalidParams) as refusal:
        Cursor.parse(token)
    assert [violation.field for violation in refusal.value.violations] == ["pageToken"]


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "=",
        "====",
        "not a token",
        "ünicode",
        "\u2028",
        "a" * 5000,
        CURSOR.token() + "=",
        CURSOR.token() + "A",
        CURSOR.token()[:-1],
        CURSOR.token() + "\n",
        " " + CURSOR.token(),
        packed(None),
        packed({}),
        packed([]),
        packed([1]),
        packed([1, "t"]),
        packed([1, "t", b"12345678", "more"]),
        packed(["1", "t", b"12345678"]),
        packed([1.0, "t", b"12345678"]),
        packed([True, "t", b"12345678"]),
        packed([1, b"t", b"12345678"]),
        packed([1, "t", "12345678"]),
        packed([2**63, "t", b"12345678"]),
        packed([2**64 - 1, "t", b"12345678"]),
        base64.urlsafe_b64encode(b"\x93\x01\xa1\xff\xc4\x00").rstrip(b"=").decode(),
        base64.urlsafe_b64encode(b"\x94\x01\xa1t\xc4\x00" + b"\x91" * 700 + b"\xc0").rstrip(b"=").decode(),
        base64.urlsafe_b64encode(b"\xdf\xff\xff\xff\xff").rstrip(b"=").decode(),
    ],
)
def test_what_is_no_token_of_ours_is_refused_by_name(token: str) -> None:
    refused(token)


def test_a_token_in_the_other_base64_alphabet_is_refused() -> None:
    token = Cursor(2**62, "\u07ff" * 9, b"\xff" * 8).token()
    assert "-" in token or "_" in token
    refused(token.replace("-", "+").replace("_", "/"))


@properties
@given(
    st.one_of(
        st.text(max_size=40), st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
    )
)
def test_any_text_is_refused_or_is_exactly_a_token(token: str) -> None:
    try:
        cursor = Cursor.parse(token)
    except InvalidParams:
        return
    assert cursor.token() == token


def test_filters_that_differ_have_different_fingerprints() -> None:
    different = [
        FILTERS,
        Filters(Scope("other", "principal", "agent"), None, None, None),
        Filters(Scope("tenant", "other", "agent"), None, None, None),
        Filters(Scope("tenant", "principal", "other"), None, None, None),
        Filters(Scope("tenantprincipal", "", "agent"), None, None, None),
        Filters(SCOPE, "", None, None),
        Filters(SCOPE, "c", None, None),
        Filters(SCOPE, None, TaskState.WORKING, None),
        Filters(SCOPE, None, None, 2),
        Filters(SCOPE, None, None, 0),
    ]
    for one, other in combinations(different, 2):
        assert one.fingerprint() != other.fingerprint()


def test_equal_filters_have_the_same_fingerprint() -> None:
    one = Filters(Scope("t", "p", "a"), "c", TaskState.FAILED, 5)
    assert one.fingerprint() == Filters(Scope("t", "p", "a"), "c", TaskState(4), 5).fingerprint()


def page(count: int, *, has_more: bool) -> TaskPage:
    tasks = tuple(
        Task(
            id=f"task-{number}",
            context_id="c",
            status=TaskStatus(state=TaskState.WORKING, timestamp=1000 - number),
        )
        for number in range(count)
    )
    return TaskPage(tasks=tasks, filters=FILTERS, page_size=50, total=9, has_more=has_more)


def test_the_next_page_begins_after_the_last_task_of_this_one() -> None:
    assert Cursor.parse(page(3, has_more=True).next_token) == Cursor(998, "task-2", FILTERS.fingerprint())


@pytest.mark.parametrize("last", [page(3, has_more=False), page(0, has_more=False), page(0, has_more=True)])
def test_the_last_page_has_no_token(last: TaskPage) -> None:
    assert last.next_token == ""


def test_a_page_that_is_cut_goes_on_where_it_was_cut() -> None:
    cut = page(3, has_more=False).first(2)
    assert [task.id for task in cut.tasks] == ["task-0", "task-1"]
    assert (cut.has_more, cut.total, cut.page_size) == (True, 9, 50)
    assert Cursor.parse(cut.next_token) == Cursor(999, "task-1", FILTERS.fingerprint())


@pytest.mark.parametrize("count", [3, 4])
def test_a_page_that_is_short_enough_is_not_cut(count: int) -> None:
    whole = page(3, has_more=False)
    assert whole.first(count) is whole
