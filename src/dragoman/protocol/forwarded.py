"""Where a request comes from that proxies have passed on: X-Forwarded-For, and Forwarded (RFC 7239)."""

import ipaddress
import re
from collections.abc import Collection, Iterable

from dragoman.protocol.headers import Headers

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_WITH_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::[0-9]{1,5})?", re.ASCII)

LONGEST = 4096
"""Bytes of a header that is read: nobody's way is longer."""


def networks_of(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks that texts name; an address is a network of one.

    Raises:
        ValueError: one is none; the message says which.
    """
    return tuple(ipaddress.ip_network(text) for text in texts)


def caller_of(peer: str, headers: Headers, trusted: Collection[Network]) -> str:
    """Return the address that a request comes from: the last one on its way that is no trusted proxy's.

    Only a trusted proxy is believed, and each only for whom it had the request from: what stands before that in a
    header may be anybody's word. If it cannot be told further, it is the address of the last one who is believed. A
    proxy writes one of the two headers, and may pass on the other as its caller wrote it: where they differ, neither
    is believed.
    """
    if not _is_trusted(_address(peer), trusted):
        return peer
    told = [
        _walk(peer, hops, trusted)
        for hops in (_x_forwarded_for(headers), _forwarded(headers))
        if hops is not None
    ]
    return told[0] if told and all(one == told[0] for one in told) else peer


def _walk(peer: str, hops: list[str], trusted: Collection[Network]) -> str:
    for hop in reversed(hops):
        address = _address(hop)
        if address is None:
            return peer
        peer = str(address)
        if not _is_trusted(address, trusted):
            return peer
    return peer


def _x_forwarded_for(headers: Headers) -> list[str] | None:
    value = headers.joined(b"x-forwarded-for")
    if value is None:
        return None
    return [hop.strip() for hop in value.decode("latin-1").split(",")] if len(value) <= LONGEST else [""]


def _forwarded(headers: Headers) -> list[str] | None:
    """Return whom each proxy had the request from; an empty text where it does not say."""
    value = headers.joined(b"forwarded")
    if value is None:
        return None
    if len(value) > LONGEST:
        return [""]
    return [_for(element) for element in _split(value.decode("latin-1"), ",")]


def _for(element: str) -> str:
    """Return what the parameter `for` of an element says; an empty text if it says nothing, or more than once."""
    pairs = [parameter.strip().partition("=") for parameter in _split(element, ";")]
    found = [value for name, _, value in pairs if name.lower() == "for"]
    if len(found) != 1:
        return ""
    return re.sub(r"\\(.)", r"\1", found[0][1:-1]) if found[0].startswith('"') else found[0]


def _split(text: str, mark: str) -> list[str]:
    """Return the pieces between marks that are not in a quoted string; one empty piece if a string has no end."""
    pieces, begin, quoted, escaped = [], 0, False, False
    for place, character in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = character == "\\", character != '"'
        elif character == '"':
            quoted = True
        elif character == mark:
            pieces.append(text[begin:place])
            begin = place + 1
    return [""] if quoted else [*pieces, text[begin:]]


def _address(text: str) -> _Address | None:
    """Return an address, with or without a port; `None` if it is none, such as `unknown` or a made-up name."""
    form = _WITH_PORT.fullmatch(text)
    try:
        address = ipaddress.ip_address((form[1] or form[2]) if form is not None else text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_trusted(address: _Address | None, trusted: Collection[Network]) -> bool:
    return address is not None and any(address in network for network in trusted)
