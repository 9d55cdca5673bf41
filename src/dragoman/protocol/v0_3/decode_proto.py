"""A2A 0.3 requests in the ProtoJSON of the 0.3 proto to the model: what official 0.3 clients send over HTTP+JSON.

Names are read in both spellings. Being implicit in proto3, `false` and `0` are never sent: a configuration without
`blocking` does not wait, and a history length of 0 is none that was asked for.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import structs

from dragoman.model import Part, RawPart, UrlPart
from dragoman.model.operation import CancelTask, GetTask, SendMessage, SubscribeToTask
from dragoman.protocol.protojson import Fields
from dragoman.protocol.requests import Speech, read_message
from dragoman.protocol.v0_3 import decode
from dragoman.protocol.v0_3.decode import ONLY_1_0, one_of, refuse_members
from dragoman.protocol.v0_3.parts import data_part, text_part
from dragoman.protocol.v0_3.push import GENERATION, read_push_config

_CONTENT: Mapping[str, str] = MappingProxyType({"text": "text", "file": "file", "data": "data"})
_FILE: Mapping[str, str] = MappingProxyType(
    {
        "fileWithBytes": "bytes",
        "file_with_bytes": "bytes",
        "fileWithUri": "uri",
        "file_with_uri": "uri",
    }
)


class Reader:
    """Reads requests of one kind of client.

    Python SDKs put the base64 text of a file into the proto's bytes, so their JSON holds base64 of base64.
    """

    def __init__(self, *, doubled: bool) -> None:
        """Read files as they are, or `doubled` as Python SDKs send them."""
        self._doubled = doubled
        self._speech = Speech(
            user=("ROLE_USER", 1),
            agent=("ROLE_AGENT", 2),
            foreign=("user", "agent"),
            parts="content",
            part=self.read_part,
        )

    def decode_send(self, params: dict[str, Any], agent: str) -> SendMessage:
        """Read a SendMessageRequest.

        Raises:
            InvalidParams: a field is wrong.
        """
        request = Fields(params)
        message = request.fields("message", "request")
        if message is None:
            raise request.wrong("message", "is required")
        modes: tuple[str, ...] = ()
        history, blocking, push = None, True, None
        configuration = request.fields("configuration")
        if configuration is not None:
            modes = configuration.strings("acceptedOutputModes", "accepted_output_modes")
            history = configuration.integer("historyLength", "history_length", low=0) or None
            blocking = configuration.boolean("blocking")
            push = configuration.fields("pushNotification", "push_notification")
        said = read_message(message, self._speech)
        return SendMessage(
            message=said,
            generation=GENERATION,
            accepted_output_modes=modes,
            history_length=history,
            return_immediately=not blocking,
            push=read_push_config(push, said.task_id) if push is not None else None,
            metadata=request.payload("metadata"),
        )

    def read_part(self, fields: Fields) -> Part:
        """Read a part, of either side.

        Raises:
            InvalidParams: it is none of this form.
        """
        refuse_members(
            fields,
            ("kind", *ONLY_1_0),
            "is no member of a part in 0.3 ProtoJSON, which has exactly one of text, file and data",
        )
        match one_of(fields, _CONTENT, "text, file and data"):
            case "text":
                return text_part(fields)
            case "data":
                data = fields.fields("data")
                return data_part(fields, data.get("data") if data is not None else None, "data.data")
            case _:
                return self._file(fields)

    def _file(self, fields: Fields) -> Part:
        file = fields.fields("file")
        if file is None:
            raise fields.wrong("file", "must be an object")
        name = one_of(file, _FILE, "fileWithBytes and fileWithUri")
        filename, media_type = file.string("name"), file.string("mimeType", "mime_type")
        metadata = fields.payload("metadata")
        if _FILE[name] == "uri":
            return UrlPart(
                url=file.required(name), filename=filename, media_type=media_type, metadata=metadata
            )
        raw = file.bytes(name)
        if self._doubled:
            raw = Fields({name: raw.decode("latin-1")}, file.path).bytes(name)
        return RawPart(raw=raw, filename=filename, media_type=media_type, metadata=metadata)


def decode_get(params: dict[str, Any], agent: str) -> GetTask:
    """Read a GetTaskRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = decode.decode_get(params, agent)
    return structs.replace(request, history_length=request.history_length or None)


def decode_cancel(params: dict[str, Any], agent: str) -> CancelTask:
    """Read a CancelTaskRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = decode.decode_cancel(params, agent)
    _check_name(Fields(params), request.task_id)
    return request


def decode_subscribe(params: dict[str, Any], agent: str) -> SubscribeToTask:
    """Read a TaskSubscriptionRequest.

    Raises:
        InvalidParams: a field is wrong.
    """
    request = decode.decode_subscribe(params, agent)
    _check_name(Fields(params), request.task_id)
    return request


def _check_name(fields: Fields, task_id: str) -> None:
    """Refuse a body that names, as a resource, another task than the path does."""
    if fields.string("name") not in ("", f"tasks/{task_id}"):
        raise fields.wrong("name", "must be the task in the path, as tasks/ID, or be left out")
