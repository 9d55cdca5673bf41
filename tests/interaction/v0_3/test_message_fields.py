"""What a 0.3 message may not be: each fault is refused before anything is stored, and the wrong field is named.

Parts are written here as each form has them; `kinds` goes over the places of one form, `official` over the other's.
"""

from typing import Any

import pytest

from tests.interaction.v0_3.answers import PARAMS, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import message, send_params, text_part
from tests.interaction.v0_3.requirements import covers

TEXT = {"kind": "text", "text": "x"}
FILE = {"bytes": "QQ=="}

PARTS: list[tuple[Any, str]] = [
    ([{"text": "x"}], "message.parts[0].kind"),
    ([{"kind": None, "text": "x"}], "message.parts[0].kind"),
    ([{"kind": "", "text": "x"}], "message.parts[0].kind"),
    ([{"kind": "image", "text": "x"}], "message.parts[0].kind"),
    ([{"kind": "Text", "text": "x"}], "message.parts[0].kind"),
    ([{"kind": ["text"], "text": "x"}], "message.parts[0].kind"),
    ([{"type": "text", "text": "x"}], "message.parts[0].kind"),
    ([{"kind": "text"}], "message.parts[0]"),
    ([{"kind": "text", "text": None}], "message.parts[0]"),
    ([{"kind": "text", "data": {}}], "message.parts[0]"),
    ([{"kind": "file", "text": "x"}], "message.parts[0]"),
    ([{"kind": "data", "file": FILE}], "message.parts[0]"),
    ([{"kind": "text", "text": "x", "data": {}}], "message.parts[0]"),
    ([{"kind": "text", "text": "x", "file": FILE}], "message.parts[0]"),
    ([{"kind": "data", "data": {}, "file": FILE}], "message.parts[0]"),
    ([{"kind": "text", "text": 5}], "message.parts[0].text"),
    ([{"kind": "text", "text": ["x"]}], "message.parts[0].text"),
    ([{"kind": "data", "data": []}], "message.parts[0].data"),
    ([{"kind": "data", "data": "x"}], "message.parts[0].data"),
    ([{"kind": "data", "data": 5}], "message.parts[0].data"),
    ([{"kind": "data", "data": False}], "message.parts[0].data"),
    ([{"kind": "file", "file": "x"}], "message.parts[0].file"),
    ([{"kind": "file", "file": []}], "message.parts[0].file"),
    ([{"kind": "file", "file": {}}], "message.parts[0].file"),
    ([{"kind": "file", "file": {"bytes": None}}], "message.parts[0].file"),
    ([{"kind": "file", "file": {"name": "a", "mimeType": "a/b"}}], "message.parts[0].file"),
    ([{"kind": "file", "file": {"bytes": "QQ==", "uri": "https://e.example"}}], "message.parts[0].file"),
    ([{"kind": "file", "file": {"bytes": "QQ==", "fileWithBytes": "QQ=="}}], "message.parts[0].file"),
    ([{"kind": "file", "file": {"uri": ""}}], "message.parts[0].file.uri"),
    ([{"kind": "file", "file": {"uri": 5}}], "message.parts[0].file.uri"),
    ([{"kind": "file", "file": {"bytes": "QQ==", "name": 5}}], "message.parts[0].file.name"),
    ([{"kind": "file", "file": {"bytes": "QQ==", "mimeType": []}}], "message.parts[0].file.mimeType"),
    ([{**TEXT, "metadata": []}], "message.parts[0].metadata"),
    ([{**TEXT, "metadata": "m"}], "message.parts[0].metadata"),
    ([{"kind": "file", "file": FILE, "metadata": 3}], "message.parts[0].metadata"),
    ([TEXT, TEXT, {}], "message.parts[2].kind"),
    ([TEXT, 3], "message.parts[1]"),
    (["x"], "message.parts[0]"),
    ([None], "message.parts[0]"),
    ([[TEXT]], "message.parts[0]"),
    ([], "message.parts"),
    (None, "message.parts"),
    (TEXT, "message.parts"),
    ("x", "message.parts"),
    ([TEXT] * 1001, "message.parts"),
]

