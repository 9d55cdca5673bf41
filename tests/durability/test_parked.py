"""Runs that wait for their caller, over kill -9, restarts and days: nothing is held meanwhile, and nothing is lost."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.gateway.ports import JournalEntry, Lease
from dragoman.model import TaskState
from dragoman.model.payload import ABSENT, unpack
from dragoman.stores.sqlite import SqliteStore
from tests.contract.samples import ALICE, begun, message, status
from tests.durability.callers import Sent, client, send, subscription, texts
from tests.durability.ledger import LedgerServer
from tests.harness import engines, stores
from tests.harness.paths import CHECKOUT, SOURCE
from tests.harness.polling import until
from tests.harness.wire import call

DAY = 86_400
MANY = 20 if engines.is_temporal() else 60
"""Runs that wait beside one; Temporal takes a moment for each of them."""
BOTH = pytest.mark.parametrize("agent", ["asker", "asker-in-thread"])


async def sent(http: httpx2.AsyncClient, agent: str, text: str, task_id: str = "", how: str = "send") -> Sent:
    """Send a message, perhaps to a task that there is."""
    return await send(http, Sent(agent, text, how, to_task=task_id))


def threads(server: LedgerServer) -> int:
    """How many threads the server's process has."""
    return len(list(Path(f"/proc/{server.pid}/task").iterdir()))


def gauge(server: LedgerServer, *names: str) -> float:
    """What the server's metrics of these names come to."""
    lines = call("GET", f"{server.url}/metrics").body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(names))


def see_nothing_held(server: LedgerServer) -> None:
    """See that nothing is held for any run: no place, no handler, no lease."""
    runs = ("dragoman_runs_running", "dragoman_runs_waiting")
    until(lambda: gauge(server, *runs) == 0, what="no run is running or waiting for room")
    held = (
        "SELECT count(*) FROM task WHERE dispatch NOT IN ('done', 'parked') OR (dispatch = 'parked' AND %s)"
    )
    # A database has no lease in the row: it is that of the server that the row names.
    lease = "" if stores.is_postgres() else " OR lease_until <> 0"
    assert server.store.rows(held % f"(owner <> 0{lease} OR parked_at IS NULL)") == [(0,)]


def steps(server: LedgerServer, task_id: str) -> Counter[str]:
    """How often each step of a run was performed."""
    return Counter(line["what"] for line in server.noted(task=task_id) if line["what"].startswith("step"))


@BOTH
async def test_an_answer_after_three_days_and_two_restarts_finds_its_question(
    server: LedgerServer, agent: str
) -> None:
    server.start()
    async with client(server.url) as http:
        asked = await sent(http, agent, "ask 2")
        assert asked.state == "INPUT_REQUIRED"
        calm = threads(server)
        others = [await sent(http, agent, "ask 1") for _ in range(MANY)]
        assert {other.state for other in others} == {"INPUT_REQUIRED"}
    see_nothing_held(server)
    assert threads(server) <= calm + 10
    before = server.get(agent, asked.task_id).body
    for days in (1, 2):
        server.kill()
        assert server.store.shift_clock(days * DAY)
        server.start()
        see_nothing_held(server)
        assert server.get(agent, asked.task_id).body == before
    assert len(server.noted(what="entered")) == 1 + MANY, "nothing is entered by a restart"

    async with client(server.url) as http:
        second = await sent(http, agent, "three days later", asked.task_id)
        assert second.state == "INPUT_REQUIRED"
        last = await sent(http, agent, "at once", asked.task_id)
        answers = [sent(http, agent, f"{n}", other.task_id) for n, other in enumerate(others)]
        ended = await asyncio.gather(*answers)
    assert texts(last.answer["task"])[0] == "report: three days later at once end"
    assert [turn["parts"][0]["text"] for turn in last.answer["task"]["history"]] == [
        "ask 2",
        "question 0",
        "three days later",
        "question 1",
        "at once",
    ]
    assert [texts(one.answer["task"])[0] for one in ended] == [f"report: {n} end" for n in range(MANY)]
    assert steps(server, asked.task_id) == {"step 0": 1, "step 1": 1}
    assert [line["attempt"] for line in server.noted(what="entered", task=asked.task_id)] == [1, 1, 1]
    see_nothing_held(server)
    server.store.check()


