"""Waiting runs: callers take turns."""

import random
from collections import Counter

from dragoman.engines.waiting import WaitingRuns
from dragoman.gateway.ports import Lease
from tests.unit.engines.runs import run_of


def drained(waiting: WaitingRuns) -> list[str]:
    """The ids of what waits, in the order in which it comes out."""
    found = []
    while waiting:
        found.append(waiting.first.lease.task_id)
        waiting.remove_first()
    return found


def filled(*ids: str) -> WaitingRuns:
    """Runs by their ids: the caller's name, and a number."""
    waiting = WaitingRuns()
    for task_id in ids:
        waiting.add(run_of(task_id[:-1], task_id))
    return waiting


def test_one_callers_runs_come_in_the_order_of_arrival() -> None:
    assert drained(filled("a1", "a2", "a3")) == ["a1", "a2", "a3"]
    assert not filled()


def test_callers_take_turns() -> None:
    assert drained(filled("a1", "a2", "a3", "b1", "b2", "c1")) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_first_run_is_next_but_one_behind_any_number_of_one_other_caller() -> None:
    waiting = filled(*(f"a{number % 10}" for number in range(1000)))
    for _ in range(100):
        waiting.remove_first()
    waiting.add(run_of("b", "b1"))
    assert drained(waiting)[:2] == ["a0", "b1"]


def test_a_caller_whose_runs_are_all_gone_begins_behind_the_others() -> None:
    waiting = filled("a1", "b1", "b2")
    waiting.remove_first()
    waiting.add(run_of("a", "a2"))
    assert drained(waiting) == ["b1", "a2", "b2"]


def test_a_run_can_be_taken_away_from_anywhere() -> None:
    waiting = filled("a1", "a2", "b1", "c1", "c2")
    for task_id in ("a2", "b1"):
        taken = waiting.remove(task_id)
        assert taken is not None and taken.lease.task_id == task_id
    assert waiting.remove("b1") is None
    assert waiting.remove("c1", Lease("c1", 2)) is None
    assert waiting.leases() == [Lease("a1", 1), Lease("c1", 1), Lease("c2", 1)]
    assert drained(waiting) == ["a1", "c1", "c2"]
    assert waiting.remove("a1") is None


def test_whatever_comes_and_goes_nobody_is_passed_over_and_nothing_is_lost() -> None:
    chance = random.Random(5)
    waiting, inside = WaitingRuns(), dict[str, str]()
    waits: Counter[str] = Counter()
    for number in range(5000):
        what = chance.random()
        if what < 0.55:
            caller = chance.choice("aaaaaaaabcd")
            inside[f"{number}"] = caller
            waiting.add(run_of(caller, f"{number}"))
        elif what < 0.6 and inside:
            task_id = chance.choice(list(inside))
            assert waiting.remove(task_id) is not None
            del inside[task_id]
        elif inside:
            task_id = waiting.first.lease.task_id
            waiting.remove_first()
            caller = inside.pop(task_id)
            assert not any(other == caller and int(one) < int(task_id) for one, other in inside.items())
            waits[caller] = 0
            for other in set(inside.values()) - {caller}:
                waits[other] += 1
                assert waits[other] <= 4, f"{other} was passed over"
        for caller in set(waits) - set(inside.values()):
            waits[caller] = 0
        assert bool(waiting) == bool(inside)
