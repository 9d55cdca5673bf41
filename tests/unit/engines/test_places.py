"""Places: the bounds of each agent and of all together, and whose turn it is."""

import random
import threading
from collections import Counter

import pytest

from dragoman.engines.places import Places
from dragoman.gateway.ports import AgentSettings
from tests.unit.engines.runs import run_of, scope_of


class House:
    """Places for agents, with what happened to them.

    Attributes:
        woken: the agents for which a place is held, in that order.
    """

    def __init__(self, total: int, **agents: tuple[int, int]) -> None:
        self.places = Places(total)
        self.woken: list[str] = []
        self._numbers = iter(range(10**6))
        for agent, (max_runs, max_waiting) in agents.items():
            settings = AgentSettings(max_runs=max_runs, max_waiting=max_waiting)
            self.places.add(agent, settings, lambda agent=agent: self.woken.append(agent))

    def comes(self, agent: str, caller: str = "a") -> bool:
        """Accept a message and have its run come; false if it is refused."""
        task_id = f"{next(self._numbers)}"
        if not self.places.reserve(scope_of(caller, agent), task_id):
            return False
        self.places.arrive([run_of(caller, task_id, agent)])
        self.places.release(task_id)
        return True

    def takes(self, agent: str, caller: str = "a") -> bool:
        """Have a run of an agent, one that has come, take a place."""
        return self.places.take(run_of(caller, "any", agent))

    def counts(self, agent: str) -> tuple[int, int]:
        return self.places.counts()[agent]


def test_an_agent_takes_as_many_runs_as_may_go_on_and_wait() -> None:
    house = House(100, x=(2, 3))
    assert [house.comes("x") for _ in range(6)] == [True] * 5 + [False]
    assert [house.takes("x") for _ in range(3)] == [True, True, False]
    assert house.counts("x") == (2, 3)
    assert not house.comes("x")
    house.places.leave("x")
    assert house.takes("x")
    assert house.comes("x")
    assert not house.comes("x")


def test_an_agent_that_lets_nothing_wait_takes_what_can_begin_at_once() -> None:
    house = House(100, x=(2, 0))
    assert [house.comes("x", caller) for caller in "abc"] == [True, True, False]
    assert house.takes("x", "a") and house.takes("x", "b")
    assert not house.comes("x", "c")
    house.places.leave("x")
    assert house.comes("x", "c")


def test_a_full_queue_takes_one_run_of_each_further_caller_until_it_is_twice_as_long() -> None:
    house = House(100, x=(1, 3))
    assert [house.comes("x", "greedy") for _ in range(5)] == [True] * 4 + [False]
    assert house.takes("x", "greedy")
    assert house.comes("x", "b")
    assert not house.comes("x", "b"), "it has one in the queue now"
    assert [house.comes("x", caller) for caller in "cde"] == [True, True, False]
    assert house.counts("x") == (1, 6)
    assert not house.comes("x", "greedy")


def test_what_is_reserved_counts_until_it_is_released_or_has_come() -> None:
    house = House(100, x=(1, 1))
    scope = scope_of("a", "x")
    assert house.places.reserve(scope, "1") and house.places.reserve(scope, "2")
    assert not house.places.reserve(scope, "3")
    assert house.counts("x") == (0, 0)
    house.places.release("2")
    house.places.release("2")
    assert house.places.reserve(scope, "3")
    house.places.arrive([run_of("a", "1", "x")])
    assert house.counts("x") == (0, 1)
    house.places.release("3")
    assert house.places.reserve(scope, "3"), "what has come is not counted as reserved too"
    house.places.release("1")
    assert house.counts("x") == (0, 1)
    assert not house.places.reserve(scope, "4")


def test_runs_that_nobody_reserved_for_are_taken_beyond_the_bound() -> None:
    house = House(100, x=(1, 1))
    house.places.arrive([run_of("a", f"{number}", "x") for number in range(10)])
    assert house.counts("x") == (0, 10)
    assert not house.comes("x")
    assert [house.takes("x") for _ in range(3)] == [True, False, False]
    for _ in range(9):
        house.places.leave("x")
        assert house.takes("x")
    assert house.counts("x") == (1, 0)
    assert house.comes("x")


def test_a_run_that_wants_no_place_any_more_makes_room() -> None:
    house = House(100, x=(1, 1))
    assert house.comes("x") and house.comes("x") and not house.comes("x")
    assert house.takes("x")
    house.places.drop(run_of("a", "1", "x"))
    assert house.comes("x")


def test_agents_that_find_no_place_get_one_in_turn() -> None:
    house = House(2, x=(9, 9), y=(9, 9), z=(9, 9))
    for agent in "xxyyzz":
        assert house.comes(agent)
    assert [house.takes(agent) for agent in "xxyz"] == [True, True, False, False]
    house.places.leave("x")
    assert house.woken == ["y"]
    assert not house.takes("z"), "the place is held for y"
    assert house.takes("y")
    assert not house.takes("y"), "it stands in line again, behind z"
    house.places.leave("x")
    house.places.leave("y")
    assert house.woken == ["y", "z", "y"]
    assert house.takes("z") and house.takes("y")
    assert not house.takes("z")


