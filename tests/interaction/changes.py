"""Single changes that make a valid request wrong: to its parameters, to its JSON text, or to the whole of it."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.interaction.callers import Request

WORDS: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**63,
        10**40,
        0.5,
        -0.0,
        1e300,
        "",
        "x",
        "TASK_STATE_WORKING",
        "1.0",
    ),
    *(
        "ROLE_USER",
        "é\u2028\0",
        "a" * 300,
        [],
        {},
        [None],
        [[]],
        {"": 0},
        {"kind": "text"},
        {"text": "x"},
        [0] * 50,
    ),
]
NAMES = [
    *(
        "messageId",
        "message_id",
        "role",
        "parts",
        "text",
        "raw",
        "url",
        "data",
        "kind",
        "file",
        "metadata",
        "id",
    ),
    *(
        "contextId",
        "context_id",
        "taskId",
        "tenant",
        "configuration",
        "historyLength",
        "pageSize",
        "status",
        "x",
    ),
]
HEADERS = [
    *(
        "A2A-Version",
        "Accept",
        "Content-Type",
        "Last-Event-ID",
        "X-Request-Id",
        "A2A-Extensions",
        "Authorization",
    ),
    *("If-None-Match", "Cookie", "X-Http-Method-Override", "Accept-Encoding", "Range", "X-Random", "Origin"),
]
VALUES = [
    *(
        "1.0",
        "0.3",
        "2.0",
        "",
        "*/*",
        "text/html",
        "application/json",
        "application/a2a+json",
        "text/event-stream",
    ),
    *(
        "application/json;q=0",
        "a" * 3000,
        "7",
        "-1",
        "a,b,,c",
        ";;;",
        "=",
        "\xe9\xff",
        "gzip",
        "bytes=0-1",
        "null",
    ),
]
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key or index inside a value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else []
        for key in keys:
            found.append((item, key))
            waiting.append(item[key])
    return found


def _changed(rng: random.Random, params: Any, change: Callable[[Any, Any], None]) -> Any:
    made = json.loads(json.dumps(params))
    places = _places(made)
    if places:
        change(*rng.choice(places))
    return made


def drop_member(rng: random.Random, params: Any) -> Any:
    """Take one member or item out."""
    return _changed(rng, params, lambda place, key: place.__delitem__(key))


def retype_member(rng: random.Random, params: Any) -> Any:
    """Put a value of another kind in one place."""
    word = rng.choice(WORDS)
    return _changed(rng, params, lambda place, key: place.__setitem__(key, word))


def add_member(rng: random.Random, params: Any) -> Any:
    """Add a member, known or not."""
    name, word = rng.choice(NAMES), rng.choice(WORDS)

    def add(place: Any, key: Any) -> None:
        if isinstance(place, dict):
            place[name] = word
        else:
            place.insert(key, word)

    return _changed(rng, params, add)


def rename_member(rng: random.Random, params: Any) -> Any:
    """Give one member another name."""

    def rename(place: Any, key: Any) -> None:
        if isinstance(place, dict):
            place[rng.choice([*NAMES, str(key).upper(), re.sub(r"([A-Z])", r"_\1", str(key)).lower()])] = (
                place.pop(key)
            )

    return _changed(rng, params, rename)


def nest_member(rng: random.Random, params: Any) -> Any:
    """Wrap one value in many arrays or objects."""
    depth = rng.choice([1, 3, 40, 62, 64, 66, 200])

    def nest(place: Any, key: Any) -> None:
        for _ in range(depth):
            place[key] = [place[key]] if depth % 2 else {"n": place[key]}

    return _changed(rng, params, nest)


def repeat_item(rng: random.Random, params: Any) -> Any:
    """Repeat the items of an array."""

    def repeat(place: Any, key: Any) -> None:
        if isinstance(place[key], list):
            place[key] *= rng.choice([2, 30, 1200])

    return _changed(rng, params, repeat)


PARAM_STEPS = [drop_member, retype_member, retype_member, add_member, rename_member, nest_member, repeat_item]


def give_twice(rng: random.Random, text: str) -> str:
    """Give one member of the text a second time."""
    found = list(re.finditer(r'"\w+": ("[^"]*"|\d+)', text))
    if not found:
        return text
    member = rng.choice(found)
    return f"{text[: member.start()]}{member[0]}, {text[member.start() :]}"


def flip_bytes(rng: random.Random, request: Request) -> Request:
    """Change some bytes of the body."""
    body = bytearray(request.body or b"")
    for _ in range(rng.choice([1, 1, 2, 8])):
        if body:
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    return replace(request, body=bytes(body) if request.body is not None else None)


def cut_body(rng: random.Random, request: Request) -> Request:
    """Keep only the beginning, or the end, of the body."""
    body = request.body or b""
    place = rng.randrange(len(body) + 1)
    return replace(request, body=body[:place] if rng.random() < 0.7 else body[place:])


def stuff_body(rng: random.Random, request: Request) -> Request:
    """Put something in the middle of the body."""
    body = request.body or b""
    place = rng.randrange(len(body) + 1)
    stuff = rng.choice(
        [b"\0", b"\xff", b"{", b"]" * 70, b"[" * 70, b'"', b"\\", b"\\ud800", b"NaN", b"1e999", b"9" * 5000]
    )
    return replace(request, body=body[:place] + stuff + body[place:])


def change_header(rng: random.Random, request: Request) -> Request:
    """Set, replace or take away a header."""
    name, value = rng.choice(HEADERS), rng.choice(VALUES)
    return request.with_headers(**{name.replace("-", "_"): value if rng.random() < 0.8 else None})


def change_path(rng: random.Random, request: Request) -> Request:
    """Change the target in one place, or add to it."""
    target = request.target
    place = rng.randrange(1, len(target))
    piece = rng.choice(
        ["/", ":", "%2F", "%00", "%ff", "?", "&", "=", "..", "x", "%", "tenant", "?tenant=x", "#", "\t"]
    )
    piece = piece.replace("\t", "%09")
    kept = target[:place] + piece + target[place + rng.randrange(2) :]
    query = rng.choice(
        ["", "", "?A2A-Version=1.0", "?A2A-Version=2.0", "?historyLength=-1", "?" + "a=b&" * 90]
    )
    return replace(request, target=rng.choice([kept, target + query, target + piece]))


def change_method(rng: random.Random, request: Request) -> Request:
    """Use another method."""
    return replace(request, method=rng.choice(METHODS))


REQUEST_STEPS = [
    flip_bytes,
    flip_bytes,
    cut_body,
    stuff_body,
    change_header,
    change_header,
    change_path,
    change_method,
]
