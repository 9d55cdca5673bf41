"""The sources of runs: recorded for good, and leaving out of listings what comes from one that is withheld."""

import pytest
from msgspec import structs

from dragoman.gateway.ports import Acceptance, JournalEntry, Lease, TaskStore
from dragoman.model import TaskState
from dragoman.model.errors import Fenced
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


async def using(store: TaskStore, *sources: str, **how: object) -> str:
    """Accept a message whose run uses some sources and completes; return the id of its task."""
    lease = await begun(store, **how)
    for source in sources:
        await store.use_source(lease, source)
    await store.append(lease, [status(S.COMPLETED)])
    return lease.task_id


async def test_a_run_has_the_sources_that_it_said_each_once(store: TaskStore) -> None:
    lease = await begun(store)
    assert await store.sources(lease.task_id) == ()
    for source in ("wiki", "crm", "wiki"):
        await store.use_source(lease, source)
    assert sorted(await store.sources(lease.task_id)) == ["crm", "wiki"]
    assert await store.sources(new_id()) == ()


async def test_sources_are_recorded_at_once_from_many_threads(store: TaskStore) -> None:
    lease = await begun(store)
    await on_many_loops(lambda number: store.use_source(lease, f"s{number % 7}"), count=40)
    assert sorted(await store.sources(lease.task_id)) == [f"s{number}" for number in range(7)]


async def test_a_source_is_no_event(store: TaskStore) -> None:
    lease = await begun(store)
    await store.use_source(lease, "wiki")
    assert len(await store.events(lease.task_id, 0)) == 1


@pytest.mark.parametrize("state", TERMINAL, ids=lambda state: state.name)
async def test_a_finished_run_uses_nothing_more(store: TaskStore, state: TaskState) -> None:
    lease = await brought_to(store, state)
    with pytest.raises(Fenced):
        await store.use_source(lease, "wiki")
    assert await store.sources(lease.task_id) == ()


async def test_only_who_holds_the_lease_records_a_source(store: TaskStore) -> None:
    lease = await begun(store)
    for wrong in (Lease(lease.task_id, 9), Lease(new_id(), 1)):
        with pytest.raises(Fenced):
            await store.use_source(wrong, "wiki")
    assert await store.sources(lease.task_id) == ()


async def test_sources_are_known_to_later_servers(store: TaskStore, home: StoreHome) -> None:
    lease = await begun(store)
    await store.use_source(lease, "wiki")
    again = home.open()
    (lost,) = await again.lost()
    assert await again.take_over(lost)
    assert await again.sources(lease.task_id) == ("wiki",)
    await again.use_source(Lease(lease.task_id, 2), "crm")
    assert sorted(await again.sources(lease.task_id)) == ["crm", "wiki"]


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


async def test_a_run_that_nobody_may_see_yet_is_not_counted_twice(store: TaskStore) -> None:
    hidden = await begun(store, visible=False)
    await store.use_source(hidden, "wiki")
    shown = await using(store)
    page = await one_page(store, filters(), withheld="wiki".__eq__)
    assert (ids([page]), page.total) == ([shown], 1)


async def test_a_purged_task_leaves_no_source_behind(store: TaskStore, home: StoreHome) -> None:
    task_id = await using(store, "wiki")
    home.shift_clock(10_000)
    kept = await using(store, "wiki")
    assert await purged(store, completed=5000) == 1
    assert await store.sources(task_id) == ()
    assert await store.sources(kept) == ("wiki",)


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
