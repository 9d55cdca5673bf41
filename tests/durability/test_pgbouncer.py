"""Servers behind a PgBouncer that gives sessions by transaction: without notifications and locks nothing is missed."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.durability.test_replicas import (
    ask,
    ask_status,
    begin,
    dragoman,
    ended,
    opened,
    running,
    sending,
    state,
)
from tests.harness.paths import CHECKOUT
from tests.harness.pgbouncer import PgBouncer
from tests.harness.polling import until
from tests.harness.postgres import databases, rows
from tests.harness.server import ServerDidNotStartError, ServerProcess

pytestmark = [pytest.mark.needs("pgbouncer"), pytest.mark.own_store]

LEASE = 3.0
CONFIG = '[store]\nurl = "{url}"\npooling = "transaction"\n[engine]\nlease = "3s"\nsweep = "1s"\n'


@pytest.fixture
def pooler(url: str) -> Iterator[PgBouncer]:
    """A pooler with fewer sessions than one server has connections."""
    with PgBouncer(url, sessions=4) as running:
        yield running


@pytest.fixture
def config(pooler: PgBouncer, tmp_path: Path) -> Path:
    file = tmp_path / "dragoman.toml"
    file.write_text(CONFIG.format(url=pooler.url), encoding="utf-8")
    return file


@pytest.fixture
def pair(config: Path, tmp_path: Path) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    with (
        ServerProcess(tmp_path / "one", config=config) as one,
        ServerProcess(tmp_path / "two", config=config) as two,
    ):
        yield one, two


def test_what_runs_at_one_server_is_streamed_listed_and_cancelled_at_the_other(
    pair: tuple[ServerProcess, ServerProcess], config: Path, tmp_path: Path
) -> None:
    one, two = pair
    seen: list[str] = []
    task_id = begin(one, "slow 3")
    stream = opened(two, f"/tasks/{task_id}:subscribe", {})
    reader = Thread(target=lambda: seen.extend(line.decode() for line in stream))
    reader.start()
    sent = [ask(server, "/message:send", sending("Hello", "same"))["task"]["id"] for server in pair * 2]
    assert len(set(sent)) == 1
    running_long = begin(one, "slow 60")
    assert ask(two, f"/tasks/{running_long}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
    until(lambda: running(one) <= 1, seconds=3, what="its handler to be stopped")
    reader.join(20)
    numbers = [int(line[4:]) for line in seen if line.startswith("id: ")]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert "TASK_STATE_COMPLETED" in [line for line in seen if line.startswith("data: ")][-1]
    assert ask(two, "/tasks")["totalSize"] == 3
    done = dragoman("tasks", "list", "--json", "--config", config, cwd=tmp_path)
    assert {row["id"] for row in json.loads(done.stdout)} == {task_id, running_long, sent[0]}


def test_the_runs_of_a_killed_server_are_taken_over_when_its_lease_is_over(
    pair: tuple[ServerProcess, ServerProcess], url: str
) -> None:
    one, two = pair
    task_id = begin(one, "slow 2")
    (owner,) = rows(url, "SELECT owner FROM task")[0]
    one.kill()
    killed = time.monotonic()
    until(
        lambda: not rows(url, "SELECT 1 FROM task WHERE owner = $1", owner),
        what="the run to be taken over",
        every=0.05,
    )
    assert LEASE - 1.5 < time.monotonic() - killed < LEASE + 3, (
        "a heartbeat before, and a sweep after the lease"
    )
    assert ended(two, task_id) == "TASK_STATE_COMPLETED"
    assert rows(url, "SELECT attempt FROM task")[0][0] == 2


def test_a_frozen_server_is_passed_over_and_can_write_nothing_when_it_goes_on(
    pair: tuple[ServerProcess, ServerProcess], url: str
) -> None:
    one, two = pair
    task_id = begin(one, "slow 5")
    one.stop_process()
    until(lambda: rows(url, "SELECT attempt FROM task")[0][0] == 2, what="the run to be taken over")
    one.continue_process()
    assert ended(two, task_id) == "TASK_STATE_COMPLETED"
    events = rows(url, "SELECT seq, attempt FROM event ORDER BY seq")
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    attempts = [attempt for _, attempt in events]
    assert attempts == sorted(attempts), "nothing of the first attempt after the second began"
    assert state(one, task_id) == "TASK_STATE_COMPLETED"


def test_tenants_are_noticed_and_the_schema_is_made_by_way_of_it(tmp_path: Path) -> None:
    empty = databases().make_empty()
    with PgBouncer(empty, sessions=2) as pooler:
        config = tmp_path / "dragoman.toml"
        config.write_text(CONFIG.format(url=pooler.url), encoding="utf-8")

        def command(*arguments: str) -> str:
            done = dragoman(*arguments, "--config", config, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert "schema" in command("migrate", "upgrade")
        command("migrate", "status")
        with ServerProcess(tmp_path / "data", config=config) as server:
            assert ask(server, "/tasks")["totalSize"] == 0
            command("tenant", "create", "acme")
            until(lambda: "tenant.create" in command("audit", "export"), what="it to be in the audit")
            until(lambda: refused(server), seconds=5, what="strangers to be refused")
    databases().drop(empty)


def refused(server: ServerProcess) -> bool:
    """Whether a caller without a token is refused."""
    return ask_status(server, "/tasks") == 401


def told_to_ignore() -> str:
    """The settings that the manual has a pooler leave alone."""
    manual = (CHECKOUT / "docs" / "how-to" / "postgresql.md").read_text(encoding="utf-8")
    (settings,) = re.findall("`ignore_startup_parameters = (.+)`", manual)
    return str(settings)


@pytest.mark.parametrize("ignored", ["", told_to_ignore()], ids=["none", "those of the manual"])
def test_without_being_told_of_it_a_server_refuses_such_a_pooler_and_says_what_to_set(
    url: str, tmp_path: Path, ignored: str
) -> None:
    with PgBouncer(url, ignored=ignored) as pooler:
        config = tmp_path / "dragoman.toml"
        config.write_text(f'[store]\nurl = "{pooler.url}"\n', encoding="utf-8")
        with pytest.raises(ServerDidNotStartError, match=r'set store\.pooling = "transaction"'):
            ServerProcess(tmp_path / "data", config=config).start()