NEWER_PARTS: list[tuple[Any, str]] = [
    ([{"kind": "text", "text": "x", "mediaType": "text/plain"}], "message.parts[0].mediaType"),
    ([{"kind": "text", "text": "x", "media_type": "text/plain"}], "message.parts[0].media_type"),
    ([{"kind": "text", "text": "x", "filename": "a"}], "message.parts[0].filename"),
    ([{"kind": "text", "text": "x", "filename": None}], "message.parts[0].filename"),
    ([{"kind": "text", "text": "x", "raw": "QQ=="}], "message.parts[0].raw"),
    ([{"kind": "text", "text": "x", "url": None}], "message.parts[0].url"),
    ([{"kind": "file", "raw": "QQ=="}], "message.parts[0].raw"),
    ([{"kind": "file", "url": "https://e.example"}], "message.parts[0].url"),
    ([{"raw": "QQ=="}], "message.parts[0].raw"),
    ([{"url": "https://e.example"}], "message.parts[0].url"),
    ([TEXT, {"text": "y", "mediaType": "text/plain"}], "message.parts[1].mediaType"),
    ([TEXT, {"text": "y"}], "message.parts[1].kind"),
]


@covers("parts.faults")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("parts", "field"), PARTS, ids=lambda value: str(value)[:60])
def test_wrong_parts_with_kinds_are_refused_by_name(form_with_kinds: Caller, parts: Any, field: str) -> None:
    reply = form_with_kinds.call("SendMessage", send_params(parts=parts))
    refused(reply, PARAMS, fields=[field], identifier=1)


@covers("parts.newer")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("parts", "field"), NEWER_PARTS, ids=lambda value: str(value)[:60])
def test_members_of_1_0_parts_are_refused_by_name(form_with_kinds: Caller, parts: Any, field: str) -> None:
    reply = form_with_kinds.call("SendMessage", send_params(parts=parts))
    refused(reply, PARAMS, fields=[field], identifier=1)


PROTO_TEXT = {"text": "x"}

CONTENT: list[tuple[Any, str]] = [
    ([{}], "message.content[0]"),
    ([{"text": None}], "message.content[0]"),
    ([{"metadata": {}}], "message.content[0]"),
    ([{"unknown": 1}], "message.content[0]"),
    ([{"text": "x", "data": {"data": {}}}], "message.content[0]"),
    ([{"text": "x", "file": {"fileWithBytes": "QQ=="}}], "message.content[0]"),
    ([{"text": 5}], "message.content[0].text"),
    ([{"text": ["x"]}], "message.content[0].text"),
    ([{"data": []}], "message.content[0].data"),
    ([{"data": "x"}], "message.content[0].data"),
    ([{"data": {}}], "message.content[0].data.data"),
    ([{"data": {"a": 1}}], "message.content[0].data.data"),
    ([{"data": {"data": None}}], "message.content[0].data.data"),
    ([{"data": {"data": [1]}}], "message.content[0].data.data"),
    ([{"data": {"data": "x"}}], "message.content[0].data.data"),
    ([{"file": "x"}], "message.content[0].file"),
    ([{"file": {}}], "message.content[0].file"),
    ([{"file": {"bytes": "QQ=="}}], "message.content[0].file"),
    ([{"file": {"uri": "https://e.example"}}], "message.content[0].file"),
    (
        [{"file": {"fileWithBytes": "UVE9PQ==", "fileWithUri": "https://e.example"}}],
        "message.content[0].file",
    ),
    ([{"file": {"fileWithBytes": "QQ==", "file_with_bytes": "QQ=="}}], "message.content[0].file"),
    ([{"file": {"fileWithUri": ""}}], "message.content[0].file.fileWithUri"),
    ([{"file": {"file_with_uri": 5}}], "message.content[0].file.file_with_uri"),
    ([{"file": {"fileWithUri": "x", "name": 5}}], "message.content[0].file.name"),
    ([{"file": {"fileWithUri": "x", "mimeType": 5}}], "message.content[0].file.mimeType"),
    (
        [{"file": {"fileWithUri": "x", "mimeType": "a/b", "mime_type": "a/b"}}],
        "message.content[0].file.mimeType",
    ),
    ([{"text": "x", "metadata": []}], "message.content[0].metadata"),
    ([PROTO_TEXT, PROTO_TEXT, {}], "message.content[2]"),
    ([PROTO_TEXT, 3], "message.content[1]"),
    (["x"], "message.content[0]"),
    ([None], "message.content[0]"),
    ([], "message.content"),
    (None, "message.content"),
    (PROTO_TEXT, "message.content"),
    ([PROTO_TEXT] * 1001, "message.content"),
]

