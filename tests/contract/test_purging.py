"""Purging: what ended long enough ago is gone without a trace, and nothing else is touched."""

import asyncio
import itertools

import pytest

from dragoman.gateway.ports import JournalEntry, Lease, TaskStore
from dragoman.model import Reply, TaskState
from dragoman.model.errors import Fenced, MessageIdConflict, TaskNotFound, Unavailable
from dragoman.model.payload import pack
from dragoman.model.speech import agent_message
from dragoman.stores.sqlite import SqliteStore
from tests.contract.homes import SqliteHome, StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    OTHER_AGENT,
    OTHER_PRINCIPAL,
    OTHER_TENANT,
    TERMINAL,
    acceptance,
    begun,
    brought_to,
    chunk,
    filters,
    ids,
    listing,
    message,
    one_page,
    purged,
    recorded,
    status,
)

S = TaskState
ALL = {state.name: HOUR for state in TERMINAL}
AGED = HOUR + 1000
"""What ended just now is older than an hour after so many milliseconds: at exactly an hour it is not."""
NOTHING = {"task": 0, "event": 0, "journal": 0, "identity": 0, "counter": 0, "push_config": 0}


async def answered(store: TaskStore, **how: object) -> str:
    """Accept a message that is answered with a bare message; return the id of the task that never shows."""
    lease = await begun(store, visible=False, **how)
    await store.append(lease, [Reply(agent_message("Hi", task_id="", context_id=""))])
    return lease.task_id


async def is_there(store: TaskStore, task_id: str, *, hidden: bool = False) -> bool:
    try:
        await store.read(ALICE, task_id, hidden=hidden)
    except TaskNotFound:
        return False
    return True


@pytest.mark.parametrize("thorough", [False, True])
async def test_each_final_state_has_an_age_of_its_own(
    store: TaskStore, home: StoreHome, thorough: bool
) -> None:
    ages = {"completed": HOUR, "failed": 2 * HOUR, "canceled": 3 * HOUR, "rejected": 4 * HOUR}
    leases = {state: await brought_to(store, state) for state in TaskState}
    kept = dict(leases)
    assert await purged(store, **ages, thorough=thorough) == 0
    for state in (S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED):
        home.shift_clock(HOUR - 60_000)
        assert await purged(store, **ages, thorough=thorough) == 0
        home.shift_clock(60_000)
        assert await purged(store, **ages, thorough=thorough) == 1
        del kept[state]
        for one, lease in leases.items():
            assert await is_there(store, lease.task_id) == (one in kept)
    home.shift_clock(10_000 * HOUR)
    assert await purged(store, **ages, thorough=thorough) == 0
    assert ids(await listing(store, filters())) == sorted(
        (lease.task_id for lease in kept.values()), reverse=True
    )


async def test_a_state_without_an_age_is_kept_for_ever(store: TaskStore, home: StoreHome) -> None:
    failed = await brought_to(store, S.FAILED)
    completed = await brought_to(store, S.COMPLETED)
    home.shift_clock(100_000 * HOUR)
    assert await purged(store) == 0
    assert await purged(store, completed=HOUR) == 1
    assert await is_there(store, failed.task_id)
    assert not await is_there(store, completed.task_id)


async def test_age_counts_from_the_end_of_a_task_not_from_its_beginning(
    store: TaskStore, home: StoreHome
) -> None:
    lease = await begun(store, deadline=1000 * HOUR)
    home.shift_clock(100 * HOUR)
    await store.append(lease, [status(S.COMPLETED)])
    assert await purged(store, **ALL) == 0
    home.shift_clock(AGED)
    assert await purged(store, **ALL) == 1


