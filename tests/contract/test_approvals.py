"""Approvals: opened with the run that waits for one, decided once by whoever was shown it, and by nobody else."""

from typing import Any

import pytest
from msgspec import Raw, structs

from dragoman.gateway.ports import ApprovalRequest, JournalEntry, Lease, TaskStore
from dragoman.model import Approval, Decision, TaskState
from dragoman.model.approval import approval_digest
from dragoman.model.errors import ApprovalClosed, ApprovalNotFound, Fenced, UnsupportedOperation
from dragoman.model.ids import new_id
from dragoman.model.payload import ABSENT, pack, unpack
from tests.contract.homes import StoreHome
from tests.contract.samples import (
    ALICE,
    HOUR,
    OTHER_AGENT,
    OTHER_PRINCIPAL,
    OTHER_TENANT,
    acceptance,
    begun,
    message,
    on_many_loops,
    purged,
    recorded,
    status,
)

S = TaskState
POINT = JournalEntry(ordinal=1, kind="approve", name="delete", acts=0, result=ABSENT)
YES = Decision(approved=True, by="carol", note="go on")
NO = Decision(approved=False, by="carol")
ACTION, DETAILS = "Delete the backup", {"file": "backup.tar", "size": 2**60}


async def waiting(store: TaskStore, action: str = ACTION, details: Any = DETAILS, **how: Any) -> Approval:
    """Accept a message whose run waits for an approval, and return that."""
    lease = await begun(store, **how)
    return await parked(store, lease, action, details, tenant=how.get("scope", ALICE).tenant)


async def parked(
    store: TaskStore, lease: Lease, action: str = ACTION, details: Any = DETAILS, *, tenant: str = "acme"
) -> Approval:
    shown = ABSENT if details is None else pack(details)
    request = ApprovalRequest(id=new_id(), action=action, details=shown)
    await store.park(
        lease, status(S.INPUT_REQUIRED, f"Waits for an approval: {action}"), POINT, approval=request
    )
    return await store.approval(tenant, request.id)


async def decided(store: TaskStore, approval: Approval, decision: Decision = YES, **how: Any) -> Approval:
    how = {"digest": None, "flat": (), **how}
    return await store.decide(approval.tenant, approval.id, decision, **how)


async def test_an_approval_says_what_would_be_done_for_whom_and_until_when(store: TaskStore) -> None:
    approval = await waiting(store, deadline=HOUR)
    assert (approval.tenant, approval.principal, approval.agent) == ("acme", "alice", "writer")
    assert (approval.action, unpack(approval.details)) == (ACTION, DETAILS)
    assert approval.digest == approval_digest(ACTION, pack(DETAILS))
    assert approval.decision is None
    assert 0 < approval.expires_at - approval.created_at <= HOUR
    assert await store.approvals("acme", after="", limit=10) == (approval,)


@pytest.mark.parametrize("decision", [YES, NO])
async def test_a_decision_has_the_run_executed_and_is_in_its_journal(
    store: TaskStore, decision: Decision
) -> None:
    approval = await waiting(store)
    commits = recorded(store)
    found = await decided(store, approval, decision, flat=("writer",))
    assert found.decision == decision
    assert await store.approval("acme", approval.id) == found
    ((run,),) = [commit.runs for commit in commits]
    assert (run.lease, run.state, run.again) == (Lease(approval.task_id, 3), S.WORKING, True)
    (entry,) = await store.journal(run.lease)
    assert unpack(entry.result) == {"approved": decision.approved, "by": "carol", "note": decision.note}
    assert (await store.read(ALICE, approval.task_id)).task().status.state is S.WORKING
    assert await store.approvals("acme", after="", limit=10) == ()


async def test_a_decision_is_made_once(store: TaskStore) -> None:
    approval = await waiting(store)
    await decided(store, approval, NO)
    for decision in (YES, NO):
        with pytest.raises(ApprovalClosed):
            await decided(store, approval, decision)
    found = (await store.approval("acme", approval.id)).decision
    assert found == NO


