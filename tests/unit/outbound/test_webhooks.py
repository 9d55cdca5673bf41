"""Lanes: what is told to whom and when, with a store that is real and receivers that are made up."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.egress import EgressPolicy, Refused
from dragoman.egress.client import Egress, EgressFailed, Received
from dragoman.gateway.call import Call
from dragoman.gateway.hooks import Hook, HookState
from dragoman.gateway.ports import AgentSettings, Lease
from dragoman.gateway.push import PushConfigurer
from dragoman.model import Principal, PushConfig, Reply, Resumed, StatusChange, TaskEvent, TaskState, Used
from dragoman.model.speech import agent_message
from dragoman.outbound.vault import KEY_BYTES, Vault
from dragoman.outbound.ways import Ways
from dragoman.outbound.webhooks import TRIES, Webhooks
from dragoman.protocol.registry import load_versions
from dragoman.stores.sqlite import SqliteStore
from tests.contract.samples import ALICE, acceptance, begun, chunk, message, status

URL = "https://hooks.example.com/a2a"
S = TaskState


class Receivers(Egress):
    """Receivers by URL: each answers as it is told to. Remembers what came, and how much at a time."""

    def __init__(self, answer: Callable[[str, int], Any]) -> None:
        super().__init__(EgressPolicy(), user_agent="test")
        self._answer = answer
        self.got: list[tuple[str, int, dict[str, str], bytes]] = []
        self.open = 0
        self.most = 0
        self.release = asyncio.Event()
        self.late = 200

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        wants_body: bool = True,
    ) -> Received:
        named = dict(headers)
        seq = int(named["Dragoman-Event-Sequence"])
        self.got.append((url, seq, named, body))
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await asyncio.sleep(0)
            answer = self._answer(url, seq)
            if answer is None:
                await self.release.wait()
                answer = self.late
            if isinstance(answer, Exception):
                raise answer
            return Received(answer, ())
        finally:
            self.open -= 1

    def seqs(self, url: str = URL) -> list[int]:
        return [seq for one, seq, *_ in self.got if one == url]


class World:
    """A store, receivers and lanes between them."""

    def __init__(self, folder: Path, answer: Callable[[str, int], Any] = lambda url, seq: 200) -> None:
        self.store = SqliteStore(folder / "dragoman.db", lease=15.0, on_lost=lambda: None)
        self.receivers = Receivers(answer)
        self.vault = Vault([os.urandom(KEY_BYTES)])
        self.ways = Ways(self.receivers)
        self.webhooks = self.lanes()
        self.noted: list[tuple[int | None, str]] = []
        self._note, self.store.not_told = self.store.not_told, self._noting  # type: ignore[method-assign]

    async def _noting(self, hook: Hook, tries: int, error: str, *, wait: int | None) -> bool:
        self.noted.append((wait, error))
        return await self._note(hook, tries, error, wait=wait)

    def lanes(self, vault: Vault | None = None) -> Webhooks:
        forms = {version: spec.push for version, spec in load_versions().items()}
        made = Webhooks(
            self.store,
            self.ways,
            vault or self.vault,
            forms,
            retry=0.002,
            chance=lambda: 1.0,
        )
        self.store.on_commit(made.committed)
        return made

    def kept(self, url: str = URL, **more: Any) -> Any:
        call = Call(principal=Principal(ALICE.tenant, ALICE.principal), scope=ALICE, settings=AgentSettings())
        config = PushConfig(**{"generation": "1.0", "id": "c", "url": url, **more})
        return PushConfigurer(self.store, self.vault, self.ways).prepare(call, config)

    async def hook(self, task_id: str, config_id: str = "c") -> Hook:
        found = await self.store.hook(task_id, config_id)
        assert found is not None
        return found

    async def until(self, holds: Callable[[], Any], *, seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.sleep(0.002)

    async def state(self, task_id: str, state: HookState, config_id: str = "c") -> Hook:
        async with asyncio.timeout(10):
            while (found := await self.hook(task_id, config_id)).state is not state:
                await asyncio.sleep(0.002)
        return found

    async def end(self) -> None:
        await self.webhooks.close()
        self.store.close()


def play(folder: Path, scenario: Any, answer: Callable[[str, int], Any] = lambda url, seq: 200) -> None:
    async def run() -> None:
        world = World(folder, answer)
        try:
            await scenario(world)
        finally:
            await world.end()

    asyncio.run(run())


async def finish(world: World, lease: Lease, chunks: int = 2) -> None:
    await world.store.append(lease, [status(S.WORKING)])
    for number in range(chunks):
        await world.store.append(lease, [chunk(str(number), append=number > 0)])
    await world.store.append(lease, [status(S.COMPLETED)])


def test_a_receiver_that_never_takes_anything_is_given_up_and_can_be_redelivered(tmp_path: Path) -> None:
    broken = [True]

    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept())
        await finish(world, lease)
        hook = await world.state(lease.task_id, HookState.DEAD)
        assert world.receivers.seqs() == [1] * TRIES == [1] * 8
        assert (hook.sent, hook.tries, hook.error) == (0, 8, "the receiver answered 503")
        assert len({named["Dragoman-Event-Id"] for _, _, named, _ in world.receivers.got}) == 1
        await world.until(lambda: world.webhooks.count() == 0)
        broken[0] = False
        await world.store._writer.run(
            lambda tx: tx.execute("UPDATE push_config SET state = 'open', tries = 0, due_at = 0")
        )
        world.webhooks.look_again()
        await world.state(lease.task_id, HookState.DONE)
        assert world.receivers.seqs()[8:] == [1, 2, 3, 4, 5]
        assert dict(world.webhooks.outcomes()) == {"taken": 5, "failed": 8, "dead": 1}

    play(tmp_path, scenario, lambda url, seq: 503 if broken[0] else 200)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (500, "the receiver answered 500"),
        (301, "the receiver answered 301"),
        (199, "the receiver answered 199"),
        (EgressFailed("no whole reply within 30 s"), "no whole reply within 30 s"),
        (ZeroDivisionError(), "a fault of this server, which its log tells of"),
        (
            Refused("leads to an address that is not public: 10.0.0.1"),
            "the URL leads to an address that is not public: 10.0.0.1",
        ),
    ],
    ids=str,
)
def test_each_way_to_fail_is_tried_again_and_told_to_the_operator(
    tmp_path: Path, failure: Any, said: str
) -> None:
    answers = [failure, failure]

    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept())
        await world.until(lambda: len(world.receivers.got) >= 3)
        await finish(world, lease)
        await world.state(lease.task_id, HookState.DONE)
        assert world.receivers.seqs() == [1, 1, 1, 2, 3, 4, 5]
        assert world.noted == [(2, said), (4, said)]

    play(tmp_path, scenario, lambda url, seq: answers.pop() if answers else 200)


def test_waits_between_tries_double(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept())
        await world.state(lease.task_id, HookState.DEAD)
        assert [wait for wait, _ in world.noted] == [2, 4, 8, 16, 32, 64, 128, None]

    play(tmp_path, scenario, lambda url, seq: 500)


def test_the_next_server_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept())
        await world.until(lambda: world.receivers.seqs() == [1])
        await finish(world, lease)
        await world.until(lambda: 3 in world.receivers.seqs())
        await world.webhooks.close()
        sent = (await world.hook(lease.task_id)).sent
        assert sent == 2 and world.receivers.open == 0
        world.receivers.release.set()
        world.webhooks = world.lanes()
        await world.webhooks.start()
        await world.state(lease.task_id, HookState.DONE)
        assert world.receivers.seqs() == [1, 2, 3, 3, 4, 5]

    play(tmp_path, scenario, lambda url, seq: None if seq == 3 else 200)


def test_a_deleted_configuration_is_told_nothing_more(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept())
        await world.until(lambda: world.receivers.open == 1)
        await world.store.delete_hook(ALICE, lease.task_id, "c")
        await world.until(lambda: world.receivers.open == 0)
        await finish(world, lease)
        await asyncio.sleep(0)
        assert (world.receivers.seqs(), world.webhooks.count()) == ([1], 0)

    play(tmp_path, scenario, lambda url, seq: None)


def test_places_at_one_origin_are_bounded_and_others_have_their_own(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        slow = [await begun(world.store, push=world.kept(f"{URL}/{n}")) for n in range(40)]
        await world.until(lambda: world.receivers.open == 16)
        other = await begun(world.store, push=world.kept("https://other.example.com/"))
        await finish(world, other)
        await world.state(other.task_id, HookState.DONE)
        assert world.receivers.open == 16
        world.receivers.release.set()
        await world.until(lambda: len(world.receivers.got) >= 45)
        assert world.receivers.most <= 17
        assert len(slow) == 40

    play(tmp_path, scenario, lambda url, seq: None if "hooks" in url else 200)


def test_a_configuration_that_is_replaced_during_its_last_try_is_not_given_up(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept())
        await world.until(lambda: len(world.receivers.got) == TRIES)
        world.receivers.late = 500
        await world.store.set_hook(ALICE, lease.task_id, world.kept("https://new.example.com/"))
        world.receivers.release.set()
        await finish(world, lease)
        await world.state(lease.task_id, HookState.DONE)
        assert world.receivers.seqs() == [1] * TRIES
        assert world.receivers.seqs("https://new.example.com/") == [1, 2, 3, 4, 5]

    answers = iter([500] * (TRIES - 1))
    play(tmp_path, scenario, lambda url, seq: 200 if "new" in url else next(answers, None))


def test_what_is_not_shown_in_a_stream_is_not_told_either(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept())
        await world.store.append(lease, [status(S.WORKING), Used("wiki")])
        await world.store.append(lease, [chunk("one")])
        await world.store.accept(acceptance(message("by the way", task_id=lease.task_id)))
        await world.store.append(lease, [StatusChange(S.COMPLETED)])
        await world.state(lease.task_id, HookState.DONE)
        assert world.receivers.seqs() == [1, 2, 4, 6]

    play(tmp_path, scenario)


def end_meanwhile(world: World, end: Callable[[str], Awaitable[object]]) -> None:
    """Have `end` called, with the task's id, when the events of a task are looked up for the first time."""
    look_up, begun = world.store.to_tell, set[str]()

    async def looked_up(task_id: str, after: int) -> Sequence[TaskEvent]:
        if task_id not in begun:
            begun.add(task_id)
            await end(task_id)
        return await look_up(task_id, after)

    world.store.to_tell = looked_up  # type: ignore[method-assign]


