"""One way to a task: its scope. Another principal's, tenant's or agent's task does not exist."""

import pytest

from dragoman.gateway.ports import TaskStore
from dragoman.model import Scope, TaskState
from dragoman.model.errors import TaskNotFound
from dragoman.model.ids import new_id
from tests.contract.samples import (
    ALICE,
    STRANGERS,
    acceptance,
    begun,
    chunk,
    filters,
    ids,
    listing,
    message,
    one_page,
    status,
)

SCOPES = (ALICE, *STRANGERS)


@pytest.mark.parametrize("scope", STRANGERS, ids=str)
async def test_a_task_of_another_scope_does_not_exist_in_any_operation(
    store: TaskStore, scope: Scope
) -> None:
    sent = message("secret", context_id="shared")
    lease = await begun(store, sent=sent)
    await store.append(lease, [status(TaskState.WORKING, "secret"), chunk("secret")])
    before = await store.events(lease.task_id, 0)

    for hidden in (False, True):
        with pytest.raises(TaskNotFound) as refusal:
            await store.read(scope, lease.task_id, hidden=hidden)
        with pytest.raises(TaskNotFound) as unknown:
            await store.read(scope, new_id(), hidden=hidden)
        assert refusal.value.message == unknown.value.message
        assert refusal.value.reason == unknown.value.reason
    with pytest.raises(TaskNotFound):
        await store.cancel(scope, lease.task_id)
    with pytest.raises(TaskNotFound):
        await store.accept(acceptance(message(task_id=lease.task_id), scope=scope))
    for wanted in (filters(scope), filters(scope, context_id="shared"), filters(scope, after=0)):
        page = await one_page(store, wanted, history_length=10, artifacts=True)
        assert (page.tasks, page.total, page.has_more) == ((), 0, False)
    assert await store.events(lease.task_id, 0) == before
    assert (await store.read(ALICE, lease.task_id)).task().status.state is TaskState.WORKING


async def test_scopes_that_share_ids_and_contexts_each_see_their_own(store: TaskStore) -> None:
    sent = message("same words", context_id="same context")
    tasks = {scope: (await store.accept(acceptance(sent, scope=scope))).task_id for scope in SCOPES}
    for scope, task_id in tasks.items():
        for wanted in (filters(scope), filters(scope, context_id="same context"), filters(scope, after=0)):
            pages = await listing(store, wanted)
            assert (ids(pages), pages[0].total) == ([task_id], 1)
        assert (await store.read(scope, task_id)).task_id == task_id


async def test_names_that_run_together_are_still_different_scopes(store: TaskStore) -> None:
    scopes = [Scope("ab", "c", "d"), Scope("a", "bc", "d"), Scope("a", "b", "cd"), Scope("", "abcd", "")]
    tasks = [(await store.accept(acceptance(message(), scope=scope))).task_id for scope in scopes]
    for scope, task_id in zip(scopes, tasks, strict=True):
        assert ids(await listing(store, filters(scope))) == [task_id]


async def test_the_scopes_of_a_store_are_those_that_have_tasks(store: TaskStore) -> None:
    assert await store.scopes() == ()
    for scope in SCOPES:
        await store.accept(acceptance(message(), scope=scope))
    assert set(await store.scopes()) == set(SCOPES)


async def test_a_refused_stranger_leaves_no_scope_behind(store: TaskStore) -> None:
    lease = await begun(store)
    stranger = Scope("nobody", "knows", "me")
    with pytest.raises(TaskNotFound):
        await store.cancel(stranger, lease.task_id)
    with pytest.raises(TaskNotFound):
        await store.accept(acceptance(message(task_id=lease.task_id), scope=stranger))
    assert await store.scopes() == (ALICE,)
