"""A2A 1.0 (wire of 1.0.1): ProtoJSON with member-discriminated parts, google.rpc.Status errors."""

from dragoman.protocol.spec import ProtocolSpec
from dragoman.protocol.v1_0 import card, encode, http, jsonrpc, openapi

SPEC = ProtocolSpec(
    version="1.0",
    http=(http.DIALECT,),
    jsonrpc=jsonrpc.DIALECT,
    card=card.encode_card,
    push=encode.PUSH,
    describe=openapi.describe,
    revisions={"1.0.1": (http.DIALECT,), "1.0.0": (http.DIALECT_1_0_0,)},
)

__all__ = ["SPEC"]
