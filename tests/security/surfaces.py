"""Every way in: each operation in each dialect of both generations, and what a refusal looks like there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from tests.interaction.answers import Refusal, Reply
from tests.interaction.callers import HttpCaller, Request, RpcCaller
from tests.interaction.messages import message, new_id

DELEGATE, READ = "a2a:delegate", "a2a:read"

NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "SendMessage": DELEGATE,
        "SendStreamingMessage": DELEGATE,
        "GetTask": READ,
        "ListTasks": READ,
        "CancelTask": DELEGATE,
        "SubscribeToTask": READ,
        "CreateTaskPushNotificationConfig": DELEGATE,
        "GetTaskPushNotificationConfig": READ,
        "ListTaskPushNotificationConfigs": READ,
        "DeleteTaskPushNotificationConfig": DELEGATE,
        "GetExtendedAgentCard": READ,
    }
)
"""Operation → the scope that it needs beside `ai:answer`."""

UNAUTHENTICATED = Refusal("UNAUTHENTICATED", 401, "UNAUTHENTICATED", -32000, transport=True)
FORBIDDEN = Refusal("INSUFFICIENT_SCOPE", 403, "PERMISSION_DENIED", -32000, transport=True)
RATE_LIMITED = Refusal("RATE_LIMITED", 429, "RESOURCE_EXHAUSTED", -32000, transport=True)
MISDIRECTED = Refusal("MISDIRECTED_REQUEST", 421, "PERMISSION_DENIED", -32000, transport=True)
UNAVAILABLE = Refusal("UNAVAILABLE", 503, "UNAVAILABLE", -32000, transport=True)

CHALLENGE = 'Bearer realm="dragoman"'
INVALID = f'{CHALLENGE}, error="invalid_token"'

OLD_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "UNAUTHENTICATED": "UnauthenticatedError",
        "INSUFFICIENT_SCOPE": "ForbiddenError",
        "RATE_LIMITED": "RateLimitedError",
        "MISDIRECTED_REQUEST": "MisdirectedRequestError",
        "UNAVAILABLE": "UnavailableError",
        "AGENT_NOT_FOUND": "AgentNotFoundError",
        "TASK_NOT_FOUND": "TaskNotFoundError",
    }
)
"""Reason → the `type` of the problem document that A2A 0.3 answers with."""

_RPC_03: Mapping[str, str] = MappingProxyType(
    {
        "SendMessage": "message/send",
        "SendStreamingMessage": "message/stream",
        "GetTask": "tasks/get",
        "CancelTask": "tasks/cancel",
        "SubscribeToTask": "tasks/resubscribe",
        "CreateTaskPushNotificationConfig": "tasks/pushNotificationConfig/set",
        "GetTaskPushNotificationConfig": "tasks/pushNotificationConfig/get",
        "ListTaskPushNotificationConfigs": "tasks/pushNotificationConfig/list",
        "DeleteTaskPushNotificationConfig": "tasks/pushNotificationConfig/delete",
        "GetExtendedAgentCard": "agent/getAuthenticatedExtendedCard",
    }
)


@dataclass(frozen=True)
class Surface:
    """One dialect at one place. `mount` stands between the agent's base and the paths of operations over HTTP."""

    name: str
    version: str
    binding: str
    mount: str = ""
    lacks: frozenset[str] = frozenset()

    @property
    def operations(self) -> list[str]:
        """The operations that it has."""
        return [operation for operation in NEEDS if operation not in self.lacks]

    def ask(
        self,
        operation: str,
        agent: str = "demo",
        *,
        task: str = "no-such-task",
        text: str = "hello",
        token: str | None = None,
        message_id: str | None = None,
        **members: Any,
    ) -> Request:
        """The request for an operation; `members` come over those of the message, or of the parameters."""
        params = self._params(operation, task, text, message_id, members)
        made = self._made(operation, agent, params)
        if token is not None:
            made = made.with_headers(authorization=f"Bearer {token}")
        return made.with_headers(a2a_version=None if self.name == "0.3 base" else self.version)

    def _params(
        self, operation: str, task: str, text: str, message_id: str | None, members: dict[str, Any]
    ) -> dict[str, Any]:
        if operation in ("SendMessage", "SendStreamingMessage"):
            return {"message": self._message(text, message_id or new_id(), members)}
        if "PushNotification" not in operation:
            return members if operation in ("ListTasks", "GetExtendedAgentCard") else {"id": task, **members}
        if operation == "CreateTaskPushNotificationConfig":
            return {"taskId": task, "url": "https://hook.example", **members}
        named = {"id": "c"} if operation.startswith(("Get", "Delete")) else {}
        return {"taskId": task, **named, **members}

    def _message(self, text: str, message_id: str, members: dict[str, Any]) -> dict[str, Any]:
        if self.version == "1.0":
            return message(text, messageId=message_id, **members)
        if self.mount == "/v1/v1":
            return {"messageId": message_id, "role": "ROLE_USER", "content": [{"text": text}], **members}
        parts = [{"kind": "text", "text": text}]
        return {"kind": "message", "messageId": message_id, "role": "user", "parts": parts, **members}

    def _made(self, operation: str, agent: str, params: dict[str, Any]) -> Request:
        unused: Any = None  # the callers only make requests here; `conftest.Sender` sends them
        if self.binding == "jsonrpc":
            method = operation if self.version == "1.0" else _RPC_03[operation]
            return RpcCaller(unused, "", agent).request(method, params)
        made = HttpCaller(unused, "", agent).request(operation, params)
        base = f"/agents/{agent}"
        return replace(made, target=base + self.mount + made.target.removeprefix(base))