def test_an_agent_that_has_its_own_number_of_runs_stands_in_no_line() -> None:
    house = House(2, x=(1, 9), y=(9, 9))
    for agent in "xxy":
        house.comes(agent)
    assert house.takes("x") and not house.takes("x")
    house.places.leave("x")
    assert house.woken == []
    assert house.takes("x")


@pytest.mark.parametrize("how", ["declines", "does not come"])
def test_a_place_that_its_agent_does_not_take_is_passed_on(how: str) -> None:
    house = House(1, x=(9, 9), y=(9, 9), z=(9, 9))
    for agent in "xyz":
        house.comes(agent)
    assert house.takes("x") and not house.takes("y") and not house.takes("z")
    house.places.leave("x")
    if how == "declines":
        house.places.decline("x")
        house.places.decline("y")
    else:
        house.places.pass_over()
        assert house.woken == ["y"], "it may still be on its way"
        house.places.pass_over()
    assert house.woken == ["y", "z"]
    assert not house.takes("y")
    assert house.takes("z")
    house.places.leave("z")
    assert house.woken == ["y", "z", "y"]
    house.places.decline("y")
    assert house.takes("y"), "it is free for all"


def test_a_place_that_was_just_held_for_an_agent_is_not_passed_over_with_older_ones() -> None:
    house = House(1, x=(9, 9), y=(9, 9))
    for agent in "xxy":
        house.comes(agent)
    assert house.takes("x") and not house.takes("y")
    house.places.leave("x")
    house.places.pass_over()
    assert house.takes("y") and not house.takes("x")
    house.places.leave("y")
    house.places.pass_over()
    assert house.takes("x")


def test_one_agents_full_queue_keeps_no_room_of_another() -> None:
    """The places that are free count once: for whoever wants them first."""
    house = House(3, x=(1, 50), y=(9, 0))
    while house.comes("x"):
        pass
    assert house.takes("x")
    assert [house.comes("y") for _ in range(3)] == [True, True, False]


def test_agents_that_let_nothing_wait_do_not_count_on_the_same_free_place() -> None:
    house = House(1, x=(9, 0), y=(9, 0))
    assert house.comes("x")
    assert not house.comes("y")
    assert house.takes("x")
    house.places.leave("x")
    assert house.comes("y")


class Crowd:
    """Agents on threads of their own, as in the engine, which take and leave places as chance has it.

    What is noted as running never is more than what has a place: it is noted after the taking, before the leaving.
    """

    def __init__(self, house: House, agents: str) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._house = house
        self._lock = threading.Lock()
        self._come = {agent: threading.Semaphore(0) for agent in agents}
        self._threads = [threading.Thread(target=self._work, args=(agent, 400)) for agent in agents]

    def accept_until_all_have_worked(self) -> None:
        """Accept, release and pass over, on this thread."""
        chance, agents = random.Random(1), "".join(self._come)
        for thread in self._threads:
            thread.start()
        while any(thread.is_alive() for thread in self._threads):
            agent = chance.choice(agents)
            if chance.random() < 0.1:
                self._house.places.pass_over()
            if chance.random() < 0.1 and self._house.places.reserve(scope_of("a", agent), "left"):
                self._house.places.release("left")
            elif self._house.comes(agent):
                self._come[agent].release()
            self.most[f"waiting for {agent}"] = max(
                self.most[f"waiting for {agent}"], self._house.counts(agent)[1]
            )
        for thread in self._threads:
            thread.join()

    def _work(self, agent: str, rounds: int) -> None:
        chance, waiting = random.Random(agent), 0
        while rounds > 0:
            waiting += self._come[agent].acquire(timeout=0.001)
            while waiting and self._house.takes(agent):
                waiting -= 1
                self._note(agent, 1)
            if not waiting:
                self._house.places.decline(agent)
            while self.running[agent] and chance.random() < 0.7:
                self._note(agent, -1)
                self._house.places.leave(agent)
                rounds -= 1

    def _note(self, agent: str, step: int) -> None:
        with self._lock:
            for name in (agent, "all"):
                self.running[name] += step
                self.most[name] = max(self.most[name], self.running[name])


def test_places_are_neither_lost_nor_given_twice_whatever_many_threads_do() -> None:
    house = House(5, **dict.fromkeys("wxyz", (3, 4)))
    crowd = Crowd(house, "wxyz")
    crowd.accept_until_all_have_worked()
    assert crowd.most["all"] == 5
    assert all(crowd.most[agent] <= 3 and crowd.most[f"waiting for {agent}"] <= 4 + 3 for agent in "wxyz")

    for agent in "wxyz":
        for _ in range(crowd.running[agent]):
            house.places.leave(agent)
        house.places.decline(agent)
        house.places.arrive([run_of("a", "late", agent)] * 5)
    assert len([agent for agent in "wxyz" for _ in range(5) if house.takes(agent)]) == 5
