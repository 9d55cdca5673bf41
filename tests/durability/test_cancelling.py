"""Cancels, at the worst moments: decided once by the task's row, for ever, and never undone by what comes late."""

import asyncio
import os
import random
import time
from collections import Counter

import httpx2
import pytest

from tests.durability.callers import Sent, client, request, send, state_of, subscription, texts
from tests.durability.dialects import DIALECTS, HTTP, Dialect
from tests.durability.ledger import LedgerServer
from tests.durability.ledger_store import TERMINAL
from tests.harness.polling import until

WON, LATE = "", "TASK_NOT_CANCELABLE"


async def cancel(
    http: httpx2.AsyncClient, agent: str, task_id: str, *, after: float = 0, dialect: Dialect = HTTP
) -> str:
    """Cancel a task after some seconds; return why it was refused, or nothing."""
    await asyncio.sleep(after)
    reply = await request(http, dialect.cancel(agent, task_id))
    reason = dialect.reason(reply)
    if not reason:
        assert dialect.task(reply.json())["status"]["state"] == "TASK_STATE_CANCELED"
    return reason


async def begun(http: httpx2.AsyncClient, server: LedgerServer, agent: str, *words: str) -> list[str]:
    """Begin runs without waiting; return the ids of their tasks once all are at work."""
    sent = [await send(http, Sent(agent, text, "at once")) for text in words]
    ids = {one.task_id for one in sent}
    await asyncio.to_thread(
        until,
        lambda: ids <= {line["task"] for line in server.noted(what="entered", agent=agent)},
        what=f"{len(ids)} runs of {agent} are at work",
    )
    return [one.task_id for one in sent]


def entries(server: LedgerServer, task_id: str) -> list[int]:
    """The attempts of a run whose handlers were entered."""
    return [line["attempt"] for line in server.noted(what="entered", task=task_id)]


async def test_of_cancels_and_ends_at_the_same_moment_the_first_one_stays(standing: LedgerServer) -> None:
    """Many runs end at once, and each is cancelled around that moment from a connection of its own."""
    outcomes: Counter[str] = Counter()
    async with client(standing.url) as http:
        for number in range(4):
            gate = f"race-{number}-{os.getpid()}"
            ids = await begun(http, standing, "crowded", *[f"gate {gate}"] * 40)
            watching = [
                asyncio.ensure_future(subscription(http, "crowded", one, last_event=1)) for one in ids
            ]
            cancels: list[asyncio.Future[str]] = []
            half = random.randrange(10, 30)
            for count, one in enumerate(ids):
                if count == half:
                    standing.open_gate(gate)
                cancels.append(
                    asyncio.ensure_future(cancel(http, "crowded", one, dialect=random.choice(DIALECTS)))
                )
                await asyncio.sleep(0.001)
            decided = await asyncio.gather(*cancels)
            seen = [state_of(frames[-1].data) for frames in await asyncio.gather(*watching)]
            states = standing.store.states()
            expected = {WON: "CANCELED", LATE: "COMPLETED"}
            assert [states[one] for one in ids] == [expected[one] for one in decided] == seen
            outcomes.update(decided)
            # The loser's word comes too late, whoever it is.
            again = await asyncio.gather(*(cancel(http, "crowded", one) for one in ids))
            assert set(again) == {LATE}
            assert {one: standing.store.states()[one] for one in ids} == {one: states[one] for one in ids}
    assert min(outcomes[WON], outcomes[LATE]) > 0, outcomes
    standing.store.check()


async def test_of_many_cancels_at_once_over_all_forms_one_wins(standing: LedgerServer) -> None:
    async with client(standing.url) as http:
        ids = await begun(http, standing, "worker", *["sleep 60"] * 8)
        for task_id in ids:
            decided = await asyncio.gather(
                *(cancel(http, "worker", task_id, dialect=dialect) for dialect in DIALECTS * 4)
            )
            assert Counter(decided) == {WON: 1, LATE: len(DIALECTS) * 4 - 1}
        await asyncio.to_thread(
            until,
            lambda: {line["task"] for line in standing.noted(what="stopped")} >= set(ids),
            what="all handlers are stopped",
        )
    for task_id in ids:
        assert [line["what"] for line in standing.noted(task=task_id)] == ["entered", "stopped"]
    standing.store.check()


