"""Callers of one agent over HTTP+JSON and over JSON-RPC, with the same face: an operation and its parameters."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

from tests.interaction.answers import Reply
from tests.interaction.events import Stream

ROUTES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "SendMessage": ("POST", "/message:send"),
        "SendStreamingMessage": ("POST", "/message:stream"),
        "GetTask": ("GET", "/tasks/{id}"),
        "ListTasks": ("GET", "/tasks"),
        "CancelTask": ("POST", "/tasks/{id}:cancel"),
        "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
        "CreateTaskPushNotificationConfig": ("POST", "/tasks/{taskId}/pushNotificationConfigs"),
        "GetTaskPushNotificationConfig": ("GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
        "ListTaskPushNotificationConfigs": ("GET", "/tasks/{taskId}/pushNotificationConfigs"),
        "DeleteTaskPushNotificationConfig": ("DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
        "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
    }
)
"""A2A 1.0 §5.3."""

READY = MappingProxyType({"A2A-Version": "1.0"})


@dataclass(frozen=True)
class Request:
    """One request, ready to be sent by a client or written to a socket as it is."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def with_headers(self, **changes: str | None) -> "Request":
        """The same with other headers (`_` for `-`); `None` takes one away."""
        merged: dict[str, str | None] = {name.lower(): value for name, value in self.headers.items()}
        merged |= {name.lower().replace("_", "-"): value for name, value in changes.items()}
        return replace(self, headers={name: value for name, value in merged.items() if value is not None})

    def at(self, target: str) -> "Request":
        """The same at another target."""
        return replace(self, target=target)

    def by(self, method: str) -> "Request":
        """The same by another method."""
        return replace(self, method=method)

    def holding(self, body: bytes) -> "Request":
        """The same with another body."""
        return replace(self, body=body)

    def text(self, *, length: int | None = None) -> bytes:
        """The request as HTTP/1.1 puts it on the wire; `length` is a Content-Length that may be a lie."""
        lines = [f"{self.method} {self.target} HTTP/1.1", "host: localhost"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        body = self.body or b""
        if self.body is not None or length is not None:
            lines.append(f"content-length: {len(body) if length is None else length}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Caller:
    """Calls one agent. `call` gives a whole reply, `open` a stream (or the refusal of one)."""

    binding: str

    def __init__(self, client: httpx2.Client, origin: str, agent: str = "demo") -> None:
        self.client = client
        self.origin = origin
        self.agent = agent

    def to(self, agent: str) -> "Caller":
        """The same kind of caller, of another agent."""
        return type(self)(self.client, self.origin, agent)

    def request(self, operation: str, params: Any = None, *, headers: Mapping[str, str] = READY) -> Request:
        """The request for an operation. `params` that are bytes are sent as the JSON text that they are."""
        raise NotImplementedError

    def call(self, operation: str, params: Any = None, *, headers: Mapping[str, str] | None = None) -> Reply:
        """Perform an operation; `headers` are sent beside the version."""
        return self.deliver(self.request(operation, params, headers={**READY, **(headers or {})}))

    def deliver(self, request: Request) -> Reply:
        """Send a request and give the reply, whatever its status."""
        answer = self.client.request(
            request.method,
            self.origin + request.target,
            content=request.body,
            headers=dict(request.headers),
        )
        return Reply(self.binding, answer.status_code, dict(answer.headers), answer.content)

    @contextmanager
    def open(
        self, operation: str, params: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Iterator[Stream]:
        """Perform a streaming operation. Leaving the block drops the connection."""
        request = self.request(operation, params, headers={**READY, **(headers or {})})
        with self.follow(request) as stream:
            yield stream

    @contextmanager
    def follow(self, request: Request) -> Iterator[Stream]:
        """Send a request and read its reply as a stream."""
        with self.client.stream(
            request.method,
            self.origin + request.target,
            content=request.body,
            headers=dict(request.headers),
        ) as answer:
            yield Stream(self.binding, answer.status_code, dict(answer.headers), answer.iter_raw())


class HttpCaller(Caller):
    """Over HTTP+JSON."""

    binding = "http"

    def request(self, operation: str, params: Any = None, *, headers: Mapping[str, str] = READY) -> Request:
        """See `Caller`."""
        method, template = ROUTES[operation]
        if isinstance(params, bytes):
            return Request(method, self.path(template), _typed(headers), params)
        rest = dict(params or {})
        for name in ("id", "taskId"):
            if f"{{{name}}}" in template:
                template = template.replace(f"{{{name}}}", quote(str(rest.pop(name)), safe=""))
        if method == "POST":
            body = json.dumps(rest, ensure_ascii=False).encode() if rest else None
            return Request(method, self.path(template), _typed(headers) if body else headers, body)
        query = urlencode({name: _query_text(value) for name, value in rest.items()})
        return Request(method, self.path(template) + (f"?{query}" if query else ""), headers)

    def path(self, rest: str) -> str:
        """A path below the agent's base."""
        return f"/agents/{self.agent}{rest}"


class RpcCaller(Caller):
    """Over JSON-RPC."""

    binding = "jsonrpc"

    def request(self, operation: str, params: Any = None, *, headers: Mapping[str, str] = READY) -> Request:
        """See `Caller`."""
        text = params if isinstance(params, bytes) else json.dumps(params or {}, ensure_ascii=False).encode()
        envelope = b'{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' % (operation.encode(), text)
        return self.post(envelope, headers)

    def post(self, body: bytes, headers: Mapping[str, str] = READY) -> Request:
        """A request with this body at the endpoint."""
        return Request("POST", f"/agents/{self.agent}/rpc", _typed(headers), body)


def _typed(headers: Mapping[str, str]) -> dict[str, str]:
    named = any(name.lower() == "content-type" for name in headers)
    return {**({} if named else {"Content-Type": "application/json"}), **headers}


def _query_text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
