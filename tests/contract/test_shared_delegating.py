"""Delegating where servers share a store: one of them sends, the others wait for what it tells, or for its death."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dragoman.egress.client import TOTAL_SECONDS
from dragoman.gateway.delegate import Delegations
from dragoman.gateway.remotes import ABANDONED, LONGEST_MS, MOST_REMOTES, SENDING, Delegation, RemoteChange
from dragoman.model.errors import EntryConflict, MessageIdConflict, QuotaExceeded, Unavailable
from dragoman.stores.postgres import PostgresStore
from dragoman.stores.target import Target
from tests.contract.homes import PostgresHome
from tests.contract.rooms import eventually
from tests.contract.test_delegating import AUDIT, Scripted, errand
from tests.contract.test_remotes import DONE, ORIGIN, OTHER, audited, delegation, remote
from tests.harness.postgres import execute

Join = Callable[[], Coroutine[Any, Any, PostgresStore]]
Joined = list[PostgresStore]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[PostgresHome]:
    """A place for a PostgreSQL store, which servers can share."""
    place = PostgresHome(tmp_path)
    yield place
    place.remove()


@pytest.fixture
def joined() -> Iterator[Joined]:
    """The stores of further servers, to be closed if they are still here."""
    stores: Joined = []
    yield stores
    for one in stores:
        one.close()


@pytest.fixture
def join(home: PostgresHome, joined: Joined) -> Join:
    """Opens the store as one more server does."""

    async def opened() -> PostgresStore:
        joined.append(PostgresStore(Target(home.url), lease=15.0))
        return joined[-1]

    return opened


@pytest.fixture
def other(join: Join, store: PostgresStore, serving_loop: asyncio.Runner) -> PostgresStore:
    """A second server's store, beside `store`."""
    return serving_loop.run(join())


async def under_way(
    store: Any, sender: Scripted
) -> tuple[Delegations, asyncio.Task[tuple[Delegation, bool]]]:
    """A server that sends something, and is not let to end."""
    to = await store.add_remote(remote())
    sender.gate.clear()
    sending = Delegations(store, sender)
    first = asyncio.create_task(sending.delegate(errand(to, audit=AUDIT)))
    await eventually(lambda: sender.sent, what="it is sent")
    return sending, first


async def the_one(store: Any) -> Delegation:
    found: Delegation = await store.delegation_of("acme", "alice", "t-1")
    return found


async def test_three_hundred_at_two_servers_are_one_send_and_one_outcome(
    store: PostgresStore, other: PostgresStore
) -> None:
    to, sender = await store.add_remote(remote()), Scripted()
    servers = [Delegations(store, sender), Delegations(other, sender)]
    sender.gate.clear()
    callers = [asyncio.create_task(servers[number % 2].delegate(errand(to))) for number in range(300)]
    await eventually(lambda: sender.sent, what="it is sent")
    for server, kept in zip(servers, (store, other), strict=True):
        row = await the_one(kept)
        assert (await server.find("acme", "alice", row.id)).outcome.status == SENDING
    sender.gate.set()
    found = await asyncio.gather(*callers)
    assert sender.sent == ["t-1"]
    assert all(one == found[0][0] for one, _ in found)
    assert found[0][0].outcome == sender.outcome
    assert sum(replayed for _, replayed in found) == 299


async def test_what_a_living_server_sends_is_left_to_it_by_others_that_start_or_are_asked(
    store: PostgresStore, other: PostgresStore
) -> None:
    sender = Scripted()
    _, first = await under_way(store, sender)
    row, asked = await the_one(store), Delegations(other, sender)
    await asked.start()
    assert await other.abandon_delegations() == 0
    assert await other.abandon_delegation(row) == row
    assert await asked.find("acme", "alice", row.id) == row
    waiting = asyncio.create_task(
        asked.delegate(errand(await other.remote("acme", row.remote_id), audit=AUDIT))
    )
    with pytest.raises(MessageIdConflict):
        await Delegations(other, sender).delegate(
            errand(await other.remote("acme", row.remote_id), text="something else")
        )
    sender.gate.set()
    assert (await first)[0] == (await waiting)[0]
    assert ((await first)[1], (await waiting)[1]) == (False, True)
    assert sender.sent == ["t-1"]
    assert [detail for _, _, detail in await audited(store)] == [SENDING, "working", "working"]


