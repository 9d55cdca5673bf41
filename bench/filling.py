"""Fills a server with tasks, so that there is something to list or to restart with.

Dragoman's SQLite file is written directly, by the same operations as its server's, and
a PostgreSQL database multiplies what was sent, so that a million tasks take minutes and
not an hour; peers are filled by sends that do not wait (returnImmediately).
"""

import asyncio
import time
import uuid
from pathlib import Path

from bench.callers import PipelinedConnection
from bench.multiplying import multiply
from bench.processes import DATA, Running, start
from bench.replies import Reply, WrongReply
from bench.servers import Server
from bench.wire import MESSAGE_ID, Binding, Operation
from dragoman.gateway.ports import Acceptance, Lease, RunRequest
from dragoman.model import (
    LOCAL,
    Artifact,
    ArtifactChunk,
    Message,
    Role,
    Scope,
    StatusChange,
    TaskState,
    TextPart,
)
from dragoman.model.ids import new_id
from dragoman.stores.sqlite import accepting, commands
from dragoman.stores.sqlite.connection import open_writer
from dragoman.stores.sqlite.writer import Transaction

CONTEXTS = 10
"""The tasks are spread evenly over so many contexts."""

_CONNECTIONS = 64
_DEPTH = 4  # requests under way on each connection
_SEEDED_AT_ONCE = 2_000
_BATCH = 5_000  # tasks that may wait to be run; a multiple of CONTEXTS
_SLOWEST = 50.0  # tasks a second, for the time-out
_SETTLED = 60.0  # seconds for the last task to be completed


def seed(data: Path, count: int) -> None:
    """Write `count` completed tasks into the database in `data`, whose Dragoman has been and gone.

    They belong to the local principal and agent `echo`, and task number i to the
    context `context_id(i)`.

    Raises:
        StoreError: if there is no such database.
    """
    connection = open_writer(data / "dragoman.db")
    # Nothing of this must outlive a power cut.
    connection.execute("PRAGMA synchronous = OFF")
    scopes: dict[Scope, int] = {}
    for first in range(0, count, _SEEDED_AT_ONCE):
        connection.execute("BEGIN IMMEDIATE")
        now = connection.execute("SELECT now_ms FROM store_clock").fetchone()[0]
        transaction = Transaction(connection, 0, now, scopes)
        for number in range(first, min(first + _SEEDED_AT_ONCE, count)):
            _seed_one(transaction, number)
        transaction.write_counts()
        connection.execute("COMMIT")
        scopes.update(transaction.new_scopes)
    connection.close()


def _seed_one(transaction: Transaction, number: int) -> None:
    message = Message(
        message_id=str(uuid.uuid4()),
        role=Role.USER,
        parts=(TextPart(text="hello"),),
        context_id=context_id(number),
    )
    accepted = accepting.accept(
        transaction,
        Acceptance(
            scope=Scope(LOCAL, LOCAL, "echo"),
            message=message,
            digest=b"",
            idempotent=True,
            task_id=new_id(),
            context_id="",
            request=RunRequest(),
            deadline=3_600_000,
            visible=True,
        ),
        15_000,
    )
    artifact = Artifact(artifact_id=f"{accepted.task_id}-1", parts=message.parts)
    done = (ArtifactChunk(artifact, last_chunk=True), StatusChange(TaskState.COMPLETED))
    commands.append(transaction, Lease(accepted.task_id, 1), done, reveal=False)


def context_id(number: int) -> str:
    """The context of a task, by the task's number."""
    return f"bench-context-{number % CONTEXTS}"


def start_filled(server: Server, folder: Path, count: int) -> Running:
    """Start `server` with its files in `folder` and `count` completed tasks.

    Raises:
        Unavailable, WrongReply, OSError: if that fails; no process is left then.
    """
    if server.store_url:
        return _start_multiplied(server, folder, count)
    if server.is_ours:
        start(server, folder).stop()  # makes the database
        seed(folder / DATA, count)
        return start(server, folder)
    served = start(server, folder)
    try:
        fill(served, count)
    except BaseException:
        served.stop()
        raise
    return served


def _start_multiplied(server: Server, folder: Path, count: int) -> Running:
    served = start(server, folder)
    try:
        fill(served, CONTEXTS)
    finally:
        served.stop()
    multiply(server.store_url, count - CONTEXTS)
    return start(server, folder)


def fill(served: Running, count: int) -> None:
    """Send `count` messages and wait until all their tasks are completed.

    Raises:
        WrongReply: if a reply is not a good one.
        TimeoutError: if it takes far too long.
    """
    for first in range(0, count, _BATCH):
        last = min(first + _BATCH, count)
        asyncio.run(_send_all(served, last - first))
        _until_completed(served, last)


async def _send_all(served: Running, count: int) -> None:
    loop = asyncio.get_running_loop()
    wire = served.wire(Binding.JSONRPC)
    templates = [
        wire.send(Operation.IMMEDIATE, context_id=context_id(number)).split(MESSAGE_ID.encode())
        for number in range(CONTEXTS)
    ]
    finished: asyncio.Future[None] = loop.create_future()
    sent = answered = 0

    def send_next(connection: PipelinedConnection) -> None:
        nonlocal sent
        if sent < count:
            pieces = templates[sent % CONTEXTS]
            sent += 1
            connection.send(str(uuid.uuid4()).encode().join(pieces))

    def on_reply(connection: PipelinedConnection, _mark: float, reply: Reply) -> None:
        nonlocal answered
        answered += 1
        fault = reply.fault(Operation.IMMEDIATE)
        if fault is not None:
            fail(f"while filling: {fault}")
        elif answered == count and not finished.done():
            finished.set_result(None)
        else:
            send_next(connection)

    def fail(reason: str) -> None:
        if not finished.done():
            finished.set_exception(WrongReply(reason))

    connections = []
    try:
        async with asyncio.timeout(30 + count / _SLOWEST):
            for _ in range(_CONNECTIONS):
                _, connection = await loop.create_connection(
                    lambda: PipelinedConnection(
                        on_reply, lambda lost: fail(f"while filling: {lost} replies never came")
                    ),
                    served.host,
                    served.port,
                )
                connections.append(connection)
            for _ in range(_DEPTH):
                for connection in connections:
                    send_next(connection)
            await finished
    finally:
        for connection in connections:
            connection.close()


def _until_completed(served: Running, count: int) -> None:
    caller = served.caller()
    request = served.wire(Binding.JSONRPC).page({"status": "TASK_STATE_COMPLETED"}, page_size=1)
    deadline = time.monotonic() + _SETTLED
    while True:
        total = int(caller.call(request, Operation.LIST).at("totalSize"))
        if total >= count:
            caller.close()
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{total} of {count} tasks completed after {_SETTLED:.0f} s")
        time.sleep(0.05)
