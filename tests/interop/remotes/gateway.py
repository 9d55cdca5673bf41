"""Our server in front of remote agents, and what a caller of A2A 1.0 does there, on the wire."""

import http.client
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.harness.server import ServerProcess
from tests.harness.wire import Reply, call

TOKEN = "t0k3n-of-this-server-for-the-remote"

Json = dict[str, Any]

_COUNT = itertools.count()


@dataclass(frozen=True)
class Agent:
    """One agent of ours, as its callers reach it."""

    url: str

    def send(self, text: str, *, now: bool = False, parts: list[Json] | None = None, **more: Any) -> Json:
        """The task, or whatever else a send answers."""
        answer = call("POST", f"{self.url}/message:send", said(text, now, parts, more), timeout=60).json()
        task: Json = answer.get("task", answer)
        return task

    def get(self, task_id: str) -> Json:
        """A task as it stands."""
        task: Json = call("GET", f"{self.url}/tasks/{task_id}").json()
        return task

    def cancel(self, task_id: str) -> Reply:
        """What a cancel answers."""
        return call("POST", f"{self.url}/tasks/{task_id}:cancel")

    def card(self) -> Json:
        """The card, as everybody gets it."""
        card: Json = call("GET", f"{self.url}/.well-known/agent-card.json").json()
        return card

    @contextmanager
    def stream(self, text: str) -> Iterator[Iterator[Json]]:
        """The events that a streamed send tells, one by one as they come."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        headers = {"A2A-Version": "1.0", "Content-Type": "application/json", "Accept": "text/event-stream"}
        body = json.dumps(said(text, False, None, {}))
        connection.request("POST", f"{parts.path}/message:stream", body, headers)
        try:
            yield _events(connection.getresponse())
        finally:
            connection.close()


def _events(reply: http.client.HTTPResponse) -> Iterator[Json]:
    while line := reply.readline():
        if line.startswith(b"data:"):
            yield json.loads(line.removeprefix(b"data:"))


def said(text: str, now: bool, parts: list[Json] | None, more: Mapping[str, Any]) -> Json:
    """A send of a message, whose id is new."""
    names = {"taskId", "contextId", "metadata", "extensions"}
    message = {
        "messageId": f"m-{os.getpid()}-{next(_COUNT)}",
        "role": "ROLE_USER",
        "parts": parts or [{"text": text}],
    }
    message |= {name: value for name, value in more.items() if name in names}
    request: Json = {"message": message, **({"configuration": {"returnImmediately": True}} if now else {})}
    return request | ({"metadata": more["request"]} if "request" in more else {})


def configured(remotes: Mapping[str, str], **more: Any) -> str:
    """The configuration of a server with agents that mirror those at these URLs."""
    tables = []
    for agent, url in remotes.items():
        lines = {"url": url, "bearer_env": "CLERK_TOKEN", **more}
        tables.append(
            f"[agents.{agent}.a2a]\n"
            + "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
        )
    return "\n".join(tables)


def gateway(folder: Path, remotes: Mapping[str, str], **more: Any) -> ServerProcess:
    """Our server before remote agents, not started yet."""
    config = folder / "dragoman.toml"
    config.write_text(configured(remotes, **more), encoding="utf-8")
    return ServerProcess(folder / "data", config=config, environment={"CLERK_TOKEN": TOKEN})


def agent_at(server: ServerProcess, agent: str) -> Agent:
    """One of its agents."""
    return Agent(f"{server.url}/agents/{agent}")


def state(task: Json) -> str:
    """The state of a task or a status update."""
    return str(task["status"]["state"]).removeprefix("TASK_STATE_")


def text_of(holder: Json) -> str:
    """The text of the parts of a message or an artifact."""
    return "".join(part.get("text", "") for part in holder["parts"])


def words(task: Json) -> str:
    """What the status of a task says."""
    return text_of(task["status"]["message"])


def artifacts(task: Json) -> dict[str, str]:
    """The texts of a task's artifacts by their ids."""
    return {one["artifactId"]: text_of(one) for one in task.get("artifacts", ())}
