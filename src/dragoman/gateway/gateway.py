"""The gateway as its bindings see it: one method that performs any operation."""

from collections.abc import Mapping
from types import MappingProxyType

from dragoman.gateway.call import Answer, Call, EventStream
from dragoman.gateway.cancel import Canceller
from dragoman.gateway.cards import ExtendedCard, extended_card
from dragoman.gateway.extensions import check_required
from dragoman.gateway.observe import Hub
from dragoman.gateway.ports import Engine, TaskStore
from dragoman.gateway.query import Reader
from dragoman.gateway.send import WINDOW, Sender
from dragoman.gateway.subscribe import Subscriber
from dragoman.gateway.watching import ObserverBounds, Watchers
from dragoman.model import Task, TaskPage
from dragoman.model.errors import A2AError, PushNotificationNotSupported
from dragoman.model.operation import (
    CancelTask,
    CapabilityRequest,
    GetTask,
    ListTasks,
    Operation,
    Request,
    SendMessage,
    SubscribeToTask,
)

Result = Answer | Task | TaskPage | EventStream | ExtendedCard

_REFUSALS: Mapping[Operation, A2AError] = MappingProxyType(
    {
        Operation.CREATE_PUSH_CONFIG: PushNotificationNotSupported("This agent sends no push notifications"),
        Operation.GET_PUSH_CONFIG: PushNotificationNotSupported("This agent sends no push notifications"),
        Operation.LIST_PUSH_CONFIGS: PushNotificationNotSupported("This agent sends no push notifications"),
        Operation.DELETE_PUSH_CONFIG: PushNotificationNotSupported("This agent sends no push notifications"),
    }
)
"""What an operation is answered with when the agent's card does not declare its capability."""


class Gateway:
    """Performs operations on behalf of callers."""

    def __init__(
        self,
        store: TaskStore,
        engine: Engine,
        hub: Hub,
        *,
        window: float = WINDOW,
        watchers: Watchers | None = None,
    ) -> None:
        watchers = watchers or Watchers(ObserverBounds())
        self._sender = Sender(store, engine, hub, watchers, window=window)
        self._reader = Reader(store)
        self._canceller = Canceller(store, engine)
        self._subscriber = Subscriber(store, hub, watchers)

    async def perform(self, call: Call, operation: Operation, request: Request) -> Result:
        """Perform an operation and return its result.

        Raises:
            DragomanError: it was refused or failed; the error tree says how.
        """
        check_required(call.extensions, call.settings.capabilities.extensions)
        match request:
            case SendMessage():
                if operation is Operation.SEND_STREAMING_MESSAGE:
                    return await self._sender.stream(call, request)
                return await self._sender.send(call, request)
            case GetTask():
                return await self._reader.get(call, request)
            case ListTasks():
                return await self._reader.list(call, request)
            case CancelTask():
                return await self._canceller.cancel(call, request)
            case SubscribeToTask():
                return await self._subscriber.subscribe(call, request)
            case CapabilityRequest() if operation is Operation.GET_EXTENDED_CARD:
                return extended_card(call)
            case CapabilityRequest():
                refusal = _REFUSALS[operation]
                raise type(refusal)(refusal.message)
