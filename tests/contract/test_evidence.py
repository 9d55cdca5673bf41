"""The sources of runs: recorded for good, and leaving out of listings what comes from one that is withheld."""

import threading
from typing import Any

import pytest
from msgspec import structs

from dragoman.gateway.ports import Acceptance, JournalEntry, Lease, TaskStore
from dragoman.model import Scope, TaskState, Used
from dragoman.model.errors import Fenced, IllegalChange
from dragoman.model.ids import new_id
from dragoman.model.payload import pack
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    OTHER_PRINCIPAL,
    STRANGERS,
    TERMINAL,
    acceptance,
    begun,
    brought_to,
    changed,
    chunk,
    filters,
    ids,
    listing,
    message,
    on_many_loops,
    one_page,
    purged,
    status,
)

S = TaskState


async def using(store: TaskStore, *sources: str, **how: Any) -> str:
    """Accept a message whose run uses some sources and completes; return the id of its task."""
    lease = await begun(store, **how)
    for source in sources:
        await store.append(lease, [Used(source)])
    await store.append(lease, [status(S.COMPLETED)])
    return lease.task_id


async def sources(store: TaskStore, task_id: str, scope: Scope = ALICE) -> set[str]:
    """The sources that the run of a task has used."""
    return (await store.read(scope, task_id)).sources


async def test_a_run_has_the_sources_that_it_said_each_once(store: TaskStore) -> None:
    lease = await begun(store)
    assert await sources(store, lease.task_id) == set()
    for source in ("wiki", "crm", "wiki"):
        await store.append(lease, [Used(source)])
    assert await sources(store, lease.task_id) == {"wiki", "crm"}
    assert changed(await store.events(lease.task_id, 1)) == [Used("wiki"), Used("crm")]


async def test_sources_are_recorded_at_once_from_many_threads(store: TaskStore) -> None:
    lease = await begun(store)
    await on_many_loops(lambda number: store.append(lease, [Used(f"s{number % 7}")]), count=40)
    assert await sources(store, lease.task_id) == {f"s{number}" for number in range(7)}
    assert len(await store.events(lease.task_id, 1)) == 7


async def test_a_source_changes_nothing_else_of_a_task(store: TaskStore) -> None:
    for visible in (True, False):
        lease = await begun(store, visible=visible)
        before = (await store.read(ALICE, lease.task_id, hidden=True)).task()
        await store.append(lease, [Used("wiki")])
        fold = await store.read(ALICE, lease.task_id, hidden=True)
        assert (structs.replace(fold.task(), run=before.run), fold.acted, fold.seq) == (before, False, 2)
        listed = ids([await one_page(store, filters())])
        assert (lease.task_id in listed) is visible


async def test_a_source_comes_before_what_is_given_with_it_or_neither_is_there(store: TaskStore) -> None:
    lease = await begun(store)
    await store.append(lease, [Used("wiki"), chunk("from the wiki")])
    assert changed(await store.events(lease.task_id, 1)) == [Used("wiki"), chunk("from the wiki")]
    parked = await brought_to(store, S.INPUT_REQUIRED)
    with pytest.raises(IllegalChange):
        await store.append(parked, [Used("crm"), chunk("too late")])
    assert await sources(store, parked.task_id) == set()
    page = await one_page(store, filters(), withheld="crm".__eq__)
    assert parked.task_id in ids([page])


@pytest.mark.parametrize("state", TERMINAL, ids=lambda state: state.name)
async def test_a_finished_run_uses_nothing_more(store: TaskStore, state: TaskState) -> None:
    lease = await brought_to(store, state)
    with pytest.raises(Fenced):
        await store.append(lease, [Used("wiki")])
    assert await sources(store, lease.task_id) == set()


async def test_only_who_holds_the_lease_records_a_source(store: TaskStore) -> None:
    lease = await begun(store)
    for wrong in (Lease(lease.task_id, 9), Lease(new_id(), 1)):
        with pytest.raises(Fenced):
            await store.append(wrong, [Used("wiki")])
    assert await sources(store, lease.task_id) == set()


async def test_sources_stay_also_where_a_lost_attempt_does_not_count(
    store: TaskStore, home: StoreHome
) -> None:
    lease = await begun(store)
    await store.append(lease, [Used("wiki"), status(S.WORKING, "reading")])
    again = home.open()
    (lost,) = await again.lost()
    assert await again.take_over(lost)
    assert await sources(again, lease.task_id) == {"wiki"}
    later = Lease(lease.task_id, 2)
    for source in ("wiki", "crm"):
        await again.append(later, [Used(source)])
    assert await sources(again, lease.task_id) == {"wiki", "crm"}


