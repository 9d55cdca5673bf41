"""Purging in a running server: beside its callers, through kill -9, and by an operator's command."""

import asyncio
import itertools
import json
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.model import Scope, TaskState
from dragoman.stores.sqlite import SqliteStore
from tests.contract.samples import TERMINAL, begun, brought_to, chunk, message, status
from tests.durability.callers import Frame, Sent, body, client, frames, send
from tests.durability.ledger import LedgerServer, dragoman
from tests.durability.test_operator import NOTICE_SECONDS
from tests.durability.test_operator import begun as sent_at_once
from tests.durability.test_ownership import freeze
from tests.harness.polling import until
from tests.harness.wire import call

HOUR = 3600.0
CONFIG = """
[server]
drain = "0s"
[engine]
sweep = "100ms"
[retention]
terminal = "1h"
failed = "never"
"""
SCOPE = Scope("local", "local", "worker")
MIXED = (("worker", "quick"), ("either", "quick"), ("talker", "say 0"), ("worker", "stream 2")) * 2
SECRET = "the text that must not outlive its task"


def fill(data: Path, count: int, *, large: int = 0) -> None:
    """Make a store with finished tasks of all kinds in some contexts, and tasks of 3,000 events each."""

    async def filled() -> None:
        store = SqliteStore(data / "dragoman.db", lease=15.0, on_lost=lambda: None)
        contexts = itertools.cycle(("", "one", "two"))
        states = itertools.cycle(TERMINAL)
        for _ in range(count // 50):
            sent = [message(SECRET, context_id=next(contexts)) for _ in range(50)]
            await asyncio.gather(*(brought_to(store, next(states), sent=one, scope=SCOPE) for one in sent))
        for _ in range(large):
            lease = await begun(store, sent=message(context_id="one"), scope=SCOPE)
            for _ in range(30):
                await store.append(lease, [chunk("x" * 200, append=True) for _ in range(100)])
            await store.append(lease, [status(TaskState.COMPLETED)])
        store.close()

    asyncio.run(filled())


def total(server: LedgerServer, **filters: str) -> int:
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    found: int = call("GET", f"{server.url}/agents/worker/tasks?{query}").json()["totalSize"]
    return found


@pytest.mark.sqlite
async def test_a_server_purges_what_is_old_and_its_callers_notice_nothing(server: LedgerServer) -> None:
    server = server.configured(CONFIG)
    await asyncio.to_thread(fill, server.data, 1000, large=1)
    with server:
        old = set(server.store.states())
        server.store.shift_clock(HOUR - 60)
        async with client(server.url) as http:
            answered = [await send(http, Sent("talker", "say 0"))]
            assert set(server.store.states()) >= old, "nothing is old enough yet"
            server.store.shift_clock(60)
            running = await sent_at_once(server, "worker", "sleep 60")
            async with asyncio.timeout(60):
                while len(old & set(server.store.states())) > 250:
                    sends = [send(http, Sent(*kind)) for kind in MIXED]
                    answered += await asyncio.gather(*sends)
        assert [one.error for one in answered if one.error] == []
        assert {one.state for one in answered} == {"COMPLETED", ""}
        until(lambda: server.store.rows("SELECT 1 FROM journal") == [], what="no remains")
        states = server.store.states()
        assert {states[task_id] for task_id in old & set(states)} == {"FAILED"}
        shown = sum(one.agent == "worker" for one in answered)
        assert total(server, status="TASK_STATE_FAILED") == 250
        assert total(server, status="TASK_STATE_COMPLETED") == shown
        assert total(server) == 250 + shown + 1
        assert server.state("worker", running) == "WORKING"
        server.store.check()
        assert server.terminate() == 0
    purged = [line["message"] for line in server.log_lines() if line.get("logger") == "dragoman.purge"]
    assert all(line.startswith("tasks purged because their time was over: ") for line in purged)
    assert sum(int(line.rsplit(" ", 1)[1]) for line in purged) == 751


@pytest.mark.sqlite
def test_after_kill_9_in_the_middle_of_purging_every_task_is_whole_or_gone(server: LedgerServer) -> None:
    """Killed again and again, as long as there is something to purge."""
    server = server.configured(CONFIG)
    fill(server.data, 1000, large=4)
    server.store.shift_clock(2 * HOUR)
    chance, counts = random.Random(3), [1004]
    while len(server.store.states()) > 250:
        server.start()
        until(
            lambda: (
                len(server.store.states()) < counts[-1] or server.store.rows("SELECT 1 FROM journal") == []
            ),
            what="it purges",
        )
        time.sleep(chance.random() * 0.3)  # not to be right: to be killed anywhere
        server.kill()
        server.store.check()
        counts.append(len(server.store.states()))
    assert len(counts) > 3, "it was not killed in the middle"
    with server:
        until(
            lambda: server.store.rows("SELECT count(*) FROM event") == [(500,)],
            what="what was left of large tasks is gone",
        )
        assert total(server) == total(server, status="TASK_STATE_FAILED") == 250
        assert [total(server, contextId=name) for name in ("one", "two")] == [84, 83]
        server.store.check()
    assert server.store.rows("SELECT 1 FROM journal") == []
    assert len(server.store.messages()) == 250


@pytest.mark.sqlite
async def test_an_operator_purges_beside_a_busy_server_and_what_runs_goes_on(server: LedgerServer) -> None:
    await asyncio.to_thread(fill, server.data, 600, large=1)
    with server:
        old = set(server.store.states())
        running = await sent_at_once(server, "worker", "sleep 60")
        done = asyncio.Event()
        answered: list[Sent] = []
        async with client(server.url) as http:

            async def keep_sending() -> None:
                while not done.is_set():
                    answered.append(await send(http, Sent("worker", "quick")))

            sending = [asyncio.create_task(keep_sending()) for _ in range(4)]
            until_now = ("tasks", "purge", "--older-than", "5s", "--yes", "--json")
            server.store.shift_clock(10)
            purged = await asyncio.to_thread(
                dragoman, *until_now, "--data", str(server.data), folder=server.data.parent, seconds=60
            )
            done.set()
            await asyncio.gather(*sending)
        assert (purged.returncode, purged.stderr) == (0, "")
        gone = json.loads(purged.stdout)["purged"]
        assert gone >= 601
        assert [one.error for one in answered if one.error] == []
        assert {one.state for one in answered} == {"COMPLETED"}
        assert not old & set(server.store.states())
        assert total(server) == len(server.store.states()) == 601 + 1 + len(answered) - gone
        assert server.state("worker", running) == "WORKING"
        server.store.check()


async def test_callers_of_a_task_that_was_cancelled_and_purged_behind_the_servers_back_are_told(
    server: LedgerServer,
) -> None:
    """The server stands still meanwhile: when it looks again, the task is gone, and nobody waits for ever."""
    with server:
        async with client(server.url) as http:
            task_id = await sent_at_once(server, "worker", "sleep 60")
            path = f"/agents/worker/tasks/{task_id}:subscribe"
            seen: list[Frame] = []

            async def watch() -> None:
                async for frame in frames(http, "POST", path):
                    seen.append(frame)

            watching = asyncio.ensure_future(watch())
            waiting = asyncio.ensure_future(
                http.post("/agents/either/message:send", json=body(Sent("either", "sleep 60")))
            )
            other = (await asyncio.to_thread(server.await_note, "entered", agent="either"))["task"]
            async with asyncio.timeout(5):
                while not seen or server.get("either", other).status != 200:
                    await asyncio.sleep(0.01)
            freeze(server, age=0)
            for one in (task_id, other):
                for arguments in (("cancel", one), ("purge", one, "--yes")):
                    ended = dragoman(
                        "tasks", *arguments, "--data", str(server.data), folder=server.data.parent
                    )
                    assert (ended.returncode, ended.stderr) == (0, "")
            server.continue_process()
            await asyncio.wait_for(watching, NOTICE_SECONDS)
            answer = await asyncio.wait_for(waiting, NOTICE_SECONDS)
        assert "TASK_NOT_FOUND" in json.dumps(seen[-1].data)
        assert answer.status_code == 404
        assert "TASK_NOT_FOUND" in answer.text
        for one in (task_id, other):
            await asyncio.to_thread(server.await_note, "stopped", task=one, seconds=NOTICE_SECONDS)
        server.store.check()


@pytest.mark.sqlite
def test_the_text_of_a_purged_task_is_not_in_the_file_any_more(server: LedgerServer) -> None:
    fill(server.data, 400)
    assert SECRET.encode() in (server.data / "dragoman.db").read_bytes()
    purged = dragoman(
        *("tasks", "purge", "--older-than", "0s", "--yes", "--data", str(server.data)),
        folder=server.data.parent,
    )
    assert purged.stdout == "400 tasks purged\n"
    for file in server.data.iterdir():
        assert SECRET.encode() not in file.read_bytes(), file


@pytest.mark.sqlite
def test_room_that_a_purge_frees_is_used_again(server: LedgerServer) -> None:
    fill(server.data, 1000, large=1)
    size = (server.data / "dragoman.db").stat().st_size
    purge = ("tasks", "purge", "--older-than", "0s", "--yes", "--data", str(server.data))
    for _ in range(3):
        assert dragoman(*purge, folder=server.data.parent).returncode == 0
        with closing(sqlite3.connect(server.data / "dragoman.db")) as connection:
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        assert free * 4096 > size * 0.8
        fill(server.data, 1000, large=1)
        assert (server.data / "dragoman.db").stat().st_size < size * 1.1
