"""The bytes that are signed: RFC 8785, over the members that verifiers read and no others."""

import json
import struct
from typing import Any

import pytest

from dragoman.cards.canonical import READINGS, CanonicalError, canonical, unsteady, without_empty
from dragoman.protocol.protojson import parse

CARD = {
    "name": "Clerk",
    "description": "Files letters.",
    "version": "2.1",
    "supportedInterfaces": [
        {"url": "https://a.example/clerk", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    ],
    "capabilities": {"streaming": True, "pushNotifications": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "file", "name": "File", "description": "Files.", "tags": ["office"]}],
}

OLD = {
    "url": "https://a.example/rpc",
    "preferredTransport": "JSONRPC",
    "protocolVersion": "0.3",
    "additionalInterfaces": [{"url": "https://a.example/v1", "transport": "HTTP+JSON"}],
}


def with_params(text: str) -> dict[str, Any]:
    """A card with an extension whose params are this JSON text."""
    card: dict[str, Any] = {**CARD, "capabilities": {"extensions": [{"uri": "u", "params": "PARAMS"}]}}
    value: dict[str, Any] = parse(json.dumps(card).replace('"PARAMS"', text).encode()).value
    return value


def params_of(card: dict[str, Any], version: str = "1.0") -> str:
    """The canonical text of those params."""
    text = canonical(card, version).decode()
    return text[text.index('"params":') + 9 : text.index(',"uri"')]


# ---------------------------------------------------------------------------------------------------------- RFC 8785


def test_the_example_of_rfc_8785_section_3_2_2() -> None:
    given = r"""{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [true, false]
    }"""
    assert params_of(with_params(given)) == (
        '{"literals":[true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_the_order_of_names_of_rfc_8785_section_3_2_3() -> None:
    given = r"""{
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
    }"""
    assert list(json.loads(params_of(with_params(given))).values()) == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_the_numbers_of_rfc_8785_appendix_b(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert params_of(with_params(json.dumps({"n": number}))) == f'{{"n":{text}}}'


def test_whole_numbers_are_the_same_however_they_are_written() -> None:
    assert params_of(with_params('{"a":1,"b":1.0,"c":1e0,"d":10E-1}')) == '{"a":1,"b":1,"c":1,"d":1}'


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_what_is_no_number_has_no_canonical_form(value: float, version: str) -> None:
    card = with_params('{"n":1}')
    card["capabilities"]["extensions"][0]["params"]["n"] = value
    with pytest.raises(CanonicalError):
        canonical(card, version)


def test_text_that_is_not_unicode_has_no_canonical_form() -> None:
    with pytest.raises(CanonicalError):
        canonical({**CARD, "name": "\ud800"}, "1.0")


# ----------------------------------------------------------------------------------------------------------- members


def test_members_that_1_0_does_not_know_are_in_no_signature_of_it() -> None:
    card = {**CARD, **OLD, "x": 1, "signatures": [{"protected": "p", "signature": "s"}]}
    card["skills"] = [{**CARD["skills"][0], "security": [{"a": []}], "y": {}}]  # type: ignore[dict-item,index]
    assert canonical(card, "1.0") == canonical(CARD, "1.0")


def test_the_order_and_the_script_of_a_card_are_those_of_rfc_8785() -> None:
    card = {**CARD, "name": "Café 😀", "description": "line\nと"}
    text = canonical(card, "1.0").decode()
    assert text.startswith(
        '{"capabilities":{"pushNotifications":false,"streaming":true},"defaultInputModes":['
    )
    assert '"description":"line\\nと"' in text and '"name":"Café 😀"' in text


def test_members_at_their_default_count_as_not_written() -> None:
    card = {
        **CARD,
        "iconUrl": None,
        "securitySchemes": {},
        "skills": [{**CARD["skills"][0], "examples": []}],  # type: ignore[dict-item,index]
        "capabilities": {
            "streaming": False,
            "extensions": [{"uri": "u", "required": False, "description": ""}],
        },
        "supportedInterfaces": [{**CARD["supportedInterfaces"][0], "tenant": ""}],  # type: ignore[dict-item,index]
    }
    plain = {**CARD, "capabilities": {"streaming": False, "extensions": [{"uri": "u"}]}}
    for reading in READINGS[:2]:
        assert reading.write(card) == reading.write(plain), reading.name
    assert b'"streaming":false' in canonical(card, "1.0")


def test_the_two_readings_of_1_0_differ_for_empty_members_alone() -> None:
    sdks, text, _ = READINGS
    assert sdks.write(CARD) == text.write(CARD)
    empty = {**CARD, "description": "", "securityRequirements": [{"schemes": {"bearer": {"list": []}}}]}
    assert not {"description", "securityRequirements"} & set(json.loads(sdks.write(empty)))
    assert b'"description":""' in text.write(empty)
    assert b'"securityRequirements":[{"schemes":{"bearer":{}}}]' in text.write(empty)
    settled = without_empty(empty)
    assert sdks.write(settled) == text.write(settled) == sdks.write(empty)


def test_what_verifiers_read_differently_is_named_with_its_place() -> None:
    assert unsteady(CARD) == []
    card = with_params('{"a":{"b":[1,""]},"n":9007199254740993}')
    card.update(description="", securityRequirements=[{"schemes": {"bearer": {"list": []}}}])
    assert sorted(unsteady(card)) == [
        "capabilities.extensions[0].params.a.b[1] is empty; leave it out or fill it",
        "capabilities.extensions[0].params.n is a number that few readers have exactly; write it as text",
        "description is empty; leave it out or fill it",
        "securityRequirements[0].schemes.bearer is empty; leave it out or fill it",
    ]


# --------------------------------------------------------------------------------------------------------------- 0.3


def test_the_reading_of_0_3_is_that_of_its_sdk() -> None:
    card = {
        **CARD,
        **OLD,
        "name": "Café",
        "x": 1,
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "Bearer", "httpAuthSecurityScheme": {"scheme": "Bearer"}}
        },
        "security": [{"bearer": []}],
        "skills": [{**CARD["skills"][0], "examples": []}],  # type: ignore[dict-item,index]
    }
    assert canonical(card, "0.3").decode() == (
        '{"additionalInterfaces":[{"transport":"HTTP+JSON","url":"https://a.example/v1"}],'
        '"capabilities":{"pushNotifications":false,"streaming":true},"defaultInputModes":["text/plain"],'
        '"defaultOutputModes":["text/plain"],"description":"Files letters.","name":"Caf\\u00e9",'
        '"protocolVersion":"0.3","securitySchemes":{"bearer":{"scheme":"Bearer"}},'
        '"skills":[{"description":"Files.","id":"file","name":"File","tags":["office"]}],'
        '"url":"https://a.example/rpc","version":"2.1"}'
    )


def test_what_0_3_implies_is_left_out() -> None:
    said = {**CARD, **OLD, "protocolVersion": "0.3.0"}
    unsaid = {
        name: value for name, value in said.items() if name not in ("protocolVersion", "preferredTransport")
    }
    assert canonical(said, "0.3") == canonical(unsaid, "0.3")
    assert canonical(said, "0.3") != canonical({**said, "protocolVersion": "0.3"}, "0.3")
    assert canonical(said, "0.3") != canonical({**said, "preferredTransport": "HTTP+JSON"}, "0.3")