@pytest.mark.parametrize("shows", [True, False])
def test_a_run_that_ends_while_its_events_are_looked_up_is_told_if_it_shows(
    tmp_path: Path, shows: bool
) -> None:
    """Whether it shows is known from before its end, and what is to be told from after it."""
    bare = Reply(agent_message("bare", task_id="", context_id=""))

    async def scenario(world: World) -> None:
        last = status(S.COMPLETED) if shows else bare
        end_meanwhile(world, lambda task: world.store.append(Lease(task, 1), [last], reveal=shows))
        lease = await begun(world.store, push=world.kept(), visible=False)
        await world.state(lease.task_id, HookState.DONE)
        assert world.receivers.seqs() == ([1, 2] if shows else [])

    play(tmp_path, scenario)


def test_a_run_that_ends_while_another_server_takes_over_is_left_to_that_one(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        look, looks = world.store.hook, list[str]()

        async def taken_over(task_id: str, config_id: str) -> Hook | None:
            looks.append(task_id)
            return None if len(looks) > 1 else await look(task_id, config_id)

        world.store.hook = taken_over  # type: ignore[method-assign]
        end_meanwhile(
            world, lambda task: world.store.append(Lease(task, 1), [status(S.COMPLETED)], reveal=True)
        )
        lease = await begun(world.store, push=world.kept(), visible=False)
        await world.until(lambda: len(looks) > 1 and world.webhooks.count() == 0)
        left = await look(lease.task_id, "c")
        assert left is not None
        assert (left.state, left.sent, world.receivers.got) == (HookState.OPEN, 0, [])

    play(tmp_path, scenario)


def test_after_a_lost_attempt_the_task_is_told_as_it_stands(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept())
        await world.store.append(lease, [status(S.WORKING), chunk("lost")])
        await world.store.append(lease, [Resumed(2)])
        await world.store.append(lease, [chunk("kept"), status(S.COMPLETED)])
        await world.state(lease.task_id, HookState.DONE)
        assert world.receivers.seqs() == [1, 2, 3, 4, 5, 6]
        kinds = [body.split(b'"')[1].decode() for *_, body in world.receivers.got]
        assert kinds == ["statusUpdate"] * 2 + ["artifactUpdate", "task", "artifactUpdate", "statusUpdate"]
        assert b"lost" not in world.receivers.got[3][3]

    play(tmp_path, scenario)


def test_a_generation_that_this_build_has_not_is_told_in_the_newest_form(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lease = await begun(world.store, push=world.kept(generation="0.1"))
        await finish(world, lease)
        await world.state(lease.task_id, HookState.DONE)
        assert {named["Content-Type"] for _, _, named, _ in world.receivers.got} == {"application/a2a+json"}

    play(tmp_path, scenario)


def test_secrets_are_sent_and_without_their_key_nothing_is(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        lease = await begun(
            world.store, push=world.kept(token="t0k3n", scheme="Bearer", credentials="s3cr3t")
        )
        await world.until(lambda: world.receivers.seqs() == [1])
        _, _, named, _ = world.receivers.got[0]
        assert (named["Authorization"], named["X-A2A-Notification-Token"]) == ("Bearer s3cr3t", "t0k3n")
        await world.webhooks.close()
        world.webhooks = world.lanes(Vault([os.urandom(KEY_BYTES)]))
        await world.webhooks.start()
        await finish(world, lease)
        hook = await world.state(lease.task_id, HookState.DEAD)
        assert hook.error == "the vault has no key for this secret any more"
        assert world.receivers.seqs() == [1]

    play(tmp_path, scenario)


def test_a_scheme_without_credentials_is_no_header(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await begun(world.store, push=world.kept(scheme="Bearer"))
        await world.until(lambda: world.receivers.seqs() == [1])
        assert not {"Authorization", "X-A2A-Notification-Token"} & set(world.receivers.got[0][2])

    play(tmp_path, scenario)


def test_a_damaged_event_is_given_up_and_ends_nothing_else(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        damaged = await begun(world.store, push=world.kept())
        whole = await begun(world.store, push=world.kept("https://other.example.com/"))
        await world.until(lambda: len(world.receivers.got) == 2)
        await world.store._writer.run(
            lambda tx: tx.execute("INSERT INTO event VALUES (?, 2, 1, 0, x'00')", (damaged.task_id,))
        )
        await world.store._writer.run(
            lambda tx: tx.execute("UPDATE task SET seq = 2 WHERE id = ?", (damaged.task_id,))
        )
        await finish(world, whole)
        world.webhooks.look_again()
        await world.state(whole.task_id, HookState.DONE)
        hook = await world.state(damaged.task_id, HookState.DEAD)
        assert (hook.sent, hook.error) == (1, "a fault of this server, which its log tells of")

    play(tmp_path, scenario)


def test_tasks_without_a_configuration_begin_no_lane(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await finish(world, await begun(world.store))
        assert (world.webhooks.count(), world.receivers.got) == (0, [])

    play(tmp_path, scenario)
