"""Callers of hosted agents: JSON-RPC with a bearer, the retired and approval paths, and plain watchers of streams."""

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType, TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from tests.interaction.answers import Refusal, Reply, refused
from tests.interaction.callers import READY, Request, RpcCaller

BASE = "/v1/a2a/agents"

UNAUTHENTICATED = Refusal("UNAUTHENTICATED", 401, "UNAUTHENTICATED", -32000, transport=True)
FORBIDDEN = Refusal("INSUFFICIENT_SCOPE", 403, "PERMISSION_DENIED", -32000, transport=True)
OBSERVER_LIMIT = Refusal("OBSERVER_LIMIT", 429, "RESOURCE_EXHAUSTED", -32000, transport=True)
NO_APPROVAL = Refusal("APPROVAL_NOT_FOUND", 404, "NOT_FOUND", -32000)
CLOSED = Refusal("APPROVAL_CLOSED", 409, "FAILED_PRECONDITION", -32000)
TOO_LARGE_RESULT = Refusal("RESULT_TOO_LARGE", 500, "INTERNAL", -32603)
UNVERIFIED = Refusal("ARTIFACT_UNVERIFIED", 500, "DATA_LOSS", -32603)

TOKENS: Mapping[str, str] = MappingProxyType(
    {
        name: f"{name.lower().replace('_', '-')}-token-Zm9vYmFyLXNlY3JldA"
        for name in (
            *("ALICE", "ALICE_READ", "ALICE_WRITE", "ALICE_MUTE", "ALICE_LIKE", "ALICE_STAR", "ALICE_STARS"),
            *(
                "ALICE_ADMIN",
                "ALICE_NOTHING",
                "BOB",
                "CAROL",
                "DORA",
                "ERIN",
                "FAYE",
                "HUGO",
                "GINA",
                "PAT",
                "TWIN",
            ),
        )
    }
)
"""Environment variable → the token that it holds."""


class Hosted(RpcCaller):
    """Calls a hosted agent as somebody, who is named by the variable of their token; `None` shows no token."""

    def __init__(
        self, client: httpx2.Client, origin: str, agent: str = "demo", who: str | None = "ALICE"
    ) -> None:
        super().__init__(client, origin, agent)
        self.who = who

    def to(self, agent: str) -> "Hosted":
        """The same caller, of another agent."""
        return Hosted(self.client, self.origin, agent, self.who)

    def by(self, who: str | None) -> "Hosted":
        """Another caller of the same agent."""
        return Hosted(self.client, self.origin, self.agent, who)

    @property
    def credential(self) -> dict[str, str]:
        """The header that says who calls."""
        return {} if self.who is None else {"authorization": f"Bearer {TOKENS.get(self.who, self.who)}"}

    def post(self, body: bytes, headers: Mapping[str, str] = READY) -> Request:
        """A request with this body at the endpoint."""
        typed = {"content-type": "application/json", **self.credential, **headers}
        return Request("POST", f"{BASE}/{self.agent}/rpc", typed, body)

    def card(self, headers: Mapping[str, str] = MappingProxyType({}), *, method: str = "GET") -> Reply:
        """The agent's card."""
        path = f"{BASE}/{self.agent}/.well-known/agent-card.json"
        return as_http(self.deliver(Request(method, path, {**self.credential, **headers})))

    def api(self, method: str, path: str, document: Any = None, **headers: str) -> Reply:
        """A call of the approval API, or of any other path below `/v1/a2a`."""
        sent = {**self.credential, **headers}
        body = None
        if document is not None:
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            sent = {"content-type": "application/json", **sent}
        return as_http(self.deliver(Request(method, f"/v1/a2a{path}", sent, body)))

    def approvals(self) -> list[dict[str, Any]]:
        """The approvals that wait for somebody like this caller."""
        reply = self.api("GET", "/approvals")
        assert reply.status == 200, reply
        found: list[dict[str, Any]] = reply.json()["approvals"]
        return found

    def approval_of(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """The approval that a task waits for."""
        (found,) = [one for one in self.approvals() if one["taskId"] == task["id"]]
        return found

    def decide(self, approval_id: str, decision: Any, **members: Any) -> Reply:
        """Decide an approval."""
        return self.api("POST", f"/approvals/{approval_id}", {"decision": decision, **members})

    def resume(self, task_id: str, text: Any, **members: Any) -> Reply:
        """Resume a run."""
        return self.api("POST", f"/runs/{task_id}:resume", {"text": text, **members})


def as_http(reply: Reply) -> Reply:
    """A reply that is no JSON-RPC."""
    return Reply("http", reply.status, reply.headers, reply.body)


def refused_outside(reply: Reply, refusal: Refusal, *, fields: Sequence[str] = ()) -> dict[str, str]:
    """Check a refusal on a path that is no surface of A2A: the same form, but no version is negotiated there."""
    assert "a2a-version" not in reply.headers, reply
    return refused(replace(reply, headers={**reply.headers, "a2a-version": "1.0"}), refusal, fields=fields)


def without_ids(reply: Reply, *ids: str) -> tuple[int, dict[str, str], str]:
    """What a reply says, but for ids that the caller sent itself and what differs from reply to reply."""
    body = reply.body.decode()
    for one in ids:
        body = body.replace(one, "ID")
    changing = ("x-request-id", "date", "content-length")
    return reply.status, {name: reply.headers[name] for name in reply.headers if name not in changing}, body


class Watcher:
    """A connection on which one request was made whose reply goes on, or is waited for. Closing it drops it."""

    def __init__(self, url: str, request: Request) -> None:
        place = urlsplit(url)
        self._connection = socket.create_connection((place.hostname, place.port), timeout=20)
        self._connection.sendall(request.text())
        self._seen = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connection."""
        self._connection.close()

    def status(self) -> int:
        """The status of the reply, once its head and the first bytes of its body are there."""
        while b"\r\n\r\n" not in self._seen or not self._seen.partition(b"\r\n\r\n")[2]:
            data = self._connection.recv(64 * 1024)
            assert data, self._seen
            self._seen += data
        return int(self._seen.split(b" ", 2)[1])
