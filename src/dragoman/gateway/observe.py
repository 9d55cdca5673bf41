"""Observers of committed events.

The event log in the store is the truth. An observer registers first, then takes a snapshot, then follows what is
committed after it; what it is handed in memory is only a short cut, and whatever is missing there is read from the
store. An observer that falls behind loses its buffer, not its place: it goes on from a new snapshot.

Waking an observer costs the serving loop what its stream then does. A commit that thousands follow wakes them a few at
a time, so that the loop gets round to others between them.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from dragoman.gateway.call import Call, Committed, unconditional
from dragoman.gateway.ports import TaskStore
from dragoman.gateway.watching import Lease
from dragoman.model import (
    ArtifactChunk,
    RawPart,
    Received,
    Reply,
    StatusChange,
    TaskEvent,
    TextPart,
    UrlPart,
)
from dragoman.model.errors import DragomanError
from dragoman.model.message import Part

MAX_EVENTS = 256
MAX_BYTES = 4 * 1024 * 1024
"""What an observer may have waiting before it is sent back to a snapshot."""
WAKES = 16
"""Observers of a crowd that are woken in one turn of the serving loop at most."""

LONGEST_WAIT = 3600.0
"""Seconds after which observers are checked, however far away the next one's time is."""


class Observer:
    """A place in the event log of one task. Use it as a context manager, on the serving loop.

    Attributes:
        task_id: the task.
        until: when it has to be checked at the latest, in seconds since 1970 UTC.
    """

    __slots__ = (
        "_buffer",
        "_bytes",
        "_hub",
        "_lease",
        "_overflowed",
        "_queued",
        "_refusal",
        "_stale",
        "_still",
        "_streams",
        "_waiter",
        "task_id",
        "until",
    )

    def __init__(
        self,
        hub: "Hub",
        task_id: str,
        lease: Lease | None,
        still: Callable[[], None],
        until: float | None,
        *,
        streams: bool,
    ) -> None:
        self.task_id = task_id
        self.until = until
        self._hub = hub
        self._still = still
        self._refusal: DragomanError | None = None
        self._lease = lease
        self._streams = streams
        self._queued = False
        self._buffer: deque[Committed] = deque()
        self._bytes = 0
        self._overflowed = False
        self._stale = False
        self._waiter: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        return self.attach()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()

    def attach(self) -> Self:
        """Begin to be handed events."""
        self._hub.attach(self)
        return self

    def detach(self) -> None:
        """Stop being handed events, and give the lease back, if there is one; may be called again."""
        self._hub.detach(self)
        if self._lease is not None:
            self._lease.release()

    def move(self, task_id: str) -> None:
        """Be handed the events of another task instead; nothing was handed out yet."""
        self._hub.detach(self)
        self.task_id = task_id
        self._hub.attach(self)

    def push(self, committed: Committed) -> None:
        """Take one more event; called by the hub."""
        if not self._overflowed:
            self._buffer.append(committed)
            self._bytes += committed.size
            if len(self._buffer) > MAX_EVENTS or (self._bytes > MAX_BYTES and len(self._buffer) > 1):
                self._buffer.clear()
                self._overflowed = True
        waiter = self._waiter
        # Mostly the first of several wakes whoever waits, and seldom anybody waits for the one of the acceptance.
        if waiter is not None and not waiter.done():
            self._call()

    def look_again(self) -> None:
        """Have the store looked at, because events may have been missed; called by the hub."""
        self._stale = True
        self._call()

    def recheck(self) -> None:
        """Let nothing more be seen by somebody who would not be let in any more; called by the hub."""
        try:
            self._still()
        except DragomanError as error:
            self._refusal = error
            self._call()

    def _call(self) -> None:
        if self._waiter is None or self._waiter.done() or self._queued:
            return
        if self._streams:
            self._queued = self._hub.queue(self)
        if not self._queued:
            self.wake()

    def wake(self) -> None:
        """Have whoever waits for events look for them; called by the hub."""
        self._queued = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(
        self, store: TaskStore, after: int, timeout: float | None = None
    ) -> Sequence[Committed] | None:
        """Return the events that follow sequence number `after`, without a gap, waiting for the first.

        Returns an empty sequence when `timeout` seconds passed without one or waits are to end, and `None` when this
        observer fell behind and must take a new snapshot.

        Raises:
            DragomanError: who observes would not be let in any more.
        """
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        while True:
            if self._refusal is not None:
                raise self._refusal
            if self._overflowed:
                self._overflowed, self._stale, self._bytes = False, False, 0
                return None
            found = self._take(after)
            if self._stale or not _follow(found, after):
                self._stale = False
                found = [committed(event) for event in await store.events(self.task_id, after)]
            if found:
                return found
            if self._has_come():
                # While the store was read: nobody was waiting to be woken.
                continue
            left = None if until is None else until - loop.time()
            if (left is not None and left <= 0) or (self._hub.is_stopping and not self._streams):
                return ()
            waiter = self._waiter = loop.create_future()
            timer = loop.call_later(left, self.wake) if left is not None else None
            try:
                await waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()

    def _has_come(self) -> bool:
        """Tell whether there is something to look at."""
        return bool(self._buffer) or self._stale or self._overflowed or self._refusal is not None

    def _take(self, after: int) -> list[Committed]:
        found = [item for item in self._buffer if item.event.seq > after]
        self._buffer.clear()
        self._bytes = 0
        return found


