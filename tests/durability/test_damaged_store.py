"""A page of a store that was damaged: what is on it is refused with a clear word, and everything else goes on."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.model import Scope, TaskState
from dragoman.stores.sqlite import SqliteStore
from tests.contract.samples import begun, chunk, message, status
from tests.durability.callers import Sent, body, client, send
from tests.durability.ledger import LedgerServer
from tests.harness.polling import until

pytestmark = pytest.mark.sqlite

SCOPE = Scope("local", "local", "worker")
TASKS = 300


def fill(data: Path) -> list[str]:
    """Make a store with finished tasks, each with a text of some size; return their ids in order."""

    async def filled() -> list[str]:
        store = SqliteStore(data / "dragoman.db", lease=15.0, on_lost=lambda: None)
        ids = []
        for number in range(TASKS):
            lease = await begun(store, sent=message(f"task {number}", message_id=f"m-{number}"), scope=SCOPE)
            await store.append(lease, [chunk("x" * 1500), status(TaskState.COMPLETED)])
            ids.append(lease.task_id)
        store.close()
        return ids

    return asyncio.run(filled())


TABLE, INDEX = 13, 10
"""The first bytes of SQLite's leaf pages: of a table with row ids, and of any other."""


def page_with(file: Path, text: str, kind: int) -> tuple[int, bytes]:
    """Where the leaf page of this kind is that holds a text, and what is on it."""
    content = file.read_bytes()
    pages = ((start, content[start : start + 4096]) for start in range(4096, len(content), 4096))
    return next((start, page) for start, page in pages if page[0] == kind and text.encode() in page)


@contextmanager
def damaged(file: Path, start: int, page: bytes) -> Iterator[None]:
    """Let a page hold nonsense, as a broken disk or a stray write leaves it."""
    try:
        _write(file, start, b"\xa5" * 4096)
        yield
    finally:
        _write(file, start, page)


def _write(file: Path, start: int, content: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(start)
        opened.write(content)


@pytest.fixture
def tasks(server: LedgerServer) -> list[str]:
    """The ids of what is in the store; no server has it yet."""
    return fill(server.data)


async def test_what_is_on_a_damaged_page_is_refused_and_everything_else_goes_on(
    server: LedgerServer, tasks: list[str]
) -> None:
    file = server.data / "dragoman.db"
    with damaged(file, *page_with(file, '"task 150"', TABLE)), server:
        async with client(server.url) as http:
            assert (await http.get("/readyz")).status_code == 200, "nobody has met the damage yet"
            gone = await http.get(f"/agents/worker/tasks/{tasks[150]}")
            assert gone.status_code == 503
            error = gone.json()["error"]
            assert error["details"][0]["reason"] == "UNAVAILABLE"
            assert "damaged" in error["message"]
            assert not [word for word in ("malformed", "disk image", str(server.data)) if word in gone.text]
            for number in (0, TASKS - 1):
                assert (await http.get(f"/agents/worker/tasks/{tasks[number]}")).status_code == 200
            sent = await send(http, Sent("worker", "quick"))
            assert sent.state == "COMPLETED"
            unready = await http.get("/readyz")
            assert unready.status_code == 503
            (reason,) = unready.json()["reasons"]
            assert "is damaged" in reason
            assert "put a copy in its place" in reason
            assert (await http.get("/healthz")).status_code == 200
        until(lambda: f"the store {file} is damaged" in server.printed_errors(), what="the log says so")
    assert "Traceback" not in server.printed_errors()


async def test_once_the_file_is_whole_again_the_next_server_serves_all_of_it(
    server: LedgerServer, tasks: list[str]
) -> None:
    file = server.data / "dragoman.db"
    sent = Sent("worker", "quick")
    with damaged(file, *page_with(file, '"task 150"', TABLE)), server:
        async with client(server.url) as http:
            assert (await http.get(f"/agents/worker/tasks/{tasks[150]}")).status_code == 503
            await send(http, sent)
        server.terminate()
    with server:
        async with client(server.url) as http:
            assert (await http.get("/readyz")).status_code == 200
            for task_id in (tasks[150], sent.task_id):
                assert (await http.get(f"/agents/worker/tasks/{task_id}")).status_code == 200
        server.store.check()


async def test_a_write_that_meets_damage_fails_alone_and_its_neighbours_do_not(
    server: LedgerServer, tasks: list[str]
) -> None:
    """The identity of an old message is on the damaged page: only who sends that message again is refused."""
    file = server.data / "dragoman.db"
    # New ids begin with a digit or a letter up to f, and so come to other pages.
    start, page = page_with(file, "m-80", INDEX)
    with damaged(file, start, page), server:
        async with client(server.url) as http:
            others = [Sent("worker", "quick") for _ in range(20)]
            old = Sent("worker", "task 80", message_id="m-80")
            again = http.post("/agents/worker/message:send", json=body(old))
            *answered, refused = await asyncio.gather(*(send(http, one) for one in others), again)
            assert refused.status_code == 503
            assert "damaged" in refused.text
            assert {one.state for one in answered} == {"COMPLETED"}
            assert (await http.get("/readyz")).status_code == 503
    until(lambda: len(server.store.messages()) == TASKS + 20, what="all that was accepted is there")
    server.store.check()
