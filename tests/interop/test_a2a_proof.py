"""a2a-proof: a scenario runner over the official SDK, which streams and brings its own context ids."""

from typing import Any

import pytest

from tests.harness.clients import ClientEnvironment
from tests.harness.paths import CLIENT_SPECS
from tests.harness.server import ServerProcess
from tests.interop.sdks import HTTP_JSON, JSONRPC

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

NAME = "a2a-proof-0.16.0"
SCENARIOS = ["echo", "file", "data", "failure", "refusal", "conversation", "chunks", "cancel", "follow"]


@pytest.fixture(scope="module", params=[JSONRPC, HTTP_JSON])
def result(request: pytest.FixtureRequest, server: ServerProcess) -> Any:
    """The tool's own report of `contract.yaml` over one transport."""
    agent_url = f"{server.url}/agents/demo"
    return ClientEnvironment(NAME).run_driver(CLIENT_SPECS / NAME / "driver.py", agent_url, request.param)


def test_a2a_proof_passes_every_scenario_of_its_contract(result: Any) -> None:
    scenarios = result["report"]["scenarios"]
    assert [scenario["name"] for scenario in scenarios] == SCENARIOS
    faults = {
        scenario["name"]: [
            (trial["error"], [turn["failures"] for turn in trial["turns"]]) for trial in scenario["trials"]
        ]
        for scenario in scenarios
        if not scenario["passed"]
    }
    assert faults == {}
    assert result["exit"] == 0


def test_a2a_proof_finds_the_card_as_promised(result: Any) -> None:
    assert result["report"]["card"] == {"passed": True, "failures": []}


def test_a2a_proof_reads_what_was_streamed(result: Any) -> None:
    turns = {scenario["name"]: scenario["trials"][0]["turns"] for scenario in result["report"]["scenarios"]}
    assert turns["echo"][0]["text"] == "the words of the dragoman"
    assert turns["conversation"][1]["text"] == "second turn"
    assert turns["cancel"][1]["states"] == ["canceled"]
    assert turns["follow"][1]["states"][-1] == "completed"