@BOTH
async def test_a_kill_between_the_answer_and_the_next_act_loses_neither(
    server: LedgerServer, agent: str
) -> None:
    server.start()
    async with client(server.url) as http:
        asked = await sent(http, agent, "ask 2")
        held = await sent(http, agent, "hold", asked.task_id, "at once")
        assert held.state == "WORKING"
        await asyncio.to_thread(server.await_note, "answer 0", task=asked.task_id)
        await asyncio.to_thread(server.kill)
    server.start()
    until(
        lambda: server.state(agent, asked.task_id) == "INPUT_REQUIRED",
        what="the second attempt has come to the next question",
    )
    task = server.get(agent, asked.task_id).json()
    assert task["status"]["message"]["parts"] == [{"text": "question 1"}]
    assert texts(task) == ["report: hold "]
    async with client(server.url) as http:
        last = await sent(http, agent, "this", asked.task_id)
    assert texts(last.answer["task"])[0] == "report: hold this end"
    said = [turn["parts"][0]["text"] for turn in last.answer["task"]["history"]]
    assert said == ["ask 2", "question 0", "hold", "question 1", "this"]
    assert [line["attempt"] for line in server.noted(what="entered", task=asked.task_id)] == [1, 1, 2, 2]
    assert steps(server, asked.task_id) == {"step 0": 1, "step 1": 1}
    server.store.check()


async def test_a_kill_right_after_an_answer_was_accepted_loses_nothing(server: LedgerServer) -> None:
    """Whether or not its handler had been entered again."""
    server.start()
    async with client(server.url) as http:
        asked = await asyncio.gather(*(sent(http, "asker", "ask 1") for _ in range(40)))
        answers = [
            asyncio.ensure_future(sent(http, "asker", f"{n}", one.task_id)) for n, one in enumerate(asked)
        ]
        await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.to_thread(server.kill)
        done = await asyncio.gather(*answers)
    accepted = set(server.store.messages())
    server.start()
    async with client(server.url) as http:
        for number, (one, answer) in enumerate(zip(asked, done, strict=True)):
            again = await send(
                http, Sent("asker", f"{number}", message_id=answer.message_id, to_task=one.task_id)
            )
            assert again.state == "COMPLETED"
            assert texts(again.answer["task"])[0] == f"report: {number} end"
            assert len(again.answer["task"]["history"]) == 3
            if not answer.error:
                assert again.answer["task"]["artifacts"] == answer.answer["task"]["artifacts"]
    assert accepted <= set(server.store.messages())
    assert max(Counter(line["what"] + line["task"] for line in server.noted(what="step 0")).values()) == 1
    server.store.check()


async def test_kills_while_many_runs_ask_leave_each_asking_or_at_work(server: LedgerServer) -> None:
    """Two kills among conversations that go on all the time; every caller sends again what was not answered."""
    server.start()
    pending = {n: Sent("asker" if n % 2 else "asker-in-thread", "ask 5") for n in range(24)}
    tasks: dict[int, dict[str, Any]] = {}
    heard: list[str] = []
    broken: list[Sent] = []

    async def talk(number: int) -> None:
        async with client(server.url) as http:
            while number in pending:
                said = await send(http, pending[number])
                if said.error:
                    broken.append(said)
                    return
                task = said.answer["task"]
                heard.append(said.state)
                if said.state == "COMPLETED":
                    tasks[number] = task
                    del pending[number]
                else:
                    assert said.state == "INPUT_REQUIRED"
                    question = task["status"]["message"]["parts"][0]["text"]
                    pending[number] = Sent(said.agent, f"to {question}", to_task=task["id"])

    for kill_after in (30, 75, None):
        talking = [asyncio.ensure_future(talk(number)) for number in list(pending)]
        if kill_after is not None:
            async with asyncio.timeout(30):
                while len(heard) < kill_after:
                    await asyncio.sleep(0.002)
            server.kill()  # on this thread, so that nobody talks on meanwhile
        await asyncio.gather(*talking)
        if kill_after is not None:
            assert len(pending) > 12, "the kill came when nearly all was over"
            # What a kill has broken off is the same message again, for the server as for the caller.
            for number, one in pending.items():
                pending[number] = Sent(one.agent, one.text, message_id=one.message_id, to_task=one.to_task)
            await asyncio.to_thread(server.start)
    assert not pending
    for task in tasks.values():
        assert texts(task)[0] == f"report: {' '.join(f'to question {n}' for n in range(5))} end"
        said = [turn["parts"][0]["text"] for turn in task["history"]]
        assert said == ["ask 5", *(text for n in range(5) for text in (f"question {n}", f"to question {n}"))]
    assert broken
    see_nothing_held(server)
    server.store.check()


