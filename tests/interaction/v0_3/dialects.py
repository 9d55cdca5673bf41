"""The two JSON forms of A2A 0.3 as a client knows them: with kinds (the schema), and ProtoJSON (the proto).

Tests write parameters and compare results in the form with kinds. `Proto` turns one into the other, and reads as
strictly as an official client does: a member that the proto lacks fails the test, and so does one that is missing.
"""

import base64
import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

Json = dict[str, Any]

STATES = "submitted working input-required completed canceled failed rejected auth-required".split()

_TASK = ({"id", "contextId", "status"}, {"history", "artifacts", "metadata"})
_STATUS = ({"state", "timestamp"}, {"message"})
_ARTIFACT = ({"artifactId", "parts"}, {"name", "description", "metadata", "extensions"})
_MESSAGE = ({"messageId", "role"}, {"contextId", "taskId", "metadata", "extensions"})
_STATUS_UPDATE = ({"taskId", "contextId", "status"}, {"final", "metadata"})
_ARTIFACT_UPDATE = ({"taskId", "contextId", "artifact"}, {"append", "lastChunk", "metadata"})
_NAMED = {"name", "mimeType"}


class Dialect(Protocol):
    """One form: how parameters of an operation are written, and how results are read."""

    def write(self, operation: str, params: Json) -> Json:
        """Parameters, given in the form with kinds, as this form has them."""
        ...

    def answer(self, value: Any) -> Json:
        """The Task or Message in the answer to a send, in the form with kinds."""
        ...

    def task(self, value: Any) -> Json:
        """A Task."""
        ...

    def item(self, value: Any) -> Json:
        """A result of a stream."""
        ...


def has(value: Any, required: Iterable[str], optional: Iterable[str] = ()) -> Json:
    """Check that an object has all of the required members and no unknown ones, and return it."""
    assert isinstance(value, dict), value
    missing, unknown = set(required) - set(value), set(value) - set(required) - set(optional)
    assert not missing and not unknown, f"missing {missing}, unknown {unknown} in {str(value)[:500]}"
    return value


class Kinds:
    """JSON with `kind` members: seed A's places and JSON-RPC."""

    def write(self, operation: str, params: Json) -> Json:
        """See `Dialect`."""
        return params

    def answer(self, value: Any) -> Json:
        """See `Dialect`."""
        return self.task(value) if value.get("kind") == "task" else self.message(value)

    def task(self, value: Any) -> Json:
        """See `Dialect`."""
        has(value, {"kind", *_TASK[0]}, _TASK[1])
        assert value["kind"] == "task"
        self._status(value["status"])
        for artifact in value.get("artifacts", []):
            self._artifact(artifact)
        for message in value.get("history", []):
            self.message(message)
        return dict(value)

    def item(self, value: Any) -> Json:
        """See `Dialect`."""
        if value["kind"] == "status-update":
            required, optional = _STATUS_UPDATE
            # Official clients refuse a status update without `final`.
            has(value, {"kind", "final", *required}, optional)
            assert isinstance(value["final"], bool), value
            self._status(value["status"])
        elif value["kind"] == "artifact-update":
            required, optional = _ARTIFACT_UPDATE
            has(value, {"kind", *required}, optional)
            self._artifact(value["artifact"])
        else:
            return self.answer(value)
        return dict(value)

    def message(self, value: Any) -> Json:
        """A Message."""
        required, optional = _MESSAGE
        has(value, {"kind", "parts", *required}, {"referenceTaskIds", *optional})
        assert value["kind"] == "message" and value["role"] in ("user", "agent"), value
        for part in value["parts"]:
            self._part(part)
        return dict(value)

    def _status(self, value: Any) -> None:
        has(value, *_STATUS)
        assert value["state"] in STATES, value
        if "message" in value:
            self.message(value["message"])

    def _artifact(self, value: Any) -> None:
        has(value, *_ARTIFACT)
        for part in value["parts"]:
            self._part(part)

    def _part(self, value: Any) -> None:
        kind = value["kind"]
        has(value, {"kind", kind}, {"metadata"})
        if kind == "file":
            file = value["file"]
            has(file, {"bytes" if "bytes" in file else "uri"}, _NAMED)
        elif kind == "data":
            assert isinstance(value["data"], dict), value
        else:
            assert kind == "text" and isinstance(value["text"], str), value


