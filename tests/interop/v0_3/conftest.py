"""One report of each official 0.3 SDK on the server of all interoperability tests."""

import pytest

from tests.harness.server import ServerProcess
from tests.interop.sdks import Report, Sdk
from tests.interop.v0_3.sdks import ALL_SDKS


@pytest.fixture(scope="session", params=ALL_SDKS, ids=str)
def report(request: pytest.FixtureRequest, server: ServerProcess) -> Report:
    """All standard scenarios as one SDK saw them."""
    sdk: Sdk = request.param
    return sdk.drive(server.url)