FOREIGN_CONTENT: list[tuple[Any, str]] = [
    ([{"kind": "text", "text": "x"}], "message.content[0].kind"),
    ([{"kind": None, "text": "x"}], "message.content[0].kind"),
    ([{"kind": "file", "file": {"bytes": "QQ=="}}], "message.content[0].kind"),
    ([{"text": "x", "mediaType": "text/plain"}], "message.content[0].mediaType"),
    ([{"text": "x", "media_type": "text/plain"}], "message.content[0].media_type"),
    ([{"text": "x", "filename": "a"}], "message.content[0].filename"),
    ([{"raw": "QQ=="}], "message.content[0].raw"),
    ([{"url": "https://e.example"}], "message.content[0].url"),
    ([{"text": "x", "raw": None}], "message.content[0].raw"),
    ([PROTO_TEXT, {"kind": "text", "text": "y"}], "message.content[1].kind"),
]


def native(**members: Any) -> dict[str, Any]:
    """A message in ProtoJSON; `members` come over what it has."""
    made = message()
    return {"messageId": made["messageId"], "role": "ROLE_USER", "content": [PROTO_TEXT], **members}


@covers("parts.faults")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("content", "field"), CONTENT, ids=lambda value: str(value)[:60])
def test_wrong_parts_in_proto_are_refused_by_name(form_in_proto: Caller, content: Any, field: str) -> None:
    reply = form_in_proto.call("SendMessage", {"message": native(content=content)}, as_is=True)
    refused(reply, PARAMS, fields=[field])


@covers("parts.newer")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("content", "field"), FOREIGN_CONTENT, ids=lambda value: str(value)[:60])
def test_members_of_other_forms_are_refused_by_name(form_in_proto: Caller, content: Any, field: str) -> None:
    reply = form_in_proto.call("SendMessage", {"message": native(content=content)}, as_is=True)
    refused(reply, PARAMS, fields=[field])


@covers("parts.newer")
@pytest.mark.usefixtures("nothing_stored")
def test_a_message_of_another_form_is_refused_as_a_whole(
    form_with_kinds: Caller, form_in_proto: Caller
) -> None:
    """The parts of one form are under a name that the other does not have."""
    reply = form_in_proto.call("SendMessage", {"message": message(role="ROLE_USER")}, as_is=True)
    refused(reply, PARAMS, fields=["message.content"])
    reply = form_with_kinds.call("SendMessage", {"message": native(role="user")})
    refused(reply, PARAMS, fields=["message.parts"], identifier=1)


BASE64 = ["***", "Q", "Q===", "QUJDR", "QQ\n", " QQ==", "QQ==QQ==", "é", "@@@@", "AAAA=", "QUI==", "QQ="]


@covers("parts.base64")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("content", [*BASE64, 5, True, [1, 2], {"a": 1}], ids=repr)
def test_bytes_that_are_no_base64_are_refused(form: Caller, content: Any) -> None:
    name = "bytes" if form.has_kinds else "fileWithBytes"
    part: dict[str, Any] = {"file": {name: content}}
    made = message(parts=[{"kind": "file", **part}]) if form.has_kinds else native(content=[part])
    reply = form.call("SendMessage", {"message": made}, as_is=True)
    refused(reply, PARAMS, fields=[f"message.{form.parts}[0].file.{name}"], identifier=1)


ROLES: list[Any] = [
    *("agent", "ROLE_AGENT", 2, "USER", "User", "ROLE_UNSPECIFIED", "ROLE_MODEL", "system", "", 0, 3, -1),
    *(1.5, True, False, "1", None, [], {}, ["user"]),
]


