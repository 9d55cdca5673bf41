"""What was finished before the server ended reads the same after it."""

from pathlib import Path

import pytest

from tests.harness.server import ServerProcess
from tests.interop.sdks import PYTHON_NEW, state

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.mark.parametrize("how", ["terminated", "killed"])
def test_finished_tasks_read_the_same_over_both_bindings_after_a_restart(tmp_path: Path, how: str) -> None:
    over_rpc, over_http = PYTHON_NEW
    with ServerProcess(tmp_path / "data") as server:
        before = over_http.drive(server.url, "leave")["leave"]
        states = [state(task) for task in before["read"]]
        assert sorted(states) == ["TASK_STATE_COMPLETED"] * 4 + ["TASK_STATE_FAILED"]
        recall = f"recall={before['context']}"
        assert over_rpc.drive(server.url, recall)["recall"] == before

        if how == "killed":
            server.kill()
        server.restart()

        assert over_http.drive(server.url, recall)["recall"] == before
        assert over_rpc.drive(server.url, recall)["recall"] == before


def test_a_terminated_server_ends_cleanly(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        assert server.terminate() == 0
