"""A server is killed while far more runs wait than may: whatever was accepted runs, each once at a time."""

import asyncio
from collections import Counter

import pytest

from tests.durability.callers import Sent, body, client, send
from tests.durability.ledger import AGENTS, LedgerServer
from tests.durability.test_parked import gauge
from tests.harness.polling import until
from tests.harness.wire import call

# How many wait for how long is up to Temporal where it is the engine.
pytestmark = pytest.mark.embedded

CONFIG = f"""
[engine]
max_runs = {{total}}
[agents.first]
python = "{AGENTS}:narrow"
max_runs = 4
max_waiting = {{waiting}}
[agents.second]
python = "{AGENTS}:narrow"
max_runs = 4
max_waiting = {{waiting}}
"""
COUNT = 30
"""Messages to each of the two agents."""


async def test_a_restart_runs_all_that_wait_though_they_are_more_than_may(server: LedgerServer) -> None:
    wide = server.configured(CONFIG.format(total=4, waiting=COUNT))
    messages = [Sent(agent, "sleep 0.2", "at once") for agent in ("first", "second") for _ in range(COUNT)]
    with wide:
        async with client(wide.url) as http:
            await asyncio.gather(*(send(http, message) for message in messages))
        await asyncio.to_thread(
            until, lambda: len(wide.noted(what="entered")) >= 4, what="four runs were entered"
        )
        wide.kill()

    narrow = server.configured(CONFIG.format(total=3, waiting=2))
    with narrow:
        see_taken_up(narrow)
        refused = _refusals(narrow)
        await asyncio.to_thread(
            until, lambda: len(narrow.noted(what="left")) >= 10, what="some runs have ended", seconds=20
        )
        narrow.kill()
        narrow.start()
        see_taken_up(narrow)
        refused += _refusals(narrow)
        for message in messages:
            await asyncio.to_thread(narrow.ended, message.agent, message.task_id, seconds=30)
        done = {message.task_id: "COMPLETED" for message in messages}
        assert narrow.store.states() == done, "nothing was lost, and nothing that was refused is there"
        assert refused == [429] * 4
        async with client(narrow.url) as http:
            again = await send(http, Sent("first", "quick"))
        assert again.state == "COMPLETED"
    server.store.check()
    left = Counter(line["task"] for line in server.noted(what="left"))
    assert all(left[task_id] >= 1 for task_id in done)
    assert sum(left.values()) <= len(done) + 1 + 2 * 4, "only what ended as the server was killed ran again"
    assert _most_at_once(server) == [4, 3, 3]


def see_taken_up(server: LedgerServer) -> None:
    """See that a server has all runs of the one before: where servers share a store, it waits for that one's death."""

    def is_taken_up() -> bool:
        unfinished = len(server.store.unfinished())
        return gauge(server, "dragoman_runs_running", "dragoman_runs_waiting") >= unfinished

    until(is_taken_up, what="what was left runs or waits here")


def _refusals(server: LedgerServer) -> list[int]:
    """What a further message to each agent is answered with."""
    statuses = []
    for agent in ("first", "second"):
        reply = call(
            "POST", f"{server.url}/agents/{agent}/message:send", body(Sent(agent, "quick"), at_once=True)
        )
        statuses.append(reply.status)
    return statuses


def _most_at_once(server: LedgerServer) -> list[int]:
    """How many handlers were inside at once at most, for each start of the server."""
    inside: dict[int, set[str]] = {}
    most: dict[int, int] = {}
    for line in server.noted():
        tasks = inside.setdefault(line["pid"], set())
        (tasks.add if line["what"] == "entered" else tasks.discard)(line["task"])
        most[line["pid"]] = max(most.get(line["pid"], 0), len(tasks))
    return list(most.values())
