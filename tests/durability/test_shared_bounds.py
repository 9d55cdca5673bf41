"""What is bounded, and what is revoked, for all servers that share a store together."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.stores.postgres import administer
from dragoman.stores.target import Target
from tests.durability.tenants import CONFIG, Caller, Open, becomes, caller, message, person
from tests.harness.postgres import databases
from tests.harness.server import ServerProcess

pytestmark = pytest.mark.own_store

RATE = 40
Pair = tuple[ServerProcess, ServerProcess]


@pytest.fixture
def url() -> Iterator[str]:
    database = databases().make()
    for name in ("alice", "bob"):
        administer(Target(database), lambda book, name=name: person(book, "acme", name))
    yield database
    databases().give_back(database)


@pytest.fixture
def pair(url: str, tmp_path: Path) -> Iterator[Pair]:
    config = tmp_path / "dragoman.toml"
    config.write_text(
        f'[store]\nurl = "{url}"\n[engine]\nlease = "3s"\nsweep = "1s"\n{CONFIG}', encoding="utf-8"
    )
    with (
        ServerProcess(tmp_path / "one", config=config) as one,
        ServerProcess(tmp_path / "two", config=config) as two,
    ):
        yield one, two


async def refused(who: Caller) -> bool:
    """Whether a hosted wait is refused, because there are as many observers as may be; if not, it is let go."""
    params = {"message": message("slow 60")}
    document = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
    async with who.http.stream("POST", "/v1/a2a/agents/demo/rpc", json=document) as reply:
        return reply.status_code == 429 and b"OBSERVER_LIMIT" in await reply.aread()


async def test_observers_are_counted_at_all_servers_together_and_a_killed_one_gives_its_places_back(
    pair: Pair,
) -> None:
    one, two = pair
    async with (
        caller(one, "acme", "alice") as here,
        caller(two, "acme", "alice") as there,
        caller(two, "acme", "bob") as other,
    ):
        held = [await who.hosted_stream().ready() for who in (here, there, here, there)]
        assert await refused(here) and await refused(there)
        assert not await refused(other), "it is a bound of alice's"
        held.pop(0).drop()
        held.append(await opened(there))
        assert await refused(here) and await refused(there)
        one.kill()
        held += [await opened(there)]
        assert await refused(there)
        for stream in held:
            stream.drop()


async def opened(who: Caller) -> Open:
    """A stream, as soon as there is a place for it."""

    async def has_place() -> bool:
        return not await refused(who)

    await becomes(has_place, what="a place to be free")
    return await who.hosted_stream().ready()


async def test_of_many_who_race_at_both_for_the_places_of_a_principal_four_get_one(pair: Pair) -> None:
    one, two = pair
    async with caller(one, "acme", "bob") as here, caller(two, "acme", "bob") as there:
        streams = [who.hosted_stream() for who in (here, there) * 5]
        done, going = await asyncio.wait([stream._task for stream in streams], timeout=3)
        assert (len(done), len(going)) == (6, 4)
        assert all("OBSERVER_LIMIT" in str(task.exception()) for task in done)
        for stream in streams:
            stream.drop()


async def test_a_rate_is_one_for_all_servers(pair: Pair, url: str) -> None:
    one, two = pair
    administer(Target(url), lambda book: book.set_limit("acme", "rate.principal", RATE))
    async with caller(one, "acme", "alice") as here, caller(two, "acme", "alice") as there:

        async def is_bounded() -> bool:
            reply = await here.http.get("/agents/demo/tasks")
            return reply.status_code == 429

        async def passes() -> int:
            count = 0
            while (await there.http.get("/agents/demo/tasks")).status_code == 200:
                count += 1
                await asyncio.sleep(0.1)
            return count

        async with asyncio.timeout(20):
            while not await is_bounded():
                continue
        # What came within the fifth of a second before may not have been told yet.
        assert await passes() < RATE / 2


async def test_a_token_that_is_revoked_ends_streams_and_is_refused_at_all_servers(
    pair: Pair, url: str
) -> None:
    one, two = pair
    async with caller(one, "acme", "alice") as here, caller(two, "acme", "alice") as there:
        streams = [await who.hosted_stream().ready() for who in (here, there)]
        administer(Target(url), lambda book: book.revoke_token("acme-alice"))
        for stream in streams:
            await stream.ended()
        for who in (here, there):
            await becomes(who.refused, what="alice to be refused")
