"""Accepting a message as a new task: one transaction, and once only."""

import asyncio
from collections import Counter

import pytest

from dragoman.gateway.ports import Accepted, Lease, RunRequest, TaskStore
from dragoman.model import Received, TaskState
from dragoman.model.errors import MessageIdConflict, TaskNotFound, Unavailable
from dragoman.model.ids import new_id
from dragoman.model.payload import pack
from tests.contract.samples import (
    ALICE,
    HOUR,
    OTHER_AGENT,
    STRANGERS,
    acceptance,
    events_of,
    filters,
    message,
    on_many_loops,
    one_page,
    recorded,
)


async def test_an_accepted_message_is_a_submitted_task_whose_first_event_holds_it(store: TaskStore) -> None:
    sent = message("Translate this", context_id="talk-1")
    request = acceptance(sent)
    accepted = await store.accept(request)

    assert (accepted.task_id, accepted.replayed) == (request.task_id, False)
    (event,) = accepted.events
    assert (event.seq, event.attempt, event.context_id) == (1, 1, "talk-1")
    assert event.change == Received(sent, TaskState.SUBMITTED)
    assert await store.events(request.task_id, 0) == accepted.events
    task = (await store.read(ALICE, request.task_id)).task()
    assert (task.status.state, task.status.timestamp) == (TaskState.SUBMITTED, event.at)
    assert (task.context_id, task.history, task.artifacts) == ("talk-1", (sent,), ())


async def test_an_accepted_message_starts_one_run_that_knows_its_request(store: TaskStore) -> None:
    commits = recorded(store)
    wanted = RunRequest(("text/html",), ("urn:example:ext",), pack({"big": 10**30}))
    request = acceptance(deadline=90_000, request=wanted)
    accepted = await store.accept(request)

    (run,) = [run for commit in commits for run in commit.runs]
    assert (run.scope, run.lease, run.attempt) == (ALICE, Lease(request.task_id, 1), 1)
    assert run.state is TaskState.SUBMITTED
    assert (run.request, run.messages, run.visible) == (wanted, (request.message,), True)
    assert run.deadline_at == accepted.events[0].at + 90_000
    assert run.context_id == request.context_id


async def test_a_refused_acceptance_leaves_no_part_of_itself_behind(store: TaskStore) -> None:
    """The second task cannot be stored, because its id is taken: its message must stay unknown."""
    first = acceptance(message("first"))
    await store.accept(first)
    refused = acceptance(message("second"), task_id=first.task_id)
    with pytest.raises(Unavailable):
        await store.accept(refused)

    again = await store.accept(acceptance(refused.message))
    assert not again.replayed
    assert (await one_page(store, filters())).total == 2


async def test_the_same_message_again_is_the_same_task_and_stores_nothing(store: TaskStore) -> None:
    sent = message()
    first = await store.accept(acceptance(sent))
    commits = recorded(store)
    again = await store.accept(acceptance(sent))
    assert again == Accepted(task_id=first.task_id, replayed=True, events=())
    assert not commits
    assert (await one_page(store, filters())).total == 1


async def test_a_message_is_known_again_when_its_task_is_finished_or_hidden(store: TaskStore) -> None:
    finished, hidden = message(), message()
    task_id = (await store.accept(acceptance(finished))).task_id
    await store.cancel(ALICE, task_id)
    hidden_id = (await store.accept(acceptance(hidden, visible=False))).task_id
    for sent, known in ((finished, task_id), (hidden, hidden_id)):
        again = await store.accept(acceptance(sent))
        assert (again.task_id, again.replayed) == (known, True)


async def test_another_message_under_a_used_id_is_refused_and_stores_nothing(store: TaskStore) -> None:
    sent = message("one")
    await store.accept(acceptance(sent))
    other = acceptance(message("two", message_id=sent.message_id))
    commits = recorded(store)
    with pytest.raises(MessageIdConflict) as refusal:
        await store.accept(other)
    assert [violation.field for violation in refusal.value.violations] == ["message.messageId"]
    with pytest.raises(TaskNotFound):
        await store.read(ALICE, other.task_id, hidden=True)
    assert not commits
    assert (await one_page(store, filters())).total == 1


async def test_without_idempotency_a_repeated_message_is_another_task(store: TaskStore) -> None:
    sent = message()
    first = await store.accept(acceptance(sent, idempotent=False))
    second = await store.accept(acceptance(sent, idempotent=False))
    assert (first.replayed, second.replayed) == (False, False)
    assert first.task_id != second.task_id
    assert not (await store.accept(acceptance(sent, digest="anything"))).replayed


