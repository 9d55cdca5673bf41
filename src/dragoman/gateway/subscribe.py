"""Following a task: snapshot, then every event after it, to the end."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from dragoman.gateway.access import LOOK, is_withheld
from dragoman.gateway.call import Call, Committed, EventStream, StreamItem
from dragoman.gateway.extensions import retold
from dragoman.gateway.observe import Hub, Observer
from dragoman.gateway.policy import Policy
from dragoman.gateway.ports import TaskStore
from dragoman.gateway.query import HISTORY, show
from dragoman.gateway.result import verify_artifact, without_content
from dragoman.gateway.watching import Watchers
from dragoman.model import ArtifactChunk, Received, Resumed, TaskEvent, TaskFold, TaskState, Used
from dragoman.model.errors import TaskNotFound, UnsupportedOperation
from dragoman.model.operation import SubscribeToTask
from dragoman.model.payload import is_present

HEARTBEAT_SECONDS = 15.0
"""Seconds without an event after which a stream yields `None`, so that its binding can show that it lives."""


class Subscriber:
    """SubscribeToTask (A2A 1.0 §3.1.6)."""

    def __init__(
        self, store: TaskStore, hub: Hub, watchers: Watchers, *, heartbeat: float = HEARTBEAT_SECONDS
    ) -> None:
        self._heartbeat = heartbeat
        self._store = store
        self._hub = hub
        self._watchers = watchers

    async def subscribe(self, call: Call, request: SubscribeToTask) -> EventStream:
        """Return the stream of a task that is not finished: a snapshot, then what happens until it is.

        With `last_event` the stream goes on after that event, without a snapshot, also on a finished task. With
        `also_finished` the stream of a finished task is its snapshot.

        Raises:
            TaskNotFound: there is none, or it is not the caller's.
            UnsupportedOperation: the task is finished, or the agent does not stream.
        """
        if not call.settings.capabilities.streaming:
            raise UnsupportedOperation("This agent does not stream; use GetTask")
        lease = await self._watchers.enter(call.principal) if call.policy.watches else None
        observer = self._hub.observe(request.task_id, lease, call, streams=True).attach()
        try:
            fold = await self._store.read(call.scope, request.task_id)
            if is_withheld(call.access, fold.sources):
                raise TaskNotFound(request.task_id)
            after = request.last_event if call.policy.resumes_streams else None
            if after is not None and not 0 < after <= fold.seq:
                after = None
            refused = after is None and not request.also_finished
            if refused and fold.status is not None and fold.status.state.is_terminal:
                raise UnsupportedOperation(
                    f"Task {request.task_id} is finished ({fold.status.state.name}); read it with GetTask"
                )
        except BaseException:
            observer.detach()
            raise
        return EventStream(
            task_id=request.task_id,
            items=self._items(call, observer, fold, after),
            release=observer.detach,
        )

    async def _items(
        self, call: Call, observer: Observer, fold: TaskFold, after: int | None
    ) -> AsyncGenerator[StreamItem | None]:
        with observer:
            if after is not None:
                fold = await self._store.read(call.scope, fold.task_id, until=after)
                observer.look_again()
            items = follow(
                self._store,
                observer,
                call,
                fold,
                history_length=HISTORY,
                ends_at_input=False,
                heartbeat=self._heartbeat,
                snapshot_first=after is None,
            )
            async for item in items:
                yield item


async def follow(
    store: TaskStore,
    observer: Observer,
    call: Call,
    fold: TaskFold,
    *,
    history_length: int,
    ends_at_input: bool,
    heartbeat: float = HEARTBEAT_SECONDS,
    snapshot_first: bool = True,
    pending: Sequence[Committed] = (),
) -> AsyncGenerator[StreamItem | None]:
    """Yield a snapshot and then the events of a task until it is finished, and `None` every `heartbeat` between.

    It ends where the surface's window ends, and where what it shows is withheld from the caller. What was withheld at
    once is shown as its state alone.

    Args:
        store: where missed events and new snapshots are read.
        observer: an observer of the task, attached before `fold` was read.
        call: who follows it, and under which rules.
        fold: the task as far as it was read.
        history_length: messages of history in snapshots.
        ends_at_input: end at INPUT_REQUIRED too, because it is the caller's turn.
        heartbeat: seconds without an event after which `None` comes.
        snapshot_first: begin with a snapshot.
        pending: events after `fold` that the observer gave out already.
    """

    def snapshot() -> StreamItem:
        task = show(call, fold.task(history_length=history_length))
        return StreamItem(fold.seq, task, last=_ends(fold, ends_at_input))

    clock = _Clock(call, heartbeat)
    if is_withheld(call.access, fold.sources):
        yield StreamItem(fold.seq, without_content(fold.task(history_length=0)), last=True)
        return
    if snapshot_first:
        yield snapshot()
    while not _ends(fold, ends_at_input) and not clock.is_over():
        batch: Sequence[Committed] | None = pending or await observer.next(store, fold.seq, clock.patience())
        pending = ()
        if batch is None:
            fold = await store.read(call.scope, fold.task_id)
        if is_withheld(call.access, fold.sources):
            return
        is_quiet = clock.hear(batch is None or len(batch) > 0)
        if batch is None:
            yield snapshot()
        elif is_quiet:
            yield None
        for item in batch or ():
            fold.apply(item.event)
            if is_withheld(call.access, fold.sources):
                return
            if isinstance(item.event.change, Resumed):
                # What the lost attempt had said no longer counts: show the task as it stands.
                yield snapshot()
            elif _is_shown(call.policy, item.event):
                yield StreamItem(item.event.seq, _retold(call, fold, item), last=_ends(fold, ends_at_input))
            if _ends(fold, ends_at_input):
                # Somebody may have answered already: what comes of that is for the stream of the answer.
                return


def _is_shown(policy: Policy, event: TaskEvent) -> bool:
    """Tell whether a stream shows an event; an artifact is verified on the way where the surface does so.

    Raises:
        ArtifactUnverified: it is not what was written.
    """
    change = event.change
    if isinstance(change, ArtifactChunk) and policy.verifies:
        verify_artifact(event.task_id, change.artifact)
    return not isinstance(change, Used) and not (isinstance(change, Received) and change.state is None)


def _retold(call: Call, fold: TaskFold, item: Committed) -> Committed:
    """Return an event as it is shown in a call: for most the one that was committed, encoded once for everybody."""
    if not call.extensions and not is_present(fold.metadata):
        return item
    event = retold(call.extensions, fold, item.event)
    return item if event is item.event else Committed(event, item.size)


class _Clock:
    """When a stream is to show that it lives, to look whether it may go on, and to end."""

    def __init__(self, call: Call, heartbeat: float) -> None:
        self._heartbeat = heartbeat
        self._now = asyncio.get_running_loop().time
        window = call.policy.window
        self._until = None if window is None else self._now() + window
        self._looks = call.access is not None
        self._quiet = self._now() + self._heartbeat

    def hear(self, something: bool) -> bool:
        """Note whether something came; tell, once, whether nothing has for a heartbeat."""
        now = self._now()
        is_quiet = not something and now >= self._quiet
        if something or is_quiet:
            self._quiet = now + self._heartbeat
        return is_quiet

    def is_over(self) -> bool:
        """Tell whether the window is over."""
        return self._until is not None and self._now() >= self._until

    def patience(self) -> float:
        """Return how long to wait for an event before one of these is due."""
        due = self._quiet if self._until is None else min(self._quiet, self._until)
        left = max(0.0, due - self._now())
        return min(left, LOOK) if self._looks else left


def _ends(fold: TaskFold, at_input: bool) -> bool:
    state = fold.status.state if fold.status is not None else None
    return state is not None and (state.is_terminal or (at_input and state is TaskState.INPUT_REQUIRED))
