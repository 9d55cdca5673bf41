"""What a store makes known after each commit: everything, in order, on the serving loop, and before its answer."""

import asyncio
import threading

from dragoman.gateway.ports import Commit, TaskStore
from dragoman.model import TaskState
from dragoman.model.errors import DragomanError
from tests.contract.samples import (
    ALICE,
    acceptance,
    begun,
    chunk,
    events_of,
    message,
    on_many_loops,
    recorded,
    status,
)


async def test_a_commit_is_known_before_its_writer_is_answered(store: TaskStore) -> None:
    commits = recorded(store)
    accepted = await store.accept(acceptance())
    assert tuple(events_of(commits, accepted.task_id)) == accepted.events
    lease = commits[0].runs[0].lease
    events = await store.append(lease, [status(TaskState.WORKING), chunk("a")])
    assert tuple(events_of(commits, accepted.task_id)) == (*accepted.events, *events)
    event = await store.cancel(ALICE, accepted.task_id)
    assert events_of(commits, accepted.task_id)[-1] == event


async def test_every_event_is_made_known_once_and_in_the_order_of_its_task(store: TaskStore) -> None:
    commits = recorded(store)

    async def live(number: int) -> str:
        lease = await begun(store, sent=message(f"run {number}"))
        try:
            for piece in range(5):
                await store.append(lease, [chunk(f"{piece}", append=True)])
                if piece == number % 7:
                    await store.cancel(ALICE, lease.task_id)
            await store.append(lease, [status(TaskState.COMPLETED)])
        except DragomanError:
            return lease.task_id
        return lease.task_id

    task_ids = await on_many_loops(live, count=60)
    for task_id in task_ids:
        known = tuple(events_of(commits, task_id))
        assert known == await store.events(task_id, 0)
        assert [event.seq for event in known] == list(range(1, len(known) + 1))
    runs = [run.lease.task_id for commit in commits for run in commit.runs]
    assert sorted(runs) == sorted(task_ids)


async def test_listeners_are_called_on_the_serving_loop_in_the_order_they_came(store: TaskStore) -> None:
    calls: list[tuple[str, threading.Thread, Commit]] = []
    store.on_commit(lambda commit: calls.append(("first", threading.current_thread(), commit)))
    store.on_commit(lambda commit: calls.append(("second", threading.current_thread(), commit)))
    await asyncio.to_thread(lambda: asyncio.run(begun(store)))
    while len(calls) < 2:
        await asyncio.sleep(0)
    assert [name for name, _, _ in calls] == ["first", "second"]
    assert {thread for _, thread, _ in calls} == {threading.current_thread()}
    assert calls[0][2] is calls[1][2]


async def test_a_refused_operation_makes_nothing_known(store: TaskStore) -> None:
    lease = await begun(store)
    await store.append(lease, [status(TaskState.COMPLETED)])
    commits = recorded(store)
    refusals = [
        store.append(lease, [chunk("late")]),
        store.cancel(ALICE, lease.task_id),
        store.accept(acceptance(message(task_id=lease.task_id))),
        store.expire(),
        store.begin_work([lease]),
    ]
    await asyncio.gather(*refusals, return_exceptions=True)
    assert not commits


async def test_what_was_made_known_can_be_read(store: TaskStore) -> None:
    """A listener that reads at once finds what it was told."""
    found: list[bool] = []

    def look(commit: Commit) -> None:
        async def read() -> None:
            for event in commit.events:
                found.append(event in await store.events(event.task_id, 0))

        tasks.append(asyncio.ensure_future(read()))

    tasks: list[asyncio.Future[None]] = []
    store.on_commit(look)
    await asyncio.gather(*(begun(store) for _ in range(50)))
    await asyncio.gather(*tasks)
    assert found == [True] * 50
