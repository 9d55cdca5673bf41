"""What the tests of the PostgreSQL store beyond the contract share."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.stores.postgres import PostgresStore
from dragoman.stores.target import Target
from tests.contract.homes import InstalledPostgresHome, PostgresHome


@pytest.fixture(params=[PostgresHome, InstalledPostgresHome], ids=lambda kind: kind.name)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PostgresHome]:
    """A place for a PostgreSQL store, whatever else is under contract."""
    place: PostgresHome = request.param(tmp_path)
    yield place
    place.remove()


@pytest.fixture
def other(home: PostgresHome, store: PostgresStore, serving_loop: asyncio.Runner) -> Iterator[PostgresStore]:
    """A second server's store on the same database; each knows of the other."""

    async def joined() -> PostgresStore:
        opened = PostgresStore(Target(home.url), lease=15.0)
        while not store._replica.has_peers:
            await asyncio.sleep(0.02)
        return opened

    opened = serving_loop.run(joined())
    yield opened
    opened.close()
