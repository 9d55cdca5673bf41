"""Delegating: one send whatever happens around it, and one outcome for whoever asks, then and ever after."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw, structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.delegate import MOST_OF_TENANT, Delegations, Errand, Sender
from dragoman.gateway.remotes import SENDING, UNKNOWN, Outcome, Remote, RemoteChange
from dragoman.model import DataPart, Message, Role, TextPart
from dragoman.model.errors import (
    DelegationNotFound,
    MessageIdConflict,
    NotReconcilable,
    QuotaExceeded,
    RemoteNotFound,
    Unavailable,
)
from tests.contract.homes import StoreHome
from tests.contract.rooms import eventually
from tests.contract.test_remotes import OTHER, audited, remote

AUDIT = AuditEntry(action="Delegate", tenant="acme", principal="alice")


class Scripted(Sender):
    """Counts sends, and answers when it is let to."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.outcome = Outcome(status="working", result=Raw(b'{"task":{}}'), remote_task_id="r-1")
        self.later: Outcome | Exception = structs.replace(self.outcome, status="completed")

    async def send(self, remote: Remote, delegation_id: str, message: Message, *, at_once: bool) -> Outcome:
        self.sent.append(message.message_id)
        await self.gate.wait()
        return self.outcome

    async def ask(self, remote: Remote, task_id: str) -> Outcome:
        self.asked.append(task_id)
        if isinstance(self.later, Exception):
            raise self.later
        return self.later


def errand(to: Remote, task_id: str = "t-1", text: str = "Hello", **more: Any) -> Errand:
    message = Message(message_id=task_id, role=Role.USER, parts=(TextPart(text=text),))
    given = {"tenant": "acme", "principal": "alice", "message": message} | more
    return Errand(remote_id=to.id, task_id=task_id, **given)


async def test_twenty_at_once_are_one_send_and_one_outcome(store: Any) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    sender.gate.clear()
    delegations = Delegations(store, sender)
    callers = [asyncio.create_task(delegations.delegate(errand(to, audit=AUDIT))) for _ in range(20)]
    await eventually(lambda: sender.sent, what="it is sent")
    (row,) = [await store.delegation_of("acme", "alice", "t-1")]
    assert row.outcome.status == SENDING, "recorded before the send"
    assert (await delegations.find("acme", "alice", row.id)).outcome.status == SENDING
    sender.gate.set()
    found = await asyncio.gather(*callers)
    assert sender.sent == ["t-1"]
    assert {one.id for one, _ in found} == {row.id}
    assert {one.outcome.status for one, _ in found} == {"working"}
    assert sorted(replayed for _, replayed in found) == [False] + [True] * 19
    assert await delegations.delegate(errand(to)) == (found[0][0], True)
    assert [detail for _, _, detail in await audited(store)] == [SENDING, "working"] + ["working"] * 19
    assert delegations.outcomes() == {"answered": 1, "failed": 0, "unknown": 0}


async def test_whoever_stops_waiting_does_not_stop_it(store: Any) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    sender.gate.clear()
    delegations = Delegations(store, sender)
    caller = asyncio.create_task(delegations.delegate(errand(to)))
    await eventually(lambda: sender.sent, what="it is sent")
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    again = asyncio.create_task(delegations.delegate(errand(to)))
    sender.gate.set()
    delegation, replayed = await again
    assert (delegation.outcome.status, replayed, len(sender.sent)) == ("working", True, 1)


@pytest.mark.parametrize("under_way", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        lambda to, another: errand(to, text="Bye"),
        lambda to, another: errand(another),
        lambda to, another: errand(
            to,
            message=Message(message_id="t-1", role=Role.USER, parts=(DataPart.of("Hello"),)),
        ),
    ],
    ids=["other text", "other agent", "other kind"],
)
async def test_other_content_under_the_same_id_is_refused(
    store: Any, other: Callable[[Remote, Remote], Errand], under_way: bool
) -> None:
    to, another, sender = await store.add_remote(remote()), await store.add_remote(remote()), Scripted()
    delegations = Delegations(store, sender)
    if under_way:
        sender.gate.clear()
    first = asyncio.create_task(delegations.delegate(errand(to)))
    await eventually(lambda: sender.sent, what="it is sent")
    if not under_way:
        await first
    refused = asyncio.create_task(delegations.delegate(other(to, another)))
    await asyncio.sleep(0)
    sender.gate.set()
    with pytest.raises(MessageIdConflict):
        await refused
    assert (await first)[0].outcome.status == "working"
    assert len(sender.sent) == 1


async def test_a_task_id_is_one_principals(store: Any) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    delegations = Delegations(store, sender)
    mine, _ = await delegations.delegate(errand(to))
    theirs, replayed = await delegations.delegate(errand(to, principal="bob"))
    assert (mine.id != theirs.id, replayed, len(sender.sent)) == (True, False, 2)
    for tenant, principal in (("acme", "bob"), ("beta", "alice")):
        with pytest.raises(DelegationNotFound):
            await delegations.find(tenant, principal, mine.id)
        with pytest.raises(DelegationNotFound):
            await delegations.reconcile(tenant, principal, mine.id)
    with pytest.raises(RemoteNotFound):
        await delegations.delegate(errand(to, tenant="beta"))
    assert len(sender.sent) == 2


