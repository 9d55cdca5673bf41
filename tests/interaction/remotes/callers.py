"""A server whose principals delegate to remote agents, and a caller of what it serves for that."""

import json
from typing import Any

import httpx2

from tests.harness import stores
from tests.harness.server import ServerProcess

SECRET = "s3cr3t-of-the-remote-agent"
TOKENS = {
    "ALICE": "alice-of-acme-Zm9vYmFyLXNlY3JldA",
    "BOB": "bob-of-acme-Zm9vYmFyLXNlY3JldA",
    "READER": "reader-of-acme-Zm9vYmFyLXNlY3JldA",
    "MUTE": "mute-of-acme-Zm9vYmFyLXNlY3JldA",
    "CAROL": "carol-of-beta-Zm9vYmFyLXNlY3JldA",
    "DAVE": "dave-of-plain-Zm9vYmFyLXNlY3JldA",
}
CONFIG = """
[outbound]
allow = ["127.0.0.0/8"]
ports = "any"
schemes = ["https", "http"]
[agents.demo]
python = "dragoman.agents.demo:demo"
[tenants.acme]
features = ["agent_api"]
[tenants.acme.principals.alice]
tokens = [
    { env = "ALICE", scopes = ["ai:answer", "a2a:delegate"] },
    { env = "READER", scopes = ["ai:answer", "a2a:read"] },
    { env = "MUTE", scopes = ["a2a:delegate"] },
]
[tenants.acme.principals.bob]
tokens = [{ env = "BOB", scopes = ["*"] }]
[tenants.beta]
features = ["agent_api"]
[tenants.beta.principals.carol]
tokens = [{ env = "CAROL", scopes = ["*"] }]
[tenants.plain.principals.dave]
tokens = [{ env = "DAVE", scopes = ["*"] }]
"""


class Api:
    """Calls one server as one principal."""

    def __init__(self, server: ServerProcess, who: str | None = "ALICE") -> None:
        self.server = server
        self._headers = {"Authorization": f"Bearer {TOKENS[who]}"} if who else {}

    def by(self, who: str | None) -> "Api":
        """The same server as somebody else."""
        return Api(self.server, who)

    def call(self, method: str, path: str, document: Any = None, **headers: str) -> httpx2.Response:
        """Send a request below `/v1/a2a`."""
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        given = {} if document is None else {"Content-Type": "application/json"}
        return httpx2.request(
            method,
            f"{self.server.url}/v1/a2a{path}",
            content=b"" if document is None else content,
            headers={**given, **self._headers, **headers},
            timeout=60,
            trust_env=False,
        )

    def register(self, url: str, token: str | None = SECRET, name: str = "remote") -> str:
        """Register an agent, and return its id."""
        body = {"name": name, "endpoint_url": url} | ({"bearer_token": token} if token else {})
        answer = self.call("POST", "/agents", body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def delegate(self, agent: str, task_id: str, message: Any = "Hello", **more: Any) -> httpx2.Response:
        """Delegate."""
        return self.call("POST", "/tasks", {"agentId": agent, "taskId": task_id, "message": message, **more})


def reason(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["details"][0]["reason"])


def field(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["details"][1]["fieldViolations"][0]["field"])


def rows(server: ServerProcess, table: str) -> int:
    ((number,),) = stores.query(server.data, f"SELECT count(*) FROM {table}")  # noqa: S608 - ours
    return int(number)