@pytest.mark.parametrize("agent", ["asker", "asker-in-thread"])
async def test_a_cancel_around_a_question_or_its_answer_is_decided_once(
    standing: LedgerServer, agent: str
) -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    async with client(standing.url) as http:

        async def asked_and_cancelled() -> None:
            """Cancelled while it asks for the first time."""
            sent = Sent(agent, "ask 1", "at once")
            await send(http, sent)
            decided = await cancel(http, agent, sent.task_id, after=random.uniform(0, 0.02))
            assert (decided, standing.store.states()[sent.task_id]) == (WON, "CANCELED")
            outcomes["asking", decided] += 1

        async def answered_and_cancelled() -> None:
            """Cancelled while it is answered."""
            sent = await send(http, Sent(agent, "ask 1"))
            assert sent.state == "INPUT_REQUIRED"
            answer = Sent(agent, "this", to_task=sent.task_id)
            reply, decided = await asyncio.gather(
                request(http, answer.request()),
                cancel(http, agent, sent.task_id, after=random.uniform(0, 0.03)),
            )
            refused = HTTP.reason(reply)
            assert refused in ("", "UNSUPPORTED_OPERATION")
            if refused:
                assert decided == WON
                assert len(standing.noted(what="entered", task=sent.task_id)) == 1
            state = standing.store.states()[sent.task_id]
            assert state == ("CANCELED" if decided == WON else "COMPLETED")
            if not refused:
                assert reply.json()["task"]["status"]["state"] == f"TASK_STATE_{state}"
            outcomes["answering", decided or refused] += 1

        async def parked_and_cancelled() -> None:
            """Cancelled while nobody is there; an answer afterwards is refused, and nothing is entered."""
            sent = await send(http, Sent(agent, "ask 1", "stream"))
            assert await cancel(http, agent, sent.task_id) == WON
            reply = await request(http, Sent(agent, "late", to_task=sent.task_id).request())
            assert HTTP.reason(reply) == "UNSUPPORTED_OPERATION"
            assert len(standing.noted(what="entered", task=sent.task_id)) == 1

        for _ in range(4):
            ways = [asked_and_cancelled, answered_and_cancelled, answered_and_cancelled, parked_and_cancelled]
            await asyncio.gather(*(way() for way in ways * 3))
    assert outcomes["asking", WON] == 12
    assert sum(count for (when, _), count in outcomes.items() if when == "answering") == 24
    standing.store.check()


async def test_what_is_cancelled_while_it_is_taken_up_again_stays_cancelled(server: LedgerServer) -> None:
    """Runs at work, runs that wait for room behind them, and one that nobody cancels."""
    server.start()
    async with client(server.url) as http:
        ids = await begun(http, server, "worker", *["slow 60"] * 6)
        ids += await begun(http, server, "thread", *["wait 20"] * 3)
        (first,) = await begun(http, server, "narrow", "sleep 60")
        behind = [(await send(http, Sent("narrow", "quick", "at once"))).task_id for _ in range(3)]
        (other,) = await begun(http, server, "worker", "slow 1")
        until(
            lambda: len(server.store.rows("SELECT 1 FROM task WHERE dispatch = 'pending'")) == 3,
            what="three are noted as waiting",
        )
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    agents = dict.fromkeys(ids[:6], "worker") | dict.fromkeys(ids[6:], "thread")
    agents |= dict.fromkeys([first, *behind[:2]], "narrow")
    async with client(server.url) as http:
        # Those behind it first: where one is stopped, the next has its turn.
        for batch in (behind[:2], [*ids, first]):
            decided = await asyncio.gather(
                *(cancel(http, agents[one], one, dialect=random.choice(DIALECTS)) for one in batch)
            )
            assert set(decided) == {WON}
        for one, agent in ((other, "worker"), (behind[2], "narrow")):
            task = await asyncio.to_thread(server.ended, agent, one)
            assert texts(task) == ["slow done" if agent == "worker" else "quick done"]
    until(lambda: set(server.store.states().values()) <= set(TERMINAL), what="all is over")
    states = server.store.states()
    assert {states[one] for one in agents} == {"CANCELED"}
    assert [entries(server, one) for one in behind] == [[], [], [1]]
    for one in ids:
        assert entries(server, one) in ([1], [1, 2])
        assert not server.noted(what="left", task=one)
    # A further crash brings none of them back.
    await asyncio.to_thread(server.kill)
    lines = len(server.noted())
    await asyncio.to_thread(server.start)
    assert server.store.states() == states
    assert len(server.noted()) == lines
    server.store.check()


GRACE = 10.0


async def test_a_handler_that_does_not_stop_is_given_ten_seconds_and_then_its_place_is_given_away(
    standing: LedgerServer,
) -> None:
    """A coroutine that swallows its cancellation, and a thread that never looks. Callers are answered at once."""
    agents = ("stubborn", "stubborn-in-thread")
    async with client(standing.url) as http:
        shut, wide = f"shut-{os.getpid()}", f"wide-{os.getpid()}"
        standing.open_gate(wide)
        runs = {agent: (await begun(http, standing, agent, shut))[0] for agent in agents}
        following = {agent: await send(http, Sent(agent, wide, "at once")) for agent in agents}
        watching = [asyncio.ensure_future(subscription(http, agent, runs[agent])) for agent in agents]
        began = time.monotonic()
        for agent in agents:
            assert await cancel(http, agent, runs[agent]) == WON
        for frames in await asyncio.gather(*watching):
            assert state_of(frames[-1].data) == "CANCELED"
        assert time.monotonic() - began < 2.0
        ended = await asyncio.gather(
            *(
                asyncio.to_thread(standing.ended, agent, following[agent].task_id, seconds=GRACE + 5)
                for agent in agents
            )
        )
        took = time.monotonic() - began
    assert GRACE - 0.5 < took < GRACE + 5
    assert [task["status"]["state"] for task in ended] == ["TASK_STATE_COMPLETED"] * 2
    for task_id in runs.values():
        assert not standing.noted(what="left", task=task_id), "it had its ten seconds, and still goes on"
    standing.open_gate(shut)
    for agent, task_id in runs.items():
        await asyncio.to_thread(standing.await_note, "left", task=task_id)
        task = standing.get(agent, task_id).json()
        assert task["status"]["state"] == "TASK_STATE_CANCELED"
        assert "at last" not in texts(task)
    standing.store.check()
