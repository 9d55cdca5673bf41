"""A fleet moves to the next version, with a migration, under load: nobody notices."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoman.stores.postgres import upgrade
from dragoman.stores.target import Target
from tests.durability.rolling import NEXT, Caller, Load, next_version, sending
from tests.harness.polling import until
from tests.harness.postgres import databases, rows
from tests.harness.server import ServerProcess, WorkerProcess

pytestmark = pytest.mark.own_store

CONFIG = """
[server]
drain = "5s"
{server}
[store]
url = "{url}"
[engine]
lease = "3s"
sweep = "1s"
runs = "{runs}"
[agents.demo]
python = "dragoman.agents.demo:demo"
"""
PARKED = 8


@pytest.fixture
def url() -> Iterator[str]:
    """A database of its own: it does not keep this version's schema."""
    database = databases().make_empty()
    upgrade(Target(database))
    yield database
    databases().drop(database)


def hello(caller: Caller) -> None:
    task = caller.read("/agents/demo/message:send", sending("hello"))["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    assert task["artifacts"][0]["parts"] == [{"text": "hello"}]


def slow(caller: Caller) -> None:
    task = caller.read("/agents/demo/message:send", sending("slow 0.6"))["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task


def stream(caller: Caller) -> None:
    numbers = caller.stream("stream 6")
    # A server that learns late of what a worker does begins with the task as it stands by then.
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), numbers


def look(caller: Caller) -> None:
    assert len(caller.read("/agents/demo/tasks?pageSize=5")["tasks"]) == 5


LOAD = {"hello": (3, hello), "slow": (3, slow), "stream": (3, stream), "look": (1, look)}


def migrate(verb: str, config: Path, source: Path) -> "subprocess.CompletedProcess[str]":
    """Run `dragoman migrate VERB` of the version at `source`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "migrate", verb, "--config", str(config)],
        env=kept | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def versions(url: str) -> set[int]:
    """The schemas that the servers and workers of a store were made for."""
    return {row[0] for row in rows(url, "SELECT schema FROM replica")}


@pytest.mark.parametrize(
    ("runs", "server"),
    [("here", ""), ("workers", 'notice = "1s"')],
    ids=["servers", "servers that give notice, and workers"],
)
def test_servers_are_replaced_one_by_one_by_the_next_version_with_a_migration_and_no_request_fails(
    url: str, tmp_path: Path, runs: str, server: str
) -> None:
    config = tmp_path / "dragoman.toml"
    config.write_text(CONFIG.format(url=url, runs=runs, server=server), encoding="utf-8")
    newer = next_version(tmp_path / "newer")
    kinds = [ServerProcess] * 2 + [WorkerProcess] * (2 if runs == "workers" else 0)
    with ExitStack() as processes:

        def start(number: int, listen: str, **environment: str) -> ServerProcess:
            folder = tmp_path / f"{len(environment)}-{number}"
            made = kinds[number](folder, config=config, environment=environment)
            processes.callback(made.close)
            return made.start(listen=listen)

        fleet = [start(number, "127.0.0.1:0") for number in range(len(kinds))]
        places = [one.url.removeprefix("http://") for one in fleet]
        operator = processes.enter_context(Caller(places[:2]))
        parked = [operator.read("/agents/demo/message:send", sending("ask"))["task"] for _ in range(PARKED)]
        assert {task["status"]["state"] for task in parked} == {"TASK_STATE_INPUT_REQUIRED"}

        with Load(lambda first: Caller(places[:2], first), LOAD) as load:
            until(load.more(2), what="every kind of call to have gone well", seconds=30)
            upgraded = migrate("upgrade", config, newer)
            assert upgraded.returncode == 0, upgraded.stderr
            assert f"to {NEXT}" in upgraded.stdout
            until(load.more(3), what="the old version to have gone on with the new schema", seconds=30)
            assert (load.failures, versions(url)) == ([], {NEXT - 1})

            for number, old in enumerate(fleet):
                document = sending("slow 2") | {"configuration": {"returnImmediately": True}}
                operator.read("/agents/demo/message:send", document)
                assert old.terminate() == 0
                start(number, places[number], PYTHONPATH=str(newer))
                until(load.more(2), what="the fleet to have gone on", seconds=30)
            assert versions(url) == {NEXT}
        assert load.failures == []

        for task in parked:
            resumed = answer(operator, task)
            assert resumed["status"]["state"] == "TASK_STATE_COMPLETED", resumed
        left = "SELECT state, attempt FROM task WHERE state <> 3 OR attempt <> 1"
        until(lambda: not rows(url, left), what="every run to have completed, entered once", seconds=10)
        gaps = "SELECT t.id FROM task t JOIN event e ON e.task_id = t.id GROUP BY t.id, t.seq HAVING count(*) <> t.seq"
        assert rows(url, gaps) == []


def answer(caller: Caller, task: dict[str, Any]) -> Any:
    """Answer what a task asks."""
    document = sending("blue")
    document["message"]["taskId"] = task["id"]
    return caller.read("/agents/demo/message:send", document)["task"]
