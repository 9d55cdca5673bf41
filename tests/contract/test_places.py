"""Places that servers on one PostgreSQL database have together."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.stores.postgres import PostgresStore
from dragoman.stores.target import Target
from tests.contract.homes import PostgresHome
from tests.harness.postgres import execute, in_thread, rows

BOUNDS = {"all": 5, "mine": 2}
HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
END = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[PostgresHome]:
    place = PostgresHome(tmp_path)
    yield place
    place.remove()


@pytest.fixture
def other(home: PostgresHome, store: PostgresStore, serving_loop: asyncio.Runner) -> Iterator[PostgresStore]:
    """A second server's store."""

    async def joined() -> PostgresStore:
        return PostgresStore(Target(home.url), lease=15.0)

    opened = serving_loop.run(joined())
    yield opened
    opened.close()


async def test_of_each_name_there_are_as_many_places_as_its_bound_whoever_takes_them(
    store: PostgresStore, other: PostgresStore, home: PostgresHome
) -> None:
    taken = await asyncio.gather(*((store, other)[n % 2].places.take(BOUNDS) for n in range(8)))
    assert len([places for places in taken if places is not None]) == 2
    yours = await asyncio.gather(
        *((store, other)[n % 2].places.take({"all": 5, "yours": 9}) for n in range(8))
    )
    assert len([places for places in yours if places is not None]) == 3, "all five of all names"
    assert in_thread(lambda: rows(home.url, HELD))[0][0] == 10, "who is refused keeps nothing"
    for number, places in enumerate((*taken, *yours)):
        (store, other)[number % 2].places.give_back(places or ())
    async with asyncio.timeout(5):
        while in_thread(lambda: rows(home.url, HELD))[0][0]:
            await asyncio.sleep(0.01)


async def test_a_lost_session_keeps_its_places_and_a_server_that_leaves_gives_them_back(
    store: PostgresStore, other: PostgresStore, home: PostgresHome
) -> None:
    assert await store.places.take(BOUNDS) and await store.places.take(BOUNDS)
    execute(home.url, END)
    async with asyncio.timeout(5):
        while not store.places._connection.is_closed():
            await asyncio.sleep(0.01)
    assert await store.places.take({"else": 1}), "it comes back when somebody wants a place"
    assert await other.places.take(BOUNDS) is None
    home.close()
    async with asyncio.timeout(5):
        while await other.places.take(BOUNDS) is None:
            await asyncio.sleep(0.01)
