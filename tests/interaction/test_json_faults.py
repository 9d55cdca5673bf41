"""Bodies that are no JSON, or JSON that says a thing twice or cannot be held: refused before anything is stored."""

import pytest

from tests.interaction.answers import MALFORMED, PARAMS, Reply, refused
from tests.interaction.callers import Caller
from tests.interaction.messages import new_id
from tests.interaction.requirements import covers


def send_text(members: str = "", *, part: str = '"text":"x"', around: str = "") -> bytes:
    """The JSON text of the parameters of a send, with more members in the message, another part, or more around."""
    text = (
        f'{{"message":{{"messageId":"{new_id()}","role":"ROLE_USER","parts":[{{{part}}}]{members}}}{around}}}'
    )
    return text.encode()


def check_named(reply: Reply, field: str) -> None:
    """The reply refuses this field, and no other."""
    refused(reply, PARAMS, identifier=1)
    assert [named.removeprefix("params.") for named in reply.fields] == [field]


DUPLICATES = [
    (send_text(',"messageId":"again"'), "message.messageId"),
    (send_text(',"role":"ROLE_USER"'), "message.role"),
    (send_text(',"parts":[{"text":"y"}]'), "message.parts"),
    (send_text(',"metadata":{"a":1,"b":2,"a":1}'), "message.metadata.a"),
    (send_text(',"metadata":{"deep":[0,{"a":1,"a":2}]}'), "message.metadata.deep[1].a"),
    (send_text(',"metadata":{"\\u0061":1,"a":1}'), "message.metadata.a"),
    (send_text(part='"text":"x","text":"x"'), "message.parts[0].text"),
    (send_text(part='"data":{"k":{"a":1,"a":1}}'), "message.parts[0].data.k.a"),
    (send_text(around=',"configuration":{"returnImmediately":true,"returnImmediately":false}'), None),
    (send_text(around=',"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}'), "message"),
    (send_text(around=',"unknown":{"a":1,"a":2}'), "unknown.a"),
    (send_text(around=',"metadata":{"":1,"":1}'), "metadata."),
]


@covers("json.duplicates")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("params", "field"), DUPLICATES, ids=lambda value: str(value)[:20])
def test_a_key_that_is_given_twice_is_refused_by_name(
    caller: Caller, params: bytes, field: str | None
) -> None:
    check_named(caller.call("SendMessage", params), field or "configuration.returnImmediately")


NUMBERS = [
    (send_text(',"metadata":{"n":1e400}'), "message.metadata.n"),
    (send_text(',"metadata":{"n":-1e999}'), "message.metadata.n"),
    (send_text(part='"data":[1,2,1e309]'), "message.parts[0].data[2]"),
    (send_text(around=',"metadata":{"a":{"b":123456e789}}'), "metadata.a.b"),
    (send_text(around=',"configuration":{"historyLength":1e400}'), "configuration.historyLength"),
]


@covers("json.numbers")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("params", "field"), NUMBERS, ids=["positive", "negative", "data", "request", "field"]
)
def test_a_number_out_of_range_is_refused_by_name(caller: Caller, params: bytes, field: str) -> None:
    check_named(caller.call("SendMessage", params), field)


@covers("json.unicode")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("params", "field"),
    [
        (send_text(part='"text":"a\\ud800b"'), "message.parts[0].text"),
        (send_text(part='"text":"\\udc00\\ud800"'), "message.parts[0].text"),
        (send_text(',"metadata":{"k":["\\udfff"]}'), "message.metadata.k[0]"),
        (send_text(',"contextId":"\\ud83d"'), "message.contextId"),
    ],
    ids=["text", "swapped", "metadata", "context"],
)
def test_text_with_a_lone_surrogate_is_refused_by_name(caller: Caller, params: bytes, field: str) -> None:
    check_named(caller.call("SendMessage", params), field)


@covers("fields.same-name")
@pytest.mark.parametrize(
    "members", [',"messageId":"again"', ',"message_id":"again"'], ids=["same spelling", "other spelling"]
)
def test_a_wrong_field_has_the_same_name_over_both_bindings(
    caller: Caller, other: Caller, members: str
) -> None:
    replies = [one.call("SendMessage", send_text(members)) for one in (caller, other)]
    assert replies[0].fields == replies[1].fields == ["message.messageId"]


@covers("json.unicode")
@pytest.mark.usefixtures("nothing_stored")
def test_a_key_with_a_lone_surrogate_is_refused(caller: Caller) -> None:
    refused(caller.call("SendMessage", send_text(',"metadata":{"\\ud800":1}')), PARAMS, identifier=1)


