"""Delegating to an independent implementation: a server made of the official SDK, in a process of its own."""

import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.clients import ClientEnvironment
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.harness.wire import Reply, call

pytestmark = pytest.mark.interop

SDK = ClientEnvironment("a2a-sdk-server-1.3.0")
BEARER = "s3cr3t-of-the-official-agent"
OPENED = """
[outbound]
allow = ["127.0.0.0/8"]
ports = "any"
schemes = ["https", "http"]
"""


class Official:
    """The SDK's server. Its lines tell where it listens and which messages reached the agent."""

    def __init__(self) -> None:
        SDK.prepare()
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [str(SDK.program("python")), str(SDK.spec / "server.py")],
            env={"AGENT_BEARER": BEARER, "PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        until(
            lambda: self.lines or self._process.poll() is not None,
            what="the official server listens",
            seconds=60,
        )
        if not self.lines:
            self.close()
            raise RuntimeError("the official server ended at once; what it printed is above")
        self.url = self.lines[0].removeprefix("listening on ").strip()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self.lines.extend(lines)

    def got(self) -> list[str]:
        """The ids of the messages that reached the agent."""
        return [line.split()[1] for line in self.lines if line.startswith("got ")]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(20)
        self._reader.join()


@pytest.fixture(scope="module")
def official() -> Iterator[Official]:
    """The SDK's server."""
    running = Official()
    yield running
    running.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of ours that may reach it."""
    folder = tmp_path_factory.mktemp("delegation")
    config = folder / "dragoman.toml"
    config.write_text(OPENED, encoding="utf-8")
    with ServerProcess(folder / "data", config=config) as running:
        yield running


@pytest.fixture(scope="module")
def agent(home: ServerProcess, official: Official) -> str:
    """The official agent's id in our registry."""
    body = {"name": "official", "endpoint_url": f"{official.url}/rpc", "bearer_token": BEARER}
    return str(call("POST", f"{home.url}/v1/a2a/agents", body).json()["id"])


def delegate(home: ServerProcess, agent: str, task_id: str, message: Any, **more: Any) -> Reply:
    body = {"agentId": agent, "taskId": task_id, "message": message, **more}
    answer = call("POST", f"{home.url}/v1/a2a/tasks", body, timeout=60)
    assert answer.status == 200, answer
    return answer


def reconciled(home: ServerProcess, told: Any, *states: str) -> Any:
    """Ask until a remote task is neither under way nor in one of these states, and give what is told of it then."""

    def look() -> Any:
        found = call("POST", f"{home.url}/v1/a2a/delegations/{told['delegationId']}:reconcile").json()
        return found if found["status"] not in ("submitted", "working", *states) else None

    return until(look, what="the remote task has gone on", every=0.2)


def test_it_takes_a_delegation_once(home: ServerProcess, official: Official, agent: str) -> None:
    answer = delegate(home, agent, "once", "bonjour")
    told = answer.json()
    assert told["status"] == "completed"
    assert told["result"]["task"]["artifacts"][0]["parts"] == [{"text": "bonjour"}]
    assert told["result"]["task"]["id"] == told["remoteTaskId"]
    again = delegate(home, agent, "once", "bonjour")
    assert (again.json(), again.headers["idempotent-replayed"]) == (told, "true")
    assert official.got().count("once") == 1


def test_it_answers_with_a_message(home: ServerProcess, agent: str) -> None:
    told = delegate(home, agent, "bare", "message please").json()
    assert (told["status"], "remoteTaskId" in told) == ("completed", False)
    assert told["result"]["message"]["parts"] == [{"text": "message please"}]
    assert told["result"]["message"]["role"] == "ROLE_AGENT"


def test_it_fails_and_asks(home: ServerProcess, agent: str) -> None:
    failed = delegate(home, agent, "failed", "fail").json()
    assert (failed["status"], "error" in failed, bool(failed["remoteTaskId"])) == ("failed", False, True)
    asked = delegate(home, agent, "asked", "ask").json()
    assert asked["status"] == "input_required"
    said = asked["result"]["task"]
    assert said["status"]["message"]["parts"] == [{"text": "Which one?"}]
    message = {"parts": [{"text": "The second"}], "taskId": said["id"], "contextId": said["contextId"]}
    answered = delegate(home, agent, "answered", message).json()
    assert answered["remoteTaskId"] == said["id"]
    # The official server may answer before its agent has taken the message up.
    assert reconciled(home, answered, "input_required")["status"] == "completed"


def test_a_task_that_goes_on_is_reconciled(home: ServerProcess, official: Official, agent: str) -> None:
    told = delegate(home, agent, "held", "hold", returnImmediately=True).json()
    assert told["status"] in ("submitted", "working")
    found = reconciled(home, told)
    assert found["status"] == "completed"
    assert found["result"]["task"]["artifacts"][0]["parts"] == [{"text": "hold"}]
    assert call("GET", f"{home.url}/v1/a2a/delegations/{told['delegationId']}").json() == found
    assert official.got().count("held") == 1


def test_what_it_refuses_is_a_failure(home: ServerProcess, official: Official, agent: str) -> None:
    message = {"parts": [{"text": "x"}], "taskId": "no-such-task"}
    told = delegate(home, agent, "refused", message).json()
    assert (told["status"], told["error"]["code"]) == ("failed", -32001)
    body = {"name": "stranger", "endpoint_url": f"{official.url}/rpc", "bearer_token": "another-token"}
    stranger = call("POST", f"{home.url}/v1/a2a/agents", body).json()["id"]
    barred = delegate(home, stranger, "barred", "x").json()
    assert (barred["status"], barred["error"]["code"]) == ("failed", 401)
    assert "barred" not in official.got()


def test_its_card_is_discovered(home: ServerProcess, official: Official, agent: str) -> None:
    found = call("POST", f"{home.url}/v1/a2a/agents/{agent}:discover").json()
    assert found["url"] == f"{official.url}/.well-known/agent-card.json"
    assert (found["card"]["name"], found["signature"]) == ("Official", "absent")
    assert found["findings"] == []


def test_an_agent_that_is_not_up_is_a_failure(home: ServerProcess) -> None:
    gone = Official()
    body = {"name": "gone", "endpoint_url": f"{gone.url}/rpc", "bearer_token": BEARER}
    agent = call("POST", f"{home.url}/v1/a2a/agents", body).json()["id"]
    assert delegate(home, agent, "there", "x").json()["status"] == "completed"
    gone.close()
    told = delegate(home, agent, "gone", "x").json()
    assert (told["status"], "no connection" in told["error"]["message"]) == ("failed", True)
