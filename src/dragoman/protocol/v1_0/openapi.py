"""The HTTP+JSON binding of A2A 1.0 as an OpenAPI 3.1 document: every route of its table, with its messages and errors.

What a route takes and gives is written down by operation; an operation that the table gains without being described
here fails at the start and in the tests, so that the document never leaves one out.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.model.errors import InternalError
from dragoman.model.operation import Operation
from dragoman.protocol.media import EVENT_STREAM
from dragoman.protocol.requests import LONGEST_ID
from dragoman.protocol.spec import Deployment
from dragoman.protocol.v1_0.decode import GENERATION
from dragoman.protocol.v1_0.errors import TABLE
from dragoman.protocol.v1_0.http import DIALECT
from dragoman.protocol.v1_0.schemas import FLAG, SCHEMAS, STRING, TIMESTAMP, WHOLE, Schema, reference

CARD_PATH = "/.well-known/agent-card.json"

_PUSH = "Refused with PUSH_NOTIFICATION_NOT_SUPPORTED unless the agent's card declares push notifications."
_EXTENDED = "Refused with UNSUPPORTED_OPERATION unless the agent's card declares an extended card."


class Described(Struct, frozen=True, kw_only=True):
    """What an operation takes and gives over HTTP+JSON. `request` and `result` are messages by name."""

    summary: str
    tag: str
    result: str
    request: str = ""
    is_request_needed: bool = False
    query: tuple[str, ...] = ()
    note: str = ""


OPERATIONS: Mapping[Operation, Described] = MappingProxyType(
    {
        Operation.SEND_MESSAGE: Described(
            summary="Send a message and wait for what comes of it",
            tag="messages",
            request="SendMessageRequest",
            is_request_needed=True,
            result="SendMessageResponse",
        ),
        Operation.SEND_STREAMING_MESSAGE: Described(
            summary="Send a message and follow what comes of it",
            tag="messages",
            request="SendMessageRequest",
            is_request_needed=True,
            result="StreamResponse",
        ),
        Operation.GET_TASK: Described(
            summary="Read a task", tag="tasks", query=("historyLength",), result="Task"
        ),
        Operation.LIST_TASKS: Described(
            summary="List tasks, newest status change first",
            tag="tasks",
            query=(
                "contextId",
                "status",
                "statusTimestampAfter",
                "pageSize",
                "pageToken",
                "historyLength",
                "includeArtifacts",
            ),
            result="ListTasksResponse",
        ),
        Operation.CANCEL_TASK: Described(
            summary="Cancel a task", tag="tasks", request="CancelTaskRequest", result="Task"
        ),
        Operation.SUBSCRIBE_TO_TASK: Described(
            summary="Follow a task that is not finished",
            tag="tasks",
            request="SubscribeToTaskRequest",
            result="StreamResponse",
            note="With Last-Event-ID the stream goes on after that event; without, it begins with the task.",
        ),
        Operation.CREATE_PUSH_CONFIG: Described(
            summary="Have a URL told of a task's events",
            tag="push notifications",
            request="TaskPushNotificationConfig",
            is_request_needed=True,
            result="TaskPushNotificationConfig",
            note=_PUSH,
        ),
        Operation.GET_PUSH_CONFIG: Described(
            summary="Read a push notification configuration",
            tag="push notifications",
            result="TaskPushNotificationConfig",
            note=_PUSH,
        ),
        Operation.LIST_PUSH_CONFIGS: Described(
            summary="List a task's push notification configurations",
            tag="push notifications",
            query=("pageSize", "pageToken"),
            result="ListTaskPushNotificationConfigsResponse",
            note=_PUSH,
        ),
        Operation.DELETE_PUSH_CONFIG: Described(
            summary="Delete a push notification configuration",
            tag="push notifications",
            result="Empty",
            note=_PUSH,
        ),
        Operation.GET_EXTENDED_CARD: Described(
            summary="Read the agent's extended card", tag="cards", result="AgentCard", note=_EXTENDED
        ),
    }
)

QUERY: Mapping[str, Schema] = MappingProxyType(
    {
        "contextId": {"type": "string", "maxLength": LONGEST_ID},
        "status": reference("TaskState"),
        "statusTimestampAfter": TIMESTAMP,
        "pageSize": {"type": "integer", "minimum": 1, "maximum": 100, "default": 50},
        "pageToken": {
            **STRING,
            "description": "The nextPageToken of the page before, with the same filters.",
        },
        "historyLength": WHOLE,
        "includeArtifacts": {**FLAG, "default": False},
    }
)

_ANY = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.NOT_ACCEPTABLE)
_BODY = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
_SERVER = (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)
_SENDING = (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
_AGAIN_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_SENDS = (Operation.SEND_MESSAGE, Operation.SEND_STREAMING_MESSAGE)


def describe(deployment: Deployment) -> bytes:
    """Return the document for the agents of a deployment, as JSON text."""
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman: agents over A2A 1.0, HTTP+JSON",
            "version": deployment.release,
            "summary": "The HTTP+JSON binding of the Agent2Agent protocol 1.0 at the agents served here.",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": deployment.url}],
        "tags": [{"name": name} for name in ("messages", "tasks", "push notifications", "cards")],
        "paths": dict(_paths()),
        "components": {
            "schemas": SCHEMAS,
            "parameters": _parameters(deployment.agents),
            "headers": _HEADERS,
            "responses": dict(_failures()),
        },
    }
    return msgspec.json.encode(document)


def _paths() -> Iterator[tuple[str, dict[str, Any]]]:
    for template, methods in DIALECT.routes:
        variables = [_variable(name) for name in _names(template)]
        path: dict[str, Any] = {"parameters": [_parameter("agent"), *variables]}
        for method, endpoint in methods.items():
            described = _operation(endpoint.operation, method)
            # Two methods of one path may be the same operation, but ids are used once.
            if len(methods) > 1 and method == "GET" and _is_twofold(endpoint.operation, methods):
                described["operationId"] += "ByGet"
            path[method.lower()] = described
        yield f"/agents/{{agent}}{DIALECT.mount}{template}", path
    yield f"/agents/{{agent}}{CARD_PATH}", {"parameters": [_parameter("agent")], "get": _card()}


def _is_twofold(operation: Operation, methods: Mapping[str, Any]) -> bool:
    return [endpoint.operation for endpoint in methods.values()].count(operation) > 1


def _names(template: str) -> list[str]:
    return [piece.partition("}")[0] for piece in template.split("{")[1:]]


def _operation(operation: Operation, method: str) -> dict[str, Any]:
    known = OPERATIONS[operation]
    parameters: list[dict[str, Any]] = [_parameter("version"), _parameter("extensions")]
    if operation is Operation.SUBSCRIBE_TO_TASK:
        parameters.append(_parameter("lastEventId"))
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": QUERY[name]} for name in known.query
    ]
    takes_body = bool(known.request) and method == "POST"
    errors = (*_ANY, *(_BODY if takes_body else ()), *_SERVER)
    if operation in _SENDS:
        errors = (*errors, *_SENDING)
    elif operation is Operation.CREATE_PUSH_CONFIG:
        errors = (*errors, HTTPStatus.TOO_MANY_REQUESTS)
    document: dict[str, Any] = {
        "operationId": operation.value,
        "summary": known.summary,
        "tags": [known.tag],
        "parameters": parameters,
        "responses": {"200": _success(operation, known), **_references(errors)},
    }
    if known.note:
        document["description"] = known.note
    if takes_body:
        document["requestBody"] = {
            "required": known.is_request_needed,
            "content": _content(reference(known.request)),
        }
    return document


def _success(operation: Operation, known: Described) -> dict[str, Any]:
    headers = ["A2A-Version", "X-Request-Id", "A2A-Extensions"]
    if operation in _SENDS:
        headers.append("Idempotent-Replayed")
    content = _content(reference(known.result))
    if operation.streams:
        content = {
            EVENT_STREAM: {
                "schema": {
                    "type": "string",
                    "description": f"Server-sent events. The data of each is a {known.result}; its id is the event's "
                    "sequence number in the task. An event named `error` holds an Error and is the last one.",
                },
                "x-event-data": reference(known.result),
            }
        }
    return {"description": known.result, "headers": _header_references(headers), "content": content}


def _card() -> dict[str, Any]:
    headers = _header_references(["A2A-Version", "X-Request-Id", "ETag", "Cache-Control", "Last-Modified"])
    return {
        "operationId": "GetAgentCard",
        "summary": "Read the agent's card",
        "tags": ["cards"],
        "parameters": [{**_parameter_of_version(), "required": False}],
        "responses": {
            "200": {
                "description": "AgentCard",
                "headers": headers,
                "content": _content(reference("AgentCard")),
            },
            "304": {
                "description": "The card is as it was (If-None-Match, If-Modified-Since)",
                "headers": headers,
            },
            **_references((HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.INTERNAL_SERVER_ERROR)),
        },
    }


def _content(schema: Schema) -> dict[str, Any]:
    return {media_type: {"schema": schema} for media_type in DIALECT.media_types}


def _parameter(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/parameters/{name}"}


def _variable(name: str) -> dict[str, Any]:
    # No colon: what follows one in a path is a verb.
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "pattern": "^[^/:]+$"},
    }


def _parameters(agents: tuple[str, ...]) -> dict[str, Any]:
    return {
        "agent": {
            "name": "agent",
            "in": "path",
            "required": True,
            "schema": {"type": "string", "enum": agents},
        },
        "version": _parameter_of_version(),
        "extensions": {
            "name": "A2A-Extensions",
            "in": "header",
            "required": False,
            "description": "URIs of the extensions to activate, with commas between.",
            "schema": STRING,
        },
        "lastEventId": {
            "name": "Last-Event-ID",
            "in": "header",
            "required": False,
            "description": "The id of the last event that was received.",
            "schema": STRING,
        },
    }


def _parameter_of_version() -> dict[str, Any]:
    return {
        "name": "A2A-Version",
        "in": "header",
        "required": True,
        "description": "The protocol version. It may be a query parameter of this name instead.",
        "schema": {"type": "string", "enum": [GENERATION]},
    }


_HEADERS: Mapping[str, Any] = {
    "A2A-Version": {"description": "The version that the reply is in.", "schema": {"const": GENERATION}},
    "X-Request-Id": {"description": "The request's id, which is in the server's log.", "schema": STRING},
    "A2A-Extensions": {"description": "The extensions that were activated.", "schema": STRING},
    "Idempotent-Replayed": {
        "description": "The message was known already: this is what came of it.",
        "schema": {"const": "true"},
    },
    "Retry-After": {"description": "Seconds to wait before another try.", "schema": STRING},
    "ETag": {"schema": STRING},
    "Cache-Control": {"schema": STRING},
    "Last-Modified": {"schema": STRING},
}


def _header_references(names: list[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _references(statuses: tuple[HTTPStatus, ...]) -> dict[str, Any]:
    return {str(int(status)): {"$ref": f"#/components/responses/Error{status:d}"} for status in statuses}


def _failures() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a response for each status, with the reasons that the error table gives for it."""
    reasons: defaultdict[int, set[str]] = defaultdict(set, {500: {InternalError.reason}})
    for error, codes in TABLE.items():
        reasons[codes.http].add(error.reason)
    for status in sorted({*_ANY, *_BODY, *_SERVER, *_SENDING}):
        headers = ["X-Request-Id"] + (["Retry-After"] if status in _AGAIN_LATER else [])
        yield (
            f"Error{status:d}",
            {
                "description": ", ".join(sorted(reasons[status])),
                "headers": _header_references(headers),
                "content": _content(reference("Error")),
            },
        )
