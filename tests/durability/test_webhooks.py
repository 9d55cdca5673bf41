"""Push notifications under load, beside receivers that hang, and through kill -9: in order, and none is lost."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness import stores
from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.receiver import OK, Notified, Receiver, status
from tests.harness.server import ServerProcess

CONFIG = """
[outbound]
allow = ["127.0.0.0/8"]
ports = "any"
schemes = ["https", "http"]
retry = "200ms"
[agents.demo]
python = "dragoman.agents.demo:demo"
push = true
max_runs = 100
"""
RECEIVERS = 50
EVENTS = 20
"""Of one task: submitted, working, chunks and completed."""


@pytest.fixture
def pushing(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server whose agent sends push notifications; not started yet."""
    config = tmp_path / "dragoman.toml"
    config.write_text(CONFIG, encoding="utf-8")
    server = ServerProcess(tmp_path / "data", config=config)
    yield server
    server.close()


async def begin(http: httpx2.AsyncClient, name: str, url: str, events: int) -> str:
    """Send a message whose task has so many events, to be told to a URL, and return the id of the task."""
    body: dict[str, Any] = {
        "message": {"messageId": name, "role": "ROLE_USER", "parts": [{"text": f"stream {events - 3}"}]},
        "configuration": {"returnImmediately": True, "taskPushNotificationConfig": {"url": url, "id": "c"}},
    }
    reply = await http.post("/agents/demo/message:send", json=body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["task"]["id"])


async def begin_all(server: ServerProcess, urls: list[str], events: int) -> list[str]:
    headers = {"A2A-Version": "1.0"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=30, trust_env=False) as http:
        return list(await asyncio.gather(*(begin(http, f"m{n}", url, events) for n, url in enumerate(urls))))


def firsts(notified: list[Notified]) -> list[int]:
    """The numbers of events, each where it came first; one that comes again must say the same."""
    bodies: dict[str, bytes] = {}
    found = []
    for one in notified:
        if one.event not in bodies:
            found.append(one.sequence)
        assert bodies.setdefault(one.event, one.body) == one.body
    return found


# How soon receivers are told counts from the send, which Temporal takes its time to execute.
@pytest.mark.embedded
async def test_a_thousand_events_reach_their_receivers_beside_one_that_hangs(pushing: ServerProcess) -> None:
    pushing.start()
    with ExitStack() as stack:
        receivers = [stack.enter_context(Receiver()) for _ in range(RECEIVERS)]
        hanging, others = receivers[0], receivers[1:]
        hanging.answer = lambda one: None
        began = time.monotonic()
        await begin_all(pushing, [one.url() for one in receivers], EVENTS)
        for one in others:
            await asyncio.to_thread(one.wait, EVENTS, seconds=10)
        took = time.monotonic() - began
        for one in others:
            assert [notified.sequence for notified in one.got()] == [*range(1, EVENTS + 1)]
            assert "completed" in one.got()[-1].body.decode().lower()
        assert [one.sequence for one in hanging.got()] == [1]
    assert took < 5.0


# How soon receivers are told counts from the send, which Temporal takes its time to execute.
@pytest.mark.embedded
async def test_many_that_hang_at_one_place_delay_nobody_elsewhere(pushing: ServerProcess) -> None:
    pushing.start()
    with Receiver(lambda one: None) as hanging, Receiver() as other:
        tasks = await begin_all(pushing, [hanging.url(f"/{n}") for n in range(60)], EVENTS)
        assert len(set(tasks)) == 60
        hanging.wait(10)
        async with httpx2.AsyncClient(
            base_url=pushing.url, headers={"A2A-Version": "1.0"}, timeout=30, trust_env=False
        ) as http:
            await begin(http, "one more", other.url(), EVENTS)
        notified = await asyncio.to_thread(other.wait, EVENTS, seconds=5)
        assert [one.sequence for one in notified] == [*range(1, EVENTS + 1)]
        assert len(hanging.got()) <= 16, "no place has more requests at a time"


async def test_a_killed_server_loses_no_event_and_repeats_one_only_under_its_id(
    pushing: ServerProcess,
) -> None:
    pushing.start()
    with Receiver() as receiver:
        # One answer to each never comes: what it was for is sent again by the next server.
        receiver.answer = lambda one: None if one.sequence == 7 else OK
        urls = [receiver.url(f"/{number}") for number in range(10)]
        tasks = await begin_all(pushing, urls, 40)
        await asyncio.to_thread(receiver.wait, 70, seconds=20)
        pushing.kill()
        receiver.answer = lambda one: OK
        before = len(receiver.got())
        pushing.start()
        until(lambda: _open(pushing) == 0, what="every receiver was told everything", seconds=30)
        assert len(receiver.got()) > before
        for number, task_id in enumerate(tasks):
            notified = receiver.got(f"/{number}")
            found = firsts(notified)
            assert found == [*range(1, found[-1] + 1)], "each, in order"
            assert {one.event.partition("/")[0] for one in notified} == {task_id}
            last = json.loads(notified[-1].body)["statusUpdate"]["status"]["state"]
            assert last == "TASK_STATE_COMPLETED"
        assert len(receiver.got()) > sum(len(firsts(receiver.got(f"/{n}"))) for n in range(10))


async def test_what_was_given_up_is_redelivered_beside_the_server(
    pushing: ServerProcess, tmp_path: Path
) -> None:
    config = tmp_path / "dragoman.toml"
    config.write_text(CONFIG.replace("200ms", "5ms"), encoding="utf-8")
    pushing.start()
    with Receiver(lambda one: status(503)) as receiver:
        (task_id,) = await begin_all(pushing, [receiver.url()], EVENTS)
        await asyncio.to_thread(receiver.wait, 8)
        await asyncio.to_thread(until, lambda: dead(pushing) == [task_id], what="it is given up")
        receiver.answer = lambda one: OK
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "dragoman", "webhooks", "redeliver", task_id, "--data", str(pushing.data)],
            env={**os.environ, "PYTHONPATH": str(SOURCE), **stores.environment(pushing.data)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "1 to be redelivered\n"), done.stderr
        notified = await asyncio.to_thread(receiver.wait, 8 + EVENTS, seconds=5)
        assert [one.sequence for one in notified] == [*[1] * 8, *range(1, EVENTS + 1)]
        assert dead(pushing) == []


def dead(server: ServerProcess) -> list[str]:
    """The tasks with a configuration that was given up."""
    found = stores.query(server.data, "SELECT task_id FROM push_config WHERE state = 'dead'")
    return [task_id for (task_id,) in found]


def _open(server: ServerProcess) -> int:
    """How many configurations have receivers that are to be told more, by this server or by one before it."""
    ((number,),) = stores.query(server.data, "SELECT count(*) FROM push_config WHERE state = 'open'")
    return int(number)
