"""Accepting a message, and what the sender is told: the answer, or a stream of what happens."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from dragoman.gateway.access import is_withheld
from dragoman.gateway.call import Answer, Call, Committed, EventStream, StreamItem
from dragoman.gateway.capability import check_capability
from dragoman.gateway.extensions import accepted as accepted_by
from dragoman.gateway.identity import digest, is_heavy
from dragoman.gateway.observe import Hub, Observer
from dragoman.gateway.ports import Acceptance, Accepted, AgentSettings, Engine, RunRequest, TaskStore
from dragoman.gateway.push import PushConfigurer
from dragoman.gateway.query import history_bound, show
from dragoman.gateway.result import without_content
from dragoman.gateway.subscribe import HEARTBEAT_SECONDS, follow
from dragoman.gateway.watching import Watchers
from dragoman.model import Part, TaskFold, TaskState
from dragoman.model.errors import (
    ContentTypeNotSupported,
    InvalidAgentResponse,
    QuotaExceeded,
    Unavailable,
    UnsupportedOperation,
)
from dragoman.model.event import acts
from dragoman.model.ids import new_id
from dragoman.model.operation import Operation, SendMessage

WINDOW = 110.0
"""Seconds that a blocking send waits before it returns the task as it stands; the run goes on."""

SHAPE_SECONDS = 10.0
"""Seconds that a caller who does not want to wait waits for it to be known whether the answer is a task: it is a moment
after the run was accepted, unless the store can be written to no more."""

RETRY_AFTER = 5
"""Seconds after which a caller who was told to send a message again should do so."""


class Sender:
    """The two send operations (A2A 1.0 §3.1.1, §3.1.2)."""

    def __init__(
        self,
        store: TaskStore,
        engine: Engine,
        hub: Hub,
        watchers: Watchers,
        hooks: PushConfigurer,
        *,
        window: float = WINDOW,
        heartbeat: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._hooks = hooks
        self._store = store
        self._engine = engine
        self._hub = hub
        self._watchers = watchers
        self._window = window
        self._heartbeat = heartbeat

    async def send(self, call: Call, request: SendMessage) -> Answer:
        """Accept a message and return its task, or the bare message that it was answered with.

        Blocking, unless `return_immediately`: it returns when the task is finished or interrupted, or when the
        window has passed, or the server ends. Of a task that is withheld from the caller, only its state is told.

        Raises:
            A2AError, InvalidParams, QuotaExceeded, Unavailable: the message was refused; nothing was stored.
        """
        acceptance = await self._acceptance(call, request)
        waits = call.policy.watches and not request.return_immediately
        lease = await self._watchers.enter(call.principal) if waits else None
        with self._hub.observe(acceptance.task_id, lease, call) as observer:
            accepted = await self._accept(acceptance)
            fold = _begun(acceptance, accepted) or await self._earlier(call, accepted, observer)
            await self._watch(observer, fold, call, request)
            return self._answer(fold, call, request, accepted.replayed)

    async def stream(self, call: Call, request: SendMessage) -> EventStream:
        """Accept a message and return the stream of its task: a snapshot, then what happens, to its end.

        The message is accepted, or refused, before this returns.

        Raises:
            A2AError, InvalidParams, QuotaExceeded, Unavailable: the message was refused; nothing was stored.
        """
        if not call.settings.capabilities.streaming:
            raise UnsupportedOperation("This agent does not stream; use SendMessage")
        acceptance = await self._acceptance(call, request)
        lease = await self._watchers.enter(call.principal) if call.policy.watches else None
        observer = self._hub.observe(acceptance.task_id, lease, call, streams=True).attach()
        try:
            accepted = await self._accept(acceptance)
            fold = _begun(acceptance, accepted) or await self._earlier(call, accepted, observer)
        except BaseException:
            observer.detach()
            raise
        return EventStream(
            task_id=accepted.task_id,
            items=self._items(call, request, observer, fold),
            release=observer.detach,
            replayed=accepted.replayed,
        )

    async def _earlier(self, call: Call, accepted: Accepted, observer: Observer) -> TaskFold:
        """Return the task that a message belongs to and did not begin; the observer is its from then on.

        It is as the message found it, even if it has moved on: what came of the message is told event by event.
        """
        observer.move(accepted.task_id)
        until = accepted.events[-1].seq if accepted.events else None
        fold = await self._store.read(call.scope, accepted.task_id, hidden=True, until=until)
        if until is not None:
            observer.look_again()
        return fold

    async def _accept(self, acceptance: Acceptance) -> Accepted:
        """Store a message, unless a run of its own would find the agent's queue full.

        What was accepted stays so: a message that is known already is answered as ever, and one to a task of the
        caller's is no new run.

        Raises:
            QuotaExceeded: the queue is full.
        """
        if acceptance.message.task_id:
            return await self._store.accept(acceptance)
        if self._engine.reserve(acceptance.scope, acceptance.task_id):
            return await self._store.accept(
                acceptance, decided=partial(self._engine.release, acceptance.task_id)
            )
        known = await self._store.known(acceptance) if acceptance.idempotent else None
        if known is None:
            raise QuotaExceeded(
                "As many messages wait for this agent as may; this one was not stored. Send it again later",
                metadata={"limit": "max_waiting"},
                retry_after=RETRY_AFTER,
            )
        return known

    async def _items(
        self, call: Call, request: SendMessage, observer: Observer, fold: TaskFold
    ) -> AsyncGenerator[StreamItem | None]:
        with observer:
            pending: Sequence[Committed] = ()
            while not _is_shown(fold, call.settings) and not _is_over(fold):
                batch = await observer.next(self._store, fold.seq, self._heartbeat)
                if batch is not None and not batch:
                    yield None
                    continue
                pending = batch or ()
                if not pending:
                    fold = await self._store.read(call.scope, fold.task_id, hidden=True)
                elif call.settings.replies == "either" and acts(pending[0].event.change):
                    # It turns out to be a task: shown as it was accepted, and then what happened to it.
                    break
                else:
                    fold.apply_all(item.event for item in pending)
                    pending = ()
            if fold.reply is not None:
                yield StreamItem(fold.seq, fold.reply, last=True)
                return
            if not pending and not _is_shown(fold, call.settings):
                raise _no_reply()
            length = history_bound(request.history_length)
            async for item in follow(
                self._store,
                observer,
                call,
                fold,
                history_length=length,
                ends_at_input=True,
                heartbeat=self._heartbeat,
                pending=pending,
            ):
                yield item

    async def _acceptance(self, call: Call, request: SendMessage) -> Acceptance:
        settings = call.settings
        call.policy.check(request)
        if request.push is not None:
            check_capability(settings, Operation.CREATE_PUSH_CONFIG)
        if settings.strict_input_modes:
            for index, part in enumerate(request.message.parts):
                _check_mode(part, index, settings.input_modes)
        acceptance = Acceptance(
            scope=call.scope,
            message=request.message,
            digest=await asyncio.to_thread(digest, request) if is_heavy(request.message) else digest(request),
            idempotent=settings.idempotency == "always" and not call.principal.is_anonymous,
            task_id=new_id(),
            context_id=request.message.context_id or new_id(),
            request=RunRequest(
                accepted_output_modes=request.accepted_output_modes,
                extensions=call.extensions,
                metadata=request.metadata,
            ),
            deadline=int(settings.deadline * 1000),
            visible=settings.replies == "task",
            flat=settings.flat_deadline,
            audit=call.audit,
            allowance=call.allowance,
            push=self._hooks.prepare(call, request.push) if request.push is not None else None,
        )
        return accepted_by(call.extensions, acceptance)

    async def _watch(self, observer: Observer, fold: TaskFold, call: Call, request: SendMessage) -> None:
        """Fold what happens until there is something to answer with, or no more time to wait."""
        loop = asyncio.get_running_loop()
        window = self._window if call.policy.window is None else call.policy.window
        if request.return_immediately and call.settings.replies == "either":
            window = min(window, SHAPE_SECONDS)
        until = loop.time() + window
        while not _is_answerable(fold, call.settings, request.return_immediately):
            left = until - loop.time()
            if left <= 0 or self._hub.is_stopping:
                return
            batch = await observer.next(self._store, fold.seq, left)
            if batch is None:
                fold.apply_all(await self._store.events(fold.task_id, fold.seq))
            else:
                fold.apply_all([item.event for item in batch])

    def _answer(self, fold: TaskFold, call: Call, request: SendMessage, replayed: bool) -> Answer:
        settings = call.settings
        if fold.reply is not None:
            return Answer(result=fold.reply, replayed=replayed)
        if not _is_shown(fold, settings):
            if _is_over(fold):
                raise _no_reply()
            raise Unavailable(
                "The agent has not answered yet; send the same message again to wait for its answer",
                retry_after=RETRY_AFTER,
            )
        if is_withheld(call.access, fold.sources):
            return Answer(result=without_content(fold.task(history_length=0)), replayed=replayed)
        task = fold.task(history_length=history_bound(request.history_length))
        return Answer(result=show(call, task), replayed=replayed)


def _begun(acceptance: Acceptance, accepted: Accepted) -> TaskFold | None:
    """Return the task that a message began, or `None` if it belongs to another."""
    if accepted.task_id != acceptance.task_id:
        return None
    fold = TaskFold(
        acceptance.task_id,
        acceptance.message.context_id or acceptance.context_id,
        acceptance.metadata,
        deadline=accepted.events[0].at + acceptance.deadline,
    )
    fold.apply_all(accepted.events)
    return fold


def _is_shown(fold: TaskFold, settings: AgentSettings) -> bool:
    """Tell whether the run shows as a task: always, never, or from its first act on."""
    if settings.replies == "either":
        return fold.acted
    return settings.replies == "task"


def _is_over(fold: TaskFold) -> bool:
    return fold.reply is not None or (fold.status is not None and fold.status.state.is_terminal)


def _is_answerable(fold: TaskFold, settings: AgentSettings, at_once: bool) -> bool:
    if _is_over(fold):
        return True
    if not _is_shown(fold, settings):
        return False
    state = fold.status.state if fold.status is not None else TaskState.SUBMITTED
    return at_once or state.is_interrupted


def _no_reply() -> InvalidAgentResponse:
    return InvalidAgentResponse("The agent ended without a reply")


def _check_mode(part: Part, index: int, modes: tuple[str, ...]) -> None:
    """Refuse a part whose media type the agent does not take; without one, text, files and data always pass."""
    media_type = part.media_type.partition(";")[0].strip().lower()
    if not media_type:
        return
    for mode in modes:
        known = mode.lower()
        if (
            known in ("*/*", "*")
            or known == media_type
            or (known.endswith("/*") and media_type.startswith(known[:-1]))
        ):
            return
    raise ContentTypeNotSupported(
        f"message.parts[{index}].mediaType: this agent does not take {media_type}; it takes {', '.join(modes)}",
        metadata={"field": f"message.parts[{index}].mediaType"},
    )
