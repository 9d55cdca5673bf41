"""The forms of A2A that a server speaks, for callers that do not care which: what comes back is in the words of 1.0."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import httpx2


@dataclass(frozen=True)
class Said:
    """A message of a caller."""

    message_id: str
    text: str
    to_task: str = ""
    context_id: str = ""


@dataclass(frozen=True)
class Request:
    """One request; `headers` beside those of the content."""

    method: str
    path: str
    document: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Dialect:
    """One form of A2A: how requests are written in it, and how answers are read."""

    name: str
    generation: str
    extension_header = "A2A-Extensions"

    def send(self, agent: str, said: Said, *, at_once: bool = False) -> Request:
        """SendMessage; with `at_once` not waiting for the end."""
        raise NotImplementedError

    def stream(self, agent: str, said: Said) -> Request:
        """SendStreamingMessage."""
        raise NotImplementedError

    def subscribe(self, agent: str, task_id: str) -> Request:
        """SubscribeToTask."""
        raise NotImplementedError

    def get(self, agent: str, task_id: str) -> Request:
        """GetTask."""
        raise NotImplementedError

    def cancel(self, agent: str, task_id: str) -> Request:
        """CancelTask."""
        raise NotImplementedError

    def read(self, document: dict[str, Any]) -> dict[str, Any]:
        """What an answer, or an event of a stream, says: `task`, `message`, `statusUpdate` or `artifactUpdate`."""
        raise NotImplementedError

    def task(self, document: dict[str, Any]) -> dict[str, Any]:
        """The task that GetTask or CancelTask answers with."""
        return document

    def reason(self, reply: httpx2.Response) -> str:
        """Why a request was refused, in capitals; empty if it was not."""
        raise NotImplementedError


def message_of(said: Said) -> dict[str, Any]:
    """A message as 1.0 writes it."""
    message: dict[str, Any] = {
        "messageId": said.message_id,
        "role": "ROLE_USER",
        "parts": [{"text": said.text}],
    }
    return message | targets(said)


def targets(said: Said) -> dict[str, str]:
    """The members of a message that say what it belongs to; the same in all forms."""
    named = {"taskId": said.to_task, "contextId": said.context_id}
    return {name: value for name, value in named.items() if value}


class Http(Dialect):
    """HTTP+JSON of 1.0."""

    name = "1.0 HTTP"
    generation = "1.0"
    headers: Mapping[str, str] = {"A2A-Version": "1.0"}
    mount = ""

    def send(self, agent: str, said: Said, *, at_once: bool = False) -> Request:
        document = {"message": self.message(said)} | self.configuration(at_once)
        return self._request("POST", agent, "/message:send", document)

    def stream(self, agent: str, said: Said) -> Request:
        return self._request("POST", agent, "/message:stream", {"message": self.message(said)})

    def subscribe(self, agent: str, task_id: str) -> Request:
        return self._request("POST", agent, f"/tasks/{task_id}:subscribe")

    def get(self, agent: str, task_id: str) -> Request:
        return self._request("GET", agent, f"/tasks/{task_id}")

    def cancel(self, agent: str, task_id: str) -> Request:
        return self._request("POST", agent, f"/tasks/{task_id}:cancel")

    def read(self, document: dict[str, Any]) -> dict[str, Any]:
        return document

    def reason(self, reply: httpx2.Response) -> str:
        if reply.status_code == 200:
            return ""
        return str(reply.json()["error"]["details"][0]["reason"])

    def message(self, said: Said) -> dict[str, Any]:
        """A message in this form."""
        return message_of(said)

    def configuration(self, at_once: bool) -> dict[str, Any]:
        """What makes a send wait for the end, or not."""
        return {"configuration": {"returnImmediately": True}} if at_once else {}

    def _request(self, method: str, agent: str, path: str, document: Any = None) -> Request:
        return Request(method, f"/agents/{agent}{self.mount}{path}", document, self.headers)


class Rpc(Dialect):
    """JSON-RPC of 1.0."""

    name = "1.0 JSON-RPC"
    generation = "1.0"
    headers: Mapping[str, str] = {"A2A-Version": "1.0"}
    methods: Mapping[str, str] = {
        "send": "SendMessage",
        "stream": "SendStreamingMessage",
        "subscribe": "SubscribeToTask",
        "get": "GetTask",
        "cancel": "CancelTask",
    }

    def send(self, agent: str, said: Said, *, at_once: bool = False) -> Request:
        return self._request(agent, "send", {"message": self.message(said)} | self.configuration(at_once))

    def stream(self, agent: str, said: Said) -> Request:
        return self._request(agent, "stream", {"message": self.message(said)})

    def subscribe(self, agent: str, task_id: str) -> Request:
        return self._request(agent, "subscribe", {"id": task_id})

    def get(self, agent: str, task_id: str) -> Request:
        return self._request(agent, "get", {"id": task_id})

    def cancel(self, agent: str, task_id: str) -> Request:
        return self._request(agent, "cancel", {"id": task_id})

    def read(self, document: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = document["result"]
        return result

    def task(self, document: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = document["result"]
        return result

    def reason(self, reply: httpx2.Response) -> str:
        document = reply.json()
        return str(document["error"]["data"][0]["reason"]) if "error" in document else ""

    def message(self, said: Said) -> dict[str, Any]:
        """A message in this form."""
        return message_of(said)

    def configuration(self, at_once: bool) -> dict[str, Any]:
        """What makes a send wait for the end, or not."""
        return {"configuration": {"returnImmediately": True}} if at_once else {}

    def _request(self, agent: str, verb: str, params: Any) -> Request:
        document = {"jsonrpc": "2.0", "id": 1, "method": self.methods[verb], "params": params}
        return Request("POST", f"/agents/{agent}/rpc", document, self.headers)


HTTP = Http()
RPC = Rpc()


def _older() -> tuple[Dialect, ...]:
    """The forms of older generations, those of them that are still here."""
    if importlib.util.find_spec("tests.durability.v0_3") is None:
        return ()
    found: tuple[Dialect, ...] = import_module("tests.durability.v0_3.dialects").DIALECTS
    return found


DIALECTS: tuple[Dialect, ...] = (HTTP, RPC, *_older())
