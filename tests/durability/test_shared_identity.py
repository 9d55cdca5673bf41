"""The same message at two servers that share a store, hundreds at once and again after both were killed: one run."""

import asyncio
from pathlib import Path

import pytest

from tests.durability.callers import Sent, client, send
from tests.durability.dialects import DIALECTS
from tests.durability.ledger import AGENTS
from tests.harness.postgres import rows
from tests.harness.server import ServerProcess

pytestmark = pytest.mark.own_store

DUPLICATES = 300
AGAIN = 50
WAYS = ("send", "stream", "at once")


async def test_three_hundred_duplicates_over_two_servers_are_one_run_also_after_both_were_killed(
    tmp_path: Path, url: str
) -> None:
    config, ledger = tmp_path / "dragoman.toml", tmp_path / "ledger.jsonl"
    config.write_text(f'[store]\nurl = "{url}"\n[engine]\nlease = "3s"\nsweep = "1s"\n', encoding="utf-8")
    one, two = (
        ServerProcess(tmp_path / name, agents=[AGENTS], config=config, environment={"LEDGER": f"{ledger}"})
        for name in ("one", "two")
    )
    dialects = [dialect for dialect in DIALECTS if dialect.generation == "1.0"]

    async def sent(number: int) -> list[Sent]:
        """So many of the same message at both at once, in every way and form."""
        async with client(one.url, timeout=90.0) as here, client(two.url, timeout=90.0) as there:
            made = [
                Sent(
                    "worker",
                    "sleep 0.5",
                    WAYS[index % 3],
                    message_id="the same",
                    dialect=dialects[index // 3 % len(dialects)],
                )
                for index in range(number)
            ]
            return await asyncio.gather(
                *(send((here, there)[index % 2], message) for index, message in enumerate(made))
            )

    with one, two:
        first = await sent(DUPLICATES)
        for server in (one, two):
            server.kill()
            server.start()
        again = await sent(AGAIN)
    assert [message.error for message in (*first, *again)] == [""] * (DUPLICATES + AGAIN)
    assert len({message.task_id for message in (*first, *again)}) == 1
    assert sum(not message.replayed for message in first) == 1
    assert all(message.replayed for message in again)
    assert {message.state for message in again} == {"COMPLETED"}
    assert rows(url, "SELECT count(*), max(attempt) FROM task") == [(1, 1)]
    entered = [
        line for line in ledger.read_text(encoding="utf-8").splitlines() if '"what": "entered"' in line
    ]
    assert len(entered) == 1
