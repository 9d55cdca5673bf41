"""Quotas: how many tasks there may be, counted exactly, whoever asks at once and whatever becomes of them."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from dragoman.gateway.ports import Lease, TaskStore
from dragoman.model import Reply, Scope, TaskState
from dragoman.model.allowance import Allowance, Bound
from dragoman.model.errors import DragomanError, MessageIdConflict, QuotaExceeded
from dragoman.model.speech import agent_message
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    OTHER_AGENT,
    OTHER_PRINCIPAL,
    OTHER_TENANT,
    acceptance,
    begun,
    brought_to,
    chunk,
    filters,
    message,
    one_page,
    purged,
    status,
)

RUNNING = "running"
STORED = "stored"


def bound(kind: str, whose: str, most: int) -> Allowance:
    return Allowance(**{kind: Bound(**{whose: most})})


async def is_refused(store: TaskStore, allowance: Allowance, scope: Scope = ALICE) -> str:
    """The limit that a new message runs into; empty if it is accepted, and then it is as if it had never been."""
    try:
        accepted = await store.accept(acceptance(scope=scope, allowance=allowance))
    except QuotaExceeded as error:
        return error.metadata["limit"]
    await store.cancel(scope, accepted.task_id)
    return ""


async def counted(store: TaskStore, kind: str, whose: str, scope: Scope = ALICE, upto: int = 100) -> int:
    """How many tasks the store counts, found out by what it refuses."""
    for most in range(1, upto):
        try:
            accepted = await store.accept(acceptance(scope=scope, allowance=bound(kind, whose, most)))
        except QuotaExceeded:
            continue
        await store.cancel(scope, accepted.task_id)
        return most - 1
    raise AssertionError(f"more than {upto}")


@pytest.mark.parametrize("whose", ["principal", "tenant"])
@pytest.mark.parametrize("kind", [RUNNING, STORED])
async def test_the_first_beyond_the_limit_is_refused_and_nothing_of_it_stored(
    store: TaskStore, home: StoreHome, kind: str, whose: str
) -> None:
    allowance = bound(kind, whose, 3)
    for _ in range(3):
        await begun(store, allowance=allowance)
    before = (home.left(), await store.scopes())
    for scope in (ALICE, OTHER_AGENT):
        with pytest.raises(QuotaExceeded) as refused:
            await store.accept(acceptance(scope=scope, allowance=allowance))
        assert refused.value.metadata == {"limit": f"{kind}.{whose}"}
        assert refused.value.retry_after == (5 if kind == RUNNING else 60)
    assert (home.left(), await store.scopes()) == before
    await begun(store)


async def test_however_many_come_at_once_exactly_as_many_as_may_are_accepted(store: TaskStore) -> None:
    allowance = Allowance(running=Bound(tenant=10, principal=7))
    sent = [acceptance(scope=scope, allowance=allowance) for scope in (ALICE, OTHER_PRINCIPAL) * 30]
    results = await asyncio.gather(*(store.accept(one) for one in sent), return_exceptions=True)
    assert sum(not isinstance(one, BaseException) for one in results) == 10
    assert all(isinstance(one, QuotaExceeded) for one in results if isinstance(one, BaseException))


async def test_a_principals_tasks_with_all_agents_count_and_nobody_elses(store: TaskStore) -> None:
    for scope in (ALICE, OTHER_AGENT, OTHER_AGENT, OTHER_PRINCIPAL, OTHER_TENANT):
        await begun(store, scope=scope)
    for kind in (RUNNING, STORED):
        assert await is_refused(store, bound(kind, "principal", 3)) == f"{kind}.principal"
    assert await counted(store, RUNNING, "principal") == 3
    assert await counted(store, RUNNING, "principal", OTHER_PRINCIPAL) == 1
    assert await counted(store, RUNNING, "tenant", OTHER_PRINCIPAL) == 4
    assert await counted(store, RUNNING, "tenant", OTHER_TENANT) == 1


@pytest.mark.parametrize("state", list(TaskState))
async def test_what_is_not_finished_is_running_and_everything_is_stored(
    store: TaskStore, state: TaskState
) -> None:
    await is_refused(store, bound(STORED, "tenant", 100))
    before = await counted(store, STORED, "principal")
    await brought_to(store, state)
    assert await is_refused(store, bound(STORED, "principal", before + 2)) == "stored.principal"
    assert await counted(store, RUNNING, "principal") == (0 if state.is_terminal else 1)


async def test_a_task_that_ends_makes_room_and_one_that_is_purged_does_too(
    store: TaskStore, home: StoreHome
) -> None:
    both = Allowance(running=Bound(principal=1), stored=Bound(principal=2))
    first = await begun(store, allowance=both)
    assert await is_refused(store, both) == "running.principal"
    await store.append(first, [status(TaskState.COMPLETED)])
    await store.cancel(ALICE, (await begun(store, allowance=both)).task_id)
    assert await is_refused(store, both) == "stored.principal"
    home.shift_clock(HOUR)
    assert await purged(store, completed=HOUR // 2) == 1
    assert await is_refused(store, both) == ""


async def test_a_run_that_may_end_as_a_bare_message_is_running_but_leaves_nothing_that_is_stored(
    store: TaskStore,
) -> None:
    assert await is_refused(store, bound(RUNNING, "principal", 1)) == ""
    hidden = await begun(store, visible=False)
    assert await counted(store, RUNNING, "tenant") == 1
    before = await counted(store, STORED, "principal")
    reply = agent_message("Hello", task_id="", context_id="")
    await store.append(hidden, [Reply(reply)])
    assert await counted(store, RUNNING, "tenant") == 0
    shown = await begun(store, visible=False)
    await store.append(shown, [chunk("a")], reveal=True)
    assert await counted(store, STORED, "principal", upto=200) >= before + 1


async def test_what_was_accepted_before_is_answered_and_a_task_that_there_is_goes_on(
    store: TaskStore,
) -> None:
    allowance = Allowance(running=Bound(principal=1), stored=Bound(principal=1))
    sent = acceptance(message("Hello", message_id="m"), allowance=allowance)
    accepted = await store.accept(sent)
    again = await store.accept(sent)
    assert (again.task_id, again.replayed) == (accepted.task_id, True)
    with pytest.raises(MessageIdConflict):
        await store.accept(acceptance(message("Other", message_id="m"), allowance=allowance))
    more = acceptance(message("more", task_id=accepted.task_id), allowance=allowance)
    assert (await store.accept(more)).task_id == accepted.task_id
    await store.append(Lease(accepted.task_id, 1), [status(TaskState.COMPLETED)])
    assert (await store.accept(sent)).replayed
    assert await is_refused(store, allowance) == "stored.principal"


async def test_a_new_server_counts_what_there_is(store: TaskStore, home: StoreHome) -> None:
    for scope in (ALICE, OTHER_AGENT, OTHER_PRINCIPAL):
        await begun(store, scope=scope)
    await begun(store, visible=False)
    await brought_to(store, TaskState.COMPLETED)
    again = home.open()
    assert await counted(again, RUNNING, "principal") == 3
    assert await counted(again, RUNNING, "tenant") == 4
    assert await is_refused(again, bound(STORED, "tenant", 4)) == "stored.tenant"


@pytest.mark.parametrize("seed", range(6))
async def test_after_whatever_happened_the_numbers_are_those_of_a_new_count(
    store: TaskStore, home: StoreHome, seed: int
) -> None:
    chance = random.Random(seed)
    scopes = (ALICE, OTHER_AGENT, OTHER_PRINCIPAL, OTHER_TENANT)
    leases: list[tuple[Scope, Lease]] = []
    # The first use of a quota has the tenant counted; from then on its numbers are only moved.
    await is_refused(store, bound(RUNNING, "tenant", 1))
    for _ in range(60):
        if chance.random() < 0.5 or not leases:
            scope = chance.choice(scopes)
            visible = chance.random() < 0.7
            leases.append((scope, await begun(store, scope=scope, visible=visible)))
            continue
        scope, lease = chance.choice(leases)
        state = chance.choice(list(TaskState)[1:])
        try:
            if chance.random() < 0.2:
                await store.cancel(scope, lease.task_id)
            elif chance.random() < 0.1:
                home.shift_clock(HOUR // 2)
                await store.expire()
                await purged(store, failed=HOUR // 4, completed=HOUR // 4)
            else:
                shows = state.is_interrupted or chance.random() < 0.5
                await store.append(lease, [status(state)], reveal=shows)
        except DragomanError:
            continue
    for scope in (OTHER_PRINCIPAL, OTHER_TENANT):
        # Each of them has tasks with one agent alone, so their listing says how many there are.
        kept = (await one_page(store, filters(scope))).total
        assert await is_refused(store, bound(STORED, "principal", kept or 1), scope) == (
            "stored.principal" if kept else ""
        )
        assert await is_refused(store, bound(STORED, "principal", kept + 2), scope) == ""
    moved = await _numbers(store, scopes)
    assert await _numbers(home.open(), scopes) == moved


async def _numbers(store: TaskStore, scopes: Sequence[Scope]) -> list[tuple[int, int]]:
    """Running tasks of each scope's principal and tenant."""
    return [
        (await counted(store, RUNNING, "principal", scope), await counted(store, RUNNING, "tenant", scope))
        for scope in scopes
    ]
