"""A server with the ledger agents, and tests that are coroutines."""

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.ledger import LedgerServer


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


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True
