"""The upstream 1.0 kit on the conformance agents of a real server: exactly what is listed fails, and nothing else.

Needs a checkout of the kit at the revision of `expected.py`, named by `A2A_TCK`. No registry has the kit, so that these
tests are skipped without one everywhere.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import kit
from tests.conformance.v1_0.expected import DIGEST, REVISION, RUNS, Run
from tests.harness.server import ServerProcess

VARIABLE = "A2A_TCK"
TESTS = {"all": (), "must": ("--level", "must"), "extension": ("--", "-k", "CapabilityExtensionRequired")}

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(kit.RUN_SECONDS + 600),
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no checkout of the 1.0 kit"),
]


@pytest.fixture(scope="module")
def checkout() -> Path:
    """The checkout, of the right revision."""
    found = Path(os.environ[VARIABLE]).resolve()
    assert (found / "run_tck.py").is_file(), f"{found} is no checkout of the kit"
    assert kit.digest(found) == DIGEST, f"the checkout is not {REVISION}, for which these tests are made"
    return found


@pytest.fixture(scope="module", params=["1.0.0", "1.0.1"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server of conformance agents that answer with each table of error statuses in turn."""
    arguments = ("--conformance", "--tck-table", request.param)
    with ServerProcess(tmp_path_factory.mktemp("tck") / "data", arguments=arguments) as running:
        yield running


@pytest.mark.parametrize(
    ("server", "run"), [(run.table, run) for run in RUNS], indirect=["server"], ids=[run.name for run in RUNS]
)
def test_exactly_the_listed_tests_fail(
    server: ServerProcess, checkout: Path, tmp_path: Path, run: Run
) -> None:
    url = f"{server.url}/agents/{run.agent}"
    arguments = ("--transport", run.transport, *TESTS[run.tests])
    reports = kit.run("a2a-tck-1.0", checkout, url, tmp_path / "out", arguments)
    assert set(reports) == {run.transport}
    report = reports[run.transport]
    assert report.failed == run.failed
    assert report.counts == run.counts
    kept = {path.name for path in (tmp_path / "out" / run.transport).iterdir()}
    assert kept >= {"compatibility.json", "compatibility.html", "tck_report.html", "junitreport.xml"}
    assert (
        f"| {run.transport} | {run.counts.get('passed', 0)} |"
        in (tmp_path / "out" / "summary.md").read_text()
    )
