"""The gateway as its bindings see it: one method that performs any operation."""

from collections.abc import Coroutine
from typing import Any

from dragoman.gateway.call import Answer, Call, EventStream
from dragoman.gateway.cancel import Canceller
from dragoman.gateway.cards import ExtendedCard, extended_card
from dragoman.gateway.extensions import check_required
from dragoman.gateway.observe import Hub
from dragoman.gateway.ports import Engine, TaskStore
from dragoman.gateway.push import PushConfigurer
from dragoman.gateway.query import Reader
from dragoman.gateway.send import WINDOW, Sender
from dragoman.gateway.subscribe import HEARTBEAT_SECONDS, Subscriber
from dragoman.gateway.watching import ObserverBounds, Watchers
from dragoman.model import PushConfig, PushConfigs, Task, TaskPage
from dragoman.model.operation import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    ListTasks,
    Operation,
    Request,
    SendMessage,
    SubscribeToTask,
)

Result = Answer | Task | TaskPage | EventStream | PushConfig | PushConfigs | ExtendedCard | None
"""What came of an operation; `None` where there is nothing to tell."""


class Gateway:
    """Performs operations on behalf of callers."""

    def __init__(
        self,
        store: TaskStore,
        engine: Engine,
        hub: Hub,
        *,
        window: float = WINDOW,
        heartbeat: float = HEARTBEAT_SECONDS,
        watchers: Watchers | None = None,
        hooks: PushConfigurer | None = None,
    ) -> None:
        watchers = watchers or Watchers(ObserverBounds())
        self._hooks = hooks = hooks or PushConfigurer(None, None, None)
        self._sender = Sender(store, engine, hub, watchers, hooks, window=window, heartbeat=heartbeat)
        self._reader = Reader(store)
        self._canceller = Canceller(store, engine)
        self._subscriber = Subscriber(store, hub, watchers, heartbeat=heartbeat)

    def perform(self, call: Call, operation: Operation, request: Request) -> Coroutine[Any, Any, Result]:
        """Perform an operation and return its result, once that is awaited.

        Raises:
            DragomanError: it was refused or failed; the error tree says how.
        """
        check_required(call.extensions, call.settings.capabilities.extensions)
        match request:
            case SendMessage():
                if operation is Operation.SEND_STREAMING_MESSAGE:
                    return self._sender.stream(call, request)
                return self._sender.send(call, request)
            case GetTask():
                return self._reader.get(call, request)
            case ListTasks():
                return self._reader.list(call, request)
            case CancelTask():
                return self._canceller.cancel(call, request)
            case SubscribeToTask():
                return self._subscriber.subscribe(call, request)
            case CreatePushConfig():
                return self._hooks.create(call, request)
            case GetPushConfig():
                return self._hooks.get(call, request)
            case ListPushConfigs():
                return self._hooks.list(call, request)
            case DeletePushConfig():
                return self._hooks.delete(call, request)
            case GetExtendedCard():
                return _at_once(extended_card(call))


async def _at_once(result: Result) -> Result:
    return result