@covers("message.role")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("role", ROLES, ids=repr)
def test_a_caller_speaks_as_the_user_and_as_nobody_else(form: Caller, role: Any) -> None:
    made = message() if form.has_kinds else native()
    reply = form.call("SendMessage", {"message": {**made, "role": role}}, as_is=True)
    refused(reply, PARAMS, fields=["message.role"], identifier=1)


@covers("message.role")
@pytest.mark.usefixtures("nothing_stored")
def test_the_role_of_the_other_form_is_refused_and_the_right_one_named(
    form_with_kinds: Caller, form_in_proto: Caller
) -> None:
    for role in ("ROLE_USER", 1):
        reply = form_with_kinds.call("SendMessage", {"message": message(role=role)})
        refused(reply, PARAMS, fields=["message.role"], identifier=1)
        assert "must be user" in reply.body.decode()
    reply = form_in_proto.call("SendMessage", {"message": native(role="user")}, as_is=True)
    refused(reply, PARAMS, fields=["message.role"])
    assert "must be ROLE_USER" in reply.json()["detail"]


@covers("message.role")
def test_the_number_of_a_role_is_read_in_proto(form_in_proto: Caller) -> None:
    reply = form_in_proto.call("SendMessage", {"message": native(role=1)}, as_is=True)
    assert reply.value["status"]["state"] == "completed"


MEMBERS: list[tuple[dict[str, Any], str]] = [
    ({"messageId": ""}, "message.messageId"),
    ({"messageId": None}, "message.messageId"),
    ({"messageId": 5}, "message.messageId"),
    ({"messageId": "x" * 257}, "message.messageId"),
    ({"contextId": 5}, "message.contextId"),
    ({"contextId": "x" * 257}, "message.contextId"),
    ({"taskId": False}, "message.taskId"),
    ({"taskId": "x" * 257}, "message.taskId"),
    ({"metadata": []}, "message.metadata"),
    ({"metadata": "m"}, "message.metadata"),
    ({"extensions": "urn:x"}, "message.extensions"),
    ({"extensions": [1]}, "message.extensions[0]"),
    ({"referenceTaskIds": "t"}, "message.referenceTaskIds"),
    ({"referenceTaskIds": ["t", {}]}, "message.referenceTaskIds[1]"),
    ({"message_id": "again"}, "message.messageId"),
    ({"contextId": "a", "context_id": "a"}, "message.contextId"),
    ({"taskId": "a", "task_id": "b"}, "message.taskId"),
]


@covers("message.members")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("members", "field"), MEMBERS, ids=lambda value: str(value)[:60])
def test_wrong_members_of_a_message_are_refused_by_name(
    form: Caller, members: dict[str, Any], field: str
) -> None:
    made = message(**members) if form.has_kinds else native(**members)
    refused(form.call("SendMessage", {"message": made}, as_is=True), PARAMS, fields=[field], identifier=1)


@covers("message.members")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("kind", ["task", "Message", "", 5, []], ids=repr)
def test_a_message_of_another_kind_is_refused(form_with_kinds: Caller, kind: Any) -> None:
    refused(
        form_with_kinds.call("SendMessage", send_params(kind=kind)),
        PARAMS,
        fields=["message.kind"],
        identifier=1,
    )


@covers("message.members")
def test_a_message_need_not_say_its_kind(form_with_kinds: Caller) -> None:
    content = message()
    del content["kind"]
    assert form_with_kinds.call("SendMessage", {"message": content}).value["status"]["state"] == "completed"


@covers("message.members")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("missing", ["messageId", "role", "parts"])
def test_a_required_member_that_is_missing_is_named(form: Caller, missing: str) -> None:
    content = message()
    del content[missing]
    field = form.parts if missing == "parts" else missing
    reply = form.call("SendMessage", {"message": content})
    refused(reply, PARAMS, fields=[f"message.{field}"], identifier=1)


@covers("message.members")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("params", [{}, {"message": None}, {"message": []}, {"message": "x"}])
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_a_send_needs_a_message(form: Caller, operation: str, params: dict[str, Any]) -> None:
    refused(form.call(operation, params, as_is=True), PARAMS, fields=["message"], identifier=1)


