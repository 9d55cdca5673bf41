"""`dragoman backup`: a verified copy of one moment, made beside a busy server, that another server can serve."""

import asyncio
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.stores.sqlite import StoreError, back_up
from dragoman.stores.sqlite.connection import open_writer
from dragoman.stores.sqlite.migrating import migrations
from tests.durability.callers import Sent, client, send
from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.harness.wire import call

pytestmark = pytest.mark.sqlite

CALLERS = 8
TASKS = 40
BIG = "big 512"
"""An artifact of 512 KiB: with forty of them the copy takes several steps."""


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "dragoman", "backup", *map(str, arguments)]


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return kept | {"PYTHONPATH": str(SOURCE)}


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def task(server: ServerProcess, sent: Sent) -> bytes:
    """A task as the server tells it, byte for byte."""
    reply = call("GET", f"{server.url}/agents/{sent.agent}/tasks/{sent.task_id}")
    assert reply.status == 200, reply
    return reply.body


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a server that has ended, with a store of some 20 MiB."""
    data = tmp_path_factory.mktemp("filled") / "data"
    with ServerProcess(data) as server:
        asyncio.run(fill(server.url))
        assert server.terminate() == 0
    return data


async def fill(url: str) -> list[Sent]:
    """Send what makes big artifacts, some at once."""
    sent = [Sent("demo", BIG) for _ in range(TASKS)]
    async with client(url) as http:
        for start in range(0, TASKS, CALLERS):
            await asyncio.gather(*(send(http, one) for one in sent[start : start + CALLERS]))
    assert {one.state for one in sent} == {"COMPLETED"}
    return sent


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Path:
    """A store of some 20 MiB in the folder `data`; no server has it."""
    shutil.copytree(filled, tmp_path / "data")
    return tmp_path / "data" / "dragoman.db"


def left_behind(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"data"}


async def test_a_copy_made_under_load_is_served_by_another_server(tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "dragoman.db"
    copy.parent.mkdir()
    during: list[Sent] = []
    with ServerProcess(tmp_path / "data") as server:
        before = await fill(server.url)
        async with client(server.url) as http:
            done = asyncio.Event()

            async def keep_sending() -> None:
                while not done.is_set():
                    during.append(await send(http, Sent("demo", "hello")))

            sending = [asyncio.create_task(keep_sending()) for _ in range(CALLERS)]
            process = await asyncio.create_subprocess_exec(
                *command(copy, "--data", server.data, "--json"),
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            out, err = await process.communicate()
            done.set()
            await asyncio.gather(*sending)
        assert (process.returncode, err) == (0, b"")
        assert {one.state for one in [*before, *during]} == {"COMPLETED"}
        assert [one.error for one in during if one.error] == []
        told = json.loads(out)
        assert len(before) <= told["tasks"] <= len(before) + len(during)
        expected = {one.task_id: task(server, one) for one in before}

    with ServerProcess(copy.parent) as second:
        assert {one.task_id: task(second, one) for one in before} == expected
        listed = call("GET", f"{second.url}/agents/demo/tasks?pageSize=100").json()
        # A task that is not shown before its first act is, at the latest once the second server has taken it up.
        assert told["tasks"] <= listed["totalSize"] <= len(before) + len(during)
        assert len(listed["tasks"]) == min(100, listed["totalSize"])


async def test_a_task_that_runs_while_the_copy_is_made_runs_on_at_the_copys_server(tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "dragoman.db"
    copy.parent.mkdir()
    running = Sent("demo", "slow 60", "at once")
    with ServerProcess(tmp_path / "data") as server:
        async with client(server.url) as http:
            await send(http, running)
        url = f"{server.url}/agents/demo/tasks/{running.task_id}"
        until(lambda: b"TASK_STATE_WORKING" in call("GET", url).body, what="the task works")
        assert run(copy, "--data", server.data, cwd=tmp_path).returncode == 0
    with ServerProcess(copy.parent) as second:
        url = f"{second.url}/agents/demo/tasks/{running.task_id}"
        until(lambda: attempt(copy, running) == 2, what="the second server has taken the task up")
        assert call("GET", url).json()["status"]["state"] == "TASK_STATE_WORKING"
        assert call("POST", f"{url}:cancel").json()["status"]["state"] == "TASK_STATE_CANCELED"


def attempt(store: Path, sent: Sent) -> int:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        row = connection.execute("SELECT attempt FROM task WHERE id = ?", (sent.task_id,)).fetchone()
    return int(row[0])


def test_writes_between_the_steps_neither_enter_the_copy_nor_start_it_over(
    store: Path, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []
    with closing(open_writer(store)) as busy:
        busy.execute("CREATE TABLE scratch (payload BLOB)")

        def write(done: int, total: int) -> None:
            seen.append((done, total))
            busy.execute("INSERT INTO scratch VALUES (?)", (b"y" * 65_536,))
            busy.execute("UPDATE server SET process = 'changed meanwhile'")

        made = back_up(store, tmp_path / "copy.db", write)
        assert busy.execute("SELECT count(*) FROM scratch").fetchone() == (len(seen),)
    assert len(seen) > 3
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]
    with closing(sqlite3.connect(made.file)) as copy:
        assert copy.execute("SELECT count(*) FROM scratch").fetchone() == (0,)
        assert copy.execute("SELECT process FROM server").fetchone() != ("changed meanwhile",)
    assert made.tasks == TASKS


def test_the_copy_is_one_file_that_only_its_owner_reads(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    result = run("copy.db", "--data", "data", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    size = target.stat().st_size
    assert (
        result.stdout
        == f"copy.db: {TASKS} tasks, {size / 1024 / 1024:.1f} MiB, schema {len(migrations())}, verified\n"
    )
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert left_behind(tmp_path) == {"copy.db"}
    assert target.read_bytes()[18:20] == b"\x01\x01", "journal in a file of its own, no WAL"


def test_a_copy_is_told_of_to_programs(store: Path, tmp_path: Path) -> None:
    result = run("copy.db", "--data", "data", "--json", cwd=tmp_path)
    size = (tmp_path / "copy.db").stat().st_size
    assert json.loads(result.stdout) == {
        "file": "copy.db",
        "bytes": size,
        "tasks": TASKS,
        "schema": len(migrations()),
    }


def test_the_store_that_is_configured_is_copied(store: Path, tmp_path: Path) -> None:
    config = tmp_path / "other.toml"
    config.write_text(f'[store]\nurl = "sqlite:///{store}"\n', encoding="utf-8")
    assert run("copy.db", "--config", config, cwd=tmp_path).returncode == 0
    assert (tmp_path / "copy.db").stat().st_size > TASKS * 512 * 1024


def test_a_file_that_is_there_is_never_overwritten(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious", encoding="utf-8")
    result = run(target, "--data", "data", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "is there already and is not overwritten" in result.stderr
    assert target.read_text(encoding="utf-8") == "precious"
    link = tmp_path / "link.db"
    link.symlink_to("nowhere")
    assert run(link, "--data", "data", cwd=tmp_path).returncode == 2
    assert run(store, "--data", "data", cwd=tmp_path).returncode == 2
    assert left_behind(tmp_path) == {"copy.db", "link.db"}


def test_a_file_that_appears_meanwhile_is_not_overwritten_either(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    with pytest.raises(FileExistsError):
        back_up(store, target, lambda done, total: target.write_text("precious", encoding="utf-8") and None)
    assert target.read_text(encoding="utf-8") == "precious"
    assert left_behind(tmp_path) == {"copy.db"}


def test_a_copy_that_is_broken_off_leaves_nothing(store: Path, tmp_path: Path) -> None:
    def break_off(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(store, tmp_path / "copy.db", break_off)
    assert left_behind(tmp_path) == set()


def test_damage_is_found_in_the_copy_and_told(store: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'event'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with store.open("r+b") as file:
        file.seek((root - 1) * size + 8)
        file.write(b"\xff" * 64)
    result = run("copy.db", "--data", "data", cwd=tmp_path)
    assert result.returncode == 1
    assert "damaged" in result.stderr
    assert left_behind(tmp_path) == set()


def test_what_is_no_store_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    text, other = tmp_path / "data" / "text.db", tmp_path / "data" / "other.db"
    text.write_bytes(b"hello")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE something (x)")
    for source, words in ((text, "not a database"), (other, "no store of Dragoman")):
        with pytest.raises(StoreError, match=words):
            back_up(source, tmp_path / "copy.db", lambda done, total: None)
    assert left_behind(tmp_path) == set()


def test_what_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    missing = run("copy.db", "--data", "data", cwd=tmp_path)
    assert missing.returncode == 1
    assert (
        "there is no store at data/dragoman.db; name the server's data folder with --data" in missing.stderr
    )
    nowhere = run("no/such/copy.db", "--data", "data", cwd=tmp_path)
    assert (nowhere.returncode, nowhere.stderr) == (2, "dragoman: no/such: there is no such folder\n")
    assert run("copy.db", "--config", "none.toml", cwd=tmp_path).returncode == 2
    assert left_behind(tmp_path) == set()
