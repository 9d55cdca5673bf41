"""Bodies that are no JSON, or JSON that says a thing twice or cannot be held: refused before anything is stored."""

import pytest

from tests.interaction.messages import new_id
from tests.interaction.v0_3.answers import MALFORMED, PARAMS, Reply, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.requirements import covers


def text_of(text: str) -> str:
    """The members of a part of text, in a template."""
    return f'<text>"text":{text}'


def send_text(members: str = "", *, part: str = text_of('"x"'), around: str = "") -> str:
    """A template of the parameters of a send: more members in the message, another part, or more around."""
    return f'{{"message":{{"messageId":"<id>","role":"<role>","<parts>":[{{{part}}}]{members}}}{around}}}'


def written(caller: Caller, template: str) -> bytes:
    """The JSON text of a template, as the place of a caller has it."""
    has_kinds = caller.has_kinds
    for mark, text in {
        "<text>": '"kind":"text",' if has_kinds else "",
        "<data>": '"kind":"data","data":' if has_kinds else '"data":{"data":',
        "</data>": "" if has_kinds else "}",
        "<role>": "user" if has_kinds else "ROLE_USER",
        "<parts>": caller.parts,
        "<id>": new_id(),
    }.items():
        template = template.replace(mark, text)
    return template.encode("utf-8", "surrogateescape")


def data_of(value: str) -> str:
    """The members of a part of data, in a template."""
    return f"<data>{value}</data>"


def named(caller: Caller, field: str) -> str:
    """The path of a field, as the place of a caller has it."""
    return field.replace("<parts>", caller.parts).replace(
        "<data>", "data" if caller.has_kinds else "data.data"
    )


def check_named(caller: Caller, reply: Reply, field: str) -> None:
    """The reply refuses this field, and no other."""
    refused(reply, PARAMS, fields=[named(caller, field)], identifier=1)


DUPLICATES = [
    (send_text(',"messageId":"again"'), "message.messageId"),
    (send_text(',"role":"<role>"'), "message.role"),
    (send_text(',"<parts>":[]'), "message.<parts>"),
    (send_text(',"metadata":{"a":1,"b":2,"a":1}'), "message.metadata.a"),
    (send_text(',"metadata":{"deep":[0,{"a":1,"a":2}]}'), "message.metadata.deep[1].a"),
    (send_text(part=text_of('"x","text":"x"')), "message.<parts>[0].text"),
    (send_text(part=data_of('{"k":{"a":1,"a":1}}')), "message.<parts>[0].<data>.k.a"),
    (send_text(around=',"configuration":{"blocking":true,"blocking":false}'), "configuration.blocking"),
    (send_text(around=',"message":{}'), "message"),
    (send_text(around=',"unknown":{"a":1,"a":2}'), "unknown.a"),
]


@covers("json.duplicates")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("params", "field"), DUPLICATES, ids=lambda value: str(value)[-20:])
def test_a_key_that_is_given_twice_is_refused_by_name(form: Caller, params: str, field: str) -> None:
    check_named(form, form.call("SendMessage", written(form, params)), field)


VALUES = [
    (send_text(',"metadata":{"n":1e400}'), "message.metadata.n"),
    (send_text(part=data_of('{"l":[1,1e309]}')), "message.<parts>[0].<data>.l[1]"),
    (send_text(around=',"configuration":{"historyLength":1e400}'), "configuration.historyLength"),
    (send_text(part=text_of('"a\\ud800b"')), "message.<parts>[0].text"),
    (send_text(',"metadata":{"k":["\\udfff"]}'), "message.metadata.k[0]"),
    (send_text(',"contextId":"\\ud83d"'), "message.contextId"),
]


@covers("json.values")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("params", "field"), VALUES, ids=lambda value: str(value)[-20:])
def test_numbers_out_of_range_and_lone_surrogates_are_refused_by_name(
    form: Caller, params: str, field: str
) -> None:
    check_named(form, form.call("SendMessage", written(form, params)), field)


MALFORMED_PARAMS = {
    "unquoted": "{bad",
    "cut": send_text()[:-20],
    "trailing comma": '{"message":{},}',
    "NaN": send_text(',"metadata":{"n":NaN}'),
    "-Infinity": send_text(part=data_of('{"n":-Infinity}')),
    "leading zero": send_text(part=data_of('{"n":01}')),
    "raw newline in text": send_text(part=text_of('"a\nb"')),
    "latin-1 byte": send_text(part=text_of('"\udce9"')),
    "overlong": send_text(part=text_of('"\udcc0\udcaf"')),
    "surrogate bytes": send_text(part=text_of('"\udced\udca0\udc80"')),
    "long number": send_text(',"metadata":{"n":' + "9" * 5000 + "}"),
    "twice, then cut": send_text(',"metadata":{"a":1,"a":2}')[:-5],
}


@covers("json.malformed")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("fault", MALFORMED_PARAMS)
def test_a_body_that_is_no_json_text_is_refused(form: Caller, fault: str) -> None:
    for operation in ("SendMessage", "SendStreamingMessage"):
        refused(form.call(operation, written(form, MALFORMED_PARAMS[fault])), MALFORMED)


@covers("json.depth")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["arrays", "objects"])
@pytest.mark.parametrize("depth", [65, 1000, 100_000])
def test_nesting_over_64_is_refused(form: Caller, opening: str, depth: int) -> None:
    closing = "]" if opening == "[" else "}"
    value = opening * depth + "0" + closing * depth
    reply = form.call("SendMessage", written(form, send_text(f',"metadata":{{"n":{value}}}')))
    refused(reply, MALFORMED)


@covers("json.depth")
def test_a_payload_nested_50_deep_passes(form: Caller) -> None:
    value = '{"a":[' * 25 + "0" + "]}" * 25
    body = form.call("SendMessage", written(form, send_text(part=data_of(value)))).body.decode()
    assert body.count(value) == 2


@covers("json.object")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("params", [b"[]", b'"x"', b"5", b"true", b"[{}]"])
def test_parameters_that_are_no_object_are_refused_by_name(form: Caller, params: bytes) -> None:
    field = "body" if form.binding == "http" else "params"
    refused(form.call("SendMessage", params), PARAMS, fields=[field], identifier=1)
