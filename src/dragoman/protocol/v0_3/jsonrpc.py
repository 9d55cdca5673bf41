"""The JSON-RPC binding of A2A 0.3 (§7)."""

from collections.abc import Mapping
from types import MappingProxyType

from dragoman.model.operation import GetExtendedCard, Operation
from dragoman.protocol.spec import JsonRpcDialect, Method
from dragoman.protocol.v0_3 import decode, push
from dragoman.protocol.v0_3.encode import CODEC
from dragoman.protocol.v0_3.errors import encode_jsonrpc, http_status

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "message/send": Method(Operation.SEND_MESSAGE, decode.decode_send),
        "message/stream": Method(Operation.SEND_STREAMING_MESSAGE, decode.decode_send),
        "tasks/get": Method(Operation.GET_TASK, decode.decode_get),
        "tasks/cancel": Method(Operation.CANCEL_TASK, decode.decode_cancel),
        "tasks/resubscribe": Method(Operation.SUBSCRIBE_TO_TASK, decode.decode_subscribe),
        "tasks/pushNotificationConfig/set": Method(Operation.CREATE_PUSH_CONFIG, push.decode_set),
        "tasks/pushNotificationConfig/get": Method(Operation.GET_PUSH_CONFIG, push.decode_get),
        "tasks/pushNotificationConfig/list": Method(Operation.LIST_PUSH_CONFIGS, push.decode_list),
        "tasks/pushNotificationConfig/delete": Method(Operation.DELETE_PUSH_CONFIG, push.decode_delete),
        "agent/getAuthenticatedExtendedCard": Method(
            Operation.GET_EXTENDED_CARD, lambda params, agent: GetExtendedCard()
        ),
    }
)

DIALECT = JsonRpcDialect(
    methods=METHODS,
    codec=CODEC,
    encode_error=encode_jsonrpc,
    http_status=http_status,
    # Official 0.3 clients read the error of a refused stream from nowhere else.
    streams_refusals=True,
    # The upstream 0.3 kit asks for unknown methods and wrong params without an id.
    notifications_last=True,
)