async def test_a_purged_task_is_not_found_and_nothing_of_it_is_left(
    store: TaskStore, home: StoreHome
) -> None:
    lease = await begun(store, sent=message(message_id="first", context_id="talk"))
    await store.record(lease, JournalEntry(ordinal=1, kind="step", name="pay", acts=0, result=pack("paid")))
    await store.append(lease, [status(S.INPUT_REQUIRED, "Which one?")])
    await store.accept(acceptance(message(message_id="second", task_id=lease.task_id)))
    again = Lease(lease.task_id, 2)
    await store.append(again, [chunk("result"), status(S.COMPLETED)])
    home.shift_clock(AGED)
    commits = recorded(store)
    assert await purged(store, **ALL) == 1

    assert home.left() == NOTHING
    assert commits == []
    for call in (
        store.read(ALICE, lease.task_id),
        store.read(ALICE, lease.task_id, hidden=True),
        store.events(lease.task_id, 0),
        store.cancel(ALICE, lease.task_id),
        store.accept(acceptance(message(task_id=lease.task_id))),
    ):
        with pytest.raises(TaskNotFound):
            await call
    with pytest.raises(Fenced):
        await store.append(again, [chunk("late")])
    assert await store.fenced([again]) == (lease.task_id,)
    assert await store.journal(again) == ()
    for wanted in (filters(), filters(context_id="talk"), filters(state=S.COMPLETED), filters(after=0)):
        page = await one_page(store, wanted)
        assert (page.tasks, page.total, page.has_more) == ((), 0, False)


async def test_a_message_that_is_sent_again_after_its_task_was_purged_is_a_new_one(
    store: TaskStore, home: StoreHome
) -> None:
    sent = message("Hello", message_id="same")
    other = message("Something else", message_id="same")
    lease = await begun(store, sent=sent)
    await store.append(lease, [status(S.COMPLETED)])
    with pytest.raises(MessageIdConflict):
        await store.accept(acceptance(other))
    home.shift_clock(AGED)
    await purged(store, **ALL)
    accepted = await store.accept(acceptance(other))
    assert not accepted.replayed
    assert accepted.task_id != lease.task_id
    assert (await store.accept(acceptance(other))).task_id == accepted.task_id


async def test_a_message_identity_that_belongs_to_another_task_is_left_alone(
    store: TaskStore, home: StoreHome
) -> None:
    """The same messageId, accepted by request only: each time a task, and one of them has the identity."""
    first = await begun(store, sent=message("a", message_id="same"), idempotent=False)
    await store.append(first, [status(S.COMPLETED)])
    home.shift_clock(AGED)
    second = await begun(store, sent=message("b", message_id="same"))
    assert await purged(store, **ALL) == 1
    accepted = await store.accept(acceptance(message("b", message_id="same")))
    assert (accepted.replayed, accepted.task_id) == (True, second.task_id)


@pytest.mark.parametrize("context_id", ["", "talk"])
async def test_a_run_that_was_answered_with_a_bare_message_is_purged_too(
    store: TaskStore, home: StoreHome, context_id: str
) -> None:
    sent = message("Hello", message_id="same", context_id=context_id)
    old = await answered(store, sent=sent)
    failed = await begun(store, visible=False, deadline=60_000)
    home.shift_clock(61_000)
    await store.expire()
    home.shift_clock(AGED - 61_000)
    young = await answered(store)
    running = await begun(store, visible=False, deadline=1000 * HOUR)
    assert await purged(store, **ALL) == 1
    home.shift_clock(61_000)
    assert await purged(store, **ALL) == 1
    for task_id, expected in ((old, False), (failed.task_id, False), (young, True), (running.task_id, True)):
        assert await is_there(store, task_id, hidden=True) is expected
    assert home.left() == {"task": 2, "event": 3, "journal": 0, "identity": 2, "counter": 0, "push_config": 0}
    assert not (await store.accept(acceptance(sent, visible=False))).replayed


async def test_the_tasks_of_every_scope_are_purged(store: TaskStore, home: StoreHome) -> None:
    scopes = (ALICE, OTHER_PRINCIPAL, OTHER_TENANT, OTHER_AGENT)
    for scope, state in itertools.product(scopes, TERMINAL):
        await brought_to(store, state, scope=scope)
    home.shift_clock(AGED)
    for scope in scopes:
        await begun(store, scope=scope)
    assert await purged(store, thorough=False, **ALL) == 16
    for scope in scopes:
        assert (await one_page(store, filters(scope))).total == 1


