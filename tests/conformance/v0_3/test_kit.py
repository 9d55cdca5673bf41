"""The upstream 0.3 kit on the agent `tck-03` of a real server: nothing mandatory fails, and nothing unexplained.

Needs a checkout of the kit at the revision of `expected.py`, named by `A2A_TCK_03`. No registry has the kit, so that
these tests are skipped without one everywhere.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conformance import kit
from tests.conformance.v0_3.expected import DIGEST, FAILED, REPORTS, REVISION
from tests.harness.server import ServerProcess

CONFIG = """
[agents.tck-03]
python = "dragoman.agents.tck_03:tck_03"
default = true
"""

VARIABLE = "A2A_TCK_03"
TRANSPORTS = ("jsonrpc", "rest")

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(kit.RUN_SECONDS + 600),
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no checkout of the 0.3 kit"),
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, kit.Report]:
    """Every report of one run."""
    checkout = Path(os.environ[VARIABLE]).resolve()
    assert (checkout / "run_tck.py").is_file(), f"{checkout} is no checkout of the kit"
    assert kit.digest(checkout) == DIGEST, f"the checkout is not {REVISION}, for which these tests are made"
    folder = tmp_path_factory.mktemp("tck-03")
    config = folder / "dragoman.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with ServerProcess(folder / "data", config=config) as server:
        return kit.run("a2a-tck-0.3", checkout, f"{server.url}/agents/tck-03/rpc", folder / "kit")


def test_every_category_is_reported_for_each_transport(reports: Mapping[str, kit.Report]) -> None:
    assert set(reports) == set(REPORTS)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_no_mandatory_test_fails(reports: Mapping[str, kit.Report], transport: str) -> None:
    report = reports[f"mandatory_{transport}"]
    assert report.failed == set()
    assert set(report.counts) == {"passed", "skipped"}


@pytest.mark.parametrize("name", REPORTS)
def test_exactly_the_listed_tests_fail(reports: Mapping[str, kit.Report], name: str) -> None:
    assert reports[name].failed == FAILED.get(name, frozenset())
    assert reports[name].counts == REPORTS[name]
