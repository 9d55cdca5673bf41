"""What statements read of a database that was empty when they were planned."""

import asyncio

from dragoman.model import TaskState
from dragoman.stores.postgres import PostgresStore
from tests.contract.homes import PostgresHome
from tests.contract.samples import begun, chunk, filters, message, one_page, status
from tests.harness.polling import until
from tests.harness.postgres import rows

TASKS = 60
READ = (
    "SELECT relname, seq_tup_read, n_tup_ins FROM pg_stat_user_tables"
    " WHERE relname IN ('task', 'event', 'identity', 'counter', 'journal')"
)


def statistics(url: str) -> dict[str, tuple[int, int]]:
    """How many rows of each table were read by going through all of it, and how many were added."""
    return {table: (read, added) for table, read, added in rows(url, READ)}


async def test_no_statement_of_a_send_goes_through_a_table(home: PostgresHome, store: PostgresStore) -> None:
    before = await asyncio.to_thread(statistics, home.url)

    async def send(number: int) -> None:
        lease = await begun(store, sent=message(f"{number}", context_id="named" if number % 2 else ""))
        await store.append(lease, [status(TaskState.WORKING), chunk("x")])
        await store.append(lease, [status(TaskState.COMPLETED)])

    for number in range(TASKS // 2):
        await send(number)
    await asyncio.gather(*(send(number) for number in range(TASKS // 2, TASKS)))
    assert len((await one_page(store, filters(), size=100)).tasks) == TASKS
    # A session tells what it has read when it ends, at the latest.
    home.close()
    await asyncio.to_thread(
        until,
        lambda: statistics(home.url)["event"][1] - before["event"][1] >= 4 * TASKS,
        what="the sessions to tell what they have read",
    )
    after = await asyncio.to_thread(statistics, home.url)
    assert after["event"][1] - before["event"][1] == 4 * TASKS
    assert {table: after[table][0] - before[table][0] for table in after} == dict.fromkeys(after, 0)
