"""A server of three tenants, somebody who may delegate, and a remote agent."""

from collections.abc import Iterator

import pytest

from tests.harness.rogue import Rogue
from tests.harness.server import ServerProcess
from tests.interaction.remotes.callers import CONFIG, TOKENS, Api


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of three tenants, one of them without the feature."""
    folder = tmp_path_factory.mktemp("delegating")
    config = folder / "dragoman.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with ServerProcess(folder / "data", config=config, environment=TOKENS) as running:
        yield running


@pytest.fixture
def alice(home: ServerProcess) -> Api:
    """Somebody who may delegate."""
    return Api(home)


@pytest.fixture
def other() -> Iterator[Rogue]:
    """A remote agent."""
    with Rogue() as listening:
        yield listening
