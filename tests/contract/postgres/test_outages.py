"""A PostgreSQL database that cannot be reached, hangs, or is another one now: what was committed counts, once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest

from dragoman.gateway.ports import LostRun
from dragoman.model import TaskState
from dragoman.model.errors import Unavailable
from dragoman.stores.postgres import PostgresStore, connection, replicas, upgrade, writer
from dragoman.stores.target import Target
from tests.contract.samples import (
    ALICE,
    acceptance,
    begun,
    chunk,
    events_of,
    filters,
    message,
    one_page,
    recorded,
    status,
)
from tests.harness.database_proxy import DatabaseProxy
from tests.harness.postgres import PostgresServer, databases, execute, in_thread, rows

T = TypeVar("T")
QUICK = 0.5
"""Seconds that anything may take in these tests before it is given up; an answer is waited for a little longer."""


@pytest.fixture
def url() -> Iterator[str]:
    database = in_thread(lambda: databases().make())
    yield database
    in_thread(lambda: databases().give_back(database))


@pytest.fixture
def proxy(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseProxy]:
    """A way to the database that fails when it is told to, and a store that is in a hurry."""
    monkeypatch.setattr(writer, "WORK_SECONDS", QUICK)
    monkeypatch.setattr(writer, "COMMIT_SECONDS", QUICK)
    monkeypatch.setattr(connection, "COMMAND_SECONDS", QUICK)
    monkeypatch.setattr(connection, "CONNECT_SECONDS", QUICK)
    with DatabaseProxy(url) as before:
        yield before


@pytest.fixture
def opened(proxy: DatabaseProxy, serving_loop: asyncio.Runner) -> Iterator[PostgresStore]:
    async def made() -> PostgresStore:
        return PostgresStore(Target(proxy.url), lease=15.0)

    store = serving_loop.run(made())
    yield store
    proxy.flow()
    store.close()


async def recovered(ask: Callable[[], Awaitable[T]]) -> T:
    """What is answered once the store can be used again."""
    async with asyncio.timeout(10):
        while True:
            try:
                return await ask()
            except Unavailable:
                await asyncio.sleep(0.02)


async def test_what_was_committed_without_an_answer_counts_once_and_is_answered(
    opened: PostgresStore, proxy: DatabaseProxy
) -> None:
    commits = recorded(opened)
    proxy.lose_commits(1)
    accepted = await opened.accept(acceptance(message("first", message_id="m")))
    assert not accepted.replayed
    lease = await begun(opened)
    proxy.lose_commits(1)
    events = await opened.append(lease, [status(TaskState.WORKING), chunk("x")])
    assert proxy.lost_commits == 2
    assert [event.seq for event in events] == [2, 3]
    assert len(await opened.events(lease.task_id, 0)) == 3
    assert [event.seq for event in events_of(commits, lease.task_id)] == [1, 2, 3]
    assert (await opened.accept(acceptance(message("first", message_id="m")))).task_id == accepted.task_id


async def test_until_it_is_known_what_became_of_a_commit_callers_are_refused_and_handlers_wait(
    opened: PostgresStore, proxy: DatabaseProxy, url: str
) -> None:
    lease = await begun(opened)
    proxy.lose_commits(1)
    appending = asyncio.ensure_future(opened.append(lease, [chunk("x")]))
    await asyncio.to_thread(until_lost, proxy, 1)
    proxy.hang()
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(Unavailable):
            await opened.accept(acceptance(message("later", message_id="m")))
        assert time.monotonic() - began < 8 * QUICK
    assert not appending.done()
    proxy.flow()
    proxy.cut()
    (event,) = await appending
    assert event.seq == 2
    assert len(await recovered(lambda: opened.events(lease.task_id, 0))) == 2
    await recovered(lambda: opened.accept(acceptance(message("later", message_id="m"))))
    assert len(rows(url, "SELECT 1 FROM task")) == 2


def until_lost(proxy: DatabaseProxy, number: int) -> None:
    deadline = time.monotonic() + 5
    while proxy.lost_commits < number and time.monotonic() < deadline:
        time.sleep(0.001)


async def test_a_write_and_a_read_on_a_connection_that_hangs_are_given_up_in_time(
    opened: PostgresStore, proxy: DatabaseProxy, url: str
) -> None:
    lease = await begun(opened)
    proxy.hang()
    began = time.monotonic()
    asked: list[Awaitable[Any]] = [
        opened.accept(acceptance(message("a", message_id="a"))),
        opened.read(ALICE, lease.task_id),
        opened.scopes(),
    ]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 3
    assert time.monotonic() - began < 8 * QUICK
    with pytest.raises(Unavailable):
        await opened.append(lease, [chunk("x")])
    with pytest.raises(Unavailable):
        await opened.check()
    proxy.flow()
    proxy.cut()
    assert (await recovered(lambda: opened.read(ALICE, lease.task_id))).seq == 1
    accepted = await recovered(lambda: opened.accept(acceptance(message("a", message_id="a"))))
    assert len(rows(url, "SELECT 1 FROM task")) == 2
    assert len(await opened.events(accepted.task_id, 0)) == 1


async def test_what_a_database_has_lost_is_not_counted_on(
    opened: PostgresStore, proxy: DatabaseProxy, url: str
) -> None:
    """As after a failover to a standby that was behind: even the number of a scope may be another one's by then."""
    sent = message("before", context_id="talk")
    await begun(opened, sent=sent)
    await begun(opened, sent=message(context_id="talk"))
    proxy.cut()
    await asyncio.to_thread(execute, url, "TRUNCATE scope, task, event, identity, counter, counter_step")
    accepted = await recovered(lambda: opened.accept(acceptance(sent)))
    assert not accepted.replayed
    assert [event.seq for event in await opened.events(accepted.task_id, 0)] == [1]
    assert (await one_page(opened, filters(context_id="talk"))).total == 1


