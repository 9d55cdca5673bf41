"""What belongs to the caller passes through untouched, and every form that 1.0 allows is read."""

import json
from typing import Any

import pytest

from tests.interaction.callers import Caller
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers

VALUES = [
    "null",
    "false",
    "0",
    '""',
    "[]",
    "{}",
    "123456789012345678901234567890",
    "-9223372036854775809",
    "9007199254740993",
    "18446744073709551616",
    "1" + "0" * 1000,
    "1.0",
    "0.1",
    "1.5e-300",
    '{"z":1,"a":2,"m":{"b":1,"a":2}}',
    '{"kind":"text","role":"agent","status":{"state":"working"},"file":{"bytes":"x"},"taskId":"no"}',
    '{"message_id":1,"messageId":2}',
    '{"TASK_STATE_WORKING":"ROLE_USER"}',
    '"\\u0000 and \\u001f"',
    '"你好é😀"',
    '"\u2028\u2029\u0085"',
    "[[[[[[[[1]]]]]]]]",
    '[1,"1",1.0,true,null]',
]


def _echoed(caller: Caller, value: str) -> str:
    params = f'{{"message":{{"messageId":"{new_id()}","role":"ROLE_USER","parts":[{{"data":{value}}}]}}}}'
    return caller.call("SendMessage", params.encode()).body.decode()


@covers("payload.untouched")
@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:30])
def test_data_comes_back_as_it_was_sent(caller: Caller, value: str) -> None:
    assert f'"parts":[{{"data":{value}}}]' in _echoed(caller, value)


@covers("payload.untouched")
def test_metadata_comes_back_with_its_order_numbers_and_unknown_keys(caller: Caller) -> None:
    text = '{"z":123456789012345678901234567890,"a":{"kind":"x","role":2},"\\u0000":null,"list":[1.0,1]}'
    params = (
        f'{{"message":{{"messageId":"{new_id()}","role":"ROLE_USER","metadata":{text},'
        f'"parts":[{{"text":"x","metadata":{text}}}]}}}}'
    )
    task = caller.call("SendMessage", params.encode()).task
    whole = caller.call("GetTask", {"id": task["id"]}).body.decode()
    listed = caller.call("ListTasks", {"contextId": task["contextId"], "historyLength": 1}).body.decode()
    assert whole.count(f'"metadata":{text}') == 3  # message and part in the history, part in the echo
    assert listed.count(f'"metadata":{text}') == 2


@covers("payload.untouched")
def test_a_handler_sees_payloads_with_every_digit(caller: Caller) -> None:
    big = 123456789012345678901234567890
    params = send_params(parts=[{"data": {"n": big, "f": 1.5, "s": "\0"}}])
    params["metadata"] = {"limit": big, "kind": "x"}
    shown = caller.to("seen").call("SendMessage", params).task["artifacts"][0]["parts"][0]["data"]
    assert shown["values"] == [repr({"n": big, "f": 1.5, "s": "\0"})]
    assert shown["metadata"] == repr({"limit": big, "kind": "x"})


@covers("payload.untouched")
def test_text_of_any_script_and_control_characters_comes_back(caller: Caller) -> None:
    text = "".join(map(chr, [*range(0x20), 0x7F, 0x85, 0xA0, 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x10FFFF]))
    task = caller.call("SendMessage", send_params(text)).task
    assert task["artifacts"][0]["parts"] == [{"text": text}]
    assert caller.call("GetTask", {"id": task["id"]}).result["history"][0]["parts"] == [{"text": text}]


SNAKE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"context_id": "ctx"}, {"contextId": "ctx"}),
    ({"reference_task_ids": ["a", "b"]}, {"referenceTaskIds": ["a", "b"]}),
    ({"extensions": ["urn:x"]}, {"extensions": ["urn:x"]}),
    ({"role": 1}, {"role": "ROLE_USER"}),
    ({"metadata": None}, {}),
    ({"metadata": {}}, {}),
    ({"contextId": None, "taskId": None, "extensions": None}, {}),
    ({"contextId": "", "taskId": "", "extensions": []}, {}),
    ({"unknownField": {"a": 1}, "another": None}, {}),
]


