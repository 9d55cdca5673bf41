"""Reading a SendMessageRequest: what is wrong is refused by its path, before anything is stored."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.model import DataPart, Message, PushConfig, RawPart, Role, TextPart, UrlPart
from dragoman.model.errors import InvalidParams
from dragoman.model.operation import SendMessage
from dragoman.model.payload import ABSENT, pack
from dragoman.protocol.protojson import parse
from dragoman.protocol.v1_0.decode import decode_send

TEXT = {"text": "x"}
MESSAGE: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "parts": [TEXT]}


def read(message: Any, **request: Any) -> SendMessage:
    document = parse(json.dumps({"message": message, **request}).encode()).check()
    return decode_send(document, "demo")


def refused(message: Any, **request: Any) -> str:
    """Make sure that the request is refused for one field, and return its path."""
    with pytest.raises(InvalidParams) as refusal:
        read(message, **request)
    (violation,) = refusal.value.violations
    assert violation.description
    return violation.field


def test_the_least_message_is_read() -> None:
    request = read(MESSAGE)
    assert request == SendMessage(
        message=Message(message_id="m", role=Role.USER, parts=(TextPart(text="x"),)), generation="1.0"
    )
    assert (request.metadata, request.history_length, request.push) == (ABSENT, None, None)


def test_every_member_is_read() -> None:
    message = MESSAGE | {
        "contextId": "c",
        "taskId": "t",
        "metadata": {"role": 1},
        "extensions": ["urn:e"],
        "referenceTaskIds": ["r-1", "r-2"],
    }
    configuration = {
        "acceptedOutputModes": ["text/html", "text/plain"],
        "historyLength": 0,
        "returnImmediately": True,
        "taskPushNotificationConfig": {"url": "https://example.org"},
    }
    request = read(message, configuration=configuration, metadata={"n": 2**70}, tenant="demo")
    assert request == SendMessage(
        message=Message(
            message_id="m",
            role=Role.USER,
            parts=(TextPart(text="x"),),
            context_id="c",
            task_id="t",
            metadata=pack({"role": 1}),
            extensions=("urn:e",),
            reference_task_ids=("r-1", "r-2"),
        ),
        generation="1.0",
        accepted_output_modes=("text/html", "text/plain"),
        history_length=0,
        return_immediately=True,
        push=PushConfig(
            generation="1.0",
            url="https://example.org",
            task_id="t",
            place="configuration.taskPushNotificationConfig",
        ),
        metadata=pack({"n": 2**70}),
    )


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        ({"text": ""}, TextPart(text="")),
        ({"text": "a\0b", "raw": None, "url": None}, TextPart(text="a\0b")),
        ({"raw": ""}, RawPart(raw=b"")),
        ({"raw": "-_8"}, RawPart(raw=b"\xfb\xff")),
        ({"url": "file:///x", "filename": "x"}, UrlPart(url="file:///x", filename="x")),
        ({"data": None}, DataPart.of(None)),
        ({"data": {"kind": "text", "file": 1}}, DataPart.of({"kind": "text", "file": 1})),
        ({"data": 0, "media_type": "a/b"}, DataPart.of(0, media_type="a/b")),
        (
            {"text": "x", "metadata": {"kind": "x", "kind2": None}, "future": 1},
            TextPart(text="x", metadata=pack({"kind": "x", "kind2": None})),
        ),
    ],
)
def test_a_part_is_told_by_its_member(wire: Mapping[str, Any], part: Any) -> None:
    assert read(MESSAGE | {"parts": [wire, TEXT]}).message.parts == (part, TextPart(text="x"))


@pytest.mark.parametrize("role", ["ROLE_USER", 1])
def test_a_role_is_read_by_name_or_number(role: Any) -> None:
    assert read(MESSAGE | {"role": role}).message.role is Role.USER


PART_FAULTS: list[tuple[Any, str]] = [
    (5, ""),
    (None, ""),
    ("text", ""),
    ([], ""),
    ({}, ""),
    ({"filename": "x"}, ""),
    ({"text": None}, ""),
    ({"text": "a", "raw": "QQ=="}, ""),
    ({"text": "a", "data": None}, ""),
    ({"url": "https://e", "data": {}}, ""),
    ({"text": "a", "raw": "QQ==", "url": "u", "data": 1}, ""),
    ({"kind": "text", "text": "x"}, ".kind"),
    ({"kind": None, "text": "x"}, ".kind"),
    ({"kind": "file", "file": {"uri": "u"}}, ".kind"),
    ({"file": {"bytes": "QQ=="}}, ".file"),
    ({"text": "x", "file": None}, ".file"),
    ({"type": "text"}, ""),
    ({"text": 5}, ".text"),
    ({"text": True}, ".text"),
    ({"text": ["x"]}, ".text"),
    ({"text": {"text": "x"}}, ".text"),
    ({"raw": "@@@"}, ".raw"),
    ({"raw": "Q"}, ".raw"),
    ({"raw": 5}, ".raw"),
    ({"raw": ["QQ=="]}, ".raw"),
    ({"url": ""}, ".url"),
    ({"url": 5}, ".url"),
    ({"url": {}}, ".url"),
    ({"text": "x", "filename": 5}, ".filename"),
    ({"text": "x", "mediaType": 5}, ".mediaType"),
    ({"text": "x", "mediaType": "a/b", "media_type": "a/b"}, ".mediaType"),
    ({"text": "x", "metadata": []}, ".metadata"),
    ({"text": "x", "metadata": "{}"}, ".metadata"),
]


@pytest.mark.parametrize(("part", "path"), PART_FAULTS)
def test_a_wrong_part_is_refused_by_its_path_wherever_it_stands(part: Any, path: str) -> None:
    assert refused(MESSAGE | {"parts": [part]}) == f"message.parts[0]{path}"
    assert refused(MESSAGE | {"parts": [TEXT, TEXT, part, {}]}) == f"message.parts[2]{path}"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"messageId": None}, "message.messageId"),
        ({"messageId": ""}, "message.messageId"),
        ({"messageId": 5}, "message.messageId"),
        ({"messageId": "m" * 257}, "message.messageId"),
        ({"message_id": "m"}, "message.messageId"),
        ({"role": None}, "message.role"),
        ({"role": ""}, "message.role"),
        ({"role": "user"}, "message.role"),
        ({"role": "USER"}, "message.role"),
        ({"role": "role_user"}, "message.role"),
        ({"role": "ROLE_UNSPECIFIED"}, "message.role"),
        ({"role": "ROLE_AGENT"}, "message.role"),
        ({"role": "ROLE_SYSTEM"}, "message.role"),
        ({"role": 0}, "message.role"),
        ({"role": 2}, "message.role"),
        ({"role": 3}, "message.role"),
        ({"role": "1"}, "message.role"),
        ({"role": True}, "message.role"),
        ({"role": []}, "message.role"),
        ({"role": {"ROLE_USER": 1}}, "message.role"),
        ({"parts": None}, "message.parts"),
        ({"parts": []}, "message.parts"),
        ({"parts": TEXT}, "message.parts"),
        ({"parts": "x"}, "message.parts"),
        ({"parts": [TEXT] * 1001}, "message.parts"),
        ({"contextId": 5}, "message.contextId"),
        ({"contextId": "c" * 257}, "message.contextId"),
        ({"contextId": "c", "context_id": "c"}, "message.contextId"),
        ({"taskId": ["t"]}, "message.taskId"),
        ({"task_id": 5}, "message.taskId"),
        ({"taskId": "t" * 257}, "message.taskId"),
        ({"metadata": []}, "message.metadata"),
        ({"metadata": 5}, "message.metadata"),
        ({"extensions": "urn:e"}, "message.extensions"),
        ({"extensions": ["urn:e", 5]}, "message.extensions[1]"),
        ({"extensions": [None]}, "message.extensions[0]"),
        ({"referenceTaskIds": {"0": "t"}}, "message.referenceTaskIds"),
        ({"reference_task_ids": [5]}, "message.referenceTaskIds[0]"),
    ],
)
def test_a_wrong_message_is_refused_by_its_path(change: dict[str, Any], path: str) -> None:
    assert refused(MESSAGE | change) == path


@pytest.mark.parametrize("missing", ["messageId", "role", "parts"])
def test_a_message_without_a_required_member_is_refused_by_its_path(missing: str) -> None:
    assert (
        refused({name: value for name, value in MESSAGE.items() if name != missing}) == f"message.{missing}"
    )


@pytest.mark.parametrize("message", [None, [], "x", 5, True])
def test_a_request_without_a_message_is_refused(message: Any) -> None:
    assert refused(message) == "message"
    with pytest.raises(InvalidParams, match="message: is required"):
        decode_send({}, "demo")


@pytest.mark.parametrize(
    ("request_members", "path"),
    [
        ({"tenant": "other"}, "tenant"),
        ({"tenant": 5}, "tenant"),
        ({"tenant": "Demo"}, "tenant"),
        ({"metadata": []}, "metadata"),
        ({"metadata": "x"}, "metadata"),
        ({"configuration": []}, "configuration"),
        ({"configuration": True}, "configuration"),
        ({"configuration": {"acceptedOutputModes": "text/plain"}}, "configuration.acceptedOutputModes"),
        ({"configuration": {"acceptedOutputModes": [5]}}, "configuration.acceptedOutputModes[0]"),
        ({"configuration": {"accepted_output_modes": {}}}, "configuration.acceptedOutputModes"),
        ({"configuration": {"historyLength": -1}}, "configuration.historyLength"),
        ({"configuration": {"historyLength": 1.5}}, "configuration.historyLength"),
        ({"configuration": {"historyLength": True}}, "configuration.historyLength"),
        ({"configuration": {"historyLength": 2**31}}, "configuration.historyLength"),
        ({"configuration": {"history_length": "many"}}, "configuration.historyLength"),
        ({"configuration": {"returnImmediately": "true"}}, "configuration.returnImmediately"),
        ({"configuration": {"returnImmediately": 1}}, "configuration.returnImmediately"),
        ({"configuration": {"taskPushNotificationConfig": []}}, "configuration.taskPushNotificationConfig"),
    ],
)
def test_a_wrong_request_is_refused_by_its_path(request_members: dict[str, Any], path: str) -> None:
    assert refused(MESSAGE, **request_members) == path


@pytest.mark.parametrize("tenant", [None, "", "demo"])
def test_the_agent_itself_may_be_named_as_tenant(tenant: Any) -> None:
    assert read(MESSAGE, tenant=tenant) == read(MESSAGE)


def test_ids_may_have_256_characters_of_any_kind() -> None:
    identifier = "\U0001f680:/" * 85 + "x"
    message = read(MESSAGE | {"messageId": identifier, "contextId": identifier, "taskId": identifier}).message
    assert (message.message_id, message.context_id, message.task_id) == (identifier,) * 3


def test_a_message_may_have_a_thousand_parts() -> None:
    assert len(read(MESSAGE | {"parts": [TEXT] * 1000}).message.parts) == 1000