MALFORMED_PARAMS = {
    "unquoted": b"{bad",
    "empty object cut": b'{"message":',
    "cut text": send_text()[:-20],
    "single quotes": b"{'message':{}}",
    "trailing comma": b'{"message":{},}',
    "comment": b'{"message":{} /* no */}',
    "NaN": send_text(',"metadata":{"n":NaN}'),
    "Infinity": send_text(',"metadata":{"n":Infinity}'),
    "-Infinity": send_text(part='"data":-Infinity'),
    "leading zero": send_text(part='"data":01'),
    "bare plus": send_text(part='"data":+1'),
    "hex": send_text(part='"data":0x10'),
    "raw newline in text": send_text(part='"text":"a\nb"'),
    "raw NUL in text": send_text(part='"text":"a\0b"'),
    "bad escape": send_text(part='"text":"\\x41"'),
    "latin-1 byte": send_text(part='"text":"MARK"').replace(b"MARK", b"\xe9"),
    "overlong": send_text(part='"text":"MARK"').replace(b"MARK", b"\xc0\xaf"),
    "surrogate bytes": send_text(part='"text":"MARK"').replace(b"MARK", b"\xed\xa0\x80"),
    "cut sequence": send_text(part='"text":"MARK"').replace(b"MARK", b"\xf0\x9f\x98"),
    "stray continuation": send_text(part='"text":"MARK"').replace(b"MARK", b"\x80"),
}


@covers("json.malformed", "json.not-a-number", "json.utf-8", "voice.10")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("fault", MALFORMED_PARAMS)
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_a_body_that_is_no_json_text_is_refused(caller: Caller, operation: str, fault: str) -> None:
    refused(caller.call(operation, MALFORMED_PARAMS[fault]), MALFORMED)


TWO_FAULTS = {
    "then cut": send_text(',"metadata":{"a":1,"a":2}')[:-5],
    "then NaN": send_text(',"metadata":{"m":{"a":1,"a":2},"n":NaN}'),
    "then garbage": send_text(',"metadata":{"a":1,"a":2}') + b"}}garbage",
    "then huge": send_text(',"metadata":{"m":{"a":1,"a":2},"n":' + "9" * 5000 + "}"),
    "out of range, then cut": send_text(',"metadata":{"n":1e400}')[:-5],
    "escape, then cut": send_text(part='"text":"\\u0041\\ud800"')[:-2],
}


@covers("json.malformed")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("fault", TWO_FAULTS)
def test_a_body_with_a_flaw_and_then_no_json_is_refused_as_malformed(caller: Caller, fault: str) -> None:
    refused(caller.call("SendMessage", TWO_FAULTS[fault]), MALFORMED)


@covers("json.depth")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["arrays", "objects"])
@pytest.mark.parametrize("depth", [65, 70, 1000, 100_000])
def test_nesting_over_64_is_refused(caller: Caller, opening: str, depth: int) -> None:
    closing = "]" if opening == "[" else "}"
    params = send_text(part=f'"data":{opening * depth}0{closing * depth}')
    reply = caller.call("SendMessage", params)
    assert reply.status == (400 if caller.binding == "http" else 200)
    assert reply.reason in ("INVALID_REQUEST", "INVALID_PARAMS")


@covers("json.depth")
@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["arrays", "objects"])
def test_a_payload_nested_50_deep_passes(caller: Caller, opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    value = opening * 50 + "0" + closing * 50
    reply = caller.call("SendMessage", send_text(part=f'"data":{value}'))
    assert f'"data":{value}' in reply.body.decode()


@covers("json.depth")
def test_brackets_inside_text_are_no_nesting(caller: Caller) -> None:
    text = "[" * 200 + "{" * 200 + '\\"' + "[" * 200
    reply = caller.call("SendMessage", send_text(part=f'"text":"{text}"'))
    assert reply.task["artifacts"][0]["parts"][0]["text"] == text.replace('\\"', '"')


@covers("json.not-an-object")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("params", [b"[]", b'"x"', b"5", b"true", b"[{}]"])
def test_parameters_that_are_no_object_are_refused_by_name(caller: Caller, params: bytes) -> None:
    field = "body" if caller.binding == "http" else "params"
    refused(caller.call("SendMessage", params), PARAMS, fields=[field], identifier=1)


@covers("json.depth")
@pytest.mark.usefixtures("nothing_stored")
def test_a_body_of_brackets_alone_is_refused_without_a_fault_of_ours(caller: Caller) -> None:
    for body in (b"[" * 500_000, b'{"a":' * 100_000, b"]" * 1000, b"[" * 500_000 + b"]" * 500_000):
        reply = caller.call("SendMessage", body)
        assert (reply.status in (200, 400), reply.reason) == (True, "INVALID_REQUEST")
