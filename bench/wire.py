"""The A2A requests that the benchmark makes, as bytes ready to be written to a socket.

Every request that carries a message has `MESSAGE_ID` in place of its id; it is
as long as the ids that replace it, so the Content-Length is right beforehand.
"""

import json
import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MESSAGE_ID = "message-id-of-thirty-six-characters-"
"""Stands in a request for an id that is fresh for each sending."""

TEXT = "Would you please give this sentence of eighty or so characters back to me as it is?"
HOLD = "hold"
"""The text that the benchmark's agents do not answer for an hour."""

REFUSAL = b'"error"'
"""What no good reply holds: a JSON-RPC error, or the HTTP+JSON error body."""


class Binding(StrEnum):
    """How a request is framed."""

    JSONRPC = "jsonrpc"
    HTTP = "http"


class Dialect(StrEnum):
    """How a request of A2A 0.3 is written: with kinds (JSON-RPC and the alias), or as official HTTP+JSON clients do."""

    KINDS = "kinds"
    PROTO = "proto"


class Operation(StrEnum):
    """What a request asks for."""

    SEND = "send"
    OLDER_SEND = "send in 0.3"
    IMMEDIATE = "immediate"
    STREAM = "stream"
    GET = "get"
    LIST = "list"
    SUBSCRIBE = "subscribe"
    CARD = "card"


EXPECTED = {
    Operation.SEND: b"TASK_STATE_COMPLETED",
    Operation.OLDER_SEND: b'"completed"',
    Operation.IMMEDIATE: b'"task"',
    Operation.STREAM: b"TASK_STATE_COMPLETED",
    Operation.GET: b"TASK_STATE_COMPLETED",
    Operation.LIST: b'"totalSize"',
    Operation.SUBSCRIBE: b'"task"',
    Operation.CARD: b'"supportedInterfaces"',
}
"""What every good reply to an operation holds."""

_METHODS = {
    Operation.SEND: "SendMessage",
    Operation.IMMEDIATE: "SendMessage",
    Operation.STREAM: "SendStreamingMessage",
    Operation.GET: "GetTask",
    Operation.LIST: "ListTasks",
    Operation.SUBSCRIBE: "SubscribeToTask",
}


@dataclass(frozen=True)
class Routes:
    """Where a server's agent is: paths without a final slash, except `rpc`, which is whole."""

    card: str
    rpc: str
    rest: str | None = None

    def speaks(self, binding: Binding) -> bool:
        """Whether the agent can be asked in `binding`."""
        return binding is Binding.JSONRPC or self.rest is not None


@dataclass(frozen=True)
class Wire:
    """Builds requests to one agent in one binding."""

    host: str
    port: int
    routes: Routes
    binding: Binding
    bearer: str = ""
    """A token to send along, if there is one."""

    def card(self) -> bytes:
        """The agent card; the same in both bindings."""
        return self._request("GET", self.routes.card, None)

    def send(
        self,
        operation: Operation = Operation.SEND,
        text: str = TEXT,
        context_id: str | None = None,
    ) -> bytes:
        """A message, for `SEND`, `IMMEDIATE` or `STREAM`."""
        message: dict[str, Any] = {
            "messageId": MESSAGE_ID,
            "role": "ROLE_USER",
            "parts": [{"text": text}],
        }
        if context_id is not None:
            message["contextId"] = context_id
        params: dict[str, Any] = {"message": message}
        if operation is Operation.IMMEDIATE:
            params["configuration"] = {"returnImmediately": True}
        if self.binding is Binding.JSONRPC:
            return self._rpc(operation, params)
        verb = "stream" if operation is Operation.STREAM else "send"
        return self._rest("POST", f"/message:{verb}", params, operation)

    def older_send(self, dialect: Dialect) -> tuple[Operation, bytes]:
        """A blocking send of A2A 0.3, and the operation that its reply is checked by."""
        part = {"kind": "text", "text": TEXT} if dialect is Dialect.KINDS else {"text": TEXT}
        message: dict[str, Any] = {
            "messageId": MESSAGE_ID,
            "role": "user",
            "kind": "message",
            "parts": [part],
        }
        if dialect is Dialect.PROTO:
            message = {"messageId": MESSAGE_ID, "role": "ROLE_USER", "content": [part]}
        params = {"message": message, "configuration": {"blocking": True}}
        operation = Operation.SEND if dialect is Dialect.PROTO else Operation.OLDER_SEND
        if self.binding is Binding.JSONRPC:
            body = {"jsonrpc": "2.0", "id": MESSAGE_ID, "method": "message/send", "params": params}
            return operation, self._request("POST", self.routes.rpc, body, operation, version="")
        mount = "/v1" if dialect is Dialect.KINDS else "/v1/v1"
        path = f"{self.routes.rest}{mount}/message:send"
        return operation, self._request("POST", path, params, operation, version="")

    def get(self, task_id: str) -> bytes:
        """One task."""
        if self.binding is Binding.JSONRPC:
            return self._rpc(Operation.GET, {"id": task_id})
        return self._rest("GET", f"/tasks/{task_id}", None, Operation.GET)

    def subscribe(self, task_id: str) -> bytes:
        """The stream of one task."""
        if self.binding is Binding.JSONRPC:
            return self._rpc(Operation.SUBSCRIBE, {"id": task_id})
        return self._rest("POST", f"/tasks/{task_id}:subscribe", None, Operation.SUBSCRIBE)

    def page(self, filters: dict[str, str], page_size: int = 50) -> bytes:
        """The first page of the tasks that match `filters` (`status`, `contextId`), no history."""
        params: dict[str, Any] = {"pageSize": page_size, "historyLength": 0, **filters}
        if self.binding is Binding.JSONRPC:
            return self._rpc(Operation.LIST, params)
        query = "&".join(f"{name}={value}" for name, value in params.items())
        return self._rest("GET", f"/tasks?{query}", None, Operation.LIST)

    def _rpc(self, operation: Operation, params: dict[str, Any]) -> bytes:
        body = {
            "jsonrpc": "2.0",
            "id": MESSAGE_ID,
            "method": _METHODS[operation],
            "params": params,
        }
        return self._request("POST", self.routes.rpc, body, operation)

    def _rest(self, method: str, path: str, body: dict[str, Any] | None, operation: Operation) -> bytes:
        if self.routes.rest is None:
            raise ValueError("this agent has no HTTP+JSON interface")
        return self._request(method, self.routes.rest + path, body, operation)

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        operation: Operation = Operation.CARD,
        version: str = "1.0",
    ) -> bytes:
        streamed = operation in (Operation.STREAM, Operation.SUBSCRIBE)
        payload = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        head = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            *([f"A2A-Version: {version}"] if version else []),
            *([f"Authorization: Bearer {self.bearer}"] if self.bearer else []),
            f"Accept: {'text/event-stream' if streamed else 'application/json'}",
        ]
        if body is not None:
            head.append("Content-Type: application/json")
        if method == "POST":
            head.append(f"Content-Length: {len(payload)}")
        return "\r\n".join([*head, "", ""]).encode() + payload


def with_fresh_id(request: bytes) -> bytes:
    """`request` with an id of its own."""
    return request.replace(MESSAGE_ID.encode(), str(uuid.uuid4()).encode())