async def test_a_store_follows_its_address_from_a_standby_to_the_server_that_takes_writes(
    serving_loop: asyncio.Runner,
) -> None:
    """The address leads to the primary, then to a standby, then to that standby, promoted."""
    first = PostgresServer("fsync=off", "synchronous_standby_names=*")
    standby = await asyncio.to_thread(first.standby)
    try:
        await asyncio.to_thread(upgrade, Target(first.url()))
        with DatabaseProxy(first.url()) as proxy:
            store = PostgresStore(Target(proxy.url), lease=15.0)
            lease = await begun(store)
            proxy.lead_to(standby.port)
            proxy.cut()
            for call in (lambda: begun(store), lambda: store.read(ALICE, lease.task_id), store.check):
                with pytest.raises(Unavailable):
                    await call()
            await asyncio.to_thread(first.kill)
            await asyncio.to_thread(standby.promote)
            await recovered(store.check)
            assert (await recovered(lambda: store.read(ALICE, lease.task_id))).seq == 1
            (event,) = await store.append(lease, [chunk("x")])
            assert event.seq == 2
            await asyncio.to_thread(store.close)
    finally:
        await asyncio.to_thread(standby.remove)
        await asyncio.to_thread(first.remove)


async def test_servers_that_were_all_away_wait_for_each_other_and_not_for_one_that_is_gone(
    url: str,
) -> None:
    """Of three, one comes back at once, one takes its time, and one never comes."""
    with DatabaseProxy(url) as quick, DatabaseProxy(url) as slow, DatabaseProxy(url) as never:
        stores = [PostgresStore(Target(way.url), lease=15.0) for way in (quick, slow, never)]
        leases = [await begun(store) for store in stores]
        for way in (quick, slow, never):
            way.lead_to(1)
            way.cut()
        await asyncio.sleep(3.0)  # longer than a server without a lock may be silent
        assert silent(url) == 0, "nobody has fallen silent while nobody could be heard"
        quick.lead_to(port_of(url))
        first = await recovered(stores[0].lost)
        await asyncio.sleep(1.0)
        assert (first, await stores[0].lost()) == ((), ())
        slow.lead_to(port_of(url))
        (mine,) = await lost(stores[0])
        assert mine.task_id == leases[2].task_id
        assert len(await stores[1].append(leases[1], [chunk("x")])) == 1
        for store in stores:
            await asyncio.to_thread(store.close)


def port_of(url: str) -> int:
    return urlsplit(url).port or 5432


def silent(url: str) -> int:
    """How many servers count as dead."""
    return int(rows(url, f"SELECT count(*) FROM replica WHERE id NOT IN ({replicas.LIVING})")[0][0])  # noqa: S608


async def lost(store: PostgresStore) -> tuple[LostRun, ...]:
    """The runs that are lost to a store, once there is one."""
    async with asyncio.timeout(15):
        while not (found := await store.lost()):
            await asyncio.sleep(0.05)
    return found


async def test_a_database_that_is_gone_is_unavailable_and_is_used_again_when_it_is_back() -> None:
    server = PostgresServer("fsync=off")
    target = Target(server.url())
    await asyncio.to_thread(upgrade, target)
    store = PostgresStore(target, lease=15.0)
    try:
        lease = await begun(store)
        for how in (server.kill, server.stop):
            await asyncio.to_thread(how)
            for call in (begun(store), store.read(ALICE, lease.task_id), store.check(), store.kept(0)):
                with pytest.raises(Unavailable):
                    await call
            await asyncio.to_thread(server.start)
            assert (await store.read(ALICE, lease.task_id)).seq == 1
            await store.check()
            assert (await begun(store)).epoch == 1
            assert await store.lost() == ()
        async with asyncio.timeout(10):
            while not store._replica._locked:
                await asyncio.sleep(0.02)
        assert len(rows(server.url(), "SELECT 1 FROM replica")) == 1
    finally:
        await asyncio.to_thread(store.close)
        server.remove()
