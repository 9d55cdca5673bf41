"""SIGTERM: what runs is finished and answered, what does not end in time is handed on, and the process ends."""

import asyncio
import http.client
import socket
import time

from tests.durability.callers import Sent, client, send, subscription, texts
from tests.durability.ledger import LedgerServer
from tests.harness.polling import until

SHORT = """
[server]
drain = "500ms"
"""
NOTICE = """
[server]
notice = "1m"
"""


async def begun(server: LedgerServer, agent: str, text: str) -> str:
    """Send a message without waiting, and return the id of its task when its handler is at work."""
    async with client(server.url) as caller:
        task_id = (await send(caller, Sent(agent, text, "at once"))).task_id
    await asyncio.to_thread(server.await_note, "entered", task=task_id)
    return task_id


async def test_a_run_of_a_second_is_finished_and_its_waiting_caller_answered(server: LedgerServer) -> None:
    server.start()
    async with client(server.url) as caller:
        messages = [Sent("worker", "slow 1"), Sent("thread", "wait 1"), Sent("talker", "say 1")]
        waiting = [asyncio.ensure_future(send(caller, message)) for message in messages]
        await asyncio.to_thread(
            until, lambda: len(server.noted(what="entered")) == 3, what="three handlers are at work"
        )
        code = await asyncio.to_thread(server.terminate)
        answered = await asyncio.gather(*waiting)
    assert code == 0
    assert [message.error for message in answered] == ["", "", ""]
    assert [message.state for message in answered] == ["COMPLETED", "COMPLETED", ""]
    assert texts(answered[0].answer["task"]) == ["slow done"]
    assert answered[2].answer["message"]["parts"][0]["text"] == "You said say 1"
    assert len(server.noted(what="left")) == 3
    assert "Traceback" not in server.printed_errors()
    server.store.check()


async def test_a_stopping_server_takes_no_new_connection_and_a_second_signal_ends_it(
    server: LedgerServer,
) -> None:
    server.start()
    task_id = await begun(server, "worker", "slow 3")
    ending = asyncio.ensure_future(asyncio.to_thread(server.terminate))
    port = int(server.url.rsplit(":", 1)[1])

    def is_refused() -> bool:
        with socket.socket() as probe:
            probe.settimeout(0.5)
            return probe.connect_ex(("127.0.0.1", port)) != 0

    await asyncio.to_thread(until, is_refused, what="connections are refused", seconds=2.0)
    assert not ending.done()
    server.interrupt()
    assert await ending == 0
    assert server.noted(what="left", task=task_id) == []
    assert server.store.states()[task_id] == "WORKING", "the next server goes on with it"
    server.store.check()


async def test_streams_end_at_once_and_go_on_at_the_next_server(server: LedgerServer) -> None:
    server.start()
    async with client(server.url) as caller:
        message = Sent("worker", "stream 30", "stream")
        streaming = asyncio.ensure_future(send(caller, message))
        while len(message.frames) < 4:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        ending = asyncio.ensure_future(asyncio.to_thread(server.terminate))
        await streaming
        assert time.monotonic() - began < 1.0
        assert message.error == ""
        assert message.state != "COMPLETED"
        assert await ending == 0
    assert server.store.states() == {message.task_id: "COMPLETED"}, "the run was finished all the same"
    server.start()
    async with client(server.url) as caller:
        rest = await subscription(caller, "worker", message.task_id, last_event=message.frames[-1].id)
    numbers = [frame.id for frame in (*message.frames, *rest)]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_run_that_outlives_the_drain_is_finished_by_the_next_server(server: LedgerServer) -> None:
    server = server.configured(SHORT)
    with server:
        task_id = await begun(server, "worker", "slow 1.5")
        began = time.monotonic()
        assert await asyncio.to_thread(server.terminate) == 0
        assert time.monotonic() - began < 3.0
        assert server.noted(what="stopped", task=task_id)
        assert server.store.states()[task_id] == "WORKING"
        server.start()
        task = await asyncio.to_thread(server.ended, "worker", task_id)
        assert texts(task) == ["slow done"]
        assert [line["attempt"] for line in server.noted(what="entered")] == [1, 2]
    server.store.check()


async def test_who_waits_for_a_run_that_outlives_the_drain_is_told_how_it_stands(
    server: LedgerServer,
) -> None:
    server = server.configured(SHORT)
    with server:
        async with client(server.url) as caller:
            message = Sent("worker", "slow 2")
            waiting = asyncio.ensure_future(send(caller, message))
            await asyncio.to_thread(server.await_note, "entered")
            assert await asyncio.to_thread(server.terminate) == 0
            await waiting
        assert (message.error, message.state) == ("", "WORKING")
        server.start()
        assert texts(await asyncio.to_thread(server.ended, "worker", message.task_id)) == ["slow done"]


async def test_a_server_that_gives_notice_is_not_ready_and_answers_everything_meanwhile(
    server: LedgerServer,
) -> None:
    server = server.configured(NOTICE)
    with server:
        kept = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)

        def ready() -> tuple[int, str | None]:
            kept.request("GET", "/readyz")
            with kept.getresponse() as reply:
                reply.read()
                return reply.status, reply.getheader("connection")

        assert ready() == (200, None)
        assert kept.sock is not None
        ending = asyncio.ensure_future(asyncio.to_thread(server.terminate))
        await asyncio.to_thread(until, lambda: ready() == (503, "close"), what="the server is not ready")
        async with client(server.url) as caller:
            done = await send(caller, Sent("worker", "hello"))
            assert (done.state, done.error) == ("COMPLETED", "")
            message = Sent("worker", "stream 30", "stream")
            streaming = asyncio.ensure_future(send(caller, message))
            while len(message.frames) < 4:
                await asyncio.sleep(0.01)
            assert not ending.done()
            server.interrupt()
            await streaming
        assert message.error == ""
        assert await ending == 0, "a second signal ends the notice"


async def test_no_handler_keeps_a_server_from_ending(server: LedgerServer) -> None:
    """One that waits in its thread, one that is deaf there, one that acts there, one that blocks its loop."""
    server = server.configured(SHORT)
    with server:
        runs = [("thread", "wait 60"), ("thread", "deaf 60"), ("thread", "loud 60"), ("blocker", "block 60")]
        for agent, text in runs:
            await begun(server, agent, text)
        assert await asyncio.to_thread(server.terminate, 10.0) == 0
        assert set(server.store.states().values()) <= {"SUBMITTED", "WORKING"}
    server.store.check()
