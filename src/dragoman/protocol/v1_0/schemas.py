"""The messages of A2A 1.0 as JSON Schemas (draft 2020-12, which OpenAPI 3.1 uses), in the form that this server writes.

What it reads besides is not described: snake_case names, enums by number, null for absent, integers as strings
(ProtoJSON), and `tenant`, which may only repeat the agent's id. Members that are not described are ignored.
"""

from collections.abc import Mapping
from typing import Any

from dragoman.protocol.requests import LONGEST_ID, MAX_PARTS
from dragoman.protocol.v1_0.decode import STATE_NAMES

Schema = Mapping[str, Any]

STRING: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
FLAG: Schema = {"type": "boolean"}
TIMESTAMP: Schema = {"type": "string", "format": "date-time"}
IDENTIFIER: Schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}
METADATA: Schema = {"type": "object", "description": "Data of the sender's own; it is passed on untouched."}


def reference(name: str) -> Schema:
    """Return a reference to a message."""
    return {"$ref": f"#/components/schemas/{name}"}


def _array(item: Schema, **bounds: int) -> Schema:
    return {"type": "array", "items": item, **bounds}


def _object(required: str, members: Mapping[str, Schema], **more: Any) -> Schema:
    document: dict[str, Any] = {"type": "object", "properties": members, **more}
    return document | ({"required": required.split()} if required else {})


def _one_of(members: Mapping[str, Schema], beside: Mapping[str, Schema] | None = None) -> Schema:
    """Return an object with exactly one of some members, and any of those `beside`."""
    choices = [{"required": [name]} for name in members]
    return _object("", {**members, **(beside or {})}, oneOf=choices)


_STRINGS = _array(STRING)
_CONVERSATION: Mapping[str, Schema] = {
    "Role": {"type": "string", "enum": ["ROLE_USER", "ROLE_AGENT"]},
    "TaskState": {"type": "string", "enum": list(STATE_NAMES)},
    "Part": _one_of(
        {
            "text": STRING,
            "raw": {"type": "string", "contentEncoding": "base64"},
            "url": {"type": "string", "minLength": 1},
            "data": {"description": "Any JSON value."},
        },
        beside={"filename": STRING, "mediaType": STRING, "metadata": METADATA},
    ),
    "Message": _object(
        "messageId role parts",
        {
            "messageId": {
                **IDENTIFIER,
                "description": "Made by the sender. The same one with the same content is the same message.",
            },
            "contextId": {"type": "string", "maxLength": LONGEST_ID},
            "taskId": {"type": "string", "maxLength": LONGEST_ID, "description": "The task to go on with."},
            "role": reference("Role"),
            "parts": _array(reference("Part"), minItems=1, maxItems=MAX_PARTS),
            "metadata": METADATA,
            "extensions": _STRINGS,
            "referenceTaskIds": _STRINGS,
        },
    ),
    "Artifact": _object(
        "artifactId parts",
        {
            "artifactId": STRING,
            "name": STRING,
            "description": STRING,
            "parts": _array(reference("Part"), minItems=1),
            "metadata": METADATA,
            "extensions": _STRINGS,
        },
    ),
    "TaskStatus": _object(
        "state", {"state": reference("TaskState"), "message": reference("Message"), "timestamp": TIMESTAMP}
    ),
    "Task": _object(
        "id status",
        {
            "id": STRING,
            "contextId": STRING,
            "status": reference("TaskStatus"),
            "artifacts": _array(reference("Artifact")),
            "history": _array(reference("Message")),
            "metadata": METADATA,
        },
    ),
    "TaskStatusUpdateEvent": _object(
        "taskId contextId status",
        {"taskId": STRING, "contextId": STRING, "status": reference("TaskStatus"), "metadata": METADATA},
    ),
    "TaskArtifactUpdateEvent": _object(
        "taskId contextId artifact",
        {
            "taskId": STRING,
            "contextId": STRING,
            "artifact": reference("Artifact"),
            "append": {**FLAG, "description": "The parts go on where the artifact's last chunk ended."},
            "lastChunk": FLAG,
            "metadata": METADATA,
        },
    ),
}

_CALLS: Mapping[str, Schema] = {
    "SendMessageConfiguration": _object(
        "",
        {
            "acceptedOutputModes": _STRINGS,
            "taskPushNotificationConfig": reference("TaskPushNotificationConfig"),
            "historyLength": WHOLE,
            "returnImmediately": {
                **FLAG,
                "description": "Do not wait for the task to end or to need something.",
            },
        },
    ),
    "SendMessageRequest": _object(
        "message",
        {
            "message": reference("Message"),
            "configuration": reference("SendMessageConfiguration"),
            "metadata": METADATA,
        },
    ),
    "SendMessageResponse": _one_of({"task": reference("Task"), "message": reference("Message")}),
    "StreamResponse": _one_of(
        {
            "task": reference("Task"),
            "message": reference("Message"),
            "statusUpdate": reference("TaskStatusUpdateEvent"),
            "artifactUpdate": reference("TaskArtifactUpdateEvent"),
        }
    ),
    "ListTasksResponse": _object(
        "tasks nextPageToken pageSize totalSize",
        {
            "tasks": _array(reference("Task")),
            "nextPageToken": {**STRING, "description": "Empty on the last page."},
            "pageSize": WHOLE,
            "totalSize": WHOLE,
        },
    ),
    "CancelTaskRequest": _object("", {"metadata": METADATA}),
    "SubscribeToTaskRequest": _object("", {}),
    "AuthenticationInfo": _object("scheme", {"scheme": STRING, "credentials": STRING}),
    "TaskPushNotificationConfig": _object(
        "url",
        {
            "id": STRING,
            "taskId": STRING,
            "url": STRING,
            "token": STRING,
            "authentication": reference("AuthenticationInfo"),
        },
    ),
    "ListTaskPushNotificationConfigsResponse": _object(
        "", {"configs": _array(reference("TaskPushNotificationConfig")), "nextPageToken": STRING}
    ),
    "Empty": _object("", {}),
}

