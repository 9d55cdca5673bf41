"""A server with the ledger agents, and tests that are coroutines."""

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.delegating import AGENTS, OPENED
from tests.durability.ledger import LedgerServer
from tests.harness.postgres import databases
from tests.harness.rogue import Rogue
from tests.harness.server import ServerProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LedgerServer]:
    """A server with the ledger agents; not started yet, and gone after the test whatever became of it."""
    place = LedgerServer(tmp_path / "data")
    yield place
    place.continue_if_frozen()
    place.close()


@pytest.fixture(scope="package")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LedgerServer]:
    """A server with the ledger agents for tests that only call it, one after the other."""
    with LedgerServer(tmp_path_factory.mktemp("standing") / "data") as place:
        yield place


@pytest.fixture
def url() -> Iterator[str]:
    """A database with the newest schema."""
    database = databases().make()
    yield database
    databases().give_back(database)


@pytest.fixture
def delegating(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server without tenants whose agents call remote ones; not started yet."""
    config = tmp_path / "dragoman.toml"
    config.write_text(OPENED, encoding="utf-8")
    made = ServerProcess(tmp_path / "data", agents=[AGENTS], config=config)
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[Rogue]:
    """A remote agent."""
    with Rogue() as listening:
        yield listening


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True
