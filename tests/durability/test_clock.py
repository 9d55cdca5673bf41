"""A day of the store's clock in one step: what is due by then is done, and nothing else."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.durability.callers import Sent, client, request, send, texts
from tests.durability.dialects import HTTP
from tests.durability.ledger import LedgerServer
from tests.harness.polling import until
from tests.harness.wire import call

DAY = 86_400
CONFIG = """
[engine]
lease = "2s"
sweep = "200ms"
[retention]
terminal = "36h"
failed = "12h"
"""
EXPIRED = "The run passed its deadline and was stopped."
UNANSWERED = "Nobody answered within the time that the run may wait, so it was ended."
RUNS = {
    "late": ("worker", "sleep 3600"),
    "waiting": ("narrow", "sleep 3600"),
    "behind it": ("narrow", "quick"),
    "patient": ("patient", "slow 3"),
    "thread": ("thread", "deaf 2"),
    "finished": ("worker", "quick"),
    "old": ("worker", "quick but this is no number"),
    "parked": ("asker", "ask 1"),
    "hasty": ("hasty", "ask 1"),
}


def shift(server: LedgerServer, seconds: float) -> None:
    """Move the store's clock, as soon as nobody is writing."""
    until(lambda: server.store.shift_clock(seconds), what="the clock is moved")


def now(server: LedgerServer) -> int:
    """The store's time, in milliseconds."""
    return int(server.store.rows("SELECT now_ms FROM store_clock")[0][0])


def said(task: dict[str, Any]) -> str:
    """What the last status of a task says; empty if it says nothing."""
    return "".join(part["text"] for part in task["status"].get("message", {"parts": []})["parts"])


async def begun(server: LedgerServer, http: httpx2.AsyncClient) -> dict[str, Sent]:
    """Bring every run to where the day is to meet it."""
    runs: dict[str, Sent] = {}

    async def begin(*names: str) -> None:
        for name in names:
            agent, text = RUNS[name]
            runs[name] = await send(http, Sent(agent, text, "at once"))
        for name in set(names) - {"behind it"}:
            await asyncio.to_thread(server.await_note, "entered", task=runs[name].task_id)

    await begin(*(name for name in RUNS if name not in ("patient", "thread")))
    states = {"finished": "COMPLETED", "old": "FAILED", "parked": "INPUT_REQUIRED", "hasty": "INPUT_REQUIRED"}
    for name, state in states.items():
        await asyncio.to_thread(
            until,
            lambda name=name, state=state: server.state(runs[name].agent, runs[name].task_id) == state,
            what=f"{name} is {state}",
        )
    # The day has to meet these two before they are done, however slow the machine.
    await begin("patient", "thread")
    return runs


# Whose turn it is at an agent that has room for one is up to Temporal where it is the engine.
@pytest.mark.embedded
@pytest.mark.parametrize("down", [False, True], ids=["while it runs", "while it is down"])
async def test_a_day_ends_what_is_due_and_nothing_else(server: LedgerServer, down: bool) -> None:
    server = server.configured(CONFIG)
    with server:
        async with client(server.url) as http:
            runs = await begun(server, http)
            before = {name: server.get(sent.agent, sent.task_id).body for name, sent in runs.items()}
            deadlines = dict(server.store.rows("SELECT id, deadline_at FROM task"))
            parked_at = now(server)
        if down:
            await asyncio.to_thread(server.kill)
        shift(server, DAY)
        if down:
            await asyncio.to_thread(server.start)
        async with client(server.url) as http:
            ended = {
                name: await asyncio.to_thread(server.ended, sent.agent, sent.task_id)
                for name, sent in runs.items()
                if name not in ("parked", "old")
            }
            attempt = 2 if down else 1
            for name in ("late", "waiting", "behind it"):
                assert (ended[name]["status"]["state"], said(ended[name])) == ("TASK_STATE_FAILED", EXPIRED)
            assert said(ended["hasty"]) == UNANSWERED
            assert texts(ended["patient"]) == ["slow done"]
            entered = {
                name: [line["attempt"] for line in server.noted(what="entered", task=sent.task_id)]
                for name, sent in runs.items()
            }
            assert entered["patient"] == list(range(1, attempt + 1))
            assert (entered["late"], entered["waiting"], entered["behind it"]) == ([1], [1], [])
            assert server.get("worker", runs["finished"].task_id).body == before["finished"]
            assert server.get("asker", runs["parked"].task_id).body == before["parked"]

            # What was kept long enough is gone, and its message with it.
            old = runs["old"]
            await asyncio.to_thread(
                until, lambda: server.get("worker", old.task_id).status == 404, what="the old task is purged"
            )
            anew = await send(http, old.again("send"))
            assert (anew.replayed, anew.state) == (False, "FAILED")
            assert anew.task_id not in ("", old.task_id)

            # Nothing interrupts a thread, but what it still does comes too late.
            assert said(ended["thread"]) == EXPIRED
            assert texts(ended["thread"]) in ([], ["begun, "])
            stopped = {line["task"] for line in server.noted(what="stopped")}
            assert down or stopped == {runs["late"].task_id, runs["waiting"].task_id}

            # An answer after a day: the run has as much time left as it had when it asked.
            answer = await send(http, Sent("asker", "here", to_task=runs["parked"].task_id))
            assert texts(answer.answer["task"])[0] == "report: here end"
            moved = server.store.rows(
                "SELECT deadline_at, parked_ms FROM task WHERE id = ?", runs["parked"].task_id
            )[0]
            assert moved[0] - deadlines[runs["parked"].task_id] == moved[1]
            assert DAY * 1000 <= moved[1] <= now(server) - parked_at + 10_000

            await see_what_is_new(server, http, runs, ended)
    server.store.check()