async def test_of_decisions_at_once_one_counts(store: TaskStore) -> None:
    approval = await waiting(store)
    commits = recorded(store)
    results = await on_many_loops(
        lambda number: decided(store, approval, Decision(approved=number % 2 == 0, by=f"p{number}")), count=20
    )
    (taken,) = [one for one in results if isinstance(one, Approval)]
    assert {type(one) for one in results if one is not taken} == {ApprovalClosed}
    assert (await store.approval("acme", approval.id)).decision == taken.decision
    assert sum(len(commit.runs) for commit in commits) == 1


@pytest.mark.parametrize("tenant", ["globex", "", "acme "])
async def test_another_tenant_finds_nothing(store: TaskStore, tenant: str) -> None:
    approval = await waiting(store)
    assert await store.approvals(tenant, after="", limit=10) == ()
    with pytest.raises(ApprovalNotFound):
        await store.approval(tenant, approval.id)
    with pytest.raises(ApprovalNotFound):
        await store.decide(tenant, approval.id, YES, digest=None, flat=())
    with pytest.raises(ApprovalNotFound):
        await store.decide("acme", new_id(), YES, digest=None, flat=())
    assert (await store.approval("acme", approval.id)).decision is None


async def test_what_was_shown_must_be_what_is_there(store: TaskStore) -> None:
    approval = await waiting(store)
    other = await waiting(store, details={"file": "everything"})
    for digest in (other.digest, approval.digest.upper(), "0" * 64):
        with pytest.raises(ApprovalClosed):
            await decided(store, approval, digest=digest)
    assert (await decided(store, approval, digest=approval.digest)).decision == YES


@pytest.mark.parametrize(
    ("column", "value"),
    [("action", "Delete everything"), ("details", b'{"file":"other.tar"}'), ("digest", "0" * 64)],
)
async def test_an_approval_that_was_changed_since_it_was_asked_for_is_not_decided(
    store: TaskStore, home: StoreHome, column: str, value: str | bytes
) -> None:
    approval = await waiting(store)
    home.change_approval(column, value)
    with pytest.raises(ApprovalClosed):
        await decided(store, approval)
    assert (await store.read(ALICE, approval.task_id)).task().status.state is S.INPUT_REQUIRED


@pytest.mark.parametrize("text", ["approved", "yes", '{"decision":"approve"}'])
@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("answers", [True, False])
async def test_no_message_decides_and_none_is_stored(
    store: TaskStore, text: str, idempotent: bool, answers: bool
) -> None:
    approval = await waiting(store)
    before = await store.events(approval.task_id, 0)
    sent = acceptance(message(text, task_id=approval.task_id), idempotent=idempotent)
    for _ in range(2):
        with pytest.raises(UnsupportedOperation):
            await store.accept(structs.replace(sent, answers=answers))
    assert await store.events(approval.task_id, 0) == before
    assert (await store.approval("acme", approval.id)).decision is None
    assert (await decided(store, approval)).decision == YES


async def test_a_message_answers_the_question_that_comes_after_an_approval(store: TaskStore) -> None:
    approval = await waiting(store)
    await decided(store, approval)
    asked = JournalEntry(ordinal=2, kind="ask", name="which", acts=0, result=ABSENT)
    await store.park(Lease(approval.task_id, 3), status(S.INPUT_REQUIRED, "Which one?"), asked)
    commits = recorded(store)
    await store.accept(acceptance(message("The second", task_id=approval.task_id)))
    assert sum(len(commit.runs) for commit in commits) == 1


async def test_a_run_that_is_cancelled_waits_for_nothing(store: TaskStore) -> None:
    approval = await waiting(store)
    await store.cancel(ALICE, approval.task_id)
    assert await store.approvals("acme", after="", limit=10) == ()
    with pytest.raises(ApprovalClosed):
        await decided(store, approval)
    assert (await store.read(ALICE, approval.task_id)).task().status.state is S.CANCELED


