"""An operator at work on a store that a server uses: each write is one of its own, and the server goes on."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import pytest

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.hooks import HookState, KeptConfig
from dragoman.gateway.ports import JournalEntry, TaskStore
from dragoman.model import Reply, TaskState
from dragoman.model.errors import Fenced, TaskNotCancelable, TaskNotFound, UnsupportedOperation
from dragoman.model.payload import ABSENT
from dragoman.model.speech import agent_message
from dragoman.stores.operating import StoreOperator
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    OTHER_AGENT,
    OTHER_PRINCIPAL,
    begun,
    brought_to,
    chunk,
    filters,
    status,
)

T = TypeVar("T")
S = TaskState
ENTRY = AuditEntry(action="tasks.cancel", principal="root", address="here")


async def operate(home: StoreHome, work: Callable[[StoreOperator], T]) -> T:
    """What an operator does, in a thread: a command has no loop."""

    def run() -> T:
        with closing(home.operate()) as operator:
            return work(operator)

    return await asyncio.to_thread(run)


def purged(operator: StoreOperator, agent: str = "", *, before: int | None = None) -> int:
    """Go a whole round and return how many tasks were purged."""
    times = dict.fromkeys([state for state in S if state.is_terminal], before or operator.now() + 1)
    tasks, place = 0, ""
    while True:
        step = operator.purge(times, agent, place)
        tasks, place = tasks + step.tasks, step.place
        if not place:
            return tasks


async def test_all_scopes_their_tasks_and_their_events_are_read(store: TaskStore, home: StoreHome) -> None:
    done = await brought_to(store, S.COMPLETED)
    await begun(store, scope=OTHER_PRINCIPAL)
    hidden = await begun(store, visible=False)

    def look(operator: StoreOperator) -> None:
        assert set(operator.scopes) == {ALICE, OTHER_PRINCIPAL}
        page = operator.page(filters(), 10, None)
        assert ([task.id for task in page.tasks], page.total) == ([done.task_id], 1)
        found = operator.find(done.task_id)
        assert found is not None
        scope, fold = found
        assert (scope, fold.status and fold.status.state) == (ALICE, S.COMPLETED)
        assert [event.seq for event in operator.events(done.task_id)] == [*range(1, fold.seq + 1)]
        assert operator.find(hidden.task_id) is None
        assert operator.find(hidden.task_id, hidden=True) is not None
        assert operator.find("nope\0") is None
        assert operator.is_served()

    await operate(home, look)


async def test_a_cancel_fences_the_run_out_and_is_in_the_audit(store: Any, home: StoreHome) -> None:
    lease = await brought_to(store, S.WORKING)
    event = await operate(home, lambda operator: operator.cancel(ALICE, lease.task_id, ENTRY))
    assert (await store.events(lease.task_id, 0))[-1] == event
    assert await store.fenced([lease]) == (lease.task_id,)
    with pytest.raises(Fenced):
        await store.append(lease, [chunk("late")])
    for scope, error in ((ALICE, TaskNotCancelable), (OTHER_AGENT, TaskNotFound)):
        with pytest.raises(error):
            await operate(home, lambda operator, scope=scope: operator.cancel(scope, lease.task_id, ENTRY))
    await operate(home, lambda operator: operator.note(AuditEntry(action="note", target="t", detail="d")))
    rows = await store.consult(lambda book: book.audited(since=0, after=0, limit=10))
    assert [(row.entry.action, row.entry.target, row.entry.outcome) for row in rows] == [
        ("tasks.cancel", f"agents/writer/tasks/{lease.task_id}", "ok"),
        ("note", "t", "ok"),
    ]


async def test_tasks_of_one_agent_or_of_all_that_ended_before_a_time_are_counted_and_purged(
    store: TaskStore, home: StoreHome
) -> None:
    old = [await brought_to(store, S.COMPLETED) for _ in range(3)]
    other = await begun(store, scope=OTHER_AGENT)
    await store.cancel(OTHER_AGENT, other.task_id)
    hidden = await begun(store, visible=False)
    await store.append(hidden, [Reply(agent_message("Hi", task_id="", context_id=""))])
    going = await brought_to(store, S.WORKING)
    moment = await operate(home, lambda operator: operator.now()) + 1000
    home.shift_clock(5000)
    young = await brought_to(store, S.COMPLETED)
    final = [state for state in S if state.is_terminal]

    def work(operator: StoreOperator) -> None:
        before = dict.fromkeys(final, moment)
        assert operator.count(before, "writer") == 4
        assert operator.count({S.CANCELED: moment}, "") == 1
        assert purged(operator, "writer", before=moment) == 4
        assert operator.count(before, "") == 1
        assert purged(operator, before=moment) == 1

    await operate(home, work)
    for scope, task_id in [(ALICE, lease.task_id) for lease in old] + [(OTHER_AGENT, other.task_id)]:
        with pytest.raises(TaskNotFound):
            await store.read(scope, task_id)
    assert {(await store.read(ALICE, lease.task_id)).seq for lease in (going, young)} == {2}


async def test_a_task_is_purged_by_name_once_it_is_finished_a_large_one_too(
    store: TaskStore, home: StoreHome
) -> None:
    lease = await brought_to(store, S.WORKING)
    await store.record(lease, JournalEntry(ordinal=1, kind="step", name="one", acts=0, result=ABSENT))
    for _ in range(20):
        await store.append(lease, [chunk("x", append=True) for _ in range(100)])

    def refused(operator: StoreOperator) -> None:
        with pytest.raises(UnsupportedOperation):
            operator.purge_task(ALICE, lease.task_id)
        with pytest.raises(TaskNotFound):
            operator.purge_task(OTHER_AGENT, lease.task_id)

    await operate(home, refused)
    await store.append(lease, [status(S.COMPLETED)])
    await operate(home, lambda operator: operator.purge_task(ALICE, lease.task_id))
    with pytest.raises(TaskNotFound):
        await store.read(ALICE, lease.task_id)
    await operate(home, purged)
    assert set(home.left().values()) == {0}


async def test_configurations_that_were_given_up_are_found_and_tried_again(
    store: Any, home: StoreHome
) -> None:
    kept = {"generation": "1.0", "url": "https://a.example/", "scheme": "", "sealed": b"s"}
    leases = [await begun(store, push=KeptConfig(id=f"c{n}", **kept)) for n in range(5)]
    for number in (1, 3):
        hook = await store.hook(leases[number].task_id, f"c{number}")
        assert await store.not_told(hook, 8, "no\0thing", wait=None)

    def work(operator: StoreOperator) -> None:
        ids = [lease.task_id for lease in leases]
        assert [hook.task_id for hook in operator.hooks(None, ("", ""), 10)] == ids
        assert [hook.task_id for hook in operator.hooks(None, (ids[1], "c1"), 2)] == ids[2:4]
        assert [hook.task_id for hook in operator.hooks(HookState.OPEN, ("", ""), 10)] == ids[::2]
        dead = operator.hooks(HookState.DEAD, ("", ""), 10)
        assert [hook.task_id for hook in dead] == ids[1::2]
        assert operator.redeliver(dead[0], ENTRY)
        assert not operator.redeliver(dead[0], ENTRY)
        assert [hook.task_id for hook in operator.hooks(HookState.DEAD, ("", ""), 10)] == ids[3:4]

    await operate(home, work)
    hook = await store.hook(leases[1].task_id, "c1")
    assert (hook.state, hook.tries, hook.waits) == (HookState.OPEN, 0, 0)
    assert (leases[1].task_id, "c1", True) in await store.open_hooks()
    rows = await store.consult(lambda book: book.audited(since=0, after=0, limit=10))
    assert [row.entry.target for row in rows] == [f"agents/writer/tasks/{leases[1].task_id}"]