class Proto:
    """The ProtoJSON of the 0.3 proto: official HTTP+JSON clients."""

    def __init__(self, *, doubled: bool = False, spelling: Callable[[str], str] = str) -> None:
        """Write files `doubled`, as Python SDKs do it, and names in another `spelling`."""
        self._doubled = doubled
        self._spelling = spelling

    def write(self, operation: str, params: Json) -> Json:
        """See `Dialect`."""
        made = dict(params)
        if "message" in made:
            made["message"] = self._write_message(made["message"])
        if "configuration" in made:
            configuration = dict(made["configuration"])
            if "pushNotificationConfig" in configuration:
                configuration["pushNotification"] = configuration.pop("pushNotificationConfig")
            made["configuration"] = self._spelt(configuration)
        return self._spelt(made)

    def answer(self, value: Any) -> Json:
        """See `Dialect`."""
        assert len(value) == 1, value
        return self.task(value["task"]) if "task" in value else self._message(value["message"])

    def task(self, value: Any) -> Json:
        """See `Dialect`."""
        made = has(value, *_TASK) | {"kind": "task", "status": self._status(value["status"])}
        if "artifacts" in value:
            made["artifacts"] = [self._artifact(artifact) for artifact in value["artifacts"]]
        if "history" in value:
            made["history"] = [self._message(message) for message in value["history"]]
        return made

    def item(self, value: Any) -> Json:
        """See `Dialect`."""
        assert len(value) == 1, value
        if "statusUpdate" in value:
            update = has(value["statusUpdate"], *_STATUS_UPDATE)
            # In proto3 `false` is the same as absent.
            made = {"kind": "status-update", "final": False} | update
            return made | {"status": self._status(update["status"])}
        if "artifactUpdate" in value:
            update = has(value["artifactUpdate"], *_ARTIFACT_UPDATE)
            return {"kind": "artifact-update"} | update | {"artifact": self._artifact(update["artifact"])}
        return self.answer(value)

    def _message(self, value: Any) -> Json:
        required, optional = _MESSAGE
        made = {"kind": "message"} | has(value, {"content", *required}, optional)
        made["role"] = {"ROLE_USER": "user", "ROLE_AGENT": "agent"}[value["role"]]
        made["parts"] = [self._part(part) for part in made.pop("content")]
        return made

    def _status(self, value: Any) -> Json:
        name = has(value, *_STATUS)["state"].removeprefix("TASK_STATE_").lower().replace("_", "-")
        made = value | {"state": {"cancelled": "canceled"}.get(name, name)}
        assert made["state"] in STATES and name != "canceled", value
        if "message" in value:
            made["message"] = self._message(value["message"])
        return made

    def _artifact(self, value: Any) -> Json:
        made: Json = has(value, *_ARTIFACT) | {"parts": [self._part(part) for part in value["parts"]]}
        return made

    def _part(self, value: Any) -> Json:
        (kind,) = set(value) - {"metadata"}
        made: Json = {"kind": kind, **value}
        if kind == "file":
            file = value["file"]
            place = "fileWithBytes" if "fileWithBytes" in file else "fileWithUri"
            made["file"] = dict(has(file, {place}, _NAMED))
            content = made["file"].pop(place)
            if place == "fileWithBytes" and self._doubled:
                content = base64.b64decode(content, validate=True).decode("ascii")
            made["file"]["bytes" if place == "fileWithBytes" else "uri"] = content
        elif kind == "data":
            made["data"] = has(value["data"], {"data"})["data"]
            assert isinstance(made["data"], dict), value
        else:
            assert kind == "text" and isinstance(value["text"], str), value
        return made

    def _write_message(self, message: Json) -> Json:
        made = {name: value for name, value in message.items() if name != "kind"}
        if "role" in made:
            made["role"] = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}.get(made["role"], made["role"])
        if "parts" in made:
            made["content"] = [self._write_part(part) for part in made.pop("parts")]
        return self._spelt(made)

    def _write_part(self, part: Json) -> Json:
        made = {name: value for name, value in part.items() if name != "kind"}
        if part["kind"] == "data":
            made["data"] = {"data": made["data"]}
        elif part["kind"] == "file":
            file = dict(made["file"])
            if "bytes" in file:
                content = file.pop("bytes")
                doubled = base64.b64encode(content.encode()).decode() if self._doubled else content
                file["fileWithBytes"] = doubled
            if "uri" in file:
                file["fileWithUri"] = file.pop("uri")
            made["file"] = self._spelt(file)
        return made

    def _spelt(self, value: Json) -> Json:
        return {self._spelling(name): inner for name, inner in value.items()}


def snake(name: str) -> str:
    """A name in snake_case."""
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)
