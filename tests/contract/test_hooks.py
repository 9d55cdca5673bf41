"""Push notification configurations: kept with their task, told from the event log, and gone with the task."""

from typing import Any

import pytest

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.hooks import Hook, HookState, KeptConfig
from dragoman.model import Reply, TaskState
from dragoman.model.errors import QuotaExceeded, TaskNotFound
from dragoman.model.push import MOST_CONFIGS
from dragoman.model.speech import agent_message
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    STRANGERS,
    acceptance,
    begun,
    brought_to,
    chunk,
    message,
    purged,
    recorded,
    status,
)

S = TaskState


def kept(config_id: str = "c", url: str = "https://hooks.example.com/a", **more: Any) -> KeptConfig:
    return KeptConfig(
        **{
            "id": config_id,
            "generation": "1.0",
            "url": url,
            "scheme": "Bearer",
            "sealed": b"\0sealed",
            **more,
        }
    )


async def of(store: Any, task_id: str, config_id: str = "c") -> Hook:
    hook = await store.hook(task_id, config_id)
    assert isinstance(hook, Hook)
    return hook


async def seqs(store: Any, task_id: str, after: int) -> list[int]:
    return [event.seq for event in await store.to_tell(task_id, after)]


async def test_a_configuration_is_told_what_comes_after_it(store: Any) -> None:
    lease = await brought_to(store, S.WORKING)
    commits = recorded(store)
    await store.set_hook(ALICE, lease.task_id, kept())
    hook = await of(store, lease.task_id)
    assert (hook.config, hook.scope, hook.state) == (kept(), ALICE, HookState.OPEN)
    assert (hook.sent, hook.tries, hook.waits, hook.error, hook.visible) == (2, 0, 0, "", True)
    assert await store.open_hooks() == [(lease.task_id, "c", False)]
    await store.append(lease, [chunk("one"), chunk("two", append=True)])
    assert await store.open_hooks(lease.task_id) == [(lease.task_id, "c", True)]
    assert await seqs(store, lease.task_id, hook.sent) == [3, 4]
    assert [list(commit.hooked) for commit in commits] == [[lease.task_id], []]


async def test_one_that_comes_with_a_message_is_told_of_the_message_itself(store: Any) -> None:
    commits = recorded(store)
    lease = await begun(store, push=kept())
    assert (await of(store, lease.task_id)).sent == 0
    assert [(list(commit.hooked), len(commit.events)) for commit in commits] == [([lease.task_id], 1)]
    waiting = await brought_to(store, S.INPUT_REQUIRED)
    await store.accept(acceptance(message("answer", task_id=waiting.task_id), push=kept("d")))
    assert (await of(store, waiting.task_id, "d")).sent == 2
    assert await seqs(store, waiting.task_id, 2) == [3]


async def test_a_message_that_was_accepted_before_brings_no_configuration(store: Any) -> None:
    first = acceptance(message(message_id="m"))
    accepted = await store.accept(first)
    again = await store.accept(acceptance(first.message, push=kept()))
    assert (again.task_id, again.replayed) == (accepted.task_id, True)
    assert await store.hooks(ALICE, accepted.task_id) == []


async def test_a_commit_without_a_configuration_says_nothing_of_any(store: Any) -> None:
    commits = recorded(store)
    lease = await begun(store)
    await store.append(lease, [status(S.COMPLETED)])
    assert [commit.hooked for commit in commits] == [[], []]
    assert await store.open_hooks() == []


async def test_what_was_told_is_not_told_again(store: Any, home: StoreHome) -> None:
    lease = await begun(store, push=kept())
    await store.append(lease, [status(S.WORKING), status(S.COMPLETED)])
    await store.told(lease.task_id, "c", 2, done=False)
    assert ((await of(store, lease.task_id)).sent, (await of(store, lease.task_id)).state) == (
        2,
        HookState.OPEN,
    )
    await store.told(lease.task_id, "c", 1, done=False)
    assert (await of(store, lease.task_id)).sent == 2
    again = home.open()
    assert await again.open_hooks() == [(lease.task_id, "c", True)]
    await again.told(lease.task_id, "c", 3, done=True)
    assert (await of(again, lease.task_id)).state is HookState.DONE
    assert await again.open_hooks() == []


