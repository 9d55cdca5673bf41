"""Ids are UUIDv7 and only ever grow."""

import threading
import time
from uuid import RFC_4122, UUID

import pytest

from dragoman.model import ids
from dragoman.model.ids import new_id


def milliseconds_of(text: str) -> int:
    return UUID(text).int >> 80


def test_an_id_is_a_uuid_of_version_7_in_its_usual_form() -> None:
    for text in [new_id() for _ in range(100)]:
        value = UUID(text)
        assert (value.version, value.variant) == (7, RFC_4122)
        assert str(value) == text


def test_an_id_begins_with_the_time_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    made = milliseconds_of(new_id())
    after = time.time_ns() // 1_000_000
    # A burst of more than 4,096 ids in a millisecond borrows from the milliseconds to come.
    assert before <= made <= after + 100


def test_ids_grow_strictly() -> None:
    made = [new_id() for _ in range(20_000)]
    assert made == sorted(set(made))


def test_ids_grow_when_more_are_made_in_a_millisecond_than_the_counter_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen = time.time_ns() + 3_600_000_000_000
    monkeypatch.setattr(ids, "_SEQUENCE", ids._Sequence())
    monkeypatch.setattr(ids.time, "time_ns", lambda: frozen)
    made = [new_id() for _ in range(4097)]
    assert made == sorted(set(made))
    assert milliseconds_of(made[0]) == milliseconds_of(made[4095]) == frozen // 1_000_000
    assert milliseconds_of(made[4096]) == frozen // 1_000_000 + 1


def test_ids_grow_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [time.time_ns()]
    monkeypatch.setattr(ids, "_SEQUENCE", ids._Sequence())
    monkeypatch.setattr(ids.time, "time_ns", lambda: clock[0])
    first = new_id()
    clock[0] -= 86_400_000_000_000
    second = new_id()
    assert first < second
    assert {UUID(first).version, UUID(second).version} == {7}


def test_ids_of_several_threads_are_all_different_and_grow_in_each() -> None:
    made: list[list[str]] = [[] for _ in range(8)]
    start = threading.Barrier(len(made))

    def make(into: list[str]) -> None:
        start.wait()
        into.extend(new_id() for _ in range(2000))

    threads = [threading.Thread(target=make, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == sorted(one) for one in made)
    assert len({text for one in made for text in one}) == 16_000


def test_two_ids_of_one_moment_share_nothing_that_could_be_guessed() -> None:
    tails = {new_id()[-12:] for _ in range(1000)}
    assert len(tails) == 1000
