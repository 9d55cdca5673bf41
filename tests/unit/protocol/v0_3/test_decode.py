"""0.3 requests to the model: what each form reads, and the path of what is wrong."""

from typing import Any

import pytest

from dragoman.model import PushConfig, TaskState
from dragoman.model.errors import InvalidParams
from dragoman.model.operation import CancelTask, GetTask, ListTasks, SendMessage
from dragoman.protocol.v0_3 import decode, decode_proto
from dragoman.protocol.v0_3.decode import STATE_NAMES

KINDS: dict[str, Any] = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]}
PROTO: dict[str, Any] = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "x"}]}
READER = decode_proto.Reader(doubled=False)
DOUBLED = decode_proto.Reader(doubled=True)


def field_of(read: Any, params: Any) -> str:
    with pytest.raises(InvalidParams) as refusal:
        read(params, "demo")
    (violation,) = refusal.value.violations
    assert violation.description
    return violation.field


def test_states_are_spelt_in_lower_case_with_hyphens() -> None:
    assert set(STATE_NAMES) == {
        "submitted",
        "working",
        "completed",
        "failed",
        "canceled",
        "input-required",
        "rejected",
        "auth-required",
    }
    assert STATE_NAMES["auth-required"] is TaskState.AUTH_REQUIRED


@pytest.mark.parametrize(
    ("configuration", "at_once", "history"),
    [
        (None, False, None),
        ({}, False, None),
        ({"blocking": True}, False, None),
        ({"blocking": False}, True, None),
        ({"blocking": None, "historyLength": None}, False, None),
        ({"historyLength": 0}, False, 0),
        ({"historyLength": 7}, False, 7),
        ({"historyLength": 7.0}, False, 7),
    ],
)
def test_a_send_with_kinds_waits_unless_it_says_otherwise(
    configuration: Any, at_once: bool, history: int | None
) -> None:
    request = decode.decode_send({"message": KINDS, "configuration": configuration}, "demo")
    assert (request.return_immediately, request.history_length) == (at_once, history)
    assert (request.generation, request.push) == ("0.3", None)


@pytest.mark.parametrize(
    ("configuration", "at_once", "history"),
    [
        (None, False, None),
        ({}, True, None),
        ({"blocking": True}, False, None),
        ({"blocking": False}, True, None),
        ({"blocking": None}, True, None),
        ({"blocking": True, "historyLength": 0}, False, None),
        ({"blocking": True, "history_length": 7}, False, 7),
    ],
)
def test_a_send_in_proto_waits_if_it_says_so_or_says_nothing(
    configuration: Any, at_once: bool, history: int | None
) -> None:
    for reader in (READER, DOUBLED):
        request = reader.decode_send({"message": PROTO, "configuration": configuration}, "demo")
        assert (request.return_immediately, request.history_length) == (at_once, history)
        assert (request.generation, request.push) == ("0.3", None)


def test_both_forms_of_a_message_are_one() -> None:
    assert decode.decode_send({"message": KINDS}, "demo") == READER.decode_send({"message": PROTO}, "demo")
    assert isinstance(DOUBLED.decode_send({"request": PROTO}, "demo"), SendMessage)


def test_a_push_configuration_is_read_by_the_name_of_its_form() -> None:
    wanted = {"pushNotificationConfig": {"url": "u"}}
    found = decode.decode_send({"message": KINDS, "configuration": wanted}, "demo").push
    assert found == PushConfig(
        generation="0.3",
        url="u",
        place="configuration.pushNotificationConfig",
        task_id=KINDS.get("taskId", ""),
    )
    for name in ("pushNotification", "push_notification"):
        config = READER.decode_send({"message": PROTO, "configuration": {name: {"url": "u"}}}, "demo").push
        assert config is not None and config.at("url") == "configuration.pushNotification.url"
    assert READER.decode_send({"message": PROTO, "configuration": wanted}, "demo").push is None


FILES = [("QVA4QmNtRjM=", b"\0\xff\1raw"), ("", b""), ("UVE", b"A"), ("UVE9PQ", b"A"), ("UVE9PQ==", b"A")]


@pytest.mark.parametrize(("content", "meant"), FILES)
def test_a_doubled_file_is_decoded_twice(content: str, meant: bytes) -> None:
    message = {**PROTO, "content": [{"file": {"fileWithBytes": content}}]}
    (part,) = DOUBLED.decode_send({"message": message}, "demo").message.parts
    assert part.raw == meant  # type: ignore[union-attr]


@pytest.mark.parametrize("content", ["QQ==", "AP8BcmF3", "gICA", "UVE9PQ=", "*", "UVE9PVFRPT0="])
def test_a_doubled_file_whose_inside_is_no_base64_is_refused(content: str) -> None:
    message = {**PROTO, "content": [{"file": {"fileWithBytes": content}}]}
    field = field_of(DOUBLED.decode_send, {"message": message})
    assert field == "message.content[0].file.fileWithBytes"


def test_a_request_of_one_task_needs_its_id() -> None:
    for read in (decode.decode_get, decode.decode_cancel, decode.decode_subscribe, decode_proto.decode_get):
        assert field_of(read, {}) == "id"
    assert decode.decode_get({"id": "t", "historyLength": "3"}, "demo") == GetTask(
        task_id="t", history_length=3
    )
    assert decode.decode_cancel({"id": "t", "metadata": {}}, "demo") == CancelTask(task_id="t")


def test_a_listing_has_the_filters_of_1_0_and_the_states_of_0_3() -> None:
    params = {
        "status": "failed",
        "pageSize": 3,
        "historyLength": 1,
        "includeArtifacts": True,
        "contextId": "c",
    }
    assert decode.decode_list(params, "demo") == ListTasks(
        state=TaskState.FAILED, page_size=3, history_length=1, include_artifacts=True, context_id="c"
    )
    assert decode.decode_list({"status": ""}, "demo") == ListTasks()
    for status in ("TASK_STATE_FAILED", "Failed", 4, ["failed"], True):
        assert field_of(decode.decode_list, {"status": status}) == "status"


def test_a_message_may_be_in_a_role_of_its_form_alone() -> None:
    for role in ("ROLE_USER", "agent", 1, 2, True, None, ["user"]):
        assert field_of(decode.decode_send, {"message": {**KINDS, "role": role}}) == "message.role"
    for role in ("user", "ROLE_AGENT", 2, 1.5, True, None, ["ROLE_USER"]):
        assert field_of(READER.decode_send, {"message": {**PROTO, "role": role}}) == "message.role"
    assert READER.decode_send({"message": {**PROTO, "role": 1}}, "demo").message.message_id == "m"
