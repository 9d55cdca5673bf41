"""Random operations against a model of the store: every page and total equals a count by hand."""

import asyncio
import random
import time

import pytest

from dragoman.gateway.ports import Lease, TaskStore
from dragoman.model import Filters, Scope, TaskEvent, TaskState, Used
from dragoman.model.errors import DragomanError
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    OTHER_AGENT,
    OTHER_PRINCIPAL,
    TERMINAL,
    acceptance,
    chunk,
    filters,
    ids,
    listing,
    message,
    purged,
    status,
)

SCOPES = (ALICE, OTHER_PRINCIPAL, OTHER_AGENT)
NAMED = ("one", "two", "three")
"""Contexts that callers name from the start; others are given out by the server, and may be named later."""
AGES = (HOUR // 8, HOUR // 8 + HOUR // 4)
"""Ages for purges. The clock is moved by whole quarters of an hour and a little, so no task is near either of them."""
SOURCES = ("crm", "payroll", "wiki")
ROUNDS = 12
STEPS = 25


class Book:
    """What the store should hold, written down from what it answered."""

    def __init__(self, store: TaskStore, chance: random.Random) -> None:
        self.store = store
        self.chance = chance
        self.leases: list[Lease] = []
        self.scope: dict[str, Scope] = {}
        self.context: dict[str, str] = {}
        self.state: dict[str, TaskState] = {}
        self.since: dict[str, int] = {}
        self.visible: set[str] = set()
        self.gone: set[str] = set()
        self.clock = 0
        self.used: dict[str, set[str]] = {}

    async def step(self) -> None:
        """Do something at random; a refusal is as good as anything."""
        if self.chance.random() < 0.35 or not self.leases:
            return await self.accept()
        lease = self.chance.choice(self.leases[-30:])
        acts = [self.move, self.move, self.begin, self.cancel, self.answer, self.expire, self.purge, self.use]
        try:
            await self.chance.choice(acts)(lease)
        except DragomanError:
            return None

    async def accept(self) -> None:
        scope, visible = self.chance.choice(SCOPES), self.chance.random() < 0.7
        deadline = self.chance.choice((HOUR, 100 * HOUR))
        given_out = list(self.context.values())[-20:]
        context_id = self.chance.choice(("", "", *NAMED, *given_out))
        sent = message(context_id=context_id)
        accepted = await self.store.accept(acceptance(sent, scope=scope, visible=visible, deadline=deadline))
        self.leases.append(Lease(accepted.task_id, 1))
        self.scope[accepted.task_id] = scope
        self.context[accepted.task_id] = accepted.events[0].context_id
        if visible:
            self.visible.add(accepted.task_id)
        self.note(accepted.events)

    async def move(self, lease: Lease) -> None:
        reveal = self.chance.random() < 0.5
        changes = [status(self.chance.choice(list(TaskState)), "so")]
        if self.chance.random() < 0.3:
            changes.insert(0, chunk("x"))
        self.note(await self.store.append(lease, changes, reveal=reveal))
        if reveal:
            self.visible.add(lease.task_id)

    async def begin(self, lease: Lease) -> None:
        await self.store.begin_work([lease])
        events = await self.store.events(lease.task_id, 1)
        if self.state[lease.task_id] is TaskState.SUBMITTED and events:
            self.note(events)
            if events[-1].state is TaskState.WORKING:
                self.visible.add(lease.task_id)

    async def cancel(self, lease: Lease) -> None:
        self.note([await self.store.cancel(self.scope[lease.task_id], lease.task_id)])

    async def answer(self, lease: Lease) -> None:
        sent = message(task_id=lease.task_id)
        self.note((await self.store.accept(acceptance(sent, scope=self.scope[lease.task_id]))).events)

    async def use(self, lease: Lease) -> None:
        source = self.chance.choice(SOURCES)
        await self.store.append(lease, [Used(source)])
        self.used.setdefault(lease.task_id, set()).add(source)

    async def expire(self, lease: Lease) -> None:
        self.note(await self.store.expire())

    async def purge(self, lease: Lease) -> None:
        """Delete what ended in one of two states some time ago: exactly that, and the hidden runs only if thorough."""
        ages = {state.name: self.chance.choice(AGES) for state in self.chance.sample(TERMINAL, 2)}
        thorough = self.chance.random() < 0.5
        now = time.time_ns() // 1_000_000 + self.clock
        old = {
            task_id
            for task_id, state in self.state.items()
            if state.name in ages
            and self.since[task_id] < now - ages[state.name]
            and (thorough or task_id in self.visible)
            and task_id not in self.gone
        }
        assert await purged(self.store, thorough=thorough, **ages) == len(old)
        self.gone |= old
        self.visible -= old

    def note(self, events: object) -> None:
        assert isinstance(events, list | tuple)
        for event in events:
            assert isinstance(event, TaskEvent)
            if event.state is not None:
                self.state[event.task_id], self.since[event.task_id] = event.state, event.at

    def expected(self, wanted: Filters, lost: set[str]) -> list[str]:
        """The ids of the tasks that `wanted` lets through and that come from no lost source, in order."""
        found = [
            (self.since[task_id], task_id)
            for task_id in self.visible
            if self.scope[task_id] == wanted.scope
            and wanted.context_id in (None, self.context[task_id])
            and wanted.state in (None, self.state[task_id])
            and (wanted.after is None or self.since[task_id] >= wanted.after)
            and not lost & self.used.get(task_id, set())
        ]
        return [task_id for _, task_id in sorted(found, reverse=True)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.newest) for seed in range(1, 4))])
async def test_after_random_operations_every_page_and_total_is_what_a_count_by_hand_gives(
    store: TaskStore, home: StoreHome, seed: int
) -> None:
    chance = random.Random(seed)
    book = Book(store, chance)
    for _ in range(ROUNDS):
        for _ in range(STEPS):
            await book.step()
        await asyncio.gather(*(book.accept() for _ in range(5)))
        shift = chance.choice((0, 1000, HOUR // 4))
        home.shift_clock(shift)
        book.clock += shift
        moments = [None, *chance.sample(sorted(book.since.values()), 2)]
        for scope in SCOPES:
            for context_id in (None, *NAMED, *list(book.context.values())[-8:]):
                for state in (None, *TaskState):
                    wanted = filters(scope, context_id=context_id, state=state, after=chance.choice(moments))
                    lost = {source for source in SOURCES if chance.random() < 0.3}
                    await _check(store, wanted, book, lost, size=chance.choice((3, 50)))
    assert len(set(book.state.values())) == len(TaskState)
    assert len(book.gone) >= 10
    assert set().union(*book.used.values()) == set(SOURCES)


async def _check(store: TaskStore, wanted: Filters, book: Book, lost: set[str], *, size: int) -> None:
    expected = book.expected(wanted, lost)
    pages = await listing(store, wanted, size=size, withheld=lost.__contains__)
    assert ids(pages) == expected, wanted
    assert {page.total for page in pages} == {len(expected)}, wanted
    for page in pages:
        for task in page.tasks:
            assert (task.status.state, task.status.timestamp) == (book.state[task.id], book.since[task.id])
