"""a2a-spec: a JSON-RPC 1.0 client written without any official SDK."""

from typing import Any

import pytest

from tests.harness.clients import ClientEnvironment
from tests.harness.paths import CLIENT_SPECS
from tests.harness.server import ServerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

NAME = "a2a-spec-0.6.0"


@pytest.fixture(scope="module")
def answers(server: ServerProcess) -> Any:
    """What the adapter gave for each message."""
    agent_url = f"{server.url}/agents/demo"
    return ClientEnvironment(NAME).run_driver(CLIENT_SPECS / NAME / "driver.py", agent_url)


def test_the_adapter_finds_its_json_rpc_interface_on_the_card(answers: Any) -> None:
    assert answers["healthy"] is True
    assert answers["metadata"]["version"] != "unknown"


def test_the_adapter_reads_the_text_of_a_completed_task(answers: Any) -> None:
    assert answers["spoken words"]["output"] == {"text": "spoken words"}
    assert answers["spoken words"]["metadata"]["task_id"]


def test_the_adapter_reads_data_as_data(answers: Any) -> None:
    assert answers["data"]["output"]
    assert answers["data"]["raw_text"] is None


def test_the_adapter_reads_a_bare_message(answers: Any) -> None:
    assert "hello" in answers["message hello"]["output"]["text"]
    assert "task_id" not in answers["message hello"]["metadata"]


def test_the_adapter_is_told_that_a_task_failed(answers: Any) -> None:
    assert "task ended in TASK_STATE_FAILED" in answers["fail"]["refused"]


def test_the_agent_accepts_the_data_part_that_the_adapter_sends_by_default(answers: Any) -> None:
    assert answers["sent data"]["metadata"]["task_id"]
