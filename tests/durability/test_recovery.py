"""Runs that nobody executes any more, for whatever reason: each is taken up, or ended, and never done twice at once."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from tests.durability.callers import Sent, client, send, texts
from tests.durability.ledger import LedgerServer
from tests.durability.ledger_store import TERMINAL
from tests.harness import engines
from tests.harness.polling import until

LEASE, SWEEP = 2.0, 0.2
CONFIG = f"""
[engine]
lease = "{LEASE}s"
sweep = "{SWEEP}s"
"""
PATIENCE = 5.0
"""Seconds beyond what is configured that a busy machine may take."""

UNKNOWN = "The server was interrupted; the outcome is unknown and was not retried."


async def begun(server: LedgerServer, *runs: tuple[str, str]) -> list[str]:
    """Send messages (agent and text) without waiting, one after the other; return the ids of their tasks."""
    async with client(server.url) as http:
        return [(await send(http, Sent(agent, text, "at once"))).task_id for agent, text in runs]


def attempts(server: LedgerServer, task_id: str, what: str = "entered") -> list[int]:
    """The attempts of a run in which its handler wrote `what`."""
    return [line["attempt"] for line in server.noted(what=what, task=task_id)]


def said(task: dict[str, Any]) -> str:
    """What the last status of a task says."""
    return "".join(part["text"] for part in task["status"]["message"]["parts"])


def events(server: LedgerServer, task_id: str) -> list[tuple[int, str]]:
    """The attempt and the kind of every event of a task."""
    statement = "SELECT attempt, payload FROM event WHERE task_id = ? ORDER BY seq"
    return [(attempt, json.loads(payload)["c"]) for attempt, payload in server.store.rows(statement, task_id)]


async def test_what_was_accepted_and_never_dispatched_or_lost_on_the_way_is_taken_up_in_time(
    server: LedgerServer,
) -> None:
    """Rows that this server holds, of which its engine knows nothing."""
    server = server.configured(CONFIG)
    with server:
        patterns = await begun(server, ("worker", "quick"), ("once", "quick"), ("twice", "quick"))
        for agent, pattern in zip(("worker", "once", "twice"), patterns, strict=True):
            await asyncio.to_thread(server.ended, agent, pattern)
        began = time.monotonic()
        lying = {
            "undispatched": server.store.leave_lying(patterns[0], "quick"),
            "quiet": server.store.leave_lying(patterns[0], "slow 0.3", state="WORKING"),
            "unknown": server.store.leave_lying(patterns[1], "quick"),
            "twice": server.store.leave_lying(patterns[2], "quick", state="WORKING", attempt=2),
        }
        agents = {"unknown": "once", "twice": "twice"}
        tasks = {
            name: await asyncio.to_thread(server.ended, agents.get(name, "worker"), task_id)
            for name, task_id in lying.items()
        }
        assert time.monotonic() - began < LEASE + SWEEP + PATIENCE
    assert texts(tasks["undispatched"]) == ["quick done"]
    assert texts(tasks["quiet"]) == ["slow done"]
    assert said(tasks["unknown"]) == UNKNOWN
    assert said(tasks["twice"]).startswith("The run was interrupted in each of its 2 attempts")
    entered = {name: attempts(server, task_id) for name, task_id in lying.items()}
    assert entered == {"undispatched": [2], "quiet": [2], "unknown": [], "twice": []}
    server.store.check()


async def test_runs_that_take_their_time_keep_their_lease_whatever_their_handlers_do(
    server: LedgerServer,
) -> None:
    """One waits on its loop, one blocks its loop, one burns its thread's time, one waits for room behind another."""
    # Longer than the disk of a busy machine may stand still.
    server = server.configured('engine.lease = "5s"')
    with server:
        running = await begun(
            server,
            ("worker", "sleep 60"),
            ("blocker", "block 6"),
            ("thread", "deaf 6"),
            ("narrow", "slow 6"),
        )
        for task_id in running:
            await asyncio.to_thread(server.await_note, "entered", task=task_id)
        (waiting,) = await begun(server, ("narrow", "quick"))
        seen: list[tuple[int, int]] = []
        while len(seen) < 110:
            leases = server.store.leases()
            seen.append((min(leases), len(leases)))
            await asyncio.sleep(0.05)
        assert min(left for left, _ in seen) > 0, "a lease ran out"
        # What waits for room has a lease of this server as well, unless it waits in Temporal's queue.
        assert max(count for _, count in seen) == (4 if engines.is_temporal() else 5)
        for agent, task_id in zip(("blocker", "thread", "narrow"), running[1:], strict=True):
            assert (await asyncio.to_thread(server.ended, agent, task_id))["status"][
                "state"
            ] == "TASK_STATE_COMPLETED"
        await asyncio.to_thread(server.ended, "narrow", waiting)
        assert server.state("worker", running[0]) == "WORKING"
    for task_id in (*running, waiting):
        assert attempts(server, task_id) == [1]
    server.store.check()


