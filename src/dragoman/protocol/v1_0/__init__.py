"""A2A 1.0 (wire of 1.0.1): ProtoJSON with member-discriminated parts, google.rpc.Status errors."""

from dragoman.protocol.spec import ProtocolSpec
from dragoman.protocol.v1_0 import card, encode, http, jsonrpc, openapi

SPEC = ProtocolSpec(
    version="1.0",
    http=(http.DIALECT,),
    jsonrpc=jsonrpc.DIALECT,
    encode_answer=encode.encode_answer,
    encode_task=encode.encode_task,
    encode_page=encode.encode_page,
    encode_item=encode.encode_item,
    encode_card=card.encode_card,
    describe=openapi.describe,
)

__all__ = ["SPEC"]
