"""Telling receivers of push notifications what happens to a task: in order, at least once, each at its own pace.

Each configuration has a lane. A lane works through the events after the last one that its receiver took, one request
at a time, and ends when there is nothing left; a new event, or its next try, begins it again. What it knows is in the
store: a server that is killed loses nothing, and sends at most again what was not noted yet, under the same event id.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Protocol

import msgspec

from dragoman.egress import Refused
from dragoman.egress.client import EgressFailed
from dragoman.gateway.extensions.active import retold
from dragoman.gateway.hooks import Hook, HookState, HookStore
from dragoman.gateway.ports import Commit
from dragoman.gateway.push import Secrets
from dragoman.gateway.query import HISTORY
from dragoman.model import ArtifactChunk, Received, Reply, Resumed, Scope, Task, TaskEvent, TaskFold, Used
from dragoman.model.errors import DragomanError, Unavailable
from dragoman.outbound.vault import Vault, VaultError
from dragoman.outbound.ways import Ways
from dragoman.protocol.spec import PushForm

_LOG = logging.getLogger("dragoman.webhooks")

TRIES = 8
"""How often an event is sent in vain before its configuration is given up."""

LONGEST_WAIT = 300.0
"""Seconds between two tries at most."""

STORE_WAIT = 5.0
"""Seconds until a lane looks again for a store that did not do its work."""

AT_ONCE, BY_CALLER = 256, 192
AGAIN_AT_ONCE, AGAIN_BY_CALLER = 64, 48
BY_ORIGIN = 16
"""Requests at a time: first tries, further tries, of everybody and of one caller; and of a caller to one origin.

Whoever does not answer holds a place for as long as a request may take. So those who failed wait among themselves, and
neither an origin nor a caller holds all places.
"""

TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105 - the name of a header, no token
EVENT_HEADER = "Dragoman-Event-Id"
SEQUENCE_HEADER = "Dragoman-Event-Sequence"

_secrets = msgspec.json.Decoder(Secrets).decode


class Tasks(HookStore, Protocol):
    """Where configurations, events and tasks are."""

    async def read(
        self, scope: Scope, task_id: str, *, hidden: bool = False, until: int | None = None
    ) -> TaskFold:
        """See `TaskStore.read`."""
        ...


class _NotTaken(Exception):
    """A receiver did not take an event; the message says why, without a word of the receiver's."""


class _Places(asyncio.Semaphore):
    """Some places, and how many use one or wait for it."""

    users = 0


class _Lane:
    """One configuration's way out."""

    __slots__ = ("again", "timer", "work")

    def __init__(self) -> None:
        self.again = False
        self.work: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None


class _Told:
    """How far a receiver is: the last event that it took, whether that was the last of all, and why it took no more."""

    __slots__ = ("done", "failure", "seq")

    def __init__(self, seq: int) -> None:
        self.seq = seq
        self.done = False
        self.failure = ""


_NO_LANES: Mapping[str, _Lane] = MappingProxyType({})


