"""The A2A Inspector's own backend and validators on our agents.

It is on no package index, so these tests need a checkout of a2aproject/a2a-inspector, which `A2A_INSPECTOR` names.
"""

import base64
import os

import pytest

from tests.harness.clients import ClientEnvironment
from tests.harness.server import ServerProcess
from tests.interop.sdks import Json, state, text

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(600),
    pytest.mark.skipif("A2A_INSPECTOR" not in os.environ, reason="A2A_INSPECTOR names no checkout"),
]

TEXTS = ("hello", "stream 5", "slow 1", "message hi", "file", "data", "fail", "reject")


def _debug(server: ServerProcess, agent: str, *texts: str) -> Json:
    environment = ClientEnvironment("a2a-inspector")
    card = f"{server.url}/agents/{agent}/.well-known/agent-card.json"
    report: Json = environment.run_driver(
        environment.spec / "driver.py", os.environ["A2A_INSPECTOR"], card, *texts
    )
    return report


@pytest.fixture(scope="module")
def seen(server: ServerProcess) -> Json:
    """What the Inspector's page would get of the demo agent."""
    return _debug(server, "demo", *TEXTS)


@pytest.mark.parametrize("agent", ["demo", "digest"])
def test_its_validator_finds_nothing_in_a_card(server: ServerProcess, agent: str) -> None:
    seen = _debug(server, agent)
    assert (seen["status"], seen["validation_errors"]) == (200, [])
    base = f"{server.url}/agents/{agent}"
    assert seen["card"]["url"] == f"{base}/rpc"
    assert [(one["transport"], one["url"]) for one in seen["card"]["additionalInterfaces"]] == [
        ("JSONRPC", f"{base}/rpc"),
        ("HTTP+JSON", f"{base}/v1"),
    ]


@pytest.mark.parametrize("agent", ["demo", "digest"])
def test_its_validator_finds_nothing_in_a_card_as_it_is_served(server: ServerProcess, agent: str) -> None:
    served = _debug(server, agent)["served"]
    assert served["validation_errors"] == []
    listed = served["card"]["supportedInterfaces"]
    assert {(one["protocolBinding"], one["protocolVersion"]) for one in listed} == {
        (binding, version) for binding in ("JSONRPC", "HTTP+JSON") for version in ("1.0", "0.3")
    }


def test_it_initializes_a_client_for_the_preferred_transport(seen: Json) -> None:
    assert (seen["initialized"]["status"], seen["initialized"]["transport"]) == ("success", "JSONRPC")


@pytest.mark.parametrize("sent", TEXTS)
def test_its_validator_finds_nothing_in_any_answer(seen: Json, sent: str) -> None:
    answers = seen["answers"][sent]
    assert [answer.get("error") for answer in answers] == [None] * len(answers)
    assert [answer["validation_errors"] for answer in answers] == [[]] * len(answers)


def test_its_page_shows_every_message_answered_to_its_end(seen: Json) -> None:
    last = {sent: answers[-1] for sent, answers in seen["answers"].items()}
    assert text(last.pop("message hi")["parts"]) == "hi"
    assert {sent: state(answer) for sent, answer in last.items()} == {
        "hello": "completed",
        "stream 5": "completed",
        "slow 1": "completed",
        "file": "completed",
        "data": "completed",
        "fail": "failed",
        "reject": "rejected",
    }


def test_an_attached_file_comes_back_from_the_agent_that_echoes(seen: Json) -> None:
    (update,) = [answer for answer in seen["answers"]["hello"] if answer["kind"] == "artifact-update"]
    words, file = update["artifact"]["parts"]
    assert words["text"] == "hello"
    assert base64.b64decode(file["file"]["bytes"]) == b"\0\xff attached"
    assert file["file"]["mimeType"] == "application/x-some"


def test_all_its_messages_are_in_one_context(seen: Json) -> None:
    contexts = {answer["contextId"] for answers in seen["answers"].values() for answer in answers}
    assert len(contexts) == 1