_SKILL = _object(
    "id name description tags",
    {
        "id": STRING,
        "name": STRING,
        "description": STRING,
        "tags": _array(STRING, minItems=1),
        "examples": _STRINGS,
        "inputModes": _STRINGS,
        "outputModes": _STRINGS,
        "securityRequirements": _array(reference("SecurityRequirement")),
    },
)

_SCHEMES = (
    "apiKeySecurityScheme httpAuthSecurityScheme oauth2SecurityScheme openIdConnectSecurityScheme "
    "mtlsSecurityScheme"
).split()

_CARD: Mapping[str, Schema] = {
    "AgentInterface": _object(
        "url protocolBinding protocolVersion",
        {
            "url": STRING,
            "protocolBinding": {
                **STRING,
                "description": "JSONRPC, GRPC, HTTP+JSON, or the URI of another one.",
            },
            "protocolVersion": {"type": "string", "pattern": r"^\d+\.\d+$"},
            "tenant": STRING,
        },
    ),
    "AgentProvider": _object("organization url", {"organization": STRING, "url": STRING}),
    "AgentExtension": _object(
        "", {"uri": STRING, "description": STRING, "required": FLAG, "params": {"type": "object"}}
    ),
    "AgentCapabilities": _object(
        "",
        {
            "streaming": FLAG,
            "pushNotifications": FLAG,
            "extendedAgentCard": FLAG,
            "extensions": _array(reference("AgentExtension")),
        },
    ),
    "AgentSkill": _SKILL,
    "AgentCardSignature": _object(
        "protected signature", {"protected": STRING, "signature": STRING, "header": {"type": "object"}}
    ),
    "SecurityScheme": _one_of({name: {"type": "object"} for name in _SCHEMES}),
    "SecurityRequirement": _object(
        "",
        {
            "schemes": {
                "type": "object",
                "additionalProperties": _object("", {"list": _STRINGS}),
            }
        },
    ),
    "AgentCard": _object(
        "name description version supportedInterfaces capabilities defaultInputModes defaultOutputModes skills",
        {
            "name": STRING,
            "description": STRING,
            "version": STRING,
            "supportedInterfaces": _array(reference("AgentInterface"), minItems=1),
            "provider": reference("AgentProvider"),
            "documentationUrl": STRING,
            "iconUrl": STRING,
            "capabilities": reference("AgentCapabilities"),
            "securitySchemes": {"type": "object", "additionalProperties": reference("SecurityScheme")},
            "securityRequirements": _array(reference("SecurityRequirement")),
            "defaultInputModes": _array(STRING, minItems=1),
            "defaultOutputModes": _array(STRING, minItems=1),
            "skills": _array(reference("AgentSkill"), minItems=1),
            "signatures": _array(reference("AgentCardSignature")),
        },
    ),
}

_ERRORS: Mapping[str, Schema] = {
    "ErrorInfo": _object(
        "@type reason domain metadata",
        {
            "@type": {"const": "type.googleapis.com/google.rpc.ErrorInfo"},
            "reason": {**STRING, "description": "What kind of error it is; programs decide by this."},
            "domain": STRING,
            "metadata": {"type": "object", "additionalProperties": STRING},
        },
    ),
    "BadRequest": _object(
        "@type fieldViolations",
        {
            "@type": {"const": "type.googleapis.com/google.rpc.BadRequest"},
            "fieldViolations": _array(
                _object("field description", {"field": STRING, "description": STRING}), minItems=1
            ),
        },
    ),
    "Error": _object(
        "error",
        {
            "error": _object(
                "code status message details",
                {
                    "code": {"type": "integer", "description": "The HTTP status."},
                    "status": {**STRING, "description": "The name of the google.rpc code."},
                    "message": STRING,
                    "details": _array(
                        {"oneOf": [reference("ErrorInfo"), reference("BadRequest")]}, minItems=1
                    ),
                },
            )
        },
        description="A google.rpc.Status (A2A 1.0 §11.6).",
    ),
}

SCHEMAS: Mapping[str, Schema] = {**_CONVERSATION, **_CALLS, **_CARD, **_ERRORS}
"""Every message by its name in the standard."""