async def test_a_server_that_died_while_it_sent_leaves_unknown_and_nobody_sends_again(
    home: StoreHome,
) -> None:
    store: Any = home.open()
    to, sender = await store.add_remote(remote()), Scripted()
    sender.gate.clear()
    dying = Delegations(store, sender)
    lost = asyncio.create_task(dying.delegate(errand(to)))
    await eventually(lambda: sender.sent, what="it is sent")
    lost.cancel()
    await dying.close(0)
    store = home.open()
    delegations = Delegations(store, sender)
    await delegations.start()
    delegation, replayed = await delegations.delegate(errand(to))
    assert (delegation.outcome.status, replayed, len(sender.sent)) == (UNKNOWN, True, 1)
    assert "stopped" in delegation.outcome.error
    with pytest.raises(NotReconcilable, match="No task id"):
        await delegations.reconcile("acme", "alice", delegation.id)
    assert (await delegations.find("acme", "alice", delegation.id)) == delegation


async def test_one_that_nobody_sends_any_more_is_unknown_also_without_a_restart(store: Any) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    sender.gate.clear()
    broken = Delegations(store, sender)
    lost = asyncio.create_task(broken.delegate(errand(to)))
    await eventually(lambda: sender.sent, what="it is sent")
    lost.cancel()
    await broken.close(0)
    row = await store.delegation_of("acme", "alice", "t-1")
    assert (await Delegations(store, sender).find("acme", "alice", row.id)).outcome.status == UNKNOWN
    found, _ = await Delegations(store, sender).delegate(errand(to))
    assert (found.outcome.status, len(sender.sent)) == (UNKNOWN, 1)


async def test_a_server_that_stops_takes_nothing_more_and_waits_for_what_is_under_way(store: Any) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    sender.gate.clear()
    delegations = Delegations(store, sender)
    under_way = asyncio.create_task(delegations.delegate(errand(to)))
    await eventually(lambda: sender.sent, what="it is sent")
    closing = asyncio.create_task(delegations.close(5))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="stopping"):
        await delegations.delegate(errand(to, "another"))
    sender.gate.set()
    await closing
    assert (await under_way)[0].outcome.status == "working"
    assert await store.delegation_of("acme", "alice", "another") is None


async def test_an_outcome_is_recorded_as_soon_as_the_store_can(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    to, sender, failures = await store.add_remote(remote()), Scripted(), [1, 2, 3]
    settle = store.settle_delegation

    async def failing(*given: Any, **named: Any) -> Any:
        if failures:
            failures.pop()
            raise Unavailable("full")
        return await settle(*given, **named)

    monkeypatch.setattr(store, "settle_delegation", failing)
    delegation, _ = await Delegations(store, sender).delegate(errand(to))
    assert (delegation.outcome.status, failures, len(sender.sent)) == ("working", [], 1)


async def test_too_many_at_once_of_a_tenant_are_refused_before_they_are_recorded(store: Any) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    other = await store.add_remote(remote(tenant="beta"))
    sender.gate.clear()
    delegations = Delegations(store, sender)
    waiting = [
        asyncio.create_task(delegations.delegate(errand(to, f"t-{number}")))
        for number in range(MOST_OF_TENANT)
    ]
    await eventually(lambda: len(sender.sent) == MOST_OF_TENANT, what="all are sent")
    with pytest.raises(QuotaExceeded):
        await delegations.delegate(errand(to, "one more"))
    assert await store.delegation_of("acme", "alice", "one more") is None
    theirs = asyncio.create_task(delegations.delegate(errand(other, tenant="beta")))
    await eventually(lambda: len(sender.sent) == MOST_OF_TENANT + 1, what="another tenant's is sent")
    sender.gate.set()
    await asyncio.gather(*waiting, theirs)
    assert (await delegations.delegate(errand(to, "one more")))[1] is False


async def test_reconciling_asks_the_remote_agent_by_its_task_and_records_what_it_says(store: Any) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    delegations = Delegations(store, sender)
    delegation, _ = await delegations.delegate(errand(to))
    for error in (Unavailable("not now"), NotReconcilable("not known")):
        sender.later = error
        with pytest.raises(type(error)):
            await delegations.reconcile("acme", "alice", delegation.id)
        assert await delegations.find("acme", "alice", delegation.id) == delegation
    sender.later = structs.replace(sender.outcome, status="completed")
    found = await delegations.reconcile("acme", "alice", delegation.id, AUDIT)
    assert (found.outcome.status, sender.asked) == ("completed", ["r-1"] * 3)
    again, replayed = await delegations.delegate(errand(to))
    assert (again.outcome, replayed, len(sender.sent)) == (found.outcome, True, 1)


async def test_there_is_nobody_to_ask_where_the_task_is_not(store: Any) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    delegations = Delegations(store, sender)
    delegation, _ = await delegations.delegate(errand(to))
    await store.change_remote("acme", to.id, RemoteChange(endpoint_url=f"{OTHER}/rpc", origin=OTHER))
    with pytest.raises(NotReconcilable, match="another origin"):
        await delegations.reconcile("acme", "alice", delegation.id)
    await store.remove_remote("acme", to.id)
    with pytest.raises(NotReconcilable, match="not registered"):
        await delegations.reconcile("acme", "alice", delegation.id)
    assert (await delegations.delegate(errand(to)))[0] == delegation, "told also when the agent is gone"
    assert sender.asked == []
