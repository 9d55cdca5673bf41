"""The JSON-RPC binding of 0.3: its methods, and what it does in its own way."""

import pytest

from dragoman.model.errors import InvalidParams
from dragoman.model.operation import Operation
from dragoman.protocol.v0_3.encode import CODEC
from dragoman.protocol.v0_3.jsonrpc import DIALECT, METHODS

# A2A 0.3 §7.
EXPECTED = {
    "message/send": Operation.SEND_MESSAGE,
    "message/stream": Operation.SEND_STREAMING_MESSAGE,
    "tasks/get": Operation.GET_TASK,
    "tasks/cancel": Operation.CANCEL_TASK,
    "tasks/resubscribe": Operation.SUBSCRIBE_TO_TASK,
    "tasks/pushNotificationConfig/set": Operation.CREATE_PUSH_CONFIG,
    "tasks/pushNotificationConfig/get": Operation.GET_PUSH_CONFIG,
    "tasks/pushNotificationConfig/list": Operation.LIST_PUSH_CONFIGS,
    "tasks/pushNotificationConfig/delete": Operation.DELETE_PUSH_CONFIG,
    "agent/getAuthenticatedExtendedCard": Operation.GET_EXTENDED_CARD,
}


def test_the_methods_are_those_of_the_standard() -> None:
    assert {name: method.operation for name, method in METHODS.items()} == EXPECTED
    assert set(EXPECTED.values()) == set(Operation) - {Operation.LIST_TASKS}


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.startswith("tasks/push")])
def test_push_methods_check_their_params(name: str) -> None:
    for params in ({}, {"id": 5}, {"anything": None}):
        with pytest.raises(InvalidParams):
            METHODS[name].decode(params, "demo")


def test_results_have_kinds_and_refused_streams_are_streams() -> None:
    assert DIALECT.codec is CODEC
    assert DIALECT.streams_refusals and DIALECT.notifications_last