async def test_totals_stay_right_while_tasks_are_purged_and_others_are_sent(
    store: TaskStore, home: StoreHome
) -> None:
    contexts = ("one", "two", "")
    for number in range(60):
        state = TERMINAL[number % 4]
        await brought_to(store, state, sent=message(context_id=contexts[number % 3]))
    home.shift_clock(AGED)
    moving = [await begun(store, sent=message(context_id=contexts[number % 3])) for number in range(30)]

    async def live(lease: Lease, number: int) -> None:
        await store.append(lease, [status(S.WORKING)])
        await begun(store, sent=message(context_id=contexts[number % 3]))
        await store.append(lease, [status(TERMINAL[number % 4])])

    lives = (live(lease, number) for number, lease in enumerate(moving) if number % 4 != 2)
    results = await asyncio.gather(purged(store, **ALL), *lives)
    assert results[0] == 60
    for context_id in (None, "one", "two"):
        found = [
            len(ids(await listing(store, filters(context_id=context_id, state=state)))) for state in TaskState
        ]
        totals = [
            (await one_page(store, filters(context_id=context_id, state=state))).total for state in TaskState
        ]
        assert totals == found
        assert (await one_page(store, filters(context_id=context_id))).total == sum(found)
    assert (await one_page(store, filters())).total == 30 + 23


async def test_a_context_whose_tasks_are_all_gone_leaves_no_rows_and_can_begin_anew(
    store: TaskStore, home: StoreHome
) -> None:
    for _ in range(3):
        await brought_to(store, S.COMPLETED, sent=message(context_id="talk"))
    home.shift_clock(AGED)
    waiting = await begun(store, sent=message(context_id="talk"))
    assert await purged(store, **ALL) == 3
    assert home.left()["counter"] == 1
    assert (await one_page(store, filters(context_id="talk"))).total == 1
    await store.cancel(ALICE, waiting.task_id)
    home.shift_clock(AGED)
    assert await purged(store, **ALL) == 1
    assert home.left() == NOTHING
    for expected in (1, 2):
        await brought_to(store, S.FAILED, sent=message(context_id="talk"))
        for wanted in (filters(context_id="talk"), filters(context_id="talk", state=S.FAILED), filters()):
            assert (await one_page(store, wanted)).total == expected


async def test_a_hidden_run_of_a_context_that_was_emptied_shows_and_counts(
    store: TaskStore, home: StoreHome
) -> None:
    await brought_to(store, S.COMPLETED, sent=message(context_id="talk"))
    hidden = [
        await begun(store, visible=False, sent=message(context_id="talk"), deadline=100 * HOUR) for _ in "ab"
    ]
    home.shift_clock(AGED)
    assert await purged(store, **ALL) == 1
    for count, lease in enumerate(hidden, 1):
        await store.append(lease, [status(S.WORKING)], reveal=True)
        assert (await one_page(store, filters(context_id="talk"))).total == count
    await begun(store, sent=message(context_id="talk"))
    assert (await one_page(store, filters(context_id="talk"))).total == 3


async def test_a_listing_goes_on_though_tasks_are_purged_between_its_pages(
    store: TaskStore, home: StoreHome
) -> None:
    old = [await brought_to(store, S.COMPLETED) for _ in range(10)]
    home.shift_clock(AGED)
    young = [await brought_to(store, S.COMPLETED) for _ in range(5)]
    first = await one_page(store, filters(), size=8)
    assert await purged(store, **ALL) == 10
    rest = await one_page(store, filters(), size=8, token=first.next_token)
    assert (rest.tasks, rest.has_more, rest.total) == ((), False, 5)
    assert [task.id for task in first.tasks[:5]] == [lease.task_id for lease in reversed(young)]
    assert [task.id for task in first.tasks[5:]] == [lease.task_id for lease in reversed(old)][:3]


