"""What a 1.0 message may not be: each fault is refused before anything is stored, and the wrong field is named."""

from typing import Any

import pytest

from tests.interaction.answers import PARAMS, refused
from tests.interaction.callers import Caller
from tests.interaction.messages import message, new_id, send_params
from tests.interaction.requirements import covers

TEXT = {"text": "x"}

PARTS: list[tuple[Any, str]] = [
    ([{"kind": "text", "text": "x"}], "message.parts[0].kind"),
    ([{"kind": None, "text": "x"}], "message.parts[0].kind"),
    ([{"kind": "data", "data": {}}], "message.parts[0].kind"),
    ([{"kind": "file", "file": {"bytes": "QQ=="}}], "message.parts[0].kind"),
    ([{"file": {"uri": "https://example.com/a"}, "url": "https://example.com/a"}], "message.parts[0].file"),
    ([TEXT, {"kind": "text", "text": "y"}], "message.parts[1].kind"),
    ([TEXT, {"file": {"bytes": "QQ=="}}], "message.parts[1].file"),
    ([{"text": "x", "url": "https://example.com/a"}], "message.parts[0]"),
    ([{"raw": "QQ==", "data": 1}], "message.parts[0]"),
    ([{"text": "x", "data": None}], "message.parts[0]"),
    ([{"text": "x", "raw": "QQ==", "url": "https://example.com/a", "data": 1}], "message.parts[0]"),
    ([{}], "message.parts[0]"),
    ([{"text": None}], "message.parts[0]"),
    ([{"mediaType": "text/plain", "filename": "a"}], "message.parts[0]"),
    ([{"unknown": 1}], "message.parts[0]"),
    ([TEXT, TEXT, {}], "message.parts[2]"),
    (["x"], "message.parts[0]"),
    ([None], "message.parts[0]"),
    ([TEXT, 3], "message.parts[1]"),
    ([[TEXT]], "message.parts[0]"),
    ([], "message.parts"),
    (None, "message.parts"),
    ({"text": "x"}, "message.parts"),
    ("x", "message.parts"),
    ([{"text": 5}], "message.parts[0].text"),
    ([{"text": ["x"]}], "message.parts[0].text"),
    ([{"text": False}], "message.parts[0].text"),
    ([{"url": 5}], "message.parts[0].url"),
    ([{"url": ""}], "message.parts[0].url"),
    ([{"url": {"a": 1}}], "message.parts[0].url"),
    ([{"text": "x", "mediaType": 5}], "message.parts[0].mediaType"),
    ([{"text": "x", "filename": []}], "message.parts[0].filename"),
    ([{"text": "x", "metadata": []}], "message.parts[0].metadata"),
    ([{"text": "x", "metadata": "m"}], "message.parts[0].metadata"),
]

BASE64 = [
    "***",
    "Q",
    "Q===",
    "QUJDR",
    "QQ\n",
    " QQ==",
    "QQ== ",
    "QQ==QQ==",
    "é",
    "Q\u0000Q=",
    "QUI=\n",
    "@@@@",
    "QUI.=",
]
PADDING = ["=", "==", "AAAA=", "AAAA==", "QUI==", "QQ=", "QQ==="]


@covers("parts.one-member", "parts.no-legacy", "fields.types")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("parts", "field"), PARTS, ids=lambda value: str(value)[:60])
def test_wrong_parts_are_refused_by_name(caller: Caller, parts: Any, field: str) -> None:
    refused(caller.call("SendMessage", send_params(parts=parts)), PARAMS, fields=[field], identifier=1)


@covers("parts.base64")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("raw", [*BASE64, 5, True, [1, 2], {"a": 1}], ids=repr)
def test_raw_content_that_is_no_base64_is_refused(caller: Caller, raw: Any) -> None:
    reply = caller.call("SendMessage", send_params(parts=[{"raw": raw}]))
    refused(reply, PARAMS, fields=["message.parts[0].raw"], identifier=1)


@covers("parts.base64")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("raw", PADDING)
def test_raw_content_with_wrong_padding_is_refused(caller: Caller, raw: str) -> None:
    reply = caller.call("SendMessage", send_params(parts=[{"raw": raw}]))
    refused(reply, PARAMS, fields=["message.parts[0].raw"], identifier=1)


ROLES: list[Any] = [
    *(
        "ROLE_AGENT",
        2,
        "user",
        "agent",
        "USER",
        "ROLE_UNSPECIFIED",
        "ROLE_MODEL",
        "",
        0,
        3,
        -1,
        1.5,
        True,
        "1",
    ),
    *(None, [], {}, ["ROLE_USER"]),
]


@covers("message.role")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("role", ROLES, ids=repr)
def test_a_caller_speaks_as_the_user_and_as_nobody_else(caller: Caller, role: Any) -> None:
    reply = caller.call("SendMessage", send_params(role=role))
    refused(reply, PARAMS, fields=["message.role"], identifier=1)


