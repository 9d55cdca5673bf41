"""A client that moves between A2A 0.3 and 1.0: one agent, and for each call another way to it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2

Json = dict[str, Any]

_METHODS = {
    "SendMessage": "message/send",
    "SendStreamingMessage": "message/stream",
    "GetTask": "tasks/get",
    "CancelTask": "tasks/cancel",
    "SubscribeToTask": "tasks/resubscribe",
}
_ROUTES = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
}
_AROUND = ("task", "message", "statusUpdate", "artifactUpdate")


@dataclass(frozen=True)
class Way:
    """One way to the agent: a version, a path below the agent's base, and the form of JSON there."""

    version: str
    path: str
    form: str

    def __str__(self) -> str:
        return f"{self.version} at {self.path or 'the base'}"

    def send(self, message_id: str, text: str, *, context_id: str = "", wait: bool = True) -> Json:
        """Parameters of a send, in this form."""
        kinds = self.form == "kinds"
        message: Json = {
            "messageId": message_id,
            "role": "user" if kinds else "ROLE_USER",
            "content" if self.form == "proto" else "parts": [
                {"kind": "text", "text": text} if kinds else {"text": text}
            ],
        }
        if context_id:
            message["contextId"] = context_id
        configuration = {"returnImmediately": not wait} if self.version == "1.0" else {"blocking": wait}
        return {"message": message, "configuration": configuration}


OLD = (
    Way("0.3", "", "kinds"),
    Way("0.3", "/v1", "kinds"),
    Way("0.3", "/v1/v1", "proto"),
    Way("0.3", "/rpc", "kinds"),
)
NEW = (Way("1.0", "", "1.0"), Way("1.0", "/rpc", "1.0"))


@dataclass(frozen=True)
class Seen:
    """What a client sees of a task, whatever the form."""

    id: str
    context: str
    state: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Mover:
    """The client."""

    client: httpx2.Client

    def call(self, way: Way, operation: str, params: Json) -> Json:
        """Perform an operation; return its result or error without what an envelope or a member puts around it."""
        verb, path, body = _request(way, operation, params)
        reply = self.client.request(verb, path, json=body, headers=_version(way))
        assert reply.headers["a2a-version"] == way.version
        return _inner(reply.json())

    def task(self, way: Way, operation: str, params: Json) -> Seen:
        """Perform an operation whose result is a task."""
        task = self.call(way, operation, params)
        texts = tuple("".join(part["text"] for part in one["parts"]) for one in task.get("artifacts", ()))
        return Seen(task["id"], task["contextId"], state_of(task), texts)

    def events(self, way: Way, operation: str, params: Json, *, after: int = 0) -> Iterator[tuple[int, Json]]:
        """Follow a stream, after an event that was seen before; yield the number of each event and what it holds."""
        verb, path, body = _request(way, operation, params)
        headers = _version(way) | ({"Last-Event-ID": str(after)} if after else {})
        with self.client.stream(verb, path, json=body, headers=headers) as reply:
            assert reply.headers["content-type"] == "text/event-stream"
            number = 0
            for line in reply.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    number = int(value)
                elif name == "data":
                    yield number, _inner(json.loads(value))


def state_of(holder: Json) -> str:
    """The state of a task or a status update, as 0.3 spells it."""
    name = str(holder["status"]["state"]).removeprefix("TASK_STATE_").lower().replace("_", "-")
    return "canceled" if name == "cancelled" else name


def _request(way: Way, operation: str, params: Json) -> tuple[str, str, Json | None]:
    if way.path == "/rpc":
        method = operation if way.version == "1.0" else _METHODS[operation]
        return "POST", way.path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    verb, template = _ROUTES[operation]
    return verb, way.path + template.format_map(params), params if "message" in params else None


def _version(way: Way) -> dict[str, str]:
    return {"A2A-Version": "1.0"} if way.version == "1.0" else {}


def _inner(answer: Json) -> Json:
    if "jsonrpc" in answer:
        answer = answer["result"] if "result" in answer else answer["error"]
    alone = next(iter(answer)) if len(answer) == 1 else ""
    return answer[alone] if alone in _AROUND else answer
