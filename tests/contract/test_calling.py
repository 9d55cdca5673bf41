"""Calls of handlers: each point is one delegation, followed until the remote task ends, waits, or cannot be asked."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from dragoman.gateway import calls as calling
from dragoman.gateway.calls import Calls
from dragoman.gateway.delegate import Delegations
from dragoman.gateway.ports import Lease, RunRef, RunRequest
from dragoman.gateway.remotes import UNKNOWN, Outcome
from dragoman.model import Message, Role, Scope, TaskState, TextPart
from dragoman.model.errors import MessageIdConflict, NotReconcilable, QuotaExceeded, Unavailable
from tests.contract.test_delegating import Scripted
from tests.contract.test_remotes import audited, remote

RUN = RunRef(
    scope=Scope("acme", "alice", "agent"),
    lease=Lease("run-1", 1),
    context_id="c",
    attempt=1,
    deadline_at=0,
    request=RunRequest(),
    messages=(),
    state=TaskState.WORKING,
    visible=True,
)


def said(text: str = "Hello") -> Message:
    return Message(message_id="", role=Role.AGENT, parts=(TextPart(text=text),))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "PAUSES", (0.0, 0.0, 0.0))


def calls(
    store: Any,
    sender: Scripted,
    *,
    is_member: Callable[[str], bool] = lambda tenant: True,
    is_audited: bool = False,
) -> Calls:
    return Calls(
        Delegations(store, sender),
        store,
        asyncio.get_running_loop(),
        is_member=is_member,
        audited=lambda: is_audited,
    )


async def test_a_point_is_one_delegation_whoever_asks_again(store: Any) -> None:
    to, sender = await store.add_remote(remote(name="helper")), Scripted()
    one = calls(store, sender, is_audited=True)
    first = await one.call(RUN, 1, "helper", said())
    assert (first.status, sender.sent, sender.asked) == ("completed", ["run-1-call-1"], ["r-1"])
    assert await one.call(RUN, 1, to.id, said()) == first
    await one.call(RUN, 2, "helper", said())
    assert sender.sent == ["run-1-call-1", "run-1-call-2"]
    with pytest.raises(MessageIdConflict):
        await one.call(RUN, 1, "helper", said("Bye"))
    await store.remove_remote("acme", to.id)
    assert await one.call(RUN, 1, "helper", said()) == first, "whatever has become of the agent since"
    assert ("Delegate", f"remotes/{to.id}/delegations/", "sending") in {
        (action, target[: len(f"remotes/{to.id}/delegations/")], detail)
        for action, target, detail in await audited(store)
    }


async def test_a_call_may_come_from_another_loop(store: Any) -> None:
    await store.add_remote(remote(name="helper"))
    one, found = calls(store, Scripted()), []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(one.call(RUN, 1, "helper", said()))))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert [outcome.status for outcome in found] == ["completed"]


@pytest.mark.parametrize("status", ["input_required", "auth_required", "failed", "canceled", "rejected"])
async def test_a_task_is_followed_until_it_ends_or_waits(store: Any, status: str) -> None:
    await store.add_remote(remote(name="helper"))
    sender = Scripted()
    sender.later = structs.replace(sender.outcome, status=status)
    assert (await calls(store, sender).call(RUN, 1, "helper", said())).status == status


async def test_no_answer_is_no_reason_to_stop_following(store: Any) -> None:
    await store.add_remote(remote(name="helper"))
    sender = Scripted()
    answers: list[Outcome | Exception] = [
        Unavailable("not now"),
        sender.outcome,
        Unavailable("not now"),
        structs.replace(sender.outcome, status="completed"),
    ]

    async def ask(to: Any, task_id: str) -> Outcome:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    sender.ask = ask  # type: ignore[method-assign]
    assert (await calls(store, sender).call(RUN, 1, "helper", said())).status == "completed"
    assert answers == []


async def test_a_task_that_nobody_can_be_asked_about_is_unknown(store: Any) -> None:
    await store.add_remote(remote(name="helper"))
    sender = Scripted()
    sender.later = NotReconcilable("The remote agent does not tell")
    found = await calls(store, sender).call(RUN, 1, "helper", said())
    assert (found.status, found.remote_task_id, found.error) == (
        UNKNOWN,
        "r-1",
        "The remote agent does not tell",
    )


async def test_one_whose_state_could_not_be_read_is_asked_for_a_few_times(store: Any) -> None:
    await store.add_remote(remote(name="helper"))
    sender = Scripted()
    sender.outcome = Outcome(status=UNKNOWN, remote_task_id="r-1", error="no state")
    sender.later = Unavailable("no state")
    found = await calls(store, sender).call(RUN, 1, "helper", said())
    assert (found.status, len(sender.asked)) == (UNKNOWN, 3)
    sender.outcome = Outcome(status=UNKNOWN, error="cut")
    assert (await calls(store, sender).call(RUN, 2, "helper", said())).error == "cut"
    assert len(sender.asked) == 3, "without an id there is nothing to ask by"


async def test_who_is_not_there_is_a_failure_before_anything_is_sent(store: Any) -> None:
    sender = Scripted()
    theirs = await store.add_remote(remote(name="helper", tenant="beta"))
    for name in ("helper", theirs.id, ""):
        assert (await calls(store, sender).call(RUN, 1, name, said())).status == "failed"
    await store.add_remote(remote(name="helper"))
    barred = calls(store, sender, is_member=lambda tenant: False)
    assert (await barred.call(RUN, 1, "helper", said())).status == "failed"
    await store.add_remote(remote(name="helper"))
    assert (await calls(store, sender).call(RUN, 1, "helper", said())).status == "failed", "two of a name"
    assert sender.sent == []


async def test_a_call_waits_for_room(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.add_remote(remote(name="helper"))
    delegations = Delegations(store, Scripted())
    one = Calls(
        delegations,
        store,
        asyncio.get_running_loop(),
        is_member=lambda tenant: True,
        audited=lambda: False,
    )
    delegate, refusals = delegations.delegate, [1, 1]

    async def full(errand: Any) -> Any:
        if refusals:
            refusals.pop()
            raise QuotaExceeded("full", retry_after=0)
        return await delegate(errand)

    monkeypatch.setattr(delegations, "delegate", full)
    assert (await one.call(RUN, 1, "helper", said())).status == "completed"
    assert refusals == []
