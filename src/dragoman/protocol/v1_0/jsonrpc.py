"""The JSON-RPC binding of A2A 1.0 (§9): its methods are the operations by their names."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from dragoman.model.operation import GetExtendedCard, Operation, Request
from dragoman.protocol.spec import JsonRpcDialect, Method
from dragoman.protocol.v1_0 import decode
from dragoman.protocol.v1_0.encode import CODEC
from dragoman.protocol.v1_0.errors import encode_jsonrpc, http_status

_DECODERS: Mapping[Operation, Callable[[dict[str, Any], str], Request]] = MappingProxyType(
    {
        Operation.SEND_MESSAGE: decode.decode_send,
        Operation.SEND_STREAMING_MESSAGE: decode.decode_send,
        Operation.GET_TASK: decode.decode_get,
        Operation.LIST_TASKS: decode.decode_list,
        Operation.CANCEL_TASK: decode.decode_cancel,
        Operation.SUBSCRIBE_TO_TASK: decode.decode_subscribe,
        Operation.CREATE_PUSH_CONFIG: decode.decode_create_push_config,
        Operation.GET_PUSH_CONFIG: decode.decode_get_push_config,
        Operation.LIST_PUSH_CONFIGS: decode.decode_list_push_configs,
        Operation.DELETE_PUSH_CONFIG: decode.decode_delete_push_config,
        Operation.GET_EXTENDED_CARD: lambda params, agent: GetExtendedCard(),
    }
)

METHODS: Mapping[str, Method] = MappingProxyType(
    {operation.value: Method(operation, _DECODERS[operation]) for operation in Operation}
)

DIALECT = JsonRpcDialect(methods=METHODS, codec=CODEC, encode_error=encode_jsonrpc, http_status=http_status)
