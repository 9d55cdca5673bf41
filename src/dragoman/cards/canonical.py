"""The bytes that a signature of a card is over: RFC 8785 of the members that the standard knows (A2A 1.0 §8.4.1).

Verifiers in the field read a card into their own model first, so members that they do not know are in no signature.
What they make of empty members differs; each way to read is a `Reading`. A card without empty members (`without_empty`)
reads alike in all of A2A 1.0.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import rfc8785
from msgspec import Struct

from dragoman.cards.shapes import CARD_0_3, CARD_1_0, Flag, Kind, Many, Named, Shape, Tagged, Text

OLDER = "0.3"
"""The version that is read in its own way; those after it are read like the first of them."""

MOST_EXACT = 2**53 - 1
"""The largest whole number that every reader of JSON has exactly (RFC 8785 §3.2.2.3, RFC 7493 §2.2)."""

_IMPLIED_0_3: Mapping[str, str] = MappingProxyType(
    {"preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
)
"""What a 0.3 card says where it says nothing; the 0.3 SDK leaves these values out of what is signed."""


class CanonicalError(Exception):
    """A card has no canonical form; the message says why."""


class Reading(Struct, frozen=True):
    """A way to read a card into bytes; `version` is the generation whose members it covers."""

    name: str
    version: str
    write: Callable[[Mapping[str, Any]], bytes]


def canonical(card: Mapping[str, Any], version: str) -> bytes:
    """Return what the official SDKs of a version sign of a card.

    Raises:
        CanonicalError: it holds text or numbers that have no canonical form.
    """
    return (_as_sdks_0_3 if version == OLDER else _as_sdks_1_0)(card)


def without_empty(value: Any) -> Any:
    """Return a JSON value without empty text, arrays, objects and `null`, however deep; `None` if nothing is left."""
    if isinstance(value, Mapping):
        kept = {name: one for name, member in value.items() if (one := without_empty(member)) is not None}
        return kept or None
    if isinstance(value, list):
        return [one for item in value if (one := without_empty(item)) is not None] or None
    return None if value == "" else value


def _as_sdks_1_0(card: Mapping[str, Any]) -> bytes:
    """As a2a-sdk 1.x and @a2a-js/sdk 1.x: whatever is empty is left out, required members too."""
    return _jcs(without_empty(_unsigned(CARD_1_0, card, written=True)))


def _as_text_1_0(card: Mapping[str, Any]) -> bytes:
    """As the text has it: required members stay though empty, and so does what is `optional` in the proto."""
    return _jcs(_unsigned(CARD_1_0, card, written=True))


def _as_sdks_0_3(card: Mapping[str, Any]) -> bytes:
    """As a2a-sdk 0.3.26, the one SDK of A2A 0.3 that verifies: in ASCII, with numbers as Python writes them."""
    plain = _unsigned(CARD_0_3, card, written=False)
    plain = {name: value for name, value in plain.items() if _IMPLIED_0_3.get(name) != value}
    try:
        return json.dumps(
            without_empty(plain) or {}, separators=(",", ":"), sort_keys=True, allow_nan=False
        ).encode()
    except ValueError as error:
        raise CanonicalError(str(error)) from None


READINGS = (
    Reading("A2A 1.0, as the SDKs read it", "1.0", _as_sdks_1_0),
    Reading("A2A 1.0 §8.4.1 to the letter", "1.0", _as_text_1_0),
    Reading("A2A 0.3, as its SDK reads it", "0.3", _as_sdks_0_3),
)
"""The readings that a signature may be good by, the most common one first."""


def _unsigned(shape: Shape, card: Mapping[str, Any], *, written: bool) -> dict[str, Any]:
    plain = dict(_known(shape, card, written))
    plain.pop("signatures", None)
    return plain


def _known(kind: Kind, value: Any, written: bool) -> Any:
    """Return a value with those members alone that its kind has; what has another type than that stays as it is.

    `written`: leave out what a proto message does not write, because it is as if it were not there.
    """
    match kind:
        case Shape() if isinstance(value, Mapping):
            return {
                name: _known(member, value[name], written)
                for name, member in kind.members.items()
                if name in value and _is_written(name, kind, value[name], written)
            }
        case Tagged() if isinstance(value, Mapping):
            shape = kind.shapes.get(str(value.get(kind.tag)))
            # The tag is a constant of the SDK's class, and so counts as said by nobody.
            known = _known(shape, value, written) if shape is not None else dict(value)
            return {name: member for name, member in known.items() if name != kind.tag}
        case Named() if isinstance(value, Mapping):
            return {name: _known(kind.item, member, written) for name, member in value.items()}
        case Many() if isinstance(value, list):
            return [_known(kind.item, item, written) for item in value]
        case _:
            return value


def _is_written(name: str, shape: Shape, value: Any, written: bool) -> bool:
    if value is None:
        return False
    if not written or name in shape.required:
        return True
    match shape.members[name]:
        case Text(explicit=explicit):
            return explicit or value != ""
        case Flag(explicit=explicit):
            return explicit or value is not False
        case Many() | Named():
            return value not in ([], {})
        case _:
            return True


def _jcs(card: Any) -> bytes:
    try:
        return rfc8785.dumps(_doubles(card or {}))
    except (rfc8785.CanonicalizationError, OverflowError, RecursionError) as error:
        raise CanonicalError(str(error)) from None


def _doubles(value: Any) -> Any:
    """Return a value with every number as verifiers have it: they read all of them as doubles."""
    if isinstance(value, Mapping):
        return {name: _doubles(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_doubles(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def unsteady(card: Mapping[str, Any]) -> list[str]:
    """Return the members of a card, each with what is wrong, that not all verifiers of A2A 1.0 read alike."""
    return [
        f"{path or 'the card'} {flaw}"
        for path, flaw in _unsteady(_unsigned(CARD_1_0, card, written=True), "")
    ]


def _unsteady(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if value is None or value in ("", [], {}):
        yield path, "is empty; leave it out or fill it"
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _unsteady(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unsteady(item, f"{path}[{index}]")
    elif type(value) is int and abs(value) > MOST_EXACT:
        yield path, "is a number that few readers have exactly; write it as text"
