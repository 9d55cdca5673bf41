"""Message identity: what makes a repeated message the same message."""

import hashlib

import msgspec
from msgspec import structs

from dragoman.model.message import DataPart, Message, Part
from dragoman.model.operation import SendMessage
from dragoman.model.payload import ABSENT, canonical

_encode = msgspec.json.Encoder().encode


def digest(request: SendMessage) -> bytes:
    """Return 32 bytes that are equal for two sends exactly if they say the same.

    Covered: the message, the request's metadata and the protocol generation. Not covered: operation, binding,
    configuration and JSON-RPC id, so that a lost answer may be asked for in another way. Key order and white space
    in payloads do not count; types and every digit of an integer do.
    """
    message = request.message
    if message.metadata is not ABSENT or any(map(_has_payload, message.parts)):
        message = structs.replace(
            message,
            metadata=canonical(message.metadata),
            parts=tuple(_canonical_part(part) for part in message.parts),
        )
    metadata = canonical(request.metadata) if request.metadata is not ABSENT else ABSENT
    hasher = hashlib.sha256(_encode(message))
    hasher.update(b"\0" + bytes(metadata) + b"\0" + request.generation.encode())
    return hasher.digest()


def is_heavy(message: Message) -> bool:
    """Tell whether a message's digest takes long enough to be made in a thread: it holds large payloads."""
    size = len(bytes(message.metadata))
    for part in message.parts:
        size += len(bytes(part.metadata))
        if isinstance(part, DataPart):
            size += len(bytes(part.data))
    return size > HEAVY


HEAVY = 64 * 1024


def _has_payload(part: Part) -> bool:
    return part.metadata is not ABSENT or isinstance(part, DataPart)


def _canonical_part(part: Part) -> Part:
    if isinstance(part, DataPart):
        return structs.replace(part, data=canonical(part.data), metadata=canonical(part.metadata))
    return structs.replace(part, metadata=canonical(part.metadata))
