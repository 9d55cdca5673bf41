"""kill -9 at random points, again and again on one store: nothing is lost, and nothing is done twice at once."""

import asyncio
import contextlib
import itertools
import json
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.durability.callers import client, request, send, texts
from tests.durability.dialects import DIALECTS
from tests.durability.ledger import LedgerServer
from tests.durability.ledger_store import TERMINAL
from tests.durability.storms import Conversation, Ledger, Storm
from tests.harness import engines, stores
from tests.harness.polling import until

AGENTS = Path(__file__).parent / "agents" / "storm_agents.py"
KILLS = 10
AT_ONCE_SECONDS = 60.0 if engines.is_temporal() else 10.0 if stores.is_postgres() else 5.0
"""Seconds from the start of a process within which all that was interrupted runs again; one, on an idle machine.

Temporal waits for a lease to run out, and takes its time with each of many runs. A database that was itself started a
moment ago, as the one of a test may be, has a server wait 4 s for others that may still come back.
"""

KINDS = [
    ("storm", "echo", "send"),
    ("storm", "echo", "stream"),
    ("storm", "slow 12", "send"),
    ("storm", "slow 12", "at once"),
    ("storm", "stream 12", "stream"),
    ("storm", "stream 12", "at once"),
    ("storm", "steps 6", "send"),
    ("storm", "steps 6", "at once"),
    ("storm", "ask 2", "send"),
    ("storm", "ask 2", "stream"),
    ("storm-either", "echo", "send"),
    ("storm-either", "slow 9", "stream"),
    ("storm-talker", "echo", "send"),
    ("storm-talker", "slow 5", "stream"),
    ("storm-once", "slow 8", "send"),
    ("storm-thrice", "slow 8", "at once"),
    ("storm-thread", "stream 6", "send"),
    ("storm-thread", "steps 4", "at once"),
    ("storm-thread", "ask 2", "send"),
    ("storm-blocker", "block", "send"),
]


def mixed(count: int, seed: int) -> list[Conversation]:
    """Conversations of all kinds in all forms of A2A."""
    kinds = itertools.islice(
        zip(itertools.cycle(KINDS), itertools.cycle(DIALECTS[::-1]), strict=False), count
    )
    made = [Conversation(*kind, dialect) for kind, dialect in kinds]
    random.Random(seed).shuffle(made)
    return made


@pytest.mark.parametrize(
    ("each_life", "tick"),
    [
        pytest.param(20, 0.05, marks=pytest.mark.timeout(300)),
        pytest.param(200, 0.3, marks=[pytest.mark.soak, pytest.mark.timeout(600)]),
    ],
    ids=["20 new runs a life", "200 new runs a life"],
)
async def test_ten_kills_in_a_storm_of_runs_lose_nothing_and_do_nothing_twice_at_once(
    tmp_path: Path, each_life: int, tick: float
) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    server = LedgerServer(tmp_path / "data", agents=AGENTS, environment={"TICK": f"{tick}"})
    ledger = Ledger(server.ledger)
    pids: list[int] = []
    interrupted: list[int] = []
    slowest = 0.0
    conversations: list[Conversation] = []
    with contextlib.closing(server):
        async with client("http://127.0.0.1:1", timeout=90.0) as http:
            storm = Storm(http)
            holding: list[asyncio.Task[None]] = []
            for life in range(KILLS + 1):
                unfinished = set(server.store.unfinished()) if pids else set()
                interrupted.append(len(unfinished))
                began = time.time()
                await asyncio.to_thread(server.start)
                pids.append(server.pid)
                http.base_url = server.url
                storm.up.set()
                if life < KILLS:
                    fresh = mixed(each_life, chance.randrange(1000))
                    conversations += fresh
                    holding += [asyncio.ensure_future(one.hold(storm)) for one in fresh]
                if life == KILLS or chance.random() < 0.7:
                    await asyncio.to_thread(see_running_again, server, ledger, unfinished)
                    latest = max((ledger.entered[server.pid].get(one, 0) for one in unfinished), default=0)
                    slowest = max(slowest, latest - began)
                if life < KILLS:
                    begun = chance.randint(1, each_life)
                    await asyncio.to_thread(see_begun, server, ledger, unfinished, begun)
                    await asyncio.sleep(chance.uniform(0, 6 * tick))
                    storm.up.clear()
                    await asyncio.to_thread(server.kill)
                for held in [one for one in holding if one.done()]:
                    held.result()
            async with asyncio.timeout(80):
                await asyncio.gather(*holding)
            ledger.read()
            print(
                f"interrupted {interrupted}, at work again within {slowest:.2f} s; {len(ledger.lines)} lines"
            )
            assert slowest < AT_ONCE_SECONDS
            assert sum(interrupted) > 3 * each_life, "the kills came when nearly all was over"
            await see_outcomes(storm, server, conversations, ledger)
    see_no_overlap(ledger.lines, pids)


def see_running_again(server: LedgerServer, ledger: Ledger, unfinished: set[str]) -> None:
    """See that all that a killed server had not finished is at work again, or over."""

    def left() -> set[str]:
        ledger.read()
        return unfinished - ledger.entered[server.pid].keys() - server.store.finished()

    until(lambda: not left(), what="all runs are at work again", seconds=max(30.0, AT_ONCE_SECONDS))


def see_begun(server: LedgerServer, ledger: Ledger, unfinished: set[str], count: int) -> None:
    """See that so many handlers of new runs are or were at work."""

    def fresh() -> int:
        ledger.read()
        return len(ledger.entered[server.pid].keys() - unfinished)

    until(lambda: fresh() >= count, what=f"{count} new runs are entered", seconds=30.0)


