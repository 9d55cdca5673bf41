"""When two JSON values are the same: types and order of keys in payloads count, which Python's `==` does not see."""

import json
from typing import Any


def exact(value: Any) -> str:
    """Return a text that two payloads share exactly if they are the same, order of keys included."""
    return json.dumps(value, ensure_ascii=True)


def shape(value: Any, *, payload: bool = False) -> Any:
    """Return a comparable form of a wire document.

    `1`, `1.0` and `true` are kept apart everywhere. The order of keys is free in the standard's own objects, but
    not in what belongs to users: metadata and data.
    """
    if payload:
        return exact(value)
    if isinstance(value, dict):
        return {name: shape(inner, payload=name in ("metadata", "data")) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return exact(value)