RUNS: Sequence[tuple[str, str, str]] = [
    ("streamed", "worker", "stream 50"),
    ("whole", "worker", "whole 1"),
    ("steps", "worker", "steps 9"),
    ("thread", "thread", "wait 0.5"),
    ("blocked", "blocker", "block 0.5"),
    ("unsure", "once", "slow 5"),
    ("behind it", "once", "whole 0"),
    ("twice", "twice", "slow 5"),
    ("first", "narrow", "slow 0.5"),
    ("second", "narrow", "quick"),
]


# It has to meet its runs before they are done, however late Temporal begins them.
@pytest.mark.embedded
async def test_two_crashes_end_each_run_as_its_agent_wants_and_show_nothing_twice(
    server: LedgerServer,
) -> None:
    """What was never entered loses no attempt; the events of lost attempts stay, marked with them."""
    server.start()
    names = [name for name, *_ in RUNS]
    ids = dict(zip(names, await begun(server, *(run[1:] for run in RUNS)), strict=True))
    agents = {name: agent for name, agent, _ in RUNS}
    behind = {"behind it", "second"}

    def see_entered(wanted: set[str], attempt: int) -> None:
        until(
            lambda: all(attempt in attempts(server, ids[name]) for name in wanted),
            what=f"attempt {attempt} of {wanted}",
        )

    see_entered(set(names) - behind, 1)
    until(
        lambda: len(server.store.rows("SELECT 1 FROM task WHERE dispatch = 'pending'")) == 2,
        what="two runs are noted as waiting",
    )
    until(lambda: len(events(server, ids["streamed"])) > 5, what="something was streamed")
    until(lambda: len(events(server, ids["whole"])) > 2, what="the whole artifact is there")
    until(lambda: len(events(server, ids["thread"])) > 2, what="the thread's first piece is there")
    server.kill()
    server.start()
    see_entered({"streamed", "steps", "twice"}, 2)
    until(lambda: server.state("once", ids["behind it"]) == "COMPLETED", what="the next one had its turn")
    server.kill()
    lost = events(server, ids["streamed"])
    server.start()
    until(lambda: set(server.store.states().values()) <= set(TERMINAL), what="all ended", seconds=20)

    tasks = {name: server.get(agents[name], task_id).json() for name, task_id in ids.items()}
    assert said(tasks.pop("unsure")) == UNKNOWN
    assert said(tasks.pop("twice")).startswith("The run was interrupted in each of its 2 attempts")
    assert {name: task["status"]["state"] for name, task in tasks.items()} == dict.fromkeys(
        tasks, "TASK_STATE_COMPLETED"
    )
    entered = {name: attempts(server, task_id) for name, task_id in ids.items()}
    assert entered["streamed"] == entered["steps"] == [1, 2, 3]
    assert (entered["unsure"], entered["behind it"], entered["twice"]) == ([1], [1], [1, 2])
    assert entered["second"][0] == 1

    numbers = "".join(f"{number} " for number in range(1, 51))
    assert texts(tasks["streamed"]) == [numbers, "stream done"]
    last = attempts(server, ids["whole"], "left")[-1]
    assert texts(tasks["whole"]) == [f"made in attempt {last}", "whole done"]
    assert texts(tasks["behind it"]) == ["made in attempt 1", "whole done"]
    assert texts(tasks["thread"]) == ["begun, done"]
    kept = events(server, ids["streamed"])
    assert kept[: len(lost)] == lost, "events of a lost attempt are kept as they were"
    assert [attempt for attempt, _ in kept] == sorted(attempt for attempt, _ in kept)
    assert {attempt for attempt, kind in kept if kind == "artifact"} == {1, 2, 3}
    assert [attempt for attempt, kind in kept if kind == "resumed"] == [2, 3]
    for number in range(9):
        assert len(server.noted(what=f"step {number}", task=ids["steps"])) <= 2
    server.store.check()


async def test_a_run_whose_time_was_over_before_the_server_came_back_is_not_entered_again(
    server: LedgerServer,
) -> None:
    server.start()
    (late,) = await begun(server, ("narrow", "sleep 60"))
    server.await_note("entered", task=late)
    (waiting,) = await begun(server, ("narrow", "quick"))
    server.kill()
    assert server.store.shift_clock(3601)
    server.start()
    for task_id in (late, waiting):
        assert said(server.get("narrow", task_id).json()) == "The run passed its deadline and was stopped."
    (in_time,) = await begun(server, ("narrow", "quick"))
    assert texts(await asyncio.to_thread(server.ended, "narrow", in_time)) == ["quick done"]
    assert [(line["task"], line["attempt"]) for line in server.noted(what="entered")] == [
        (late, 1),
        (in_time, 1),
    ]
    server.store.check()
