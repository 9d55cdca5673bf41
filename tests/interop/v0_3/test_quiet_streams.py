"""Streams on which nothing happens for a while, as the official 0.3 SDKs see them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.server import ServerProcess
from tests.interop.sdks import Report, Sdk, state, text
from tests.interop.v0_3.sdks import ALL_SDKS, assert_task_stream, of_kind

pytestmark = [pytest.mark.interop, pytest.mark.soak, pytest.mark.timeout(600)]


def test_a_keep_alive_is_no_event_to_any_sdk(tmp_path: Path) -> None:
    # The Python SDK takes an empty line after a comment for an event without data, which it cannot read.
    agents = Path(__file__).with_name("own_agents.py")
    with (
        ServerProcess(tmp_path / "data", agents=[agents]) as server,
        ThreadPoolExecutor(len(ALL_SDKS)) as threads,
    ):

        def follow(sdk: Sdk) -> Report:
            return sdk.drive(server.url, "resubscribe", agent="quiet")

        for report in threads.map(follow, ALL_SDKS):
            events = report["resubscribe"]["events"]
            assert_task_stream(events)
            assert state(events[-1]) == "completed"
            (update,) = of_kind(events, "artifact-update")
            assert text(update["artifact"]["parts"]) == "Done at last."
