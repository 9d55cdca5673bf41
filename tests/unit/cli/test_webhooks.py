"""`dragoman webhooks` on a store that no server has."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dragoman.cli import app
from dragoman.gateway.hooks import KeptConfig
from dragoman.model import TaskState
from dragoman.stores.sqlite import SqliteStore
from tests.contract.samples import ALICE, begun, brought_to

RUN = CliRunner()


def kept(config_id: str, url: str = "https://hooks.example.com/secret-path") -> KeptConfig:
    return KeptConfig(id=config_id, generation="1.0", url=url, scheme="Bearer", sealed=b"sealed")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with three configurations: one open, one given up, one done."""

    async def fill() -> None:
        store = SqliteStore(tmp_path / "dragoman.db", lease=15.0, on_lost=lambda: None)
        first = await begun(store, task_id="task-1", push=kept("a"))
        await store.set_hook(ALICE, first.task_id, kept("b\x1b[31m", "https://[2606::1]:8443/x"))
        hook = await store.hook("task-1", "b\x1b[31m")
        assert hook is not None
        await store.not_told(hook, 8, "the receiver answered 503", wait=None)
        await brought_to(store, TaskState.COMPLETED, task_id="task-2")
        await store.set_hook(ALICE, "task-2", kept("c"))
        store.close()

    asyncio.run(fill())
    return tmp_path


def run(data: Path, *arguments: str) -> Result:
    return RUN.invoke(app, ["webhooks", *arguments, "--data", str(data)])


def rows(data: Path, *arguments: str) -> list[dict[str, Any]]:
    result = run(data, "list", "--json", *arguments)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_configurations_are_listed_without_the_secrets_of_their_urls(data: Path) -> None:
    found = rows(data)
    assert [(row["task"], row["id"], row["state"], row["sent"], row["tries"]) for row in found] == [
        ("task-1", "a", "open", 0, 0),
        ("task-1", "b\x1b[31m", "dead", 1, 8),
        ("task-2", "c", "done", 2, 0),
    ]
    assert [row["to"] for row in found] == [
        "https://hooks.example.com",
        "https://[2606::1]:8443",
        "https://hooks.example.com",
    ]
    assert found[1]["error"] == "the receiver answered 503"
    assert (found[1]["agent"], found[1]["tenant"], found[1]["principal"]) == ("writer", "acme", "alice")
    plain = run(data, "list")
    assert "secret-path" not in plain.stdout and "\x1b" not in plain.stdout
    assert plain.stdout.splitlines()[0].split("\t")[:3] == ["task", "id", "agent"]


def test_a_listing_may_be_of_one_state_or_task(data: Path) -> None:
    assert [row["id"] for row in rows(data, "--state", "dead")] == ["b\x1b[31m"]
    assert [row["id"] for row in rows(data, "--state", "open")] == ["a"]
    assert [row["id"] for row in rows(data, "--state", "done")] == ["c"]
    assert [row["id"] for row in rows(data, "--task", "task-1")] == ["a", "b\x1b[31m"]
    assert rows(data, "--task", "nope") == []
    assert "no push notification configurations" in run(data, "list", "--task", "nope").stderr
    refused = run(data, "list", "--state", "lost")
    assert (refused.exit_code, "one of open, done, dead" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments", [["--all"], ["task-1"], ["task-1", "b\x1b[31m"]], ids=["all", "task", "one"]
)
def test_what_was_given_up_is_tried_again(data: Path, arguments: list[str]) -> None:
    result = run(data, "redeliver", *arguments)
    assert (result.exit_code, result.stdout) == (0, "1 to be redelivered\n")
    (row,) = rows(data, "--task", "task-1", "--state", "open")[1:]
    assert (row["id"], row["tries"], row["sent"]) == ("b\x1b[31m", 0, 1)
    with closing(sqlite3.connect(data / "dragoman.db")) as store:
        action, target = store.execute("SELECT action, target FROM audit").fetchone()
    assert (action, target) == (
        "RedeliverPushNotifications",
        "agents/writer/tasks/task-1",
    )


def test_what_was_not_given_up_is_not_redelivered(data: Path) -> None:
    for arguments in (["task-2"], ["task-1", "a"], ["nope"]):
        refused = run(data, "redeliver", *arguments)
        assert refused.exit_code == 1
        assert "webhooks list --state dead" in refused.stderr
    assert run(data, "redeliver", "--all").stdout == "1 to be redelivered\n"
    assert run(data, "redeliver", "--all").stdout == "0 to be redelivered\n"


def test_what_to_redeliver_is_said_in_one_way(data: Path) -> None:
    for arguments in ([], ["task-1", "--all"]):
        assert run(data, "redeliver", *arguments).exit_code == 2


def test_a_store_of_another_schema_is_told(data: Path) -> None:
    with closing(sqlite3.connect(data / "dragoman.db")) as store:
        store.execute("DROP TABLE push_config")
        store.execute("PRAGMA user_version = 4")
    for command in (["list"], ["redeliver", "--all"]):
        refused = run(data, *command)
        assert (refused.exit_code, "dragoman migrate upgrade" in refused.stderr) == (1, True), refused.output


def test_a_folder_without_a_store_is_told(tmp_path: Path) -> None:
    for command in (["list"], ["redeliver", "--all"]):
        refused = run(tmp_path, *command)
        assert (refused.exit_code, "there is no store at" in refused.stderr) == (1, True)