async def test_whoever_waits_for_a_server_that_dies_is_told_that_nobody_knows(
    home: PostgresHome, store: PostgresStore, other: PostgresStore
) -> None:
    sender = Scripted()
    sending, first = await under_way(store, sender)
    asked = Delegations(other, sender)
    waiting = asyncio.create_task(
        asked.delegate(errand(await other.remote("acme", (await the_one(other)).remote_id)))
    )
    first.cancel()
    await sending.close(0)
    home.close()
    found, replayed = await waiting
    assert (found.outcome, replayed, sender.sent) == (ABANDONED, True, ["t-1"])


async def test_what_dead_servers_were_sending_is_unknown_to_the_next_one_that_starts(
    join: Join, joined: Joined, store: PostgresStore, other: PostgresStore
) -> None:
    to = await store.add_remote(remote())
    mine, _ = await store.begin_delegation(delegation(to))
    theirs, _ = await other.begin_delegation(delegation(to, task_id="t-2"))
    joined.remove(other)
    other.close()
    third = await join()
    assert await third.abandon_delegations() == 1
    assert await store.delegation("acme", "alice", mine.id) == mine
    assert (await store.delegation("acme", "alice", theirs.id)).outcome == ABANDONED


async def test_a_server_that_was_taken_for_dead_still_tells_what_it_knows(
    home: PostgresHome, store: PostgresStore, other: PostgresStore
) -> None:
    sender = Scripted()
    _, first = await under_way(store, sender)
    row = await the_one(store)
    # As if it had hung for so long.
    execute(home.url, "UPDATE delegation SET created_at = created_at - $1", LONGEST_MS + 1000)
    assert (await Delegations(other, sender).find("acme", "alice", row.id)).outcome == ABANDONED
    sender.gate.set()
    assert (await first)[0].outcome == sender.outcome
    assert (await the_one(other)).outcome == sender.outcome
    assert sender.sent == ["t-1"]


async def test_an_outcome_that_somebody_else_has_recorded_is_not_changed(
    store: PostgresStore, other: PostgresStore
) -> None:
    sender = Scripted()
    _, first = await under_way(store, sender)
    settled = await other.settle_delegation(await the_one(other), DONE)
    sender.gate.set()
    assert (await first)[0] == settled


async def test_a_server_that_stops_waits_for_no_other(store: PostgresStore, other: PostgresStore) -> None:
    sender = Scripted()
    _, first = await under_way(store, sender)
    asked = Delegations(other, sender)
    waiting = asyncio.create_task(
        asked.delegate(errand(await other.remote("acme", (await the_one(other)).remote_id)))
    )
    await eventually(lambda: not waiting.done() and asked._under_way, what="it waits")
    await asyncio.wait_for(asked.close(60), 10)
    with pytest.raises(Unavailable, match="another one is sending"):
        await waiting
    sender.gate.set()
    assert (await first)[0].outcome == sender.outcome


async def test_two_servers_never_both_give_away_the_last_place(
    store: PostgresStore, other: PostgresStore
) -> None:
    kept = await asyncio.gather(
        *((store, other)[number % 2].add_remote(remote()) for number in range(MOST_REMOTES + 20)),
        return_exceptions=True,
    )
    assert sum(isinstance(one, QuotaExceeded) for one in kept) == 20
    assert len(await store.remotes("acme", after="", limit=2 * MOST_REMOTES)) == MOST_REMOTES


async def test_a_token_is_never_kept_for_an_origin_that_another_server_has_left(
    store: PostgresStore, other: PostgresStore
) -> None:
    for _ in range(20):
        old = await store.add_remote(remote())
        moved = store.change_remote("acme", old.id, RemoteChange(endpoint_url=f"{OTHER}/", origin=OTHER))
        sealed = other.change_remote("acme", old.id, RemoteChange(sealed=b"new", sealed_for=ORIGIN))
        _, outcome = await asyncio.gather(moved, sealed, return_exceptions=True)
        assert isinstance(outcome, EntryConflict) or outcome == structs.replace(old, sealed=b"new")
        assert await store.remote("acme", old.id) == structs.replace(
            old, endpoint_url=f"{OTHER}/", origin=OTHER
        )


def test_no_send_takes_so_long_that_others_would_give_it_up() -> None:
    assert 1.5 * TOTAL_SECONDS * 1000 < LONGEST_MS