async def test_an_approval_expires_with_its_run(store: TaskStore, home: StoreHome) -> None:
    approval = await waiting(store, deadline=HOUR)
    home.shift_clock(HOUR + 1000)
    with pytest.raises(ApprovalClosed):
        await decided(store, approval, flat=("writer",))
    (event,) = await store.expire_parked({"writer": 100 * HOUR}, ("writer",))
    assert (event.task_id, event.state) == (approval.task_id, S.FAILED)
    assert await store.approvals("acme", after="", limit=10) == ()


async def test_a_run_whose_deadline_moves_waits_for_as_long_as_its_agent_lets_it(
    store: TaskStore, home: StoreHome
) -> None:
    approval = await waiting(store, deadline=HOUR)
    home.shift_clock(5 * HOUR)
    assert await store.expire_parked({"writer": 6 * HOUR}) == ()
    assert (await decided(store, approval)).decision == YES


async def test_the_deadline_of_a_flat_run_stands_still_for_nobody(store: TaskStore, home: StoreHome) -> None:
    approval = await waiting(store, deadline=HOUR)
    home.shift_clock(HOUR // 2)
    commits = recorded(store)
    await decided(store, approval, flat=("writer",))
    ((run,),) = [commit.runs for commit in commits]
    assert run.deadline_at == approval.expires_at
    home.shift_clock(HOUR // 2 + 1000)
    assert [event.task_id for event in await store.expire()] == [approval.task_id]


async def test_open_approvals_are_listed_oldest_first_a_page_at_a_time(store: TaskStore) -> None:
    opened = [
        await waiting(store, scope=scope) for scope in (ALICE, OTHER_PRINCIPAL, OTHER_AGENT, ALICE, ALICE)
    ]
    await waiting(store, scope=OTHER_TENANT)
    await decided(store, opened[3])
    expected = [approval.id for approval in opened if approval is not opened[3]]
    found: list[str] = []
    while page := await store.approvals("acme", after=found[-1] if found else "", limit=2):
        assert len(page) <= 2
        found += [approval.id for approval in page]
    assert found == expected


async def test_only_who_holds_the_lease_opens_an_approval(store: TaskStore) -> None:
    lease = await begun(store)
    with pytest.raises(Fenced):
        await parked(store, Lease(lease.task_id, 9))
    assert await store.approvals("acme", after="", limit=10) == ()


async def test_an_approval_is_open_for_later_servers(store: TaskStore, home: StoreHome) -> None:
    approval = await waiting(store)
    again = home.open()
    assert await again.approvals("acme", after="", limit=10) == (approval,)
    assert (await decided(again, approval)).decision == YES


async def test_a_purged_task_leaves_no_approval_behind(store: TaskStore, home: StoreHome) -> None:
    approval = await waiting(store)
    await store.cancel(ALICE, approval.task_id)
    home.shift_clock(10_000)
    assert await purged(store, canceled=1000) == 1
    with pytest.raises(ApprovalNotFound):
        await store.approval("acme", approval.id)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", {"b": 1}), ("a", {"b": 2})),
        (("a", {"b": 1}), ("a", {"b": "1"})),
        (("a", None), ("a", {})),
        (("a", 2**60), ("a", 2**60 + 1)),
        (("a", None), ("b", None)),
    ],
)
def test_what_says_something_else_has_another_digest(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    digests = {
        approval_digest(action, ABSENT if said is None else pack(said)) for action, said in (one, other)
    }
    assert len(digests) == 2


def test_the_order_of_members_and_white_space_are_not_said() -> None:
    assert approval_digest("a", Raw(b'{"x": 1, "y": 2}')) == approval_digest("a", Raw(b'{"y":2,"x":1}'))
