"""The three forms of A2A 0.3."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx2

from tests.durability.dialects import Dialect, Http, Rpc, Said, targets

EXTENSIONS = "X-A2A-Extensions"


def _message(said: Said) -> dict[str, Any]:
    part = {"kind": "text", "text": said.text}
    message: dict[str, Any] = {
        "kind": "message",
        "messageId": said.message_id,
        "role": "user",
        "parts": [part],
    }
    return message | targets(said)


def _named(state: str) -> str:
    return "TASK_STATE_" + state.upper().replace("-", "_")


def _read(value: dict[str, Any]) -> dict[str, Any]:
    """An answer with kinds in the words of 1.0."""
    name = {"status-update": "statusUpdate", "artifact-update": "artifactUpdate"}.get(
        value["kind"], value["kind"]
    )
    return {name: _as_task(value)}


def _as_task(value: dict[str, Any]) -> dict[str, Any]:
    if "status" not in value:
        return value
    return value | {"status": value["status"] | {"state": _named(value["status"]["state"])}}


class Alias(Http):
    """HTTP+JSON with kinds, at the alias."""

    name = "0.3 HTTP"
    generation = "0.3"
    extension_header = EXTENSIONS
    headers: Mapping[str, str] = MappingProxyType({"A2A-Version": "0.3"})
    mount = "/v1"

    def read(self, document: dict[str, Any]) -> dict[str, Any]:
        return _read(document)

    def task(self, document: dict[str, Any]) -> dict[str, Any]:
        return _as_task(document)

    def reason(self, reply: httpx2.Response) -> str:
        return "" if reply.status_code == 200 else str(reply.json()["reason"])

    def message(self, said: Said) -> dict[str, Any]:
        return _message(said)

    def configuration(self, at_once: bool) -> dict[str, Any]:
        return {"configuration": {"blocking": False}} if at_once else {}


class Official(Http):
    """HTTP+JSON as official clients of 0.3 write it: the ProtoJSON of its proto."""

    name = "0.3 ProtoJSON"
    generation = "0.3"
    extension_header = EXTENSIONS
    headers: Mapping[str, str] = MappingProxyType({"A2A-Version": "0.3"})
    mount = "/v1/v1"

    def task(self, document: dict[str, Any]) -> dict[str, Any]:
        return _spelt(document)

    def read(self, document: dict[str, Any]) -> dict[str, Any]:
        return {name: _spelt(value) for name, value in document.items()}

    def reason(self, reply: httpx2.Response) -> str:
        return "" if reply.status_code == 200 else str(reply.json()["reason"])

    def message(self, said: Said) -> dict[str, Any]:
        message: dict[str, Any] = {
            "messageId": said.message_id,
            "role": "ROLE_USER",
            "content": [{"text": said.text}],
        }
        return message | targets(said)

    def configuration(self, at_once: bool) -> dict[str, Any]:
        return {"configuration": {"blocking": not at_once}}


def _spelt(value: dict[str, Any]) -> dict[str, Any]:
    """The 0.3 proto spells one state in its own way."""
    if value.get("status", {}).get("state") != "TASK_STATE_CANCELLED":
        return value
    return value | {"status": value["status"] | {"state": "TASK_STATE_CANCELED"}}


class OldRpc(Rpc):
    """JSON-RPC."""

    name = "0.3 JSON-RPC"
    generation = "0.3"
    extension_header = EXTENSIONS
    headers: Mapping[str, str] = MappingProxyType({"A2A-Version": "0.3"})
    methods: Mapping[str, str] = MappingProxyType(
        {
            "send": "message/send",
            "stream": "message/stream",
            "subscribe": "tasks/resubscribe",
            "get": "tasks/get",
            "cancel": "tasks/cancel",
        }
    )

    def read(self, document: dict[str, Any]) -> dict[str, Any]:
        return _read(document["result"])

    def task(self, document: dict[str, Any]) -> dict[str, Any]:
        return _as_task(document["result"])

    def message(self, said: Said) -> dict[str, Any]:
        return _message(said)

    def configuration(self, at_once: bool) -> dict[str, Any]:
        return {"configuration": {"blocking": False}} if at_once else {}


DIALECTS: tuple[Dialect, ...] = (Alias(), Official(), OldRpc())
