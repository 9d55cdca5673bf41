"""An operator beside a running server: `dragoman tasks cancel` stops what runs there."""

import asyncio
import json
import time
from typing import Any

from tests.durability.callers import Sent, client, send, subscription
from tests.durability.ledger import LedgerServer, dragoman

NOTICE_SECONDS = 5.0
"""Seconds within which a server notices what a command wrote (SPEC C2)."""


def command(server: LedgerServer, *arguments: str) -> Any:
    """Run `dragoman tasks ...` on the data of a server."""
    return dragoman("tasks", *arguments, "--data", str(server.data), folder=server.data.parent)


async def begun(server: LedgerServer, agent: str, text: str) -> str:
    """Send a message without waiting, and return the id of its task when its handler is at work."""
    async with client(server.url) as http:
        task_id = (await send(http, Sent(agent, text, "at once"))).task_id
    await asyncio.to_thread(server.await_note, "entered", task=task_id)
    return task_id


async def test_cancel_stops_the_handlers_of_a_running_server_in_time_and_tells_who_waits(
    server: LedgerServer,
) -> None:
    """One handler that acts, one that waits, one in a thread; a stream and a blocking caller; and a bystander."""
    server.start()
    runs = [await begun(server, *run) for run in (("worker", "slow 60"), ("worker", "sleep 60"))]
    runs.append(await begun(server, "thread", "wait 60"))
    async with client(server.url) as http:
        waiting = asyncio.ensure_future(send(http, Sent("either", "slow 60")))
        watching = asyncio.ensure_future(subscription(http, "worker", runs[1]))
        runs.append((await asyncio.to_thread(server.await_note, "entered", agent="either"))["task"])
        bystander = await begun(server, "worker", "sleep 60")
        for task_id in runs:
            done = await asyncio.to_thread(command, server, "cancel", task_id)
            assert (done.returncode, done.stderr) == (0, "")
        canceled_at = time.monotonic()
        assert server.state("worker", runs[0]) == "CANCELED"
        for task_id in runs:
            await asyncio.to_thread(server.await_note, "stopped", task=task_id, seconds=NOTICE_SECONDS)
        answered = await asyncio.wait_for(waiting, NOTICE_SECONDS)
        seen = await asyncio.wait_for(watching, NOTICE_SECONDS)
        assert time.monotonic() - canceled_at < NOTICE_SECONDS
    assert answered.state == "CANCELED"
    assert seen[-1].data["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
    assert server.state("worker", bystander) == "WORKING"
    assert {line["task"] for line in server.noted(what="stopped")} == set(runs)
    server.store.check()


def test_cancel_works_while_no_server_runs_and_the_next_one_leaves_the_task_alone(
    server: LedgerServer,
) -> None:
    with server:
        task_id = asyncio.run(begun(server, "worker", "slow 60"))
        server.kill()
        assert command(server, "cancel", task_id).returncode == 0
        server.start()
        assert server.state("worker", task_id) == "CANCELED"
        other = asyncio.run(begun(server, "worker", "quick"))
        server.ended("worker", other)
    assert [line["attempt"] for line in server.noted(what="entered", task=task_id)] == [1]


def test_commands_that_only_read_or_are_refused_disturb_nothing(server: LedgerServer) -> None:
    with server:
        task_id = asyncio.run(begun(server, "worker", "slow 1.5"))
        listed = command(server, "list", "--json")
        shown = command(server, "show", task_id, "--json")
        assert [row["id"] for row in json.loads(listed.stdout)] == [task_id]
        assert json.loads(shown.stdout)["id"] == task_id
        unknown = command(server, "cancel", "no-such-task")
        task = server.ended("worker", task_id)
        finished = command(server, "cancel", task_id)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert server.noted(what="stopped") == []
    assert (finished.returncode, unknown.returncode) == (1, 1)
    assert "COMPLETED" in finished.stderr
    assert "no-such-task" in unknown.stderr
    assert "Traceback" not in finished.stderr + unknown.stderr