async def test_a_try_in_vain_is_noted_with_the_time_to_wait_and_the_last_one_gives_up(store: Any) -> None:
    lease = await begun(store, push=kept())
    assert await store.not_told(await of(store, lease.task_id), 1, "it hung", wait=60_000)
    hook = await of(store, lease.task_id)
    assert (hook.tries, hook.error, hook.state) == (1, "it hung", HookState.OPEN)
    assert 50_000 < hook.waits <= 60_000
    assert await store.not_told(hook, 8, "it hung", wait=None)
    assert ((await of(store, lease.task_id)).state, await store.open_hooks()) == (HookState.DEAD, [])
    await store.set_hook(ALICE, lease.task_id, kept(url="https://other.example.com/"))
    hook = await of(store, lease.task_id)
    assert (hook.state, hook.tries, hook.waits, hook.error, hook.sent) == (HookState.OPEN, 0, 0, "", 0)
    await store.told(lease.task_id, "c", 1, done=False)
    assert await store.not_told(await of(store, lease.task_id), 1, "again", wait=10)
    await store.told(lease.task_id, "c", 2, done=False)
    assert ((await of(store, lease.task_id)).tries, (await of(store, lease.task_id)).error) == (0, "")


async def test_a_try_in_vain_of_one_that_was_replaced_is_not_noted(store: Any) -> None:
    lease = await begun(store, push=kept())
    hook = await of(store, lease.task_id)
    await store.set_hook(ALICE, lease.task_id, kept(sealed=b"anew"))
    assert not await store.not_told(hook, 8, "the old one", wait=None)
    found = await of(store, lease.task_id)
    assert (found.state, found.tries, found.error) == (HookState.OPEN, 0, "")


async def test_a_configuration_is_replaced_by_its_id_and_others_stay(store: Any) -> None:
    lease = await begun(store, push=kept())
    await store.set_hook(ALICE, lease.task_id, kept("b"))
    await store.append(lease, [status(S.WORKING)])
    await store.set_hook(ALICE, lease.task_id, kept("c", "https://b.example.com/", generation="0.3"))
    found = await store.hooks(ALICE, lease.task_id)
    assert [(hook.config.id, hook.config.url, hook.sent) for hook in found] == [
        ("b", "https://hooks.example.com/a", 1),
        ("c", "https://b.example.com/", 0),
    ]
    await store.delete_hook(ALICE, lease.task_id, "c")
    await store.delete_hook(ALICE, lease.task_id, "c")
    assert [hook.config.id for hook in await store.hooks(ALICE, lease.task_id)] == ["b"]
    assert await store.hook(lease.task_id, "c") is None


async def test_a_finished_task_has_nothing_more_to_tell(store: Any) -> None:
    lease = await brought_to(store, S.COMPLETED)
    await store.set_hook(ALICE, lease.task_id, kept())
    assert ((await of(store, lease.task_id)).state, await store.open_hooks()) == (HookState.DONE, [])
    await store.set_hook(ALICE, lease.task_id, kept(url="https://b.example.com/"))
    assert (await of(store, lease.task_id)).state is HookState.DONE


async def test_a_task_has_sixteen_and_not_one_more(store: Any) -> None:
    lease = await brought_to(store, S.INPUT_REQUIRED)
    for number in range(MOST_CONFIGS):
        await store.set_hook(ALICE, lease.task_id, kept(str(number)))
    with pytest.raises(QuotaExceeded):
        await store.set_hook(ALICE, lease.task_id, kept("one more"))
    sent = message("answer", task_id=lease.task_id)
    with pytest.raises(QuotaExceeded):
        await store.accept(acceptance(sent, push=kept("one more")))
    assert (await store.read(ALICE, lease.task_id)).seq == 2
    await store.set_hook(ALICE, lease.task_id, kept("3", "https://b.example.com/"))
    await store.accept(acceptance(sent, push=kept("3")))
    assert len(await store.hooks(ALICE, lease.task_id)) == MOST_CONFIGS == 16
    assert (await store.accept(acceptance(sent, push=kept("one more")))).replayed


