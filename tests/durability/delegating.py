"""What the tests of delegations share: a server that may reach loopback, and a remote agent that does as it is told."""

from pathlib import Path

from tests.harness import stores
from tests.harness.rogue import Rogue
from tests.harness.server import ServerProcess
from tests.harness.wire import Reply, call

SECRET = "s3cr3t-of-the-remote-agent"
OPENED = """
[outbound]
allow = ["127.0.0.0/8"]
ports = "any"
schemes = ["https", "http"]
"""
AGENTS = Path(__file__).parent / "agents" / "calling_agents.py"


def register(server: ServerProcess, other: Rogue, name: str = "helper") -> str:
    body = {"name": name, "endpoint_url": other.url(), "bearer_token": SECRET}
    answer = call("POST", f"{server.url}/v1/a2a/agents", body)
    assert answer.status == 201, answer
    return str(answer.json()["id"])


def delegate(server: ServerProcess, agent: str, task_id: str = "t-1") -> Reply:
    body = {"agentId": agent, "taskId": task_id, "message": "Hello"}
    return call("POST", f"{server.url}/v1/a2a/tasks", body, timeout=60)


def statuses(server: ServerProcess) -> list[str]:
    rows = stores.query(server.data, "SELECT status FROM delegation ORDER BY id")
    return [status for (status,) in rows]
