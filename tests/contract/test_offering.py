"""Runs that a server leaves to workers, which take them from a store that they share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.gateway.ports import Lease, Placing
from dragoman.model import Scope
from dragoman.stores.postgres import PostgresStore
from dragoman.stores.target import Target
from tests.contract.homes import PostgresHome
from tests.contract.samples import acceptance, recorded

EVERYTHING = {"echo": 100, "other": 100}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[PostgresHome]:
    home = PostgresHome(tmp_path)
    yield home
    home.remove()


async def offer(store: PostgresStore, agent: str, caller: str, count: int = 1) -> list[str]:
    """Accept messages, and return their tasks."""
    scope = Scope("acme", caller, agent)
    return [(await store.accept(acceptance(scope=scope))).task_id for _ in range(count)]


async def took(store: PostgresStore, room: dict[str, int], most: int = 100) -> list[str]:
    """Take runs, and return their tasks in the order in which they came."""
    commits = recorded(store)
    before = len(commits)
    number = await store.take_offered(room, most)
    runs = [run for commit in commits[before:] for run in commit.runs]
    assert len(runs) == number
    return [run.lease.task_id for run in runs]


async def test_what_is_left_to_workers_is_nobodys_until_it_is_taken_once(place: PostgresHome) -> None:
    store = place.open(Placing.WORKERS)
    commits = recorded(store)
    (task_id,) = await offer(store, "echo", "alice")
    assert commits[0].runs == []
    assert [run.lease for run in commits[0].offered] == [Lease(task_id, 1)]
    assert await store.lost() == ()
    assert await store.offered() == {"echo": 1}
    other = PostgresStore(Target(place.url), lease=15.0)
    try:
        assert await took(other, EVERYTHING) == [task_id]
        assert await took(store, EVERYTHING) == []
        assert await store.offered() == {}
        assert await store.lost() == (), "its worker lives"
    finally:
        other.close()
    (lost,) = await store.lost()
    assert (lost.task_id, lost.epoch, lost.attempt, lost.entered) == (task_id, 2, 1, True)


async def test_callers_take_turns_and_each_ones_runs_go_by_their_age(place: PostgresHome) -> None:
    store = place.open(Placing.WORKERS)
    many = await offer(store, "echo", "alice", 4)
    (one,) = await offer(store, "echo", "bob")
    assert sorted(await took(store, EVERYTHING, 2)) == sorted([many[0], one])
    assert sorted(await took(store, EVERYTHING, 2)) == sorted(many[1:3])
    assert await took(store, EVERYTHING) == many[3:]


async def test_no_more_are_taken_than_there_is_room_for_of_each_agent_and_in_all(place: PostgresHome) -> None:
    store = place.open(Placing.WORKERS)
    await offer(store, "echo", "alice", 3)
    await offer(store, "other", "alice", 3)
    await offer(store, "unserved", "alice")
    assert len(await took(store, {"echo": 1, "other": 2})) == 3
    assert await store.offered() == {"echo": 2, "other": 1, "unserved": 1}
    assert len(await took(store, EVERYTHING, 2)) == 2
    assert len(await took(store, EVERYTHING)) == 1
    assert await store.offered() == {"unserved": 1}


async def test_a_run_that_ended_is_not_taken(place: PostgresHome) -> None:
    store = place.open(Placing.WORKERS)
    (task_id,) = await offer(store, "echo", "alice")
    await store.cancel(Scope("acme", "alice", "echo"), task_id)
    assert await took(store, EVERYTHING) == []