class Webhooks:
    """Sends push notifications. To be used on the serving loop."""

    def __init__(
        self,
        store: Tasks,
        ways: Ways,
        vault: Vault,
        forms: Mapping[str, PushForm],
        *,
        retry: float,
        look: float = 5.0,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Prepare to send.

        Args:
            store: where configurations and events are.
            ways: the clients that send the requests.
            vault: opens the secrets of configurations.
            forms: what notifications look like, by protocol generation, the newest first.
            retry: seconds before the second try; each further one waits for twice as long.
            look: seconds between two looks for what other servers left, where `run` is called.
            chance: numbers from 0 to 1, so that many do not try at the same moment.
        """
        self._store = store
        self._ways = ways
        self._vault = vault
        self._forms = forms
        self._newest = next(iter(forms.values()))
        self._retry = retry
        self._look = look
        self._chance = chance
        self._lanes: dict[str, dict[str, _Lane]] = {}
        self._loading: set[asyncio.Task[None]] = set()
        self._first, self._further = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AGAIN_AT_ONCE)
        self._bounds: dict[tuple[object, ...], _Places] = {}
        self._outcomes = {"taken": 0, "failed": 0, "dead": 0}
        self._closed = False

    async def start(self) -> None:
        """Take up what an earlier server left."""
        await self._load(None)

    async def close(self) -> None:
        """Stop sending. What a receiver has not answered yet is sent again by the next server."""
        self._closed = True
        tasks = [*self._loading]
        for lanes in self._lanes.values():
            for lane in lanes.values():
                if lane.timer is not None:
                    lane.timer.cancel()
                if lane.work is not None:
                    tasks.append(lane.work)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._ways.close()

    def committed(self, commit: Commit) -> None:
        """Have lanes told of a commit; most tasks have none."""
        self.changed(commit.hooked)
        if self._lanes:
            self.happened(event.task_id for event in commit.events)

    def changed(self, task_ids: Iterable[str]) -> None:
        """Look at configurations of tasks that were changed, here or by another process."""
        for task_id in task_ids:
            self._look_up(task_id)

    def happened(self, task_ids: Iterable[str]) -> None:
        """Tell of tasks that something happened to, here or on another server."""
        for task_id in task_ids:
            for config_id, lane in self._lanes.get(task_id, _NO_LANES).items():
                self._wake(task_id, config_id, lane)

    def look_again(self) -> None:
        """Look for what another process may have changed."""
        self._look_up(None)

    async def run(self) -> None:
        """Look now and then for what another server left, or did not say, until cancelled."""
        while True:
            await asyncio.sleep(self._look)
            await self._load(None)

    def outcomes(self) -> Mapping[str, int]:
        """Return how many requests were taken, how many failed, and how many configurations were given up."""
        return self._outcomes

    def count(self) -> int:
        """Return how many configurations may have something to tell."""
        return sum(map(len, self._lanes.values()))

    def _look_up(self, task_id: str | None) -> None:
        task = asyncio.ensure_future(self._load(task_id))
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    async def _load(self, task_id: str | None) -> None:
        """Begin the lanes of a task, or of all, that may have something to tell, and end those that are gone."""
        try:
            found = await self._store.open_hooks(task_id)
        except DragomanError as error:
            _LOG.error("the configurations of push notifications cannot be read: %s", error.message)
            return
        if task_id is not None:
            gone = self._lanes.get(task_id, _NO_LANES).keys() - {config_id for _, config_id, _ in found}
            for config_id in gone:
                self._drop(task_id, config_id)
        for task, config_id, waiting in found:
            lane = self._lanes.setdefault(task, {}).setdefault(config_id, _Lane())
            if waiting:
                if lane.timer is not None:
                    # It may have been replaced, and then need not wait any more: the lane finds out.
                    lane.timer.cancel()
                    lane.timer = None
                self._wake(task, config_id, lane)

    def _wake(self, task_id: str, config_id: str, lane: _Lane) -> None:
        lane.again = True
        if lane.work is None and lane.timer is None and not self._closed:
            lane.work = asyncio.ensure_future(self._run(task_id, config_id, lane))

    def _drop(self, task_id: str, config_id: str) -> None:
        lanes = self._lanes.get(task_id, {})
        lane = lanes.pop(config_id, None)
        if not lanes:
            self._lanes.pop(task_id, None)
        if lane is None:
            return
        # Another one may be begun for the same configuration: this one does nothing more.
        lane.again = False
        if lane.timer is not None:
            lane.timer.cancel()
        if lane.work is not None and lane.work is not asyncio.current_task():
            lane.work.cancel()

    async def _run(self, task_id: str, config_id: str, lane: _Lane) -> None:
        try:
            while lane.again:
                lane.again = False
                wait = await self._work(task_id, config_id, lane)
                if wait is not None:
                    self._wait(task_id, config_id, lane, wait)
                    return
        except DragomanError as error:
            # The store cannot be read or written to now; nothing is lost by waiting for it.
            _LOG.warning("a push notification waits: %s", error.message, extra={"task_id": task_id})
            self._wait(task_id, config_id, lane, STORE_WAIT)
        finally:
            lane.work = None

    def _wait(self, task_id: str, config_id: str, lane: _Lane, seconds: float) -> None:
        def go_on() -> None:
            lane.timer = None
            self._wake(task_id, config_id, lane)

        lane.timer = asyncio.get_running_loop().call_later(seconds, go_on)

    async def _work(self, task_id: str, config_id: str, lane: _Lane) -> float | None:
        """Tell a receiver what it has not been told, and return the seconds to wait before it goes on, if it must."""
        era = self._store.era()
        hook = await self._store.hook(task_id, config_id)
        if hook is None or hook.state is not HookState.OPEN:
            self._drop(task_id, config_id)
            return None
        if hook.waits:
            return hook.waits / 1000
        told = _Told(hook.sent)
        try:
            await self._tell_all(hook, told, era)
        except Unavailable:
            raise
        except _NotTaken as error:
            told.failure = str(error)
        except Exception as error:  # what one event does to this server must not end its lane
            _LOG.exception("a push notification failed", exc_info=error, extra={"task_id": task_id})
            told.failure = "a fault of this server, which its log tells of"
        if told.seq > hook.sent:
            await self._store.told(task_id, config_id, told.seq, done=told.done)
            lane.again = True
        if not told.failure:
            return None
        return await self._note(hook, lane, told.failure, 1 if told.seq > hook.sent else hook.tries + 1)

    async def _tell_all(self, hook: Hook, told: _Told, era: int) -> None:
        """Tell the next events, and note in `told` how far it came.

        Raises:
            _NotTaken: the receiver did not take one.
        """
        events = await self._store.to_tell(hook.task_id, hook.sent)
        if not hook.visible:
            # It shows as a task later, or, answered with a bare message, never.
            if events and events[-1].ends_run:
                await self._tell_ended(hook, told, era, events[-1].seq)
            return
        fold: TaskFold | None = None
        for event in events:
            if not self._store.may_tell(era):
                # Whoever took over goes on; if nobody did, this server does when it looks again.
                return
            again = event is events[0] and hook.tries > 0
            fold = await self._tell(hook, event, fold, again=again)
            told.seq, told.done = event.seq, event.ends_run

    async def _tell_ended(self, hook: Hook, told: _Told, era: int, last: int) -> None:
        """Tell of a task that did not show when its configuration was read, and has ended with its event `last`."""
        newest = await self._store.hook(hook.task_id, hook.config.id)
        if newest is None:
            # It was deleted, or another server tells it now.
            return
        if newest.visible:
            await self._tell_all(newest, told, era)
        else:
            told.seq, told.done = last, True

    async def _note(self, hook: Hook, lane: _Lane, error: str, tries: int) -> float | None:
        self._outcomes["failed"] += 1
        wait: float | None = None
        if tries < TRIES:
            longest = min(self._retry * 2 ** (tries - 1), LONGEST_WAIT)
            wait = longest * (0.5 + self._chance() / 2)
        milliseconds = None if wait is None else int(wait * 1000)
        noted = await self._store.not_told(hook, tries, error, wait=milliseconds)
        if not noted:
            # It was replaced meanwhile, and begins anew.
            lane.again = True
            return None
        if wait is None:
            self._outcomes["dead"] += 1
            _LOG.warning(
                "push notifications of a task are given up after %d tries: %s. `dragoman webhooks` shows and "
                "redelivers them",
                tries,
                error,
                extra={"task_id": hook.task_id},
            )
            self._drop(hook.task_id, hook.config.id)
        return wait

    async def _tell(
        self, hook: Hook, event: TaskEvent, fold: TaskFold | None, *, again: bool
    ) -> TaskFold | None:
        """Send one event, unless it is none to show; return the fold up to it, if there was need of one.

        Raises:
            _NotTaken: the receiver did not take it.
        """
        change = event.change
        form = self._forms.get(hook.config.generation, self._newest)
        if fold is not None:
            fold.apply(event)
        if isinstance(change, Used | Reply) or (isinstance(change, Received) and change.state is None):
            return fold
        whole = form.whole or isinstance(change, Resumed)
        if fold is None and (whole or not isinstance(change, ArtifactChunk)):
            # A state is shown with what its task keeps.
            fold = await self._store.read(hook.scope, hook.task_id, until=event.seq)
        item: Task | TaskEvent = event
        if fold is not None:
            # No extension is active where nobody called.
            item = fold.task(history_length=HISTORY) if whole else retold((), fold, event)
        await self._post(hook, event, form.encode(item), form.media_type, again=again)
        return fold

    async def _post(self, hook: Hook, event: TaskEvent, body: bytes, media_type: str, *, again: bool) -> None:
        try:
            client = self._ways.of(hook.scope.agent)
            origin = client.policy.place_of(hook.config.url)
            headers = [
                ("Content-Type", media_type),
                (EVENT_HEADER, f"{event.task_id}/{event.seq}"),
                (SEQUENCE_HEADER, str(event.seq)),
                *self._secret_headers(hook, origin),
            ]
            async with self._place(hook.scope, origin, again):
                reply = await client.send(
                    "POST", hook.config.url, headers=headers, body=body, wants_body=False
                )
        except Refused as error:
            raise _NotTaken(f"the URL {error}") from error
        except (EgressFailed, VaultError) as error:
            raise _NotTaken(str(error)) from error
        if not 200 <= reply.status < 300:
            raise _NotTaken(f"the receiver answered {reply.status}")
        self._outcomes["taken"] += 1

    @asynccontextmanager
    async def _place(self, scope: Scope, origin: str, again: bool) -> AsyncGenerator[None]:
        caller = (scope.tenant, scope.principal)
        by_caller = AGAIN_BY_CALLER if again else BY_CALLER
        # The narrowest first: who waits there holds no place of the others.
        async with (
            self._one_of(BY_ORIGIN, *caller, origin),
            self._one_of(by_caller, *caller, again),
            self._further if again else self._first,
        ):
            yield

    @asynccontextmanager
    async def _one_of(self, most: int, *key: object) -> AsyncGenerator[None]:
        """Hold one of so many places that there are under a key."""
        places = self._bounds.setdefault(key, _Places(most))
        places.users += 1
        try:
            async with places:
                yield
        finally:
            places.users -= 1
            if not places.users:
                del self._bounds[key]

    def _secret_headers(self, hook: Hook, origin: str) -> Sequence[tuple[str, str]]:
        secrets = _secrets(self._vault.open(hook.config.sealed, hook.scope.tenant, origin))
        headers = []
        if hook.config.scheme and secrets.credentials:
            headers.append(("Authorization", f"{hook.config.scheme} {secrets.credentials}"))
        if secrets.token:
            headers.append((TOKEN_HEADER, secrets.token))
        return headers