@covers("message.members", "clients.request")
def test_the_message_may_be_called_request_in_proto_but_not_both(form_in_proto: Caller) -> None:
    """`request` is its name in the proto, `message` its name in JSON; a2a-sdk 1.x writes the former."""
    reply = form_in_proto.call("SendMessage", {"request": native()}, as_is=True)
    assert reply.value["status"]["state"] == "completed"
    reply = form_in_proto.call("SendMessage", {"request": native(), "message": native()}, as_is=True)
    refused(reply, PARAMS, fields=["message"])


CONFIGURATIONS: list[tuple[Any, str]] = [
    ([], "configuration"),
    ("x", "configuration"),
    ({"acceptedOutputModes": "text/plain"}, "configuration.acceptedOutputModes"),
    ({"acceptedOutputModes": [1]}, "configuration.acceptedOutputModes[0]"),
    ({"historyLength": -1}, "configuration.historyLength"),
    ({"historyLength": "many"}, "configuration.historyLength"),
    ({"historyLength": 1.5}, "configuration.historyLength"),
    ({"historyLength": True}, "configuration.historyLength"),
    ({"historyLength": 2**31}, "configuration.historyLength"),
    ({"blocking": "true"}, "configuration.blocking"),
    ({"blocking": 1}, "configuration.blocking"),
    ({"blocking": []}, "configuration.blocking"),
]


@covers("message.configuration")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("configuration", "field"), CONFIGURATIONS, ids=lambda value: str(value)[:60])
def test_a_wrong_configuration_is_refused_by_name(form: Caller, configuration: Any, field: str) -> None:
    made = message() if form.has_kinds else native()
    params = {"message": made, "configuration": configuration}
    refused(form.call("SendMessage", params, as_is=True), PARAMS, fields=[field], identifier=1)


@covers("message.configuration")
@pytest.mark.usefixtures("nothing_stored")
def test_a_push_configuration_must_be_an_object(form: Caller) -> None:
    name = "pushNotificationConfig" if form.has_kinds else "pushNotification"
    made = message() if form.has_kinds else native()
    reply = form.call("SendMessage", {"message": made, "configuration": {name: 5}}, as_is=True)
    refused(reply, PARAMS, fields=[f"configuration.{name}"], identifier=1)


@covers("message.configuration")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("metadata", [[], "m", 3, True])
def test_request_metadata_must_be_an_object(form: Caller, metadata: Any) -> None:
    reply = form.call("SendMessage", send_params() | {"metadata": metadata})
    refused(reply, PARAMS, fields=["metadata"], identifier=1)


@covers("clients.spellings")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("configuration", "field"),
    [
        ({"historyLength": 1, "history_length": 1}, "configuration.historyLength"),
        ({"acceptedOutputModes": [], "accepted_output_modes": []}, "configuration.acceptedOutputModes"),
        ({"pushNotification": {}, "push_notification": {}}, "configuration.pushNotification"),
        ({"history_length": -1}, "configuration.historyLength"),
        ({"push_notification": 5}, "configuration.pushNotification"),
    ],
    ids=str,
)
def test_both_spellings_of_a_field_together_are_refused_and_either_is_checked(
    form_in_proto: Caller, configuration: dict[str, Any], field: str
) -> None:
    params = {"message": native(), "configuration": configuration}
    refused(form_in_proto.call("SendMessage", params, as_is=True), PARAMS, fields=[field])


@covers("message.unknown", "difference.unknown-members", "difference.tenant", "difference.empty-members")
def test_unknown_members_and_empty_ones_are_ignored(form: Caller) -> None:
    made = message() if form.has_kinds else native()
    content = {**made, "future": {"a": 1}, "tenant": "x", "contextId": None, "extensions": [], "metadata": {}}
    params = {
        "message": content,
        "tenant": "other",
        "future": [1],
        "configuration": {"blocking": True, "x": 1},
    }
    task = form.call("SendMessage", params, as_is=True).value
    said = [text_part("hello" if form.has_kinds else "x")]
    kept = {"messageId": made["messageId"], "role": "user", "kind": "message", "parts": said}
    assert task["history"] == [kept]