async def see_what_is_new(
    server: LedgerServer, http: httpx2.AsyncClient, runs: dict[str, Sent], ended: dict[str, Any]
) -> None:
    """See that what comes now is a day later, in its reply, its row and its place, and that nothing is forgotten."""
    again = await send(http, runs["finished"].again("send"))
    assert again.replayed and again.task_id == runs["finished"].task_id
    fresh = await send(http, Sent("worker", "quick"))
    stamp = datetime.fromisoformat(fresh.answer["task"]["status"]["timestamp"])
    assert abs(stamp.timestamp() * 1000 - now(server)) < 10_000
    assert stamp - datetime.fromisoformat(ended["finished"]["status"]["timestamp"]) > timedelta(days=1) * 0.99
    row = server.store.rows("SELECT status_at FROM task WHERE id = ?", fresh.task_id)
    assert row == [(round(stamp.timestamp() * 1000),)]
    since = (stamp - timedelta(hours=12)).isoformat().replace("+00:00", "Z")
    page = call("GET", f"{server.url}/agents/worker/tasks?statusTimestampAfter={since}").json()
    later = {task["id"] for task in page["tasks"]}
    assert {fresh.task_id, runs["late"].task_id} < later and runs["finished"].task_id not in later
    until(
        lambda: (
            server.store.rows("SELECT 1 FROM task, store_clock WHERE owner <> 0 AND state IN (1, 2)") == []
        ),
        what="nothing is held any more",
    )


async def test_a_clock_that_goes_back_ends_nothing_and_turns_no_task_back(server: LedgerServer) -> None:
    server = server.configured(CONFIG)
    with server:
        async with client(server.url) as http:
            slow = await send(http, Sent("worker", "slow 2.5", "at once"))
            parked = await send(http, Sent("hasty", "ask 1"))
            await asyncio.to_thread(server.await_note, "entered", task=slow.task_id)
            shift(server, -DAY)
            for _ in range(20):
                assert all(left > 0 for left in server.store.leases())
                await asyncio.sleep(0.05)
            task = await asyncio.to_thread(server.ended, "worker", slow.task_id)
            assert texts(task) == ["slow done"]
            assert [line["attempt"] for line in server.noted(what="entered", task=slow.task_id)] == [1]
            assert (await send(http, Sent("hasty", "here", to_task=parked.task_id))).state == "COMPLETED"
            assert (await request(http, HTTP.get("worker", slow.task_id))).json() == task
    for task_id in (slow.task_id, parked.task_id):
        times = [
            at for (at,) in server.store.rows("SELECT at FROM event WHERE task_id = ? ORDER BY seq", task_id)
        ]
        assert times == sorted(times)
    server.store.check()