MEMBERS: list[tuple[dict[str, Any], str]] = [
    ({"messageId": ""}, "message.messageId"),
    ({"messageId": None}, "message.messageId"),
    ({"messageId": 5}, "message.messageId"),
    ({"messageId": ["a"]}, "message.messageId"),
    ({"messageId": "x" * 257}, "message.messageId"),
    ({"contextId": 5}, "message.contextId"),
    ({"contextId": {}}, "message.contextId"),
    ({"contextId": "x" * 257}, "message.contextId"),
    ({"taskId": False}, "message.taskId"),
    ({"taskId": "x" * 257}, "message.taskId"),
    ({"metadata": []}, "message.metadata"),
    ({"metadata": "m"}, "message.metadata"),
    ({"metadata": 3}, "message.metadata"),
    ({"extensions": "urn:x"}, "message.extensions"),
    ({"extensions": [1]}, "message.extensions[0]"),
    ({"extensions": ["urn:x", None]}, "message.extensions[1]"),
    ({"referenceTaskIds": "t"}, "message.referenceTaskIds"),
    ({"referenceTaskIds": [{}]}, "message.referenceTaskIds[0]"),
    ({"message_id": "again"}, "message.messageId"),
    ({"contextId": "a", "context_id": "a"}, "message.contextId"),
    ({"taskId": "a", "task_id": "b"}, "message.taskId"),
    ({"referenceTaskIds": [], "reference_task_ids": []}, "message.referenceTaskIds"),
    ({"parts": [{"text": "x", "mediaType": "a/b", "media_type": "a/b"}]}, "message.parts[0].mediaType"),
]


@covers("message.members", "fields.types", "fields.both-spellings")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("members", "field"), MEMBERS, ids=lambda value: str(value)[:60])
def test_wrong_members_of_a_message_are_refused_by_name(
    caller: Caller, members: dict[str, Any], field: str
) -> None:
    refused(caller.call("SendMessage", send_params(**members)), PARAMS, fields=[field], identifier=1)


@covers("message.members")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("missing", ["messageId", "role", "parts"])
def test_a_required_member_that_is_missing_is_named(caller: Caller, missing: str) -> None:
    content = message()
    del content[missing]
    reply = caller.call("SendMessage", {"message": content})
    refused(reply, PARAMS, fields=[f"message.{missing}"], identifier=1)


@covers("message.members")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("params", [{}, {"message": None}, {"message": []}, {"message": "x"}, {"message": 3}])
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_a_send_needs_a_message(caller: Caller, operation: str, params: dict[str, Any]) -> None:
    refused(caller.call(operation, params), PARAMS, fields=["message"], identifier=1)


CONFIGURATIONS: list[tuple[Any, str]] = [
    ([], "configuration"),
    ("x", "configuration"),
    (True, "configuration"),
    ({"acceptedOutputModes": "text/plain"}, "configuration.acceptedOutputModes"),
    ({"acceptedOutputModes": [1]}, "configuration.acceptedOutputModes[0]"),
    ({"historyLength": -1}, "configuration.historyLength"),
    ({"historyLength": "many"}, "configuration.historyLength"),
    ({"historyLength": 1.5}, "configuration.historyLength"),
    ({"historyLength": True}, "configuration.historyLength"),
    ({"historyLength": []}, "configuration.historyLength"),
    ({"historyLength": 2**31}, "configuration.historyLength"),
    ({"historyLength": 10**30}, "configuration.historyLength"),
    ({"returnImmediately": "true"}, "configuration.returnImmediately"),
    ({"returnImmediately": 1}, "configuration.returnImmediately"),
    ({"taskPushNotificationConfig": 5}, "configuration.taskPushNotificationConfig"),
    ({"returnImmediately": True, "return_immediately": True}, "configuration.returnImmediately"),
    ({"historyLength": 1, "history_length": 1}, "configuration.historyLength"),
]


@covers("fields.types", "fields.both-spellings", "history.negative")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("configuration", "field"), CONFIGURATIONS, ids=lambda value: str(value)[:60])
def test_a_wrong_configuration_is_refused_by_name(caller: Caller, configuration: Any, field: str) -> None:
    reply = caller.call("SendMessage", send_params(configuration=configuration))
    refused(reply, PARAMS, fields=[field], identifier=1)


@covers("fields.types")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("metadata", [[], "m", 3, True])
def test_request_metadata_must_be_an_object(caller: Caller, metadata: Any) -> None:
    params = {**send_params(), "metadata": metadata}
    refused(caller.call("SendMessage", params), PARAMS, fields=["metadata"], identifier=1)


@covers("tenant.own")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("tenant", ["other", "DEMO", "demo/", "local", " demo", 5, ["demo"]])
@pytest.mark.parametrize(
    "operation",
    ["SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"],
)
def test_a_tenant_that_is_not_the_agent_is_refused(caller: Caller, operation: str, tenant: Any) -> None:
    if caller.binding == "http" and not isinstance(tenant, str) and operation in ("GetTask", "ListTasks"):
        tenant = str(tenant)
    params = (
        send_params() if operation.startswith("Send") else {} if operation == "ListTasks" else {"id": "x"}
    )
    reply = caller.call(operation, {**params, "tenant": tenant})
    refused(reply, PARAMS, fields=["tenant"], identifier=1)


@covers("tenant.own")
def test_the_agent_itself_may_be_named_as_the_tenant(caller: Caller) -> None:
    task = caller.call("SendMessage", {**send_params(), "tenant": "demo"}).task
    assert caller.call("GetTask", {"id": task["id"], "tenant": "demo"}).result["id"] == task["id"]
    assert caller.call("ListTasks", {"contextId": new_id(), "tenant": "demo"}).result["tasks"] == []
