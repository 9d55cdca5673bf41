"""The first write to a run that was just begun: whatever happened in between counts."""

import pytest

from dragoman.gateway.ports import Lease, TaskStore
from dragoman.model import StatusChange, TaskState
from dragoman.model.errors import Fenced
from tests.contract.samples import ALICE, acceptance, begun, changed, filters, message, one_page, status

SUBMITTED, WORKING, COMPLETED = TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED


@pytest.mark.parametrize("visible", [True, False])
async def test_a_context_that_was_named_since_has_the_run_in_its_totals(
    store: TaskStore, visible: bool
) -> None:
    first = await store.accept(acceptance(message(), visible=visible))
    context_id = first.events[0].context_id
    second = await begun(store, sent=message(context_id=context_id))
    await store.append(Lease(first.task_id, 1), [status(COMPLETED)], reveal=True)
    for state, task_id in ((COMPLETED, first.task_id), (SUBMITTED, second.task_id)):
        page = await one_page(store, filters(context_id=context_id, state=state))
        assert ([task.id for task in page.tasks], page.total) == ([task_id], 1)
    await store.append(second, [status(COMPLETED)])
    both = await one_page(store, filters(context_id=context_id, state=COMPLETED))
    assert both.total == 2


async def test_a_run_that_was_shown_since_goes_on_after_that(store: TaskStore) -> None:
    lease = await begun(store, visible=False)
    await store.begin_work([lease])
    (event,) = await store.append(lease, [status(COMPLETED)], reveal=True)
    assert event.seq == 3
    events = await store.events(lease.task_id, 1)
    assert changed(events) == [StatusChange(WORKING), StatusChange(COMPLETED)]
    for state, total in ((SUBMITTED, 0), (WORKING, 0), (COMPLETED, 1)):
        assert (await one_page(store, filters(state=state))).total == total


async def test_a_run_that_was_cancelled_since_takes_nothing(store: TaskStore) -> None:
    lease = await begun(store)
    await store.cancel(ALICE, lease.task_id)
    with pytest.raises(Fenced):
        await store.append(lease, [status(COMPLETED)])
    assert (await one_page(store, filters(state=TaskState.CANCELED))).total == 1
    assert len(await store.events(lease.task_id, 0)) == 2


async def test_a_run_that_was_refused_something_takes_what_is_right(store: TaskStore) -> None:
    lease = await begun(store)
    with pytest.raises(Fenced):
        await store.append(Lease(lease.task_id, 2), [status(COMPLETED)])
    await store.append(lease, [status(WORKING), status(COMPLETED)])
    assert (await one_page(store, filters(state=COMPLETED))).total == 1