async def test_a_large_task_is_gone_at_once_and_its_remains_step_by_step(
    store: TaskStore, home: StoreHome
) -> None:
    """Two thousand chunks, and a messageId that is used again before the old one's remains are gone."""
    lease = await begun(store, sent=message("first", message_id="same"))
    for _ in range(20):
        await store.append(lease, [chunk("x" * 100, append=True) for _ in range(100)])
    for number in range(30):
        await store.accept(acceptance(message(message_id=f"more {number}", task_id=lease.task_id)))
        await store.append(lease, [chunk("y" * 100_000, artifact_id="big", append=True)])
    entries = [
        JournalEntry(ordinal=number, kind="step", name="read", acts=0, result=pack("z" * 50_000))
        for number in range(1, 100)
    ]
    for one in entries:
        await store.record(lease, one)
    await store.append(lease, [status(S.COMPLETED)])
    home.shift_clock(AGED)
    step = await store.purge({S.COMPLETED: HOUR}, "")
    assert (step.tasks, bool(step.place)) == (1, True)
    assert home.left()["event"] > 1000
    assert await store.known(acceptance(message("first", message_id="same"))) is None
    assert not await is_there(store, lease.task_id, hidden=True)
    with pytest.raises(TaskNotFound):
        await store.events(lease.task_id, 0)
    assert (await one_page(store, filters())).total == 0
    anew = [
        await store.accept(acceptance(message("new", message_id=name)))
        for name in ("same", "more 3", "more 29")
    ]
    steps = 1
    while step.place:
        step = await store.purge({S.COMPLETED: HOUR}, step.place)
        steps += 1
        assert step.tasks == 0
    assert steps > 4
    assert home.left() == {"task": 3, "event": 3, "journal": 0, "identity": 3, "counter": 0, "push_config": 0}
    for one, name in zip(anew, ("same", "more 3", "more 29"), strict=True):
        assert not one.replayed
        assert (await store.accept(acceptance(message("new", message_id=name)))).task_id == one.task_id


async def test_what_is_left_of_a_large_task_is_deleted_by_the_next_server(
    home: StoreHome,
) -> None:
    store = home.open()
    lease = await begun(store)
    for _ in range(20):
        await store.append(lease, [chunk("x", append=True) for _ in range(100)])
    await store.append(lease, [status(S.COMPLETED)])
    home.shift_clock(AGED)
    await store.purge({S.COMPLETED: HOUR}, "")
    assert home.left()["event"] > 0
    store = home.open()
    assert await purged(store) == 0, "also where everything is kept for ever"
    assert home.left() == NOTHING


async def test_every_step_is_short_however_much_there_is_to_do(store: TaskStore, home: StoreHome) -> None:
    await asyncio.gather(*(brought_to(store, S.COMPLETED) for _ in range(600)))
    home.shift_clock(AGED)
    steps, place = [], ""
    while not steps or place:
        step = await store.purge({S.COMPLETED: HOUR}, place)
        steps.append(step.tasks)
        place = step.place
    assert sum(steps) == 600
    assert max(steps) <= 300


async def test_a_place_may_be_gone_on_from_though_what_it_named_is_gone(
    store: TaskStore, home: StoreHome
) -> None:
    await asyncio.gather(*(brought_to(store, S.COMPLETED) for _ in range(400)))
    home.shift_clock(AGED)
    step = await store.purge({S.COMPLETED: HOUR}, "")
    assert step.place
    rest = await purged(store, completed=HOUR)
    again = await store.purge({S.COMPLETED: HOUR}, step.place)
    assert (step.tasks + rest, again.tasks) == (400, 0)


async def test_a_server_that_was_passed_over_purges_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = SqliteHome(tmp_path_factory.mktemp("passed-over"))
    frozen = home.open()
    for _ in range(5):
        await brought_to(frozen, S.COMPLETED)
    home.shift_clock(AGED)
    taker = SqliteStore(home.path, lease=15.0, on_lost=lambda: None)
    with pytest.raises(Unavailable):
        await frozen.purge({S.COMPLETED: 60_000}, "")
    assert home.left()["task"] == 5
    assert await purged(taker, completed=60_000) == 5
    taker.close()
    home.close()
