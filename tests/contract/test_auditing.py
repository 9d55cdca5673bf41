"""What of tasks goes into the audit: each act in the transaction of what it did, and nothing where nothing was done."""

from typing import Protocol

import pytest
from msgspec import structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.ports import ApprovalRequest, JournalEntry, TaskStore
from dragoman.gateway.tenants import TenantStore
from dragoman.model import Decision, TaskState
from dragoman.model.errors import (
    ApprovalClosed,
    MessageIdConflict,
    TaskNotCancelable,
    TaskNotFound,
)
from dragoman.model.ids import new_id
from dragoman.model.payload import ABSENT
from tests.contract.homes import StoreHome
from tests.contract.samples import ALICE, OTHER_PRINCIPAL, acceptance, begun, message, purged, status

SEND = AuditEntry(
    action="SendMessage", tenant="acme", principal="alice", credential="t1", address="127.0.0.1"
)
CANCEL = structs.replace(SEND, action="CancelTask")
DECIDE = structs.replace(SEND, action="DecideApproval", principal="carol")


class AuditedStore(TaskStore, TenantStore, Protocol):
    """A store whose audit can be read."""


async def audited(store: TenantStore) -> list[AuditEntry]:
    rows = await store.consult(lambda book: book.audited(since=0, after=0, limit=1000))
    return [row.entry for row in rows]


def done(
    entry: AuditEntry, task_id: str, outcome: str = "ok", more: str = "", detail: str = ""
) -> AuditEntry:
    target = f"agents/writer/tasks/{task_id}{more}"
    return structs.replace(entry, target=target, outcome=outcome, detail=detail)


async def test_a_send_that_is_accepted_and_one_that_is_known_already_are_noted(store: AuditedStore) -> None:
    asked = structs.replace(acceptance(), audit=SEND)
    first = await store.accept(asked)
    await store.accept(structs.replace(asked, task_id=new_id()))
    more = acceptance(message("more", task_id=first.task_id, message_id="2"))
    await store.accept(structs.replace(more, audit=SEND))
    assert await audited(store) == [
        done(SEND, first.task_id),
        done(SEND, first.task_id, "replayed"),
        done(SEND, first.task_id),
    ]


async def test_a_cancel_is_noted(store: AuditedStore) -> None:
    lease = await begun(store)
    await store.cancel(ALICE, lease.task_id, audit=CANCEL)
    assert await audited(store) == [done(CANCEL, lease.task_id)]


async def test_a_decision_is_noted_as_it_was(store: AuditedStore) -> None:
    for approved in (True, False):
        lease = await begun(store)
        request = ApprovalRequest(id=new_id(), action="Delete it")
        point = JournalEntry(ordinal=1, kind="approve", name="delete", acts=0, result=ABSENT)
        await store.park(lease, status(TaskState.INPUT_REQUIRED, "Wait"), point, approval=request)
        decision = Decision(approved=approved, by="carol", note="a secret of carol's")
        await store.decide("acme", request.id, decision, digest=None, flat=(), audit=DECIDE)
        with pytest.raises(ApprovalClosed):
            await store.decide("acme", request.id, decision, digest=None, flat=(), audit=DECIDE)
        word = "approve" if approved else "deny"
        expected = done(DECIDE, lease.task_id, more=f"/approvals/{request.id}", detail=word)
        assert (await audited(store))[-1] == expected
    assert len(await audited(store)) == 2


async def test_what_is_not_audited_and_what_is_refused_leave_no_row(store: AuditedStore) -> None:
    lease = await begun(store)
    accepted = acceptance(message("one", message_id="m"))
    await store.accept(accepted)
    other = acceptance(message("another", message_id="m"))
    with pytest.raises(MessageIdConflict):
        await store.accept(structs.replace(other, audit=SEND))
    lost = acceptance(message("more", task_id="no such task", message_id="2"))
    with pytest.raises(TaskNotFound):
        await store.accept(structs.replace(lost, audit=SEND))
    with pytest.raises(TaskNotFound):
        await store.cancel(OTHER_PRINCIPAL, lease.task_id, audit=CANCEL)
    await store.cancel(ALICE, lease.task_id)
    with pytest.raises(TaskNotCancelable):
        await store.cancel(ALICE, lease.task_id, audit=CANCEL)
    assert await audited(store) == []


async def test_denials_are_added_as_they_are(store: AuditedStore) -> None:
    denied = [
        AuditEntry(
            action="Access", target="agents/writer", address="10.0.0.1", outcome="UNAUTHENTICATED", times=7
        ),
        structs.replace(SEND, target="agents/writer", outcome="INSUFFICIENT_SCOPE", detail="a2a:delegate"),
    ]
    await store.add_to_audit(denied)
    assert await audited(store) == denied


async def test_rows_outlive_their_task_and_nobody_changes_them(home: StoreHome, store: AuditedStore) -> None:
    lease = await begun(store)
    await store.cancel(ALICE, lease.task_id, audit=CANCEL)
    home.shift_clock(1000)
    assert await purged(store, canceled=1) == 1
    assert await audited(store) == [done(CANCEL, lease.task_id)]
    for statement in ("UPDATE audit SET outcome = 'other'", "DELETE FROM audit"):
        assert "append-only" in home.change_audit(statement)
    assert await audited(store) == [done(CANCEL, lease.task_id)]


DAY = 86_400_000


async def test_the_audit_is_purged_of_what_is_too_old_step_by_step_and_of_nothing_else(
    store: AuditedStore, home: StoreHome
) -> None:
    old = [structs.replace(SEND, target=f"old/{number}", outcome="ok") for number in range(600)]
    young = [structs.replace(SEND, target=f"young/{number}", outcome="ok") for number in range(3)]
    await store.add_to_audit(old)
    assert await store.purge_audit(DAY) == 0
    home.shift_clock(DAY)
    await store.add_to_audit(young)
    # Nothing is a whole day old yet but what came before the clock was moved.
    steps = []
    while purged_now := await store.purge_audit(DAY - 60_000):
        steps.append(purged_now)
    assert sum(steps) == 600
    assert len(steps) > 1, "no step takes them all"
    assert await audited(store) == young
    assert await store.purge_audit(DAY) == 0
    await store.add_to_audit(young)
    assert await audited(store) == young * 2


async def test_nothing_that_is_still_to_be_kept_can_be_deleted_or_changed(
    store: AuditedStore, home: StoreHome
) -> None:
    await store.add_to_audit([SEND])
    home.shift_clock(DAY)
    await store.add_to_audit([CANCEL])
    assert await store.purge_audit(DAY // 2) == 1
    for statement in (
        "DELETE FROM audit",
        "UPDATE audit SET at = 0",
        "DELETE FROM audit_horizon",
        "UPDATE audit_horizon SET kept_since = 0",
    ):
        assert "audit" in home.change_audit(statement)
    assert await audited(store) == [CANCEL]


async def test_a_row_from_before_the_clock_was_set_back_waits_for_its_time(
    store: AuditedStore, home: StoreHome
) -> None:
    await store.add_to_audit([SEND])
    home.shift_clock(-2 * DAY)
    await store.add_to_audit([CANCEL])
    home.shift_clock(2 * DAY)
    assert await store.purge_audit(DAY) == 0
    home.shift_clock(DAY + 1)
    assert await store.purge_audit(DAY) == 2
