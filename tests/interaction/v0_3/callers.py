"""Callers of one agent in A2A 0.3, at each place where it is served, all with the same face.

Operations go by their 1.0 names, parameters are given in the form with kinds, and each caller writes them as clients of
its place do.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

from tests.interaction.callers import Request
from tests.interaction.sockets import Socket
from tests.interaction.v0_3.answers import Reply
from tests.interaction.v0_3.dialects import Dialect, Kinds, Proto, snake
from tests.interaction.v0_3.events import Stream

ROUTES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "SendMessage": ("POST", "/message:send"),
        "SendStreamingMessage": ("POST", "/message:stream"),
        "GetTask": ("GET", "/tasks/{id}"),
        "ListTasks": ("GET", "/tasks"),
        "CancelTask": ("POST", "/tasks/{id}:cancel"),
        "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
        "CreateTaskPushNotificationConfig": ("POST", "/tasks/{id}/pushNotificationConfigs"),
        "GetTaskPushNotificationConfig": ("GET", "/tasks/{id}/pushNotificationConfigs/{configId}"),
        "ListTaskPushNotificationConfigs": ("GET", "/tasks/{id}/pushNotificationConfigs"),
        "DeleteTaskPushNotificationConfig": ("DELETE", "/tasks/{id}/pushNotificationConfigs/{configId}"),
    }
)
"""A2A 0.3 §3.5.3."""

METHODS: Mapping[str, str] = MappingProxyType(
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
"""A2A 0.3 §7."""


@dataclass(frozen=True)
class Place:
    """Where 0.3 is served, and how its callers speak there: `mount` is below an agent's base."""

    name: str
    mount: str
    dialect: Dialect
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def binding(self) -> str:
        """`http` or `jsonrpc`."""
        return "jsonrpc" if self.mount == "/rpc" else "http"


BASE = Place("base", "", Kinds())
HEADER = Place("header", "", Kinds(), {"A2A-Version": "0.3"})
ALIAS = Place("alias", "/v1", Kinds())
PROTO = Place("proto", "/v1/v1", Proto(), {"User-Agent": "node"})
SNAKE = Place("snake", "/v1/v1", Proto(spelling=snake), {"User-Agent": "curl/8.5.0"})
DOUBLED = Place("doubled", "/v1/v1", Proto(doubled=True), {"User-Agent": "python-httpx/0.28.1"})
RPC = Place("rpc", "/rpc", Kinds())

PLACES = (BASE, HEADER, ALIAS, PROTO, SNAKE, DOUBLED, RPC)
SEED_A = (BASE, HEADER, ALIAS)
KINDS = (*SEED_A, RPC)
OFFICIAL = (PROTO, SNAKE, DOUBLED)
WEB = (*SEED_A, *OFFICIAL)
FORMS_WITH_KINDS = (ALIAS, RPC)
FORMS = (*FORMS_WITH_KINDS, PROTO)


@dataclass(frozen=True)
class Caller:
    """Calls one agent at one place. `call` gives a whole reply, `open` a stream (or the refusal of one)."""

    place: Place
    client: httpx2.Client
    origin: str
    agent: str = "demo"

    @property
    def binding(self) -> str:
        """`http` or `jsonrpc`."""
        return self.place.binding

    @property
    def has_kinds(self) -> bool:
        """Whether the place speaks the JSON with kinds."""
        return isinstance(self.place.dialect, Kinds)

    @property
    def parts(self) -> str:
        """What the parts of a message are called at this place."""
        return "parts" if self.has_kinds else "content"

    def to(self, agent: str) -> "Caller":
        """The same, of another agent."""
        return replace(self, agent=agent)

    def at(self, place: Place) -> "Caller":
        """A caller of the same agent at another place."""
        return replace(self, place=place)

    def path(self, rest: str = "") -> str:
        """A path below the place."""
        return f"/agents/{self.agent}{self.place.mount}{rest}"

    def request(
        self,
        operation: str,
        params: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        as_is: bool = False,
    ) -> Request:
        """The request for an operation.

        `params` that are bytes are sent as the JSON text that they are; `as_is` means that they are in the form of
        the place already.
        """
        sent = {**self.place.headers, **(headers or {})}
        if not isinstance(params, bytes) and not as_is:
            params = self.place.dialect.write(operation, dict(params or {}))
        if self.binding == "jsonrpc":
            return self.post(envelope(METHODS[operation], params), sent)
        method, template = ROUTES[operation]
        if isinstance(params, bytes):
            return Request(method, self.path(template), typed(sent), params)
        rest = dict(params or {})
        for name in ("id", "configId"):
            if f"{{{name}}}" in template:
                template = template.replace(f"{{{name}}}", quote(str(rest.pop(name)), safe=""))
        if method == "POST":
            body = to_json(rest) if rest else None
            return Request(method, self.path(template), typed(sent) if body else sent, body)
        query = urlencode({name: _query_text(value) for name, value in rest.items()})
        return Request(method, self.path(template) + (f"?{query}" if query else ""), sent)

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> Request:
        """A request with this body at the JSON-RPC endpoint."""
        return Request("POST", self.path(), typed({**self.place.headers, **(headers or {})}), body)

    def call(
        self,
        operation: str,
        params: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        as_is: bool = False,
    ) -> Reply:
        """Perform an operation."""
        return self.deliver(self.request(operation, params, headers=headers, as_is=as_is), operation)

    def deliver(self, request: Request, operation: str = "") -> Reply:
        """Send a request and give the reply, whatever its status."""
        answer = self.client.request(
            request.method,
            self.origin + request.target,
            content=request.body,
            headers=dict(request.headers),
        )
        return self.reply(request, operation, answer.status_code, dict(answer.headers), answer.content)

    def exchange(self, socket: Socket, text: bytes, request: Request, operation: str = "") -> Reply:
        """Write bytes to a socket, in the place of a request, and give the reply."""
        socket.send(text)
        return self.read(socket, request, operation)

    def read(self, socket: Socket, request: Request, operation: str = "") -> Reply:
        """The next reply at a socket."""
        found = socket.reply(self.binding)
        return self.reply(request, operation, found.status, found.headers, found.body)

    def reply(
        self, request: Request, operation: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> Reply:
        """A reply to a request of this caller, however it came."""
        path = request.target.partition("?")[0]
        return Reply(self.binding, path, self.place.dialect, operation, status, headers, body)

    @contextmanager
    def open(
        self,
        operation: str,
        params: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        as_is: bool = False,
    ) -> Iterator[Stream]:
        """Perform a streaming operation. Leaving the block drops the connection."""
        request = self.request(operation, params, headers=headers, as_is=as_is)
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
            headers = dict(answer.headers)
            yield Stream(
                self.binding,
                answer.status_code,
                headers,
                answer.iter_raw(),
                self.place.dialect,
                lambda status, body: self.reply(request, "", status, headers, body),
            )


def envelope(method: str, params: Any, identifier: Any = 1) -> bytes:
    """The text of a JSON-RPC request; `params` may be JSON text."""
    text = params if isinstance(params, bytes) else to_json(params)
    return b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}' % (to_json(identifier), to_json(method), text)


def to_json(value: Any) -> bytes:
    """JSON text as browsers write it: UTF-8, nothing escaped that need not be."""
    return json.dumps(value, ensure_ascii=False).encode()


def typed(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with the Content-Type that 0.3 asks for, unless they name one."""
    named = any(name.lower() == "content-type" for name in headers)
    return {**({} if named else {"Content-Type": "application/json"}), **headers}


def _query_text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
