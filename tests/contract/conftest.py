"""Every store in turn, and tests that are coroutines: each runs on the loop that its store was opened on."""

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.gateway.ports import TaskStore
from tests.contract.homes import InstalledPostgresHome, PostgresHome, SqliteHome, StoreHome
from tests.contract.rooms import ROOMS, EngineRoom

HOMES: list[type[StoreHome]] = [SqliteHome, PostgresHome, InstalledPostgresHome]
"""The stores under contract. One line adds another."""


@pytest.fixture(autouse=True)
def serving_loop() -> Iterator[asyncio.Runner]:
    """The loop that serves: coroutine tests run on it."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=HOMES, ids=lambda kind: kind.name)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreHome]:
    """A place for one store; it outlives the servers that open it."""
    kind: type[StoreHome] = request.param
    place = kind(tmp_path)
    yield place
    place.remove()


@pytest.fixture
def store(home: StoreHome, serving_loop: asyncio.Runner) -> Iterator[TaskStore]:
    """A new store, open."""

    async def opened() -> TaskStore:
        return home.open()

    yield serving_loop.run(opened())
    home.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what asks for a room in that of the engine and the store that were asked for; with `--soak` in all."""
    if "room" in metafunc.fixturenames:
        config = metafunc.config
        asked = ROOMS[config.getoption("--engine"), config.getoption("--store")]
        rooms = [
            kind if kind is asked else pytest.param(kind, marks=pytest.mark.soak) for kind in ROOMS.values()
        ]
        metafunc.parametrize("room", rooms, ids=lambda kind: kind.name, indirect=True)


@pytest.fixture
def room(
    request: pytest.FixtureRequest, tmp_path: Path, serving_loop: asyncio.Runner
) -> Iterator[EngineRoom]:
    """A server's inside with one engine, not started yet."""
    kind: type[EngineRoom] = request.param
    if not kind.queues_here and request.node.get_closest_marker("embedded"):
        pytest.skip("what waits is in the engine's own queue, whose order and bounds are its own")
    place = kind(tmp_path)
    yield place
    serving_loop.run(place.crash())
    place.remove()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out repetitions on the older of two PostgreSQL servers."""
    again = [
        item
        for item in items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and item.callspec.params.get("home") is InstalledPostgresHome
        and item.get_closest_marker("newest")
    ]
    if again:
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if item not in again]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test on the serving loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    pyfuncitem.funcargs["serving_loop"].run(pyfuncitem.obj(**arguments))
    return True