SURFACES = [
    Surface("1.0 http", "1.0", "http"),
    Surface("1.0 jsonrpc", "1.0", "jsonrpc"),
    Surface("0.3 base", "0.3", "http", lacks=frozenset({"GetExtendedAgentCard"})),
    Surface("0.3 alias", "0.3", "http", "/v1", frozenset({"GetExtendedAgentCard"})),
    Surface("0.3 official", "0.3", "http", "/v1/v1", frozenset({"GetExtendedAgentCard", "ListTasks"})),
    Surface("0.3 jsonrpc", "0.3", "jsonrpc", lacks=frozenset({"ListTasks"})),
]


def reason(surface: Surface, reply: Reply) -> str:
    """The reason of an error; empty for a success, a stream included."""
    if reply.content_type == "text/event-stream":
        return ""
    document = reply.json()
    if surface.version == "0.3" and surface.binding == "http":
        return str(document.get("reason", ""))
    error = document.get("error") if isinstance(document, dict) else None
    if error is None:
        return ""
    return str(error["data" if surface.binding == "jsonrpc" else "details"][0]["reason"])


def refused(surface: Surface, reply: Reply, refusal: Refusal) -> dict[str, Any]:
    """Check the whole form of a refusal on a surface, and return its document."""
    assert reply.headers["a2a-version"] == surface.version, reply
    assert reply.headers["vary"].startswith("A2A-Version, Accept"), reply
    document: dict[str, Any] = reply.json()
    if surface.binding == "jsonrpc":
        assert reply.status == (refusal.http if refusal.transport else 200), reply
        assert reply.content_type == "application/json"
        assert set(document) == {"jsonrpc", "id", "error"}
        assert document["id"] == (None if refusal.transport else 1), reply
        assert document["error"]["code"] == refusal.code
        assert document["error"]["data"][0]["reason"] == refusal.reason
    elif surface.version == "1.0":
        assert (reply.status, reply.content_type) == (refusal.http, "application/json"), reply
        error = document["error"]
        assert (error["code"], error["status"]) == (refusal.http, refusal.status), error
        assert error["details"][0]["reason"] == refusal.reason
    else:
        assert (reply.status, reply.content_type) == (refusal.http, "application/problem+json"), reply
        assert (document["status"], document["code"]) == (refusal.http, refusal.code), document
        assert (document["type"], document["reason"]) == (OLD_NAMES[refusal.reason], refusal.reason), document
        assert document["trace_id"] == reply.headers["x-request-id"]
    return document


def challenged(surface: Surface, reply: Reply, challenge: str, refusal: Refusal = UNAUTHENTICATED) -> None:
    """Check a refusal that asks for a credential, or for a better one."""
    refused(surface, reply, refusal)
    assert reply.headers["www-authenticate"] == challenge


def same_refusal(surface: Surface, one: Reply, other: Reply) -> bool:
    """Whether two refusals tell exactly the same, once what each caller said itself is taken out."""
    return _without_own_words(surface, one) == _without_own_words(surface, other)


def _without_own_words(surface: Surface, reply: Reply) -> tuple[int, dict[str, str], str]:
    headers = {name: value for name, value in reply.headers.items() if name not in ("x-request-id", "date")}
    document = json.loads(reply.body)
    if surface.version == "0.3" and surface.binding == "http":
        # The path that was asked for, and the id of the reply.
        document.pop("instance")
        document.pop("trace_id")
        headers.pop("content-length")
    return reply.status, headers, json.dumps(document, sort_keys=True)
