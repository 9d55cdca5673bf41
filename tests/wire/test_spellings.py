"""The standard lets a writer spell one message in several ways: all of them mean the same."""

import base64
import json
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.model import Role
from dragoman.protocol.protojson import parse
from dragoman.protocol.v1_0.decode import decode_send
from dragoman.protocol.v1_0.encode import encode_answer
from tests.wire.sameness import shape
from tests.wire.strategies import Pair, messages

properties = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

UNKNOWN = ("futureField", "x-vendor", "0", "index")
NULLABLE = ("contextId", "taskId", "metadata", "extensions", "referenceTaskIds", "filename", "mediaType")


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


@st.composite
def respelled(draw: st.DrawFn, wire: dict[str, Any]) -> dict[str, Any]:
    """The same standard object: either spelling of each name, unknown fields, nulls, its members in any order."""
    members = [(draw(st.sampled_from([name, snake(name)])), value) for name, value in wire.items()]
    present = {name for name, _ in members}
    for name in draw(st.lists(st.sampled_from(UNKNOWN), max_size=2, unique=True)):
        members.append((name, {"kind": "whatever", "parts": [None]}))
    for name in draw(st.lists(st.sampled_from(NULLABLE), max_size=2, unique=True)):
        if name not in present and snake(name) not in present:
            members.append((name, None))
    return dict(draw(st.permutations(members)))


@st.composite
def spellings(draw: st.DrawFn) -> tuple[Pair, dict[str, Any]]:
    """A caller's message, and the same message spelt in another way."""
    pair = draw(messages(Role.USER))
    parts = [dict(part) for part in pair.wire["parts"]]
    for part in parts:
        if "raw" in part:
            part["raw"] = draw(st.sampled_from(base64_spellings(part["raw"])))
    message = pair.wire | {"role": draw(st.sampled_from(["ROLE_USER", 1]))}
    return pair, draw(respelled(message | {"parts": [draw(respelled(part)) for part in parts]}))


def base64_spellings(text: str) -> list[str]:
    content = base64.b64decode(text)
    url_safe = base64.urlsafe_b64encode(content).decode()
    return [text, text.rstrip("="), url_safe, url_safe.rstrip("=")]


@properties
@given(spellings())
def test_a_message_means_the_same_in_every_spelling(drawn: tuple[Pair, dict[str, Any]]) -> None:
    pair, other = drawn
    document = parse(json.dumps({"message": other}).encode()).check()
    message = decode_send(document, "demo").message
    assert message == pair.model
    assert shape(json.loads(encode_answer(message))) == shape({"message": pair.wire})