class Hub:
    """Hands committed events to the observers of their tasks. Lives on the serving loop.

    Attributes:
        is_stopping: whether waits have to end.
    """

    def __init__(self) -> None:
        self.is_stopping = False
        self._observers: dict[str, set[Observer]] = {}
        self._heads: dict[str, int] = {}
        self._woken = 0
        self._queue: deque[Observer] = deque()
        self._due = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def observe(
        self,
        task_id: str,
        lease: Lease | None = None,
        call: Call | None = None,
        *,
        streams: bool = False,
    ) -> Observer:
        """Return an observer of a task, to be entered before the snapshot is taken; it returns `lease` in the end.

        If `call` would be refused by now, when its credential expires or after a change, so is the observer. One that
        `streams` may be one of a crowd and have to wait for its turn.
        """
        if call is None:
            return Observer(self, task_id, lease, unconditional, None, streams=streams)
        return Observer(self, task_id, lease, call.still, call.principal.expires_at, streams=streams)

    def attach(self, observer: Observer) -> None:
        """Begin to hand events to an observer."""
        self._observers.setdefault(observer.task_id, set()).add(observer)
        if observer.until is not None and observer.until < self._due:
            self._recheck_at(observer.until)

    def detach(self, observer: Observer) -> None:
        """Stop handing events to an observer."""
        observers = self._observers.get(observer.task_id)
        if observers is not None:
            observers.discard(observer)
            if not observers:
                del self._observers[observer.task_id]
                self._heads.pop(observer.task_id, None)

    def publish(self, events: Sequence[TaskEvent]) -> None:
        """Hand events out; called with those of each commit, in order."""
        for event in events:
            observers = self._observers.get(event.task_id)
            if observers:
                item = committed(event)
                self._heads[event.task_id] = max(event.seq, self._heads.get(event.task_id, 0))
                for observer in observers:
                    observer.push(item)

    def is_observed(self, task_id: str) -> bool:
        """Tell whether anybody observes a task."""
        return task_id in self._observers

    def observed(self) -> list[str]:
        """Return the tasks that somebody observes."""
        return list(self._observers)

    def catch_up(self, heads: Mapping[str, int]) -> None:
        """Have the observers of those tasks look at the store whose last event is one that was not handed out."""
        for task_id, seq in heads.items():
            observers = self._observers.get(task_id, ())
            if observers and self._heads.get(task_id, 0) < seq:
                self._heads[task_id] = seq
                for observer in observers:
                    observer.look_again()

    def lose(self, task_ids: Iterable[str]) -> None:
        """Have the observers of tasks look at the store, which has them no more: they were purged."""
        for task_id in task_ids:
            for observer in self._observers.get(task_id, ()):
                observer.look_again()

    def queue(self, observer: Observer) -> bool:
        """Have an observer woken when it is its turn; false if that is now."""
        if self._queue or self._woken >= WAKES:
            self._queue.append(observer)
            return True
        if not self._woken:
            asyncio.get_running_loop().call_soon(self._turn)
        self._woken += 1
        return False

    def _turn(self) -> None:
        self._woken = min(WAKES, len(self._queue))
        for _ in range(self._woken):
            self._queue.popleft().wake()
        if self._woken:
            asyncio.get_running_loop().call_soon(self._turn)

    def look_again(self) -> None:
        """Have every observer look at the store: another process may have written to it."""
        for observers in self._observers.values():
            for observer in observers:
                observer.look_again()

    def end_waits(self) -> None:
        """Have whoever waits for an answer told how things stand, because the server ends."""
        self.is_stopping = True
        for observers in self._observers.values():
            for observer in observers:
                observer.wake()

    def recheck(self) -> None:
        """Have every observer checked, because somebody may have lost what they had."""
        for observers in self._observers.values():
            for observer in observers:
                observer.recheck()

    def _recheck_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        # A moment later, so that it has come by every clock; and by the hour, because clocks are set.
        wait = min(max(0.0, due - time.time()) + 0.01, LONGEST_WAIT)
        self._timer = asyncio.get_running_loop().call_later(wait, self._expire)

    def _expire(self) -> None:
        self._due, self._timer = math.inf, None
        self.recheck()
        now = time.time()
        ahead = [
            observer.until
            for observers in self._observers.values()
            for observer in observers
            if observer.until is not None and observer.until > now
        ]
        if ahead:
            self._recheck_at(min(ahead))

    def count(self) -> int:
        """Return how many observers there are."""
        return sum(len(observers) for observers in self._observers.values())


def _follow(found: Sequence[Committed], after: int) -> bool:
    """Tell whether events follow sequence number `after` without a gap; where servers share a store, they may not."""
    for item in found:
        after += 1
        if item.event.seq != after:
            return False
    return True


def committed(event: TaskEvent) -> Committed:
    """Return an event, weighed."""
    change = event.change
    if isinstance(change, ArtifactChunk):
        parts: tuple[Part, ...] = change.artifact.parts
    elif isinstance(change, StatusChange):
        parts = change.message.parts if change.message is not None else ()
    elif isinstance(change, (Received, Reply)):
        parts = change.message.parts
    else:
        parts = ()
    size = 256
    for part in parts:
        size += _weight(part)
    return Committed(event, size)


def _weight(part: Part) -> int:
    if isinstance(part, TextPart):
        return len(part.text)
    if isinstance(part, RawPart):
        return len(part.raw)
    return len(part.url) if isinstance(part, UrlPart) else len(bytes(part.data))