async def see_outcomes(
    storm: Storm, server: LedgerServer, conversations: Sequence[Conversation], ledger: Ledger
) -> None:
    """See that every message is one task, which ended as it should, with every result once."""
    messages = {sent.message_id: one for one in conversations for sent in one.messages}
    stored = server.store.messages()
    assert set(stored) == set(messages)
    assert set(storm.acknowledged) == set(messages)
    assert all(task_id in (stored[message_id], "") for message_id, task_id in storm.acknowledged.items())
    tasks = {stored[one.messages[0].message_id]: one for one in conversations}
    assert len(tasks) == len(conversations) == len(server.store.states())
    assert set(server.store.states()) == set(tasks)
    assert set(server.store.states().values()) <= set(TERMINAL)

    tokens: dict[str, dict[str, str]] = {}
    for line in ledger.lines:
        assert stored[line["message"]] == line["task"]
        if line["token"]:
            tokens.setdefault(line["task"], {})[line["what"]] = line["token"]
    for task_id, one in tasks.items():
        performed = list(dict(sorted(tokens.get(task_id, {}).items())).values())
        await see_outcome(storm, one, task_id, performed, entries(ledger.lines, task_id))
    rows = server.store.rows("SELECT count(*) FROM task"), server.store.rows("SELECT count(*) FROM event")
    again = [one.messages[0].again("send") for one in conversations]
    await asyncio.gather(*(send(storm.http, one) for one in again))
    assert all(one.replayed and not one.error for one in again)
    assert rows == (
        server.store.rows("SELECT count(*) FROM task"),
        server.store.rows("SELECT count(*) FROM event"),
    )
    server.store.check()


def entries(lines: Iterable[dict[str, Any]], task_id: str) -> list[int]:
    """The attempts in which the handler of a run was entered."""
    return [line["attempt"] for line in lines if (line["what"], line["task"]) == ("in", task_id)]


async def see_outcome(
    storm: Storm, one: Conversation, task_id: str, tokens: Sequence[str], attempts: Sequence[int]
) -> None:
    """See that a conversation ended as its agent wants, with the results that its journal kept."""
    word = one.text.split()[0]
    if one.agent == "storm-talker":
        assert json.dumps(one.last).count(f"{word} done") == 1
        return
    reply = await request(storm.http, one.dialect.get(one.agent, task_id))
    task = one.dialect.task(reply.json())
    state = task["status"]["state"].removeprefix("TASK_STATE_")
    if state == "FAILED" and one.agent == "storm-once":
        assert "outcome is unknown" in json.dumps(task["status"]) and len(attempts) <= 1
        return
    if state == "FAILED" and one.agent == "storm-thrice":
        assert "in each of its 3 attempts" in json.dumps(task["status"]) and len(attempts) <= 3
        return
    assert state == "COMPLETED", (one.agent, one.text, task)
    answers = [sent.text for sent in one.messages[1:]]
    steps = (
        [f"{token}:{answer}" for token, answer in zip(tokens, answers, strict=True)] if answers else tokens
    )
    numbers = [f"{number}" for number in range(1, int(one.text.split()[-1]) + 1)] if word == "stream" else []
    done = {
        "storm-thread": ["".join(f"{piece} " for piece in [*steps, *numbers]) + f"{word} done"],
        "storm-blocker": [tokens[0] if tokens else ""],
    }
    others = {
        "stream": ["".join(f"{number} " for number in numbers), "stream done"],
        "steps": [" ".join(["tokens:", *tokens, ""]), "steps done"],
        "ask": [" ".join(steps)],
    }
    assert texts(task) == done.get(one.agent, others.get(word, [f"{word} done"]))
    said = [turn for turn in task.get("history", []) if turn["role"].lower().endswith("user")]
    assert [turn["messageId"] for turn in said] == [sent.message_id for sent in one.messages]


def see_no_overlap(lines: Sequence[dict[str, Any]], pids: Sequence[int]) -> None:
    """See that no two entries of one run overlap, and that no step is repeated that need not be."""
    order = [pids.index(line["pid"]) for line in lines]
    assert order == sorted(order), "a killed process went on"
    by_task: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        by_task.setdefault(line["task"], []).append(line)
    for own in by_task.values():
        see_one_at_a_time(own)
        see_steps_once(own)


def see_steps_once(lines: Sequence[dict[str, Any]]) -> None:
    """See that a step is repeated only if its process was killed before it had done anything after it."""
    saved: set[str] = set()
    latest: dict[str, Any] = {}
    for line in lines:
        if latest and latest["pid"] == line["pid"]:
            saved.add(latest["what"])
        assert line["what"] not in saved, "a step that was saved is performed again"
        latest = line if line["token"] else {}


def see_one_at_a_time(lines: Sequence[dict[str, Any]]) -> None:
    """See that each entry of a run ended, by itself or with its process, before the next one."""
    entered: dict[str, Any] | None = None
    before: dict[str, Any] | None = None
    for line in lines:
        if line["what"] == "in":
            if before is not None:
                assert line["epoch"] > before["epoch"] and line["attempt"] >= before["attempt"]
            if entered is not None:
                assert entered["pid"] != line["pid"], "two entries of a run overlap"
                # One that had parked its run, and was killed before it had noted its end, was not interrupted.
                assert line["attempt"] > entered["attempt"] or line["word"] == "ask"
            entered = before = line
            continue
        assert entered is not None
        assert (line["pid"], line["epoch"]) == (entered["pid"], entered["epoch"]), "an earlier entry went on"
        if line["what"] == "out":
            entered = None
