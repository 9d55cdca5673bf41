"""Where a stream goes on after it was lost."""

import pytest

from dragoman.bindings.sse import last_event


@pytest.mark.parametrize(
    "value", [None, b"", b"-1", b"+1", b"1.0", b"x", "²".encode(), b" 7", b"7\n", b"9" * 16]
)
def test_a_last_event_id_that_is_none_of_ours_counts_as_absent(value: bytes | None) -> None:
    assert last_event(value) is None


@pytest.mark.parametrize(("value", "seq"), [(b"0", 0), (b"7", 7), (b"007", 7), (b"9" * 15, 10**15 - 1)])
def test_a_last_event_id_is_a_sequence_number(value: bytes, seq: int) -> None:
    assert last_event(value) == seq
