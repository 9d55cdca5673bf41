"""Several clients at once on one server."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.server import ServerProcess
from tests.interop.sdks import PYTHON_NEW, Report, artifact_text, assert_task_stream, only, state, text

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SCENARIOS = {
    "card", "echo", "return_immediately", "stream_chunks", "stream_progress", "history", "listing", "cancel",
    "subscribe", "errors", "bare_message", "same_context", "repeat", "outcomes", "artifacts",
}  # fmt: skip


@pytest.fixture(scope="module")
def reports(server: ServerProcess) -> list[Report]:
    """Both bindings of the newest Python SDK, twice, all four drivers running at the same time."""
    with ThreadPoolExecutor(max_workers=4) as threads:
        return list(threads.map(lambda sdk: sdk.drive(server.url), PYTHON_NEW * 2))


def test_every_scenario_of_every_client_comes_to_its_end(reports: list[Report]) -> None:
    assert [report.seen.keys() - {"calls"} for report in reports] == [SCENARIOS] * 4
    assert all(report[scenario] is not None for report in reports for scenario in SCENARIOS)


def test_each_client_is_answered_with_its_own_task(reports: list[Report]) -> None:
    ids = [report["echo"]["task"]["id"] for report in reports]
    assert len(set(ids)) == 4
    assert {artifact_text(report["history"]["absent"]) for report in reports} == {"remember this"}
    assert {state(report["cancel"]["read"]) for report in reports} == {"TASK_STATE_CANCELED"}


def test_no_stream_carries_another_clients_events(reports: list[Report]) -> None:
    for report in reports:
        for events in (
            report["stream_chunks"]["events"],
            report["stream_progress"],
            report["subscribe"]["events"],
        ):
            assert_task_stream(events)
        chunks = only(report["stream_chunks"]["events"], "artifactUpdate")
        streamed = "".join(text(chunk["artifact"]["parts"]) for chunk in chunks)
        assert streamed == artifact_text(report["stream_chunks"]["task"])


def test_lists_and_errors_are_the_same_for_all_clients(reports: list[Report]) -> None:
    errors = [{name: error["type"] for name, error in report["errors"].items()} for report in reports]
    assert errors == [errors[0]] * 4
    assert None not in errors[0].values()
    assert [[page["totalSize"] for page in report["listing"]["pages"]] for report in reports] == [
        [5, 5, 5]
    ] * 4
