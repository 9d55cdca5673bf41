"""A command dies with its server, however that ends, and its run goes on as any other's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.harness.wire import call

# The program and one that it starts, both of which do not listen to SIGTERM.
SCRIPT = """#!/bin/sh
trap '' TERM
echo "$DRAGOMAN_TASK_ID $DRAGOMAN_ATTEMPT $$" >>"$LEDGER"
echo begun
while :; do sleep 0.1; done &
echo "$DRAGOMAN_TASK_ID $DRAGOMAN_ATTEMPT $!" >>"$LEDGER"
while [ ! -e "$GATE" ]; do sleep 0.1; done
echo done
"""

CONFIG = """
[server]
drain = "0s"
[agents.again]
command = ["./script"]
command_env = ["LEDGER", "GATE"]
[agents.once]
command = ["./script"]
command_env = ["LEDGER", "GATE"]
on_lost_worker = "fail"
"""


class Scripts(ServerProcess):
    """A server whose agents are a command that waits for a gate."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self.gate = folder / "ledger", folder / "gate"
        (folder / "script").write_text(SCRIPT, encoding="utf-8")
        (folder / "script").chmod(0o755)
        (folder / "dragoman.toml").write_text(CONFIG, encoding="utf-8")
        environment = {"LEDGER": str(self.ledger), "GATE": str(self.gate)}
        super().__init__(folder / "data", config=folder / "dragoman.toml", environment=environment)

    def begin(self, agent: str) -> str:
        message = {"messageId": agent, "role": "ROLE_USER", "parts": [{"text": "x"}]}
        sent = {"message": message, "configuration": {"returnImmediately": True}}
        return str(call("POST", f"{self.url}/agents/{agent}/message:send", sent).json()["task"]["id"])

    def pids(self, task_id: str, attempt: int) -> list[int]:
        """The process ids of an attempt, once both are there."""

        def noted() -> list[int]:
            lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
            mine = [line.split() for line in lines]
            found = [int(pid) for task, number, pid in mine if (task, number) == (task_id, str(attempt))]
            return found if len(found) == 2 else []

        return until(noted, what=f"attempt {attempt} has begun")

    def ended(self, agent: str, task_id: str) -> dict[str, object]:
        def read() -> dict[str, object] | None:
            task: dict[str, object] = call("GET", f"{self.url}/agents/{agent}/tasks/{task_id}").json()
            return task if "artifacts" in task and "COMPLETED" in str(task["status"]) else None

        return until(read, what=f"{task_id} has completed")


@pytest.fixture
def scripts(tmp_path: Path) -> Iterator[Scripts]:
    place = Scripts(tmp_path)
    yield place
    place.close()


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_a_command_and_all_that_it_started_die_with_the_server(scripts: Scripts, how: str) -> None:
    scripts.start()
    pids = [pid for agent in ("again", "once") for pid in scripts.pids(scripts.begin(agent), 1)]
    assert not [pid for pid in pids if is_gone(pid)]
    scripts.kill() if how == "kill" else scripts.terminate()
    for pid in pids:
        until(lambda pid=pid: is_gone(pid), what=f"{pid} is gone", seconds=2.0)


def test_after_a_crash_a_command_is_run_again_or_its_run_is_failed_as_its_agent_says(
    scripts: Scripts,
) -> None:
    scripts.start()
    tasks = {agent: scripts.begin(agent) for agent in ("again", "once")}
    for task_id in tasks.values():
        scripts.pids(task_id, 1)
    scripts.kill()
    scripts.start()
    scripts.pids(tasks["again"], 2)
    scripts.gate.touch()
    task = scripts.ended("again", tasks["again"])
    # What the first attempt wrote does not show twice.
    pieces = [part["text"] for artifact in task["artifacts"] for part in artifact["parts"]]  # type: ignore[attr-defined]
    assert "".join(pieces) == "begun\ndone\n"
    once = call("GET", f"{scripts.url}/agents/once/tasks/{tasks['once']}").json()
    assert once["status"]["state"] == "TASK_STATE_FAILED"
    assert "not retried" in once["status"]["message"]["parts"][0]["text"]
    assert f"{tasks['once']} 2 " not in scripts.ledger.read_text()
