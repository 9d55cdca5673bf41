"""What 0.3 clients left behind is there, unchanged, for every one of them after a restart."""

import uuid
from pathlib import Path

import pytest

from tests.harness.server import ServerProcess
from tests.interop.v0_3.sdks import ALL_SDKS, PYTHON

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_tasks_read_the_same_before_and_after_a_restart(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        left = PYTHON[0].drive(server.url, f"leave={uuid.uuid4()}")["leave"]
        wanted = f"read={','.join(task['id'] for task in left)}"
        before = [sdk.drive(server.url, wanted)["read"] for sdk in ALL_SDKS]
        server.restart()
        after = [sdk.drive(server.url, wanted)["read"] for sdk in ALL_SDKS]
    assert after == before
    assert before[0] == left
    assert [task["status"]["state"] for task in left] == [
        "completed", "completed", "failed", "completed", "completed",
    ]  # fmt: skip
