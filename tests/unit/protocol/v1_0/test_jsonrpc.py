"""The JSON-RPC binding of 1.0: its methods."""

import pytest

from dragoman.model.errors import InvalidParams
from dragoman.model.operation import GetExtendedCard, Operation, SubscribeToTask
from dragoman.protocol.v1_0.jsonrpc import METHODS


def test_the_methods_are_the_operations_by_their_names() -> None:
    assert {name: method.operation for name, method in METHODS.items()} == {
        operation.value: operation for operation in Operation
    }


@pytest.mark.parametrize(
    "name", ["message/send", "tasks/get", "sendMessage", "SENDMESSAGE", "GetAgentCard", ""]
)
def test_no_other_method_is_known(name: str) -> None:
    assert name not in METHODS


def test_an_extended_card_needs_no_params() -> None:
    assert METHODS[Operation.GET_EXTENDED_CARD].decode({"whatever": 1}, "demo") == GetExtendedCard()


@pytest.mark.parametrize(
    "operation", sorted({*Operation} - {Operation.GET_EXTENDED_CARD, Operation.LIST_TASKS})
)
def test_the_other_operations_check_their_params(operation: Operation) -> None:
    with pytest.raises(InvalidParams):
        METHODS[operation].decode({}, "demo")


def test_a_subscription_names_its_task() -> None:
    assert METHODS["SubscribeToTask"].decode({"id": "t"}, "demo") == SubscribeToTask(task_id="t")
