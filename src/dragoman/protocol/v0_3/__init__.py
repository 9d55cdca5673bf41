"""A2A 0.3: JSON with `kind` members and lower-case enums, its ProtoJSON form, and RFC 7807 errors over HTTP."""

from dragoman.protocol.spec import ProtocolSpec
from dragoman.protocol.v0_3 import card, encode, http, jsonrpc

SPEC = ProtocolSpec(
    version="0.3",
    http=http.DIALECTS,
    jsonrpc=jsonrpc.DIALECT,
    card=card.encode_card,
    push=encode.PUSH,
    extension_headers=(b"x-a2a-extensions", b"a2a-extensions"),
)

__all__ = ["SPEC"]