@pytest.mark.parametrize(
    "how", [{}, {"history_length": 5}, {"artifacts": True}], ids=["outline", "history", "artifacts"]
)
async def test_a_run_with_a_withheld_source_is_neither_listed_nor_counted(
    store: TaskStore, how: dict[str, object]
) -> None:
    plain, both, crm = [await using(store, *sources) for sources in ((), ("wiki", "crm"), ("crm",))]
    expected = {"": [crm, both, plain], "wiki": [crm, plain], "crm": [plain], "payroll": [crm, both, plain]}
    for source, shown in expected.items():
        page = await one_page(store, filters(), withheld=source.__eq__, **how)
        assert (ids([page]), page.total) == (shown, len(shown)), source


async def test_pages_go_on_past_what_is_withheld(store: TaskStore) -> None:
    tasks = [await using(store, *(("wiki",) if number % 3 else ())) for number in range(20)]
    pages = await listing(store, filters(), size=2, withheld="wiki".__eq__)
    assert ids(pages) == tasks[::3][::-1]
    assert [len(page.tasks) for page in pages] == [2, 2, 2, 1]
    assert {page.total for page in pages} == {7}


async def test_what_is_withheld_in_one_scope_takes_nothing_from_others(store: TaskStore) -> None:
    mine = await using(store, "wiki")
    for scope in STRANGERS:
        theirs = await using(store, scope=scope)
        assert ids([await one_page(store, filters(scope), withheld="wiki".__eq__)]) == [theirs]
    assert ids([await one_page(store, filters(), withheld="wiki".__eq__)]) == []
    assert ids([await one_page(store, filters(), withheld="crm".__eq__)]) == [mine]


async def test_only_the_sources_of_a_scope_are_asked_about_each_once(store: TaskStore) -> None:
    for _ in range(5):
        await using(store, "wiki", "crm")
    await using(store, "payroll", scope=OTHER_PRINCIPAL)
    asked: list[str] = []
    await one_page(store, filters(), withheld=lambda source: bool(asked.append(source)))
    assert sorted(asked) == ["crm", "wiki"]


async def test_looking_at_all_that_is_withheld_keeps_the_serving_loop_free(store: TaskStore) -> None:
    await using(store, "wiki")
    threads: list[int] = []

    def withheld(source: str) -> bool:
        threads.append(threading.get_ident())
        return source == "wiki"

    assert ids([await one_page(store, filters(), withheld=withheld)]) == []
    assert threads[-1] != threading.get_ident()


async def test_a_run_that_nobody_may_see_yet_is_not_counted_twice(store: TaskStore) -> None:
    hidden = await begun(store, visible=False)
    await store.append(hidden, [Used("wiki")])
    shown = await using(store)
    page = await one_page(store, filters(), withheld="wiki".__eq__)
    assert (ids([page]), page.total) == ([shown], 1)


async def test_a_purged_task_leaves_no_source_behind(store: TaskStore, home: StoreHome) -> None:
    await using(store, "wiki")
    home.shift_clock(10_000)
    kept = await using(store, "crm")
    assert await purged(store, completed=5000) == 1
    asked: list[str] = []
    page = await one_page(store, filters(), withheld=lambda source: bool(asked.append(source)))
    assert (ids([page]), asked) == ([kept], ["crm"])


async def test_the_journal_keeps_what_a_step_gave_of_a_gathered_result(store: TaskStore) -> None:
    lease = await begun(store)
    given = (chunk("one "), chunk("two", append=True))
    entries = (
        JournalEntry(ordinal=1, kind="step", name="draw", acts=0, result=pack(None), given=given),
        JournalEntry(ordinal=2, kind="step", name="look", acts=0, result=pack([1])),
    )
    for entry in entries:
        await store.record(lease, entry)
    assert await store.journal(lease) == entries


async def test_an_answer_that_must_find_the_run_waiting_is_refused_otherwise(store: TaskStore) -> None:
    for state in (S.SUBMITTED, S.WORKING, *TERMINAL):
        lease = await brought_to(store, state)
        before = await store.events(lease.task_id, 0)
        refused = await on_many_loops(
            lambda number, task_id=lease.task_id: store.accept(_answer(task_id)), count=1
        )
        assert [type(one).__name__ for one in refused] == ["UnsupportedOperation"]
        assert await store.events(lease.task_id, 0) == before


async def test_of_such_answers_at_once_one_is_taken_and_no_other_is_kept(store: TaskStore) -> None:
    lease = await begun(store)
    point = JournalEntry(ordinal=1, kind="ask", name="which", acts=0, result=pack(None))
    await store.park(lease, status(S.INPUT_REQUIRED, "Which one?"), point)
    results = await on_many_loops(lambda number: store.accept(_answer(lease.task_id)), count=12)
    taken = [one for one in results if not isinstance(one, Exception)]
    assert len(taken) == 1
    assert {type(one).__name__ for one in results if isinstance(one, Exception)} == {"UnsupportedOperation"}
    history = (await store.read(ALICE, lease.task_id)).task().history
    assert len([one for one in history if one.role.name == "USER"]) == 2


def _answer(task_id: str) -> Acceptance:
    return structs.replace(acceptance(message("The second", task_id=task_id)), answers=True)