@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
async def test_nobody_else_reaches_a_task_by_its_configurations(store: Any, stranger: Any) -> None:
    lease = await begun(store, push=kept())
    for config_id in range(MOST_CONFIGS - 1):
        await store.set_hook(ALICE, lease.task_id, kept(str(config_id)))
    for call in (
        store.set_hook(stranger, lease.task_id, kept("d")),
        store.hooks(stranger, lease.task_id),
        store.delete_hook(stranger, lease.task_id, "c"),
        store.accept(acceptance(message(task_id=lease.task_id), scope=stranger, push=kept("d"))),
    ):
        with pytest.raises(TaskNotFound):
            await call
    with pytest.raises(TaskNotFound):
        await store.hooks(ALICE, "no such task")
    assert len(await store.hooks(ALICE, lease.task_id)) == MOST_CONFIGS


async def test_a_run_that_does_not_show_has_no_configuration_to_show(store: Any) -> None:
    lease = await begun(store, visible=False, push=kept())
    with pytest.raises(TaskNotFound):
        await store.hooks(ALICE, lease.task_id)
    assert not (await of(store, lease.task_id)).visible
    await store.append(lease, [Reply(agent_message("Hi", task_id="", context_id=""))])
    assert [event.ends_run for event in await store.to_tell(lease.task_id, 0)] == [False, True]


async def test_events_are_told_some_at_a_time_and_one_at_least(store: Any) -> None:
    lease = await begun(store, push=kept())
    await store.append(lease, [status(S.WORKING)])
    for number in range(100):
        await store.append(lease, [chunk(str(number), append=number > 0)])
    await store.append(lease, [chunk("x" * 3_000_000, append=True), chunk("y", append=True)])
    after, batches = 0, []
    while found := await seqs(store, lease.task_id, after):
        assert found[0] == after + 1
        after = found[-1]
        batches.append(len(found))
    assert (sum(batches), batches[0]) == (104, 64)
    assert await seqs(store, lease.task_id, 102) == [103], "larger than what is told at once"
    assert await store.to_tell("no such task", 0) == ()


async def test_changes_are_audited_by_their_task(home: StoreHome) -> None:
    store: Any = home.open()
    lease = await begun(store)
    entry = AuditEntry(action="Change", tenant="acme", principal="alice")
    await store.set_hook(ALICE, lease.task_id, kept(), audit=entry)
    with pytest.raises(TaskNotFound):
        await store.set_hook(ALICE, "nope", kept(), audit=entry)
    await store.delete_hook(ALICE, lease.task_id, "c", audit=entry)
    rows = await store.consult(lambda book: book.audited(since=0, after=0, limit=10))
    assert [(row.entry.target, row.entry.outcome) for row in rows] == [
        (f"agents/writer/tasks/{lease.task_id}", "ok")
    ] * 2


async def test_configurations_go_with_their_task(store: Any, home: StoreHome) -> None:
    lease = await begun(store, push=kept())
    hook = await of(store, lease.task_id)
    await store.set_hook(ALICE, lease.task_id, kept("d"))
    await store.append(lease, [status(S.COMPLETED)])
    home.shift_clock(3_601_000)
    assert home.left()["push_config"] == 2
    assert await purged(store, completed=3_600_000) == 1
    assert home.left()["push_config"] == 0
    assert await store.hook(lease.task_id, "c") is None
    assert await store.open_hooks() == []
    await store.told(lease.task_id, "c", 2, done=True)
    assert not await store.not_told(hook, 2, "late", wait=None)
    assert home.left()["push_config"] == 0
