"""a2a-handler: a command line over the official SDK, used as a person would."""

from typing import Any

import pytest

from tests.harness.clients import ClientEnvironment
from tests.harness.paths import CLIENT_SPECS
from tests.harness.server import ServerProcess
from tests.interop.sdks import UNFINISHED, artifact_text, state

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

NAME = "a2a-handler-0.4.0"


@pytest.fixture(scope="module")
def commands(server: ServerProcess) -> Any:
    """What each command answered."""
    agent_url = f"{server.url}/agents/demo"
    return ClientEnvironment(NAME).run_driver(CLIENT_SPECS / NAME / "driver.py", agent_url, timeout=180)


def test_handler_reads_the_card_and_finds_it_valid(commands: Any, server: ServerProcess) -> None:
    urls = {interface["url"] for interface in commands["card"]["answer"]["supportedInterfaces"]}
    assert {f"{server.url}/agents/demo", f"{server.url}/agents/demo/rpc"} <= urls
    assert commands["validate"]["answer"]["valid"] is True
    assert "1.0" in commands["validate"]["answer"]["protocol_version"].split(", ")


def test_handler_sends_and_reads_the_same_task_again(commands: Any) -> None:
    task = commands["send"]["answer"]
    assert (state(task), artifact_text(task)) == ("TASK_STATE_COMPLETED", "spoken words")
    assert commands["get"]["answer"] == task


def test_handler_streams_every_chunk(commands: Any) -> None:
    lines = commands["stream"]["lines"]
    assert lines[0]["type"] == "task"
    assert len([line for line in lines if line["type"] == "artifact" and line.get("text")]) == 3
    assert (lines[-1]["type"], lines[-1]["state"]) == ("status", "completed")


def test_handler_cancels_a_running_task_once(commands: Any) -> None:
    assert state(commands["started"]["answer"]) in UNFINISHED
    assert state(commands["cancel"]["answer"]) == "TASK_STATE_CANCELED"
    assert commands["cancel again"]["exit"] == 1
    assert commands["cancel again"]["error"]["details"]["error"] == "TaskNotCancelableError"


def test_handler_is_told_that_a_task_does_not_exist(commands: Any) -> None:
    assert commands["unknown"]["exit"] == 1
    assert commands["unknown"]["error"]["details"]["error"] == "TaskNotFoundError"


def test_handler_lists_its_tasks_through_every_page(commands: Any) -> None:
    listed = [task["id"] for task in commands["list"]["answer"]["tasks"]]
    assert {commands[name]["answer"]["id"] for name in ("send", "started")} <= set(listed)
    assert len(set(listed)) == len(listed) == commands["list"]["answer"]["count"]
