"""Observers of servers that share a PostgreSQL store: most of them watch tasks that are executed at another server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durability.callers import Sent, client, send
from tests.durability.crowd import crowd
from tests.durability.database import check_database
from tests.durability.ledger import LedgerServer
from tests.harness.postgres import Databases, PostgresServer, ask, databases

pytestmark = pytest.mark.own_store

CONFIG = """
[store]
url = "{url}"
[engine]
max_runs = 2000
"""


@pytest.fixture
def url() -> Iterator[str]:
    """A database on a server that syncs its commits, as it does in production."""
    databases()  # It skips the test where there is no PostgreSQL.
    server = PostgresServer()
    yield Databases(server.url()).make()
    server.remove()


@pytest.mark.parametrize(
    ("observers", "tasks", "every", "seconds", "bound"),
    [
        (300, 30, 0.6, 3.0, 2.0),
        pytest.param(10_000, 1_000, 2.0, 60.0, 0.1, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
    ],
)
async def test_observers_at_three_servers_see_every_event_soon(
    url: str, tmp_path: Path, observers: int, tasks: int, every: float, seconds: float, bound: float
) -> None:
    """Each task tells its progress all the time. All end at once in the end."""
    config = CONFIG.format(url=url)
    with (
        LedgerServer(tmp_path / "one", config=config) as one,
        LedgerServer(tmp_path / "two", config=config) as two,
        LedgerServer(tmp_path / "three", config=config) as three,
    ):
        task_ids: list[str] = []

        async def begin(server: LedgerServer) -> None:
            async with client(server.url) as http:
                for _ in range(tasks // 3 + 1):
                    task_ids.append(
                        (await send(http, Sent("crowded", f"beat end {every}", "at once"))).task_id
                    )

        servers = (one, two, three)
        await asyncio.gather(*(begin(server) for server in servers))
        async with crowd([server.url for server in servers], observers, task_ids, seconds) as watching:
            one.open_gate("end")
            assert await watching.seen() == {"COMPLETED": observers}
    print(f"attached in {watching.attached} s, told of {watching.told}, p99 {watching.p99} s")
    assert watching.told > 0.8 * observers * seconds / every
    assert watching.p99 <= bound
    ask(url, check_database)
