"""Golden files: JSON documents that say what an operation looks like on the wire, kept for ever.

A file holds one case: a request in each binding and the model request that it means, a model result and the document
that it becomes, or both. What is compared exactly stays JSON text (`Raw`) until it is, so that no digit is lost.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.model.operation import CreatePushConfig, SendMessage

FOLDER = Path(__file__).parent


class HttpRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A request over HTTP+JSON: `path` is below the agent's base and still percent-encoded."""

    method: str
    path: str
    query: str = ""
    body: Raw = Raw(b"")


class JsonRpcRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A request over JSON-RPC."""

    method: str
    params: Raw


class Golden(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One case.

    `request` and `result` are model values in their stored form; `kind` names the type of `result`. `reply` is the
    result document of both bindings.
    """

    about: str
    operation: str = ""
    http: HttpRequest | None = None
    jsonrpc: JsonRpcRequest | None = None
    request: Raw = Raw(b"")
    kind: str = ""
    result: Raw = Raw(b"")
    reply: Raw = Raw(b"")


def golden(path: Path) -> Golden:
    """Read a golden file."""
    return msgspec.json.decode(path.read_bytes(), type=Golden)


def cases(version: str) -> list[Path]:
    """Return the golden cases of a version; files whose name begins with an underscore are read by their own test."""
    return sorted(path for path in (FOLDER / version).glob("*.json") if not path.name.startswith("_"))


def placeless(request: Any) -> Any:
    """Return a request without the places of what it holds, which differ between forms that mean the same."""
    if isinstance(request, CreatePushConfig):
        return structs.replace(request, config=structs.replace(request.config, place=""))
    if isinstance(request, SendMessage) and request.push is not None:
        return structs.replace(request, push=structs.replace(request.push, place=""))
    return request


def document(text: Raw | bytes) -> Any:
    """Return JSON text as Python values."""
    return json.loads(bytes(text))
