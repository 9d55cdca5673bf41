"""Registrations of remote agents, and what was delegated to them: kept for a tenant, and each once."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw, structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.remotes import (
    ABANDONED,
    MOST_REMOTES,
    SENDING,
    UNKNOWN,
    Delegation,
    Outcome,
    Remote,
    RemoteChange,
    Seal,
)
from dragoman.model.errors import DelegationNotFound, EntryConflict, QuotaExceeded, RemoteNotFound
from dragoman.model.ids import new_id
from tests.contract.homes import StoreHome
from tests.contract.samples import begun
from tests.contract.test_hooks import kept as push_config

ORIGIN, OTHER = "https://a.example", "https://b.example"
AUDIT = AuditEntry(action="Delegate", tenant="acme", principal="alice")
DONE = Outcome(status="completed", result=Raw(b'{"task":{}}'), remote_task_id="r-1")


def remote(**given: Any) -> Remote:
    given = {"name": "one", "tenant": "acme", "endpoint_url": f"{ORIGIN}/rpc", "origin": ORIGIN} | given
    return Remote(id=given.pop("id", "") or new_id(), **given)


def delegation(to: Remote, **given: Any) -> Delegation:
    given = {"tenant": "acme", "principal": "alice", "task_id": "t-1", "digest": b"d" * 32} | given
    return Delegation(id=new_id(), remote_id=to.id, outcome=Outcome(status=SENDING), **given)


async def audited(store: Any) -> list[tuple[str, str, str]]:
    rows = await store.consult(lambda book: book.audited(since=0, after=0, limit=100))
    return [(row.entry.action, row.entry.target, row.entry.detail) for row in rows]


# ------------------------------------------------------------------------------------------------------- registrations


async def test_a_registration_is_kept_with_the_time_of_the_store(store: Any) -> None:
    kept = await store.add_remote(remote(sealed=b"\1abcd-sealed"), audit=AUDIT)
    assert kept.created_at > 0
    assert await store.remote("acme", kept.id) == kept
    assert await store.remotes("acme", after="", limit=10) == [kept]
    assert await store.remotes_named("acme", "one") == [kept]
    assert await audited(store) == [("Delegate", f"remotes/{kept.id}", "")]


async def test_another_tenant_sees_none_of_it(store: Any) -> None:
    kept = await store.add_remote(remote())
    for missing in (kept.id, "nothing"):
        with pytest.raises(RemoteNotFound):
            await store.remote("beta", missing)
        with pytest.raises(RemoteNotFound):
            await store.change_remote("beta", missing, RemoteChange(name="x"))
        with pytest.raises(RemoteNotFound):
            await store.remove_remote("beta", missing)
    assert await store.remotes("beta", after="", limit=10) == []
    assert await store.remotes_named("beta", "one") == []
    assert await store.remote("acme", kept.id) == kept


async def test_registrations_come_in_pages_oldest_first(store: Any) -> None:
    kept = [await store.add_remote(remote(name=f"n{number % 2}")) for number in range(5)]
    assert await store.remotes("acme", after="", limit=2) == kept[:2]
    assert await store.remotes("acme", after=kept[1].id, limit=5) == kept[2:]
    assert len(await store.remotes_named("acme", "n0")) == 2, "enough to tell that it is not unique"


async def test_a_tenant_has_as_many_as_it_may(store: Any) -> None:
    await asyncio.gather(*(store.add_remote(remote()) for _ in range(MOST_REMOTES)))
    with pytest.raises(QuotaExceeded):
        await store.add_remote(remote())
    await store.add_remote(remote(tenant="beta"))


@pytest.mark.parametrize(
    ("change", "sealed"),
    [
        (RemoteChange(name="two"), b"old"),
        (RemoteChange(endpoint_url=f"{ORIGIN}/new", origin=ORIGIN), b"old"),
        (RemoteChange(endpoint_url=f"{OTHER}/rpc", origin=OTHER), b""),
        (RemoteChange(endpoint_url=f"{OTHER}/rpc", origin=OTHER, sealed=b"new", sealed_for=OTHER), b"new"),
        (RemoteChange(sealed=b"new", sealed_for=ORIGIN), b"new"),
        (RemoteChange(sealed=b""), b""),
    ],
)
async def test_only_a_new_origin_drops_a_token_that_is_not_replaced(
    store: Any, change: RemoteChange, sealed: bytes
) -> None:
    old = await store.add_remote(remote(sealed=b"old"))
    new = await store.change_remote("acme", old.id, change, audit=AUDIT)
    assert new.sealed == sealed
    assert new.name == (change.name or old.name)
    assert (new.endpoint_url, new.origin) == (
        change.endpoint_url or old.endpoint_url,
        change.origin or old.origin,
    )
    assert new.created_at == old.created_at
    assert await store.remote("acme", old.id) == new
    assert len(await audited(store)) == 1


async def test_a_token_for_an_origin_that_was_left_meanwhile_is_refused(store: Any) -> None:
    old = await store.add_remote(remote(sealed=b"old"))
    await store.change_remote("acme", old.id, RemoteChange(endpoint_url=f"{OTHER}/", origin=OTHER))
    with pytest.raises(EntryConflict):
        await store.change_remote("acme", old.id, RemoteChange(sealed=b"new", sealed_for=ORIGIN))
    assert (await store.remote("acme", old.id)).sealed == b""


async def test_what_is_removed_is_gone_and_what_was_delegated_stays(store: Any) -> None:
    kept = await store.add_remote(remote())
    found, _ = await store.begin_delegation(delegation(kept))
    await store.remove_remote("acme", kept.id)
    with pytest.raises(RemoteNotFound):
        await store.remote("acme", kept.id)
    assert await store.delegation("acme", "alice", found.id) == found


async def test_a_tenant_that_is_removed_takes_its_registrations_along(store: Any) -> None:
    kept, theirs = (
        await store.add_remote(remote(sealed=b"old")),
        await store.add_remote(remote(tenant="beta")),
    )
    await store.begin_delegation(delegation(kept))
    await store.administer(lambda book: book.add_tenant("acme"))
    assert await store.consult(lambda book: book.has_tasks("acme", "alice"))
    assert not await store.consult(lambda book: book.has_tasks("acme", "bob"))
    await store.administer(lambda book: book.remove_tenant("acme"))
    assert await store.remotes("acme", after="", limit=10) == []
    assert await store.remotes("beta", after="", limit=10) == [theirs]
    assert await store.consult(lambda book: book.has_tasks("acme")), (
        "who comes next would see what was delegated"
    )


# --------------------------------------------------------------------------------------------------------- delegations


async def test_a_delegation_is_recorded_before_it_is_sent_and_begun_once(store: Any) -> None:
    kept = await store.add_remote(remote())
    asked = [delegation(kept, digest=bytes([number]) * 32) for number in range(20)]
    found = await asyncio.gather(*(store.begin_delegation(one, audit=AUDIT) for one in asked))
    assert [agent for _, agent in found if agent is not None] == [kept], "one of them is to send it"
    assert len({one.id for one, _ in found}) == 1
    (first, *_) = [one for one, agent in found if agent is not None]
    assert first == structs.replace(
        asked[0], origin=ORIGIN, created_at=first.created_at, changed_at=first.created_at
    )
    assert await store.delegation_of("acme", "alice", "t-1") == first
    target = f"remotes/{kept.id}/delegations/{first.id}"
    assert await audited(store) == [("Delegate", target, SENDING)]


async def test_an_outcome_is_kept_as_it_is(store: Any) -> None:
    kept = await store.add_remote(remote())
    begun_, _ = await store.begin_delegation(delegation(kept))
    assert await store.delegation("acme", "alice", begun_.id) == begun_
    settled = begun_
    for outcome in (Outcome(status=UNKNOWN), Outcome(status="failed", code=-32001, error="No"), DONE):
        settled = await store.settle_delegation(settled, outcome, audit=AUDIT)
        assert settled.outcome == outcome
        assert await store.delegation("acme", "alice", begun_.id) == settled
    assert await store.settle_delegation(begun_, Outcome(status=UNKNOWN), audit=AUDIT) == settled, (
        "whoever has seen an older state changes nothing"
    )
    assert [detail for _, _, detail in await audited(store)] == [UNKNOWN, "failed", "completed"]


async def test_what_others_name_may_hold_a_null_character(store: Any) -> None:
    kept = await store.add_remote(remote(name="a\0b", endpoint_url=f"{ORIGIN}/a\0b"))
    assert await store.remote("acme", kept.id) == kept
    assert await store.remotes_named("acme", "a\0b") == [kept]
    assert await store.remotes_named("acme", "a") == []
    begun_, _ = await store.begin_delegation(delegation(kept, task_id="t\0"))
    outcome = Outcome(
        status="failed", result=Raw(b'{"a":"\\u0000"}'), remote_task_id="r\0", code=2**63 - 1, error="no\0"
    )
    settled = await store.settle_delegation(begun_, outcome)
    assert await store.delegation_of("acme", "alice", "t\0") == settled
    assert settled.outcome == outcome
    for missing in ("\0", f"{begun_.id}\0"):
        with pytest.raises(DelegationNotFound):
            await store.delegation("acme", "alice", missing)
        with pytest.raises(RemoteNotFound):
            await store.remote("acme", missing)


async def test_one_that_nobody_sends_any_more_is_abandoned_and_one_that_has_ended_is_not(store: Any) -> None:
    kept = await store.add_remote(remote())
    lost, _ = await store.begin_delegation(delegation(kept))
    done, _ = await store.begin_delegation(delegation(kept, task_id="t-2"))
    settled = await store.settle_delegation(done, DONE)
    assert (await store.abandon_delegation(lost)).outcome == ABANDONED
    assert (await store.delegation("acme", "alice", lost.id)).outcome == ABANDONED
    assert await store.abandon_delegation(done) == settled, "whoever asks has seen an older state"


async def test_a_delegation_is_its_principals_alone(store: Any) -> None:
    kept = await store.add_remote(remote())
    begun_, _ = await store.begin_delegation(delegation(kept))
    for tenant, principal in (("acme", "bob"), ("beta", "alice")):
        with pytest.raises(DelegationNotFound):
            await store.delegation(tenant, principal, begun_.id)
        assert await store.delegation_of(tenant, principal, "t-1") is None
    _, agent = await store.begin_delegation(delegation(kept, principal="bob"))
    assert agent == kept, "the same task id of another principal is another delegation"


async def test_nothing_is_recorded_of_an_agent_that_is_not_the_tenants(store: Any) -> None:
    kept = await store.add_remote(remote())
    for asked in (delegation(kept, tenant="beta"), delegation(remote())):
        with pytest.raises(RemoteNotFound):
            await store.begin_delegation(asked, audit=AUDIT)
        assert await store.delegation_of(asked.tenant, "alice", "t-1") is None
    assert await audited(store) == []


async def test_what_was_under_way_when_its_server_ended_is_unknown(home: StoreHome) -> None:
    store: Any = home.open()
    kept = await store.add_remote(remote())
    lost, _ = await store.begin_delegation(delegation(kept))
    done, _ = await store.begin_delegation(delegation(kept, task_id="t-2"))
    done = await store.settle_delegation(done, DONE)
    store = home.open()
    assert await store.abandon_delegations() == 1
    assert await store.abandon_delegations() == 0
    found = await store.delegation("acme", "alice", lost.id)
    assert (found.outcome.status, found.outcome.error != "") == (UNKNOWN, True)
    assert await store.delegation("acme", "alice", done.id) == done


async def test_it_shows_by_which_keys_secrets_are_sealed(store: Any) -> None:
    for sealed in (b"\1aaaa-1", b"\1aaaa-2", b"\1bbbb-3", b""):
        await store.add_remote(remote(sealed=sealed))
    await begun(store, push=push_config(sealed=b"\1bbbb-4"))
    assert {(seal.what, seal.head, seal.number) for seal in await store.seals()} == {
        ("remote agents", b"\1aaaa", 2),
        ("remote agents", b"\1bbbb", 1),
        ("push notification configurations", b"\1bbbb", 1),
    }
    assert Seal("remote agents", b"", 1).of_remotes