async def test_a_message_id_belongs_to_its_scope(store: TaskStore) -> None:
    sent = message()
    tasks = [await store.accept(acceptance(sent, scope=scope)) for scope in (ALICE, *STRANGERS)]
    assert [accepted.replayed for accepted in tasks] == [False] * 4
    assert len({accepted.task_id for accepted in tasks}) == 4


async def test_fifty_equal_messages_at_once_are_one_task_and_one_run(store: TaskStore) -> None:
    commits, sent = recorded(store), message()
    accepted = await on_many_loops(lambda _: store.accept(acceptance(sent)), count=50)
    assert Counter(one.replayed for one in accepted) == {False: 1, True: 49}
    assert len({one.task_id for one in accepted}) == 1
    assert len([run for commit in commits for run in commit.runs]) == 1
    assert [event.seq for event in events_of(commits, accepted[0].task_id)] == [1]
    assert (await one_page(store, filters())).total == 1


async def test_of_two_messages_racing_under_one_id_only_one_is_ever_accepted(store: TaskStore) -> None:
    for _ in range(5):
        message_id = new_id()

        async def send(number: int, message_id: str = message_id) -> tuple[str, Accepted]:
            text = "even" if number % 2 == 0 else "odd"
            return text, await store.accept(acceptance(message(text, message_id=message_id)))

        results = await on_many_loops(send, count=50)
        accepted = [result for result in results if not isinstance(result, BaseException)]
        refused = [result for result in results if isinstance(result, MessageIdConflict)]
        assert (len(accepted), len(refused)) == (25, 25)
        assert len({text for text, _ in accepted}) == 1
        assert len({one.task_id for _, one in accepted}) == 1
        assert sum(not one.replayed for _, one in accepted) == 1


async def test_many_new_messages_at_once_are_all_accepted(store: TaskStore) -> None:
    commits = recorded(store)
    accepted = await on_many_loops(lambda n: store.accept(acceptance(message(f"message {n}"))), count=100)
    assert len({one.task_id for one in accepted}) == 100
    assert len([run for commit in commits for run in commit.runs]) == 100
    assert (await one_page(store, filters())).total == 100
    for one in accepted:
        assert [event.seq for event in await store.events(one.task_id, 0)] == [1]


async def test_a_deadline_counts_from_acceptance(store: TaskStore) -> None:
    commits = recorded(store)
    for deadline in (1, HOUR, 10 * HOUR):
        accepted = await store.accept(acceptance(message(), deadline=deadline))
        assert commits[-1].runs[0].deadline_at - accepted.events[0].at == deadline


@pytest.mark.parametrize("outcome", ["accepted", "replayed", "conflict", "failed"])
@pytest.mark.parametrize("waits", [True, False])
async def test_it_is_told_once_when_it_is_certain_what_becomes_of_a_message(
    store: TaskStore, outcome: str, waits: bool
) -> None:
    """Also to a caller that has stopped waiting, and never before the run is handed over."""
    first = acceptance(message())
    await store.accept(first)
    told: list[str] = []
    store.on_commit(lambda commit: told.extend(run.lease.task_id for run in commit.runs))
    request = {
        "accepted": acceptance(message("new")),
        "replayed": acceptance(first.message),
        "conflict": acceptance(message("other", message_id=first.message.message_id)),
        "failed": acceptance(message("another"), task_id=first.task_id),
    }[outcome]
    accepting = asyncio.ensure_future(store.accept(request, decided=lambda: told.append("decided")))
    await asyncio.sleep(0)
    if waits:
        await asyncio.wait([accepting])
        assert (accepting.exception() is None) == (outcome in ("accepted", "replayed"))
    else:
        accepting.cancel()
    # What is written next is written after it.
    later = await store.accept(acceptance(message(), scope=OTHER_AGENT))
    told.remove(later.task_id)
    assert told == ([request.task_id] if outcome == "accepted" else []) + ["decided"]


async def test_a_message_can_be_asked_after_without_storing_anything(store: TaskStore) -> None:
    sent = message("one")
    assert await store.known(acceptance(sent)) is None
    first = await store.accept(acceptance(sent, visible=False))
    commits = recorded(store)
    again = await store.known(acceptance(sent))
    assert again == Accepted(task_id=first.task_id, replayed=True, events=())
    with pytest.raises(MessageIdConflict):
        await store.known(acceptance(message("two", message_id=sent.message_id)))
    for scope in STRANGERS:
        assert await store.known(acceptance(sent, scope=scope)) is None
    await store.cancel(ALICE, (await store.accept(acceptance(message("other")))).task_id)
    assert await store.known(acceptance(sent)) == again
    assert [len(commit.runs) for commit in commits] == [1, 0]
