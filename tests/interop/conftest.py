"""One server for all interoperability tests, and one report of each official SDK on it."""

from collections.abc import Iterator

import pytest

from tests.harness.server import ServerProcess
from tests.interop.sdks import ALL_SDKS, Report, Sdk


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """`dragoman serve` with its demo agents."""
    with ServerProcess(tmp_path_factory.mktemp("interop") / "data") as running:
        yield running


@pytest.fixture(scope="session", params=ALL_SDKS, ids=str)
def report(request: pytest.FixtureRequest, server: ServerProcess) -> Report:
    """All standard scenarios as one SDK saw them over one binding."""
    sdk: Sdk = request.param
    return sdk.drive(server.url)