@covers("fields.spellings", "fields.unknown")
@pytest.mark.parametrize(("sent", "stored"), SNAKE, ids=lambda value: str(value)[:50])
def test_both_spellings_enum_numbers_nulls_and_unknown_fields_are_read(
    caller: Caller, sent: dict[str, Any], stored: dict[str, Any]
) -> None:
    if "context_id" in sent:
        sent = {"context_id": (context := new_id("ctx"))}
        stored = {"contextId": context}
    params = send_params("x", **sent)
    task = caller.call("SendMessage", params).task
    kept = {"messageId": params["message"]["messageId"], "role": "ROLE_USER", "parts": [{"text": "x"}]}
    assert task["history"][0] == kept | stored


@covers("fields.spellings")
def test_a_request_may_be_in_snake_case_throughout(caller: Caller) -> None:
    identifier = new_id()
    content = {
        "message_id": identifier,
        "role": "ROLE_USER",
        "parts": [{"text": "x", "media_type": "text/plain"}],
    }
    configuration = {
        "accepted_output_modes": ["text/plain"],
        "history_length": 0,
        "return_immediately": False,
    }
    task = caller.call("SendMessage", {"message": content, "configuration": configuration}).task
    assert "history" not in task
    assert task["artifacts"][0]["parts"] == [{"text": "x", "mediaType": "text/plain"}]
    got = caller.call("GetTask", {"id": task["id"]}).result
    assert got["history"][0]["messageId"] == identifier


@covers("fields.unknown")
def test_unknown_fields_around_the_message_are_ignored(caller: Caller) -> None:
    params = {**send_params(configuration={"future": 1}), "future": [1], "kind": "message", "blocking": True}
    assert caller.call("SendMessage", params).task["status"]["state"] == "TASK_STATE_COMPLETED"


@covers("parts.base64")
@pytest.mark.parametrize(
    ("raw", "answered"),
    [
        ("", ""),
        ("QQ==", "QQ=="),
        ("QQ", "QQ=="),
        ("QUI=", "QUI="),
        ("QUI", "QUI="),
        ("QUJD", "QUJD"),
        ("-_-_", "+/+/"),
        ("+/+/", "+/+/"),
        ("-_8", "+/8="),
        ("-_8=", "+/8="),
    ],
)
def test_both_alphabets_of_base64_are_read_padded_or_not_and_one_is_written(
    caller: Caller, raw: str, answered: str
) -> None:
    parts = [{"raw": raw, "filename": "f.bin", "mediaType": "application/octet-stream"}]
    task = caller.call("SendMessage", send_params(parts=parts)).task
    assert task["artifacts"][0]["parts"] == [{**parts[0], "raw": answered}]


@covers("parts.kinds")
def test_parts_of_every_kind_come_back_in_order(caller: Caller) -> None:
    parts = [
        {"text": ""},
        {"url": "https://example.com/a?b=ü", "filename": "a", "mediaType": "image/png"},
        {"raw": "AAEC", "filename": "b"},
        {"data": None},
        {"data": [1, {"a": None}], "mediaType": "application/json", "metadata": {"x": 1}},
        {"text": "last", "metadata": {"kind": "text"}},
    ]
    task = caller.call("SendMessage", send_params(parts=parts)).task
    assert task["artifacts"][0]["parts"] == parts
    assert caller.call("GetTask", {"id": task["id"]}).result["history"][0]["parts"] == parts


@covers("payload.untouched", "fields.unknown")
def test_a_body_of_escapes_alone_is_the_same_message(caller: Caller) -> None:
    identifier = new_id()
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in identifier)
    params = (
        f'{{"message":{{"messageId":"{escaped}","role":"ROLE_USER","parts":[{{"text":"\\ud83d\\ude00"}}]}}}}'
    )
    task = caller.call("SendMessage", params.encode()).task
    assert task["history"][0]["messageId"] == identifier
    assert task["artifacts"][0]["parts"] == [{"text": "😀"}]
    assert json.loads(params)["message"]["messageId"] == identifier
