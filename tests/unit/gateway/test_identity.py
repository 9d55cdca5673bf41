"""What makes a message the same message."""

import hashlib
import json
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from dragoman.gateway.identity import digest
from dragoman.model import DataPart, Message, PushConfig, RawPart, Role, TextPart, UrlPart
from dragoman.model.operation import SendMessage
from dragoman.model.payload import Raw, pack
from tests.wire.strategies import Pair, json_objects, messages

properties = settings(max_examples=50, deadline=None)
PLAIN = Message(message_id="m", role=Role.USER, parts=(TextPart(text="one"), TextPart(text="two")))


def send(message: Message, metadata: Raw | None = None, generation: str = "1.0") -> SendMessage:
    request = SendMessage(message=message, generation=generation)
    return request if metadata is None else structs.replace(request, metadata=metadata)


def turned(value: Any) -> Any:
    """The same JSON value, the keys of its objects the other way round."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


def respelled(payload: Raw) -> Raw:
    """The same payload with other white space, other order of keys and other escapes."""
    if not bytes(payload):
        return payload
    return Raw(json.dumps(turned(json.loads(bytes(payload))), indent=2, ensure_ascii=True).encode())


def respell(message: Message) -> Message:
    parts = [structs.replace(part, metadata=respelled(part.metadata)) for part in message.parts]
    parts = [
        structs.replace(part, data=respelled(part.data)) if isinstance(part, DataPart) else part
        for part in parts
    ]
    return structs.replace(message, metadata=respelled(message.metadata), parts=tuple(parts))


@properties
@given(messages(Role.USER), json_objects)
def test_neither_order_of_keys_nor_white_space_nor_escapes_count(
    pair: Pair, metadata: dict[str, Any]
) -> None:
    # The empty payload is a singleton that storage knows by identity, so only payloads that are there are respelled.
    message: Message = pair.model
    assert digest(send(respell(message), respelled(pack(metadata)))) == digest(send(message, pack(metadata)))


@properties
@given(messages(Role.USER))
def test_the_same_message_has_the_same_digest_of_32_bytes(pair: Pair) -> None:
    assert digest(send(pair.model)) == digest(send(structs.replace(pair.model)))
    assert len(digest(send(pair.model))) == 32


@properties
@given(messages(Role.USER), messages(Role.USER))
def test_different_messages_have_different_digests(one: Pair, other: Pair) -> None:
    same = json.dumps(one.wire, sort_keys=True) == json.dumps(other.wire, sort_keys=True)
    assert (digest(send(one.model)) == digest(send(other.model))) == same


@properties
@given(messages(Role.USER), st.data())
def test_the_order_of_parts_counts(pair: Pair, data: st.DataObject) -> None:
    order = data.draw(st.permutations(pair.model.parts))
    same = tuple(order) == pair.model.parts
    moved = structs.replace(pair.model, parts=tuple(order))
    assert (digest(send(moved)) == digest(send(pair.model))) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, "1"),
        (1, True),
        (0, False),
        (0, None),
        (0.0, -0.0),
        (2**53, 2**53 + 1),
        (2**70, 2**70 + 1),
        (float(2**70), 2**70),
        ([1, 2], [2, 1]),
        ({}, []),
        ({"a": None}, {}),
        ("e\u0301", "é"),
    ],
)
def test_types_and_every_digit_count_wherever_a_payload_stands(one: Any, other: Any) -> None:
    def everywhere(value: Any) -> list[SendMessage]:
        payload = pack({"k": value})
        return [
            send(structs.replace(PLAIN, parts=(DataPart.of(value),))),
            send(structs.replace(PLAIN, parts=(TextPart(text="x", metadata=payload),))),
            send(structs.replace(PLAIN, metadata=payload)),
            send(PLAIN, payload),
        ]

    digests = [digest(request) for request in (*everywhere(one), *everywhere(other))]
    assert len(set(digests)) == len(digests)


def test_every_member_of_the_message_counts() -> None:
    different = [
        PLAIN,
        structs.replace(PLAIN, message_id="n"),
        structs.replace(PLAIN, context_id="m"),
        structs.replace(PLAIN, task_id="m"),
        structs.replace(PLAIN, extensions=("m",)),
        structs.replace(PLAIN, extensions=("m", "")),
        structs.replace(PLAIN, reference_task_ids=("m",)),
        structs.replace(PLAIN, parts=PLAIN.parts[:1]),
        structs.replace(PLAIN, parts=(TextPart(text="onetwo"),)),
        structs.replace(PLAIN, parts=(TextPart(text="one", filename="two"),)),
        structs.replace(PLAIN, parts=(TextPart(text="one", media_type="two"),)),
        structs.replace(PLAIN, parts=(UrlPart(url="one"),)),
        structs.replace(PLAIN, parts=(RawPart(raw=b"one"),)),
        structs.replace(PLAIN, parts=(DataPart.of("one"),)),
    ]
    for one, other in combinations(different, 2):
        assert digest(send(one)) != digest(send(other))


def test_the_generation_counts() -> None:
    assert digest(send(PLAIN, generation="0.3")) != digest(send(PLAIN, generation="1.0"))


def test_request_metadata_is_not_the_messages() -> None:
    payload = pack({"a": 1})
    assert digest(send(PLAIN, payload)) != digest(send(structs.replace(PLAIN, metadata=payload)))
    assert digest(send(PLAIN, payload)) != digest(send(PLAIN))


def test_how_the_answer_is_asked_for_does_not_count() -> None:
    request = send(PLAIN)
    for change in (
        {"accepted_output_modes": ("text/html",)},
        {"history_length": 3},
        {"return_immediately": True},
        {"push": PushConfig(generation="1.0", url="https://a.example/hook")},
    ):
        assert digest(structs.replace(request, **change)) == digest(request)


def test_the_digest_of_a_message_is_a_fixed_value_because_stores_keep_it() -> None:
    message = structs.replace(PLAIN, metadata=pack({"b": 2**70, "a": "ü"}))
    text = (
        '{"message_id":"m","role":1,"parts":[{"t":"text","text":"one"},{"t":"text","text":"two"}],'
        '"metadata":{"a":"ü","b":1180591620717411303424}}\0{"z":1.0}\x001.0'
    )
    assert digest(send(message, pack({"z": 1.0}))) == hashlib.sha256(text.encode()).digest()
