"""What hangs on a capability: an agent that does not declare it refuses, whatever else a request says."""

from dragoman.gateway.ports import AgentSettings
from dragoman.model.errors import PushNotificationNotSupported, UnsupportedOperation
from dragoman.model.operation import Operation

_PUSH = frozenset(
    [
        Operation.CREATE_PUSH_CONFIG,
        Operation.GET_PUSH_CONFIG,
        Operation.LIST_PUSH_CONFIGS,
        Operation.DELETE_PUSH_CONFIG,
    ]
)


def check_capability(settings: AgentSettings, operation: Operation) -> None:
    """Refuse an operation whose capability the agent's card does not declare (A2A 1.0 §3.3.4).

    Raises:
        PushNotificationNotSupported, UnsupportedOperation: it does not.
    """
    if operation in _PUSH and not settings.capabilities.push_notifications:
        raise PushNotificationNotSupported("This agent sends no push notifications")
    if operation is Operation.GET_EXTENDED_CARD and not settings.capabilities.extended_card:
        raise UnsupportedOperation("This agent has no extended card; its card says all")