async def test_streams_that_wait_for_an_answer_are_taken_up_after_a_restart(server: LedgerServer) -> None:
    server.start()
    async with client(server.url) as http:
        asked = await sent(http, "asker", "ask 1", how="stream")
        assert asked.state == "INPUT_REQUIRED"
    server.restart()
    async with client(server.url) as http:
        following = asyncio.ensure_future(subscription(http, "asker", asked.task_id))
        last_event = asyncio.ensure_future(subscription(http, "asker", asked.task_id, last_event=3))
        await asyncio.to_thread(
            until, lambda: gauge(server, "dragoman_streams") == 2, what="both are followed"
        )
        await sent(http, "asker", "this", asked.task_id)
        frames, rest = await following, await last_event
    assert frames[0].kind == "task"
    assert [frame.id for frame in frames] == sorted({frame.id for frame in frames})
    assert rest[-1] == frames[-1]
    assert frames[-1].data["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_parked_runs_hold_up_no_shutdown(server: LedgerServer) -> None:
    server.start()
    async with client(server.url) as http:
        asked = [await sent(http, agent, "ask 1") for agent in ("asker", "asker-in-thread") for _ in range(5)]
    assert await asyncio.to_thread(server.terminate, 5.0) == 0
    server.start()
    assert {server.state(one.agent, one.task_id) for one in asked} == {"INPUT_REQUIRED"}


CONFIG = """
[engine]
sweep = "200ms"
[agents.demo]
python = "dragoman.agents.demo:demo"
parked_deadline = "2h"
deadline = "10m"
"""


async def test_the_configured_time_to_wait_ends_a_run_that_nobody_answers(server: LedgerServer) -> None:
    server = server.configured(CONFIG)
    with server:
        async with client(server.url) as http:
            late = [await sent(http, "demo", word) for word in ("ask", "auth")]
            assert server.store.shift_clock(3600)
            in_time = await sent(http, "demo", "ask")
            assert server.store.shift_clock(3600)
            for one in late:
                task = server.ended("demo", one.task_id)
                assert task["status"]["state"] == "TASK_STATE_FAILED"
                assert "Nobody answered" in task["status"]["message"]["parts"][0]["text"]
                assert [turn["role"] for turn in task["history"]] == ["ROLE_USER", "ROLE_AGENT"]
            answered = await sent(http, "demo", "here", in_time.task_id)
            assert answered.state == "COMPLETED"
        until(lambda: "waited too long" in server.printed_errors(), what="the log says why they ended")
    server.store.check()


@pytest.mark.parametrize("operation", ["park", "answer"])
async def test_a_writer_killed_before_any_statement_leaves_all_or_nothing(
    tmp_path: Path, operation: str
) -> None:
    """What was parked is parked with its question and its point; what was answered is answered and to be executed."""
    original = tmp_path / "original.db"
    store = SqliteStore(original, lease=15.0, on_lost=lambda: None)
    lease = await begun(store, sent=message("Hello"))
    if operation == "answer":
        point = JournalEntry(ordinal=1, kind="ask", name="which", acts=0, result=ABSENT)
        await store.park(lease, status(TaskState.INPUT_REQUIRED, "Which one?"), point)
    store.close()
    outcomes: list[str] = []
    while not outcomes or outcomes[-1] == "before":
        assert len(outcomes) < 40
        file = tmp_path / f"{len(outcomes) + 1}.db"
        shutil.copy(original, file)
        killed = await asyncio.to_thread(run_writer, file, operation, lease.task_id, len(outcomes) + 1)
        outcomes.append(await outcome(file, operation, lease))
        assert killed == (outcomes[-1] == "before")
    # BEGIN, the look at the owner, the row, its changes, the event, the journal, COMMIT.
    assert len(outcomes) >= 8


def run_writer(file: Path, operation: str, task_id: str, at: int) -> bool:
    """Run a process that writes; tell whether it was killed before statement `at`."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.durability.dying_writer", str(file), operation, task_id, str(at)],
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{CHECKOUT}"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode != 0


async def outcome(file: Path, operation: str, lease: Lease) -> str:
    """`before` or `after`, as the next server finds the store; anything between fails the test."""
    store = SqliteStore(file, lease=15.0, on_lost=lambda: None)
    try:
        task = (await store.read(ALICE, lease.task_id)).task()
        events = await store.events(lease.task_id, 0)
        journal = await store.journal(lease)
        lost = await store.lost()
    finally:
        store.close()
    state = task.status.state
    results = [unpack(entry.result) for entry in journal]
    found = (state, len(events), results, len(lost))
    stages = [
        (TaskState.SUBMITTED, 1, [], 1),
        (TaskState.INPUT_REQUIRED, 2, [None], 0),
        (TaskState.WORKING, 3, [1], 1),
    ]
    before = 0 if operation == "park" else 1
    assert found in stages[before : before + 2]
    return "before" if found == stages[before] else "after"
