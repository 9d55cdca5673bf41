"""User payloads: metadata, data parts and extension objects, kept as the JSON text they are.

A payload belongs to the caller or the agent. Nobody between them may change its meaning, so it travels as
validated JSON text (`msgspec.Raw`): immutable, spliced into storage and replies as it is, with integers of any
size, key order and unknown keys intact. It is parsed only where somebody really reads it (`unpack`).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

ABSENT = Raw(b"")
"""No payload. Being the default of its fields, it is left out when a value is stored."""

_DECODER = msgspec.json.Decoder()
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])


def pack(value: Any) -> Raw:
    """Return `value`, a JSON value made of Python objects, as a payload.

    Raises:
        ValueError: it holds NaN, an infinity or text that is not Unicode (a lone surrogate).
        TypeError: it holds something that JSON has no form for, or a key that is no string.
    """
    packed = pack_parsed(value)
    _check_keys(value)
    return packed


def pack_parsed(value: Any) -> Raw:
    """Do what `pack` does, for a value that was parsed from JSON and so has strings for keys.

    Raises:
        ValueError, TypeError: as `pack`.
    """
    text = _in_pieces(value, _PLAIN)
    try:
        return Raw(text.encode())
    except UnicodeEncodeError as error:
        raise ValueError("text holds a lone surrogate, which no UTF-8 can carry") from error


_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
_MANY = 200


def _in_pieces(value: Any, encode: Callable[[Any], str]) -> str:
    """Encode a value, long arrays item by item: the encoder never lets another thread have the interpreter."""
    if isinstance(value, list) and len(value) > _MANY:
        return f"[{','.join([encode(item) for item in value])}]"
    if isinstance(value, dict) and any(
        isinstance(item, list) and len(item) > _MANY for item in value.values()
    ):
        members = sorted(value.items()) if encode is _SORTED else value.items()
        return f"{{{','.join([f'{encode(key)}:{_in_pieces(item, encode)}' for key, item in members])}}}"
    return encode(value)


def _check_keys(value: Any) -> None:
    # `json` would write the key 1 as "1", beside another "1".
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, str):
                raise TypeError(f"keys of a JSON object are strings, but {key!r} is {type(key).__name__}")
            _check_keys(member)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_keys(item)


def pack_object(value: dict[str, Any] | None) -> Raw:
    """Return a metadata map as a payload; `None` and `{}` both mean absent.

    Raises:
        ValueError, TypeError: as `pack`.
    """
    return pack(value) if value else ABSENT


def unpack(payload: Raw) -> Any:
    """Return the Python value of a payload; an absent one is `None`."""
    return _DECODER.decode(payload) if payload is not ABSENT and bytes(payload) else None


def members(payload: Raw) -> Mapping[str, Raw]:
    """Return the members of a payload that is an object, each as the text that it is; none if it is absent."""
    found: dict[str, Raw] = _MEMBERS.decode(payload) if is_present(payload) else {}
    return found


def with_members(payload: Raw, further: Mapping[str, Raw]) -> Raw:
    """Return an object with further members. Those that it has stay as they are, also where both have one."""
    own = members(payload)
    added = {key: text for key, text in further.items() if key not in own}
    return Raw(msgspec.json.encode({**own, **added})) if added else payload


def is_present(payload: Raw) -> bool:
    """Tell whether there is a payload at all (`null` is one)."""
    return payload is not ABSENT and bool(bytes(payload))


def canonical(payload: Raw) -> Raw:
    """Return the payload with sorted keys and no white space: equal meaning, equal bytes.

    Types are kept apart (`1` is not `1.0`) and integers keep every digit, which RFC 8785 would not grant.
    """
    if not is_present(payload):
        return ABSENT
    text = _in_pieces(json.loads(bytes(payload)), _SORTED)
    return Raw(text.encode())
