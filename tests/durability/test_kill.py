"""kill -9 in the middle of everything: nothing that was acknowledged is lost, and nothing is done twice at once."""

import asyncio
import itertools
import random
from collections import Counter

from tests.durability.callers import Sent, client, send, texts
from tests.durability.ledger import TERMINAL, LedgerServer
from tests.harness.polling import until

KINDS = [
    ("worker", "quick", "send"),
    ("worker", "slow 0.8", "send"),
    ("worker", "slow 0.8", "at once"),
    ("worker", "stream 8", "stream"),
    ("worker", "steps 5", "at once"),
    ("worker", "quick", "stream"),
    ("either", "quick", "send"),
    ("either", "slow 0.6", "stream"),
    ("talker", "say 0.5", "send"),
    ("talker", "say 0", "stream"),
    ("thread", "wait 0.5", "send"),
    ("thread", "wait 0.2", "at once"),
]


def mixed(count: int) -> list[Sent]:
    """Messages of all kinds, in an order that is the same every time."""
    kinds = itertools.islice(itertools.cycle(KINDS), count)
    messages = [Sent(agent, text, how) for agent, text, how in kinds]
    random.Random(5).shuffle(messages)
    return messages


async def sent_until_killed(server: LedgerServer, messages: list[Sent]) -> None:
    """Send all at once, kill the server when some were acknowledged and some handlers are at work, and wait."""
    async with client(server.url) as http:
        sending = [asyncio.ensure_future(send(http, message)) for message in messages]

        def in_the_middle() -> bool:
            acknowledged = sum(message.is_acknowledged for message in messages)
            busy = len(server.noted(what="entered")) - len(server.noted(what="left"))
            return acknowledged >= len(messages) // 3 and busy >= 5

        async with asyncio.timeout(20):
            while not in_the_middle():
                await asyncio.sleep(0.01)
        await asyncio.to_thread(server.kill)
        await asyncio.gather(*sending)


async def test_after_kill_9_every_acknowledged_message_ends_and_none_is_doubled(server: LedgerServer) -> None:
    """Killed in the middle of the first attempts, and again in the middle of the second ones."""
    messages = mixed(60)
    server.start()
    await sent_until_killed(server, messages)
    acknowledged = {message.message_id: message.task_id for message in messages if message.is_acknowledged}
    assert 20 <= len(acknowledged) < 60
    server.start()
    until(lambda: server.noted(what="entered")[-1]["pid"] == server.pid, what="runs are entered again")
    server.kill()
    server.start()

    stored = server.store.messages()
    assert set(acknowledged) <= set(stored), "an acknowledged message is lost"
    assert all(stored[message_id] == task_id for message_id, task_id in acknowledged.items() if task_id)
    until(lambda: set(server.store.states().values()) <= set(TERMINAL), what="all runs ended", seconds=20)

    # The callers, none the wiser, send everything again.
    async with client(server.url) as http:
        again = [Sent(one.agent, one.text, "send", message_id=one.message_id) for one in messages]
        await asyncio.gather(*(send(http, one) for one in again))
    for one in again:
        assert not one.error
        known = stored.get(one.message_id)
        assert one.task_id in ({known, ""} if known else {one.task_id})
        if one.agent == "talker":
            assert one.answer["message"]["parts"][0]["text"] == f"You said {one.text}"
        else:
            assert one.state == "COMPLETED", one

    assert set(server.store.messages()) == {message.message_id for message in messages}
    assert len(server.store.states()) == 60
    assert set(server.store.states().values()) == {"COMPLETED"}
    server.store.check()
    check_ledger(server)


def check_ledger(server: LedgerServer) -> None:
    """See that each attempt was entered once, in order, and each journaled step performed once."""
    entered: dict[str, list[int]] = {}
    for line in server.noted(what="entered"):
        entered.setdefault(line["message"], []).append(line["attempt"])
    for attempts in entered.values():
        assert attempts == sorted(set(attempts)), "an attempt was entered twice"
        assert attempts[-1] <= 3
    steps = Counter(
        (line["task"], line["what"]) for line in server.noted() if line["what"].startswith("step")
    )
    repeated = [step for step, count in steps.items() if count > 1]
    # A step may be repeated only if the server died between performing it and saving that: at most one a task.
    assert len(repeated) == len({task for task, _ in repeated})


async def test_a_resent_message_waits_for_the_run_that_was_interrupted(server: LedgerServer) -> None:
    server.start()
    message = Sent("worker", "slow 0.8")
    async with client(server.url) as http:
        waiting = asyncio.ensure_future(send(http, message))
        entered = await asyncio.to_thread(server.await_note, "entered")
        await asyncio.to_thread(server.kill)
        assert (await waiting).error
    server.start()
    async with client(server.url) as http:
        again = await send(http, Sent("worker", "slow 0.8", message_id=message.message_id))
    assert (again.task_id, again.state) == (entered["task"], "COMPLETED")
    assert texts(again.answer["task"]) == ["slow done"]
    assert [line["attempt"] for line in server.noted(what="entered")] == [1, 2]


async def test_an_unfinished_run_goes_on_at_once_after_a_restart(server: LedgerServer) -> None:
    server.start()
    async with client(server.url) as http:
        task_id = (await send(http, Sent("worker", "steps 8", "at once"))).task_id
    server.await_note("step 3", task=task_id)
    server.kill()
    server.start()
    entered = until(
        lambda: [line for line in server.noted(what="entered") if line["attempt"] == 2],
        what="the second attempt",
        seconds=2.0,
    )
    assert entered[0]["task"] == task_id
    task = server.ended("worker", task_id)
    assert texts(task) == ["steps done"]
    steps = Counter(line["what"] for line in server.noted(task=task_id) if line["what"].startswith("step"))
    assert set(steps) == {f"step {number}" for number in range(8)}
    assert sum(steps.values()) <= 9
    assert steps["step 0"] == steps["step 1"] == steps["step 2"] == 1
