"""What belongs to the caller passes through 0.3 untouched, to its last digit and byte."""

from typing import Any

import pytest

from tests.interaction.messages import new_id
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import data_part, file_part, got, send_params, text_part
from tests.interaction.v0_3.requirements import covers
from tests.interaction.v0_3.test_json_faults import data_of, send_text, text_of, written

OBJECTS = [
    "{}",
    '{"n":9007199254740993}',
    '{"n":123456789012345678901234567890,"m":-9223372036854775809}',
    '{"n":1' + "0" * 1000 + "}",
    '{"a":1.0,"b":1,"c":0.1,"d":1.5e-300,"e":-0.0}',
    '{"z":1,"a":2,"m":{"b":1,"a":2}}',
    '{"kind":"text","role":"agent","status":{"state":"working"},"file":{"bytes":"x"},"taskId":"no"}',
    '{"task_id":1,"taskId":2,"messageId":3,"message_id":4,"contextId":null}',
    '{"createdAt":"2026-01-31T12:00:00.123456789+14:00","timestamp":"x","state":"TASK_STATE_CANCELLED"}',
    '{"TASK_STATE_WORKING":"ROLE_USER","fileWithBytes":"QVA4QmNtRjM="}',
    '{"nested":[null,[null,{"n":null}],{}],"e":[],"s":""}',
    '{"\\u0000":"\\u0000 and \\u001f","":0}',
    '{"你好é😀":"\\\\ \\" /"}',
    '{"\u2028":"\u2029\u0085"}',
    '{"value":[1]}',
    '{"value":{"a":1}}',
]


@covers("payload.untouched", "difference.numbers")
@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: value[:30])
def test_an_object_comes_back_as_it_was_sent_wherever_it_stands(form: Caller, value: str) -> None:
    """As data, and as metadata of the message, of parts and of the request: in the answer, later, and in a list."""
    part = f'{data_of(value)},"metadata":{value}' if value != "{}" else data_of(value)
    template = send_text(
        f',"metadata":{value}' if value != "{}" else "", part=part, around=f',"metadata":{value}'
    )
    reply = form.call("SendMessage", written(form, template))
    shown = reply.body.decode()
    task = reply.value
    inner = f'"data":{value}' if form.has_kinds else f'"data":{{"data":{value}}}'
    assert shown.count(inner) == 2  # in the history and in the echo
    later = form.call("GetTask", {"id": task["id"]}).body.decode()
    assert later.count(inner) == 2
    if value != "{}":
        assert shown.count(f'"metadata":{value}') == later.count(f'"metadata":{value}') == 3


@covers("payload.untouched")
def test_a_list_shows_payloads_untouched(seed_a: Caller) -> None:
    for value in OBJECTS[1:]:
        template = send_text(f',"metadata":{value},"contextId":"<id>-ctx"', part=data_of(value))
        task = seed_a.call("SendMessage", written(seed_a, template)).value
        params = {"contextId": task["contextId"], "historyLength": 1, "includeArtifacts": True}
        body = seed_a.call("ListTasks", params).body.decode()
        assert (body.count(f'"data":{value}'), body.count(f'"metadata":{value}')) == (2, 1)


@covers("payload.untouched")
def test_a_stream_shows_payloads_untouched(form: Caller) -> None:
    for value in OBJECTS[1:]:
        body = form.call("SendStreamingMessage", written(form, send_text(part=data_of(value)))).body.decode()
        escaped = value.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\u0085", "\\u0085")
        inner = f'"data":{escaped}' if form.has_kinds else f'"data":{{"data":{escaped}}}'
        assert body.count(inner) == 2


@covers("payload.handler")
def test_a_handler_sees_payloads_with_every_digit(form: Caller) -> None:
    value = {"n": 123456789012345678901234567890, "f": 1.5, "s": "\0", "kind": "x"}
    params = send_params(parts=[data_part(value)]) | {"metadata": value}
    shown = form.to("seen").call("SendMessage", params).value["artifacts"][0]["parts"][0]["data"]
    assert (shown["values"], shown["metadata"]) == ([repr(value)], repr(value))


@covers("payload.text")
def test_text_of_any_script_and_control_characters_comes_back(form: Caller) -> None:
    text = "".join(map(chr, [*range(0x20), 0x7F, 0x85, 0xA0, 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x10FFFF]))
    task = form.call("SendMessage", send_params(text)).value
    assert task["artifacts"][0]["parts"] == [text_part(text)]
    assert got(form, task["id"])["history"][0]["parts"] == [text_part(text)]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in "hé\0")
    reply = form.call("SendMessage", written(form, send_text(part=text_of(f'"{escaped}"'))))
    assert reply.value["artifacts"][0]["parts"] == [text_part("hé\0")]


@covers("parts.kinds")
def test_parts_of_every_kind_come_back_in_order(caller: Caller) -> None:
    parts: list[dict[str, Any]] = [
        text_part(""),
        {"kind": "file", "file": {"uri": "https://example.com/a?b=ü", "name": "a", "mimeType": "image/png"}},
        file_part(bytes(range(256)), name="b"),
        file_part(b""),
        data_part({"a": [1, None]}, metadata={"x": 1}),
        text_part("last", metadata={"kind": "text", "filename": "x"}),
    ]
    params = send_params(parts=parts, metadata={"m": 1}, extensions=["urn:x"], contextId=new_id())
    task = caller.call("SendMessage", params).value
    assert task["artifacts"][0]["parts"] == parts
    assert task["history"] == [params["message"]]
    assert got(caller, task["id"]) == task


@covers("parts.base64")
@pytest.mark.parametrize(
    ("content", "answered"),
    [("", ""), ("QQ", "QQ=="), ("QUI", "QUI="), ("-_-_", "+/+/"), ("-_8", "+/8="), ("-_8=", "+/8=")],
)
def test_both_alphabets_of_base64_are_read_padded_or_not_and_one_is_written(
    form: Caller, content: str, answered: str
) -> None:
    sent, answer = ({"kind": "file", "file": {"bytes": text, "name": "f"}} for text in (content, answered))
    assert form.call("SendMessage", send_params(parts=[sent])).value["artifacts"][0]["parts"] == [answer]


@covers("parts.migration-names")
def test_the_names_that_the_migration_notes_of_1_0_use_are_read_too(form_with_kinds: Caller) -> None:
    for name, plain in (("fileWithBytes", "bytes"), ("fileWithUri", "uri")):
        content = "QUJD" if plain == "bytes" else "https://e.example"
        params = send_params(parts=[{"kind": "file", "file": {name: content}}])
        parts = form_with_kinds.call("SendMessage", params).value["artifacts"][0]["parts"]
        assert parts == [{"kind": "file", "file": {plain: content}}]
