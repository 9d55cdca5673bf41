"""Servers that share a PostgreSQL store: real processes on one database, one of them killed, frozen, or cut off."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dragoman.stores.postgres import administer
from dragoman.stores.target import Target
from tests.harness.polling import until
from tests.harness.postgres import execute, rows
from tests.harness.server import ServerDidNotStartError, ServerProcess
from tests.migration.test_served import dragoman

pytestmark = pytest.mark.own_store

DONE = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED")
KILLED_SECONDS = 3.0
"""How soon the runs of a killed server run again (D4 of the contract), on a machine that has other things to do too."""


def ask(server: ServerProcess, path: str, document: Any = None) -> Any:
    """Call the demo agent, by POST if there is a document."""
    return json.load(opened(server, path, document))


def opened(server: ServerProcess, path: str, document: Any = None) -> Any:
    """The reply, for whoever reads it bit by bit."""
    body = None if document is None else json.dumps(document).encode()
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/agents/demo{path}", data=body, headers=headers)
    return urllib.request.urlopen(request, timeout=30)


def sending(text: str, message_id: str, *, at_once: bool = False) -> dict[str, Any]:
    """A request to send."""
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": message, "configuration": {"returnImmediately": at_once}}


def begin(server: ServerProcess, text: str) -> str:
    """Send without waiting; return the id of the task once its handler runs."""
    task_id: str = ask(server, "/message:send", sending(text, f"{text} {time.time_ns()}", at_once=True))[
        "task"
    ]["id"]
    until(lambda: state(server, task_id) == "TASK_STATE_WORKING", what="the run to begin")
    return task_id


def state(server: ServerProcess, task_id: str) -> str:
    """Where a task stands."""
    found: str = ask(server, f"/tasks/{task_id}")["status"]["state"]
    return found


def ended(server: ServerProcess, task_id: str, seconds: float = 20) -> str:
    """Where a task stands in the end."""
    until(lambda: state(server, task_id) in DONE, seconds=seconds, what="the task to end")
    return state(server, task_id)


@pytest.fixture
def config(url: str, tmp_path: Path) -> Path:
    """A configuration that names it."""
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[store]\nurl = "{url}"\n[engine]\nlease = "2s"\nsweep = "1s"\n', encoding="utf-8")
    return file


@pytest.fixture
def pair(config: Path, tmp_path: Path, url: str) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers that know of each other."""
    with (
        ServerProcess(tmp_path / "one", config=config) as one,
        ServerProcess(tmp_path / "two", config=config) as two,
    ):
        time_known = rows(url, "SELECT max(beat_at) FROM replica")[0][0]
        until(
            lambda: rows(url, "SELECT min(beat_at) FROM replica")[0][0] > time_known,
            what="both to have beaten since",
        )
        yield one, two


def test_one_server_sends_streams_reads_lists_and_cancels(config: Path, tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", config=config) as server:
        task = ask(server, "/message:send", sending("Hello", "1"))["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert task["artifacts"][0]["parts"] == [{"text": "Hello"}]
        stream = opened(server, "/message:stream", sending("stream 3", "2")).read().decode()
        assert [line for line in stream.splitlines() if line.startswith("id: ")] == [
            f"id: {number}" for number in range(1, 7)
        ]
        slow = begin(server, "slow 60")
        assert ask(server, f"/tasks/{slow}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
        page = ask(server, "/tasks")
        assert page["totalSize"] == 3
        assert page["tasks"][0]["id"] == slow
        assert {one["status"]["state"] for one in page["tasks"]} == {DONE[0], DONE[2]}
        assert ask(server, f"/tasks/{task['id']}")["artifacts"] == task["artifacts"]


def test_a_server_asks_its_database_for_tenants_before_it_starts(
    config: Path, tmp_path: Path, url: str
) -> None:
    with config.open("a", encoding="utf-8") as file:
        file.write('[agents.demo]\npython = "dragoman.agents.demo:demo"\ntenant = "acme"\n')
    server = ServerProcess(tmp_path / "data", config=config)
    with pytest.raises(ServerDidNotStartError, match=r"dragoman: agents\.demo\.tenant: there is no tenant"):
        server.start()
    administer(Target(url), lambda book: book.add_tenant("acme"))
    with server:
        assert ask_status(server, "/tasks") == 401


def ask_status(server: ServerProcess, path: str) -> int:
    """How a call without a token is answered."""
    try:
        return int(opened(server, path).status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_run_in_flight_goes_on_after_its_only_server_was_killed(config: Path, tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", config=config) as server:
        task_id = begin(server, "slow 1")
        server.kill()
        server.start()
        assert ended(server, task_id) == "TASK_STATE_COMPLETED"


def test_whoever_observes_at_one_server_sees_what_runs_at_the_other(
    pair: tuple[ServerProcess, ServerProcess],
) -> None:
    one, two = pair
    task_id = begin(one, "slow 2")
    began = time.monotonic()
    seen = opened(two, f"/tasks/{task_id}:subscribe", {}).read().decode()
    took = time.monotonic() - began
    events = [json.loads(line[6:]) for line in seen.splitlines() if line.startswith("data: ")]
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    numbers = [int(line[4:]) for line in seen.splitlines() if line.startswith("id: ")]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) > 5, "live, not only at the end"
    assert took < 5


def test_a_cancel_at_one_server_stops_the_handler_at_the_other(
    pair: tuple[ServerProcess, ServerProcess],
) -> None:
    one, two = pair

    task_id = begin(one, "slow 60")
    assert running(one) == 1
    assert ask(two, f"/tasks/{task_id}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
    until(lambda: running(one) == 0, seconds=2, what="the handler to be stopped")


def test_what_a_command_changes_of_tenants_counts_at_both_at_once(
    pair: tuple[ServerProcess, ServerProcess], config: Path, tmp_path: Path
) -> None:
    def command(*arguments: str) -> str:
        done = dragoman(*arguments, "--config", config, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(server: ServerProcess, token: str = "") -> int:
        headers = {"A2A-Version": "1.0"} | ({"Authorization": f"Bearer {token}"} if token else {})
        request = urllib.request.Request(f"{server.url}/agents/demo/tasks", headers=headers)
        try:
            return int(urllib.request.urlopen(request, timeout=10).status)
        except urllib.error.HTTPError as error:
            return error.code

    assert [status(server) for server in pair] == [200, 200]
    command("tenant", "create", "acme")
    command("tenant", "principal", "add", "acme", "alice")
    token = command(
        "token", "create", "--tenant", "acme", "--principal", "alice", "--scope", "ai:*", "--scope", "a2a:*"
    ).strip()
    for server in pair:
        until(lambda server=server: status(server) == 401, seconds=2, what="strangers to be refused")
        until(lambda server=server: status(server, token) == 200, seconds=2, what="alice to be let in")
    assert "tenant.create" in command("audit", "export")


def test_commands_see_and_end_what_runs_at_either_server(
    pair: tuple[ServerProcess, ServerProcess], config: Path, tmp_path: Path
) -> None:
    def tasks(*arguments: str) -> str:
        done = dragoman("tasks", *arguments, "--config", config, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    slow = [begin(server, "slow 60") for server in pair]
    listed = json.loads(tasks("list", "--state", "working", "--json"))
    assert {row["id"] for row in listed} == set(slow)
    for server, task_id in zip(pair, slow, strict=True):
        with opened(server, f"/tasks/{task_id}:subscribe", {}) as stream:
            assert tasks("cancel", task_id) == f"task {task_id} is CANCELED\n"
            assert b"TASK_STATE_CANCELED" in stream.read()
        until(lambda server=server: running(server) == 0, seconds=5, what="the handler to be stopped")
    assert json.loads(tasks("show", slow[0], "--json"))["state"] == "CANCELED"
    assert json.loads(tasks("purge", "--older-than", "0s", "--yes", "--json")) == {"purged": 2}
    assert ask(pair[0], "/tasks")["totalSize"] == 0
    missing = dragoman("tasks", "show", slow[0], "--config", config, cwd=tmp_path)
    assert (missing.returncode, "Traceback" in missing.stderr) == (1, False)


def running(server: ServerProcess) -> float:
    """How many handlers of the demo agent run."""
    text = urllib.request.urlopen(f"{server.url}/metrics", timeout=10).read().decode()
    (line,) = [line for line in text.splitlines() if line.startswith('dragoman_runs_running{agent="demo"}')]
    return float(line.split()[-1])


def test_a_message_that_is_sent_to_both_is_one_task(pair: tuple[ServerProcess, ServerProcess]) -> None:
    found: list[str] = []

    def send(server: ServerProcess, number: int) -> None:
        found.append(ask(server, "/message:send", sending("Hello", f"same {number}"))["task"]["id"])

    for number in range(10):
        found.clear()
        threads = [Thread(target=send, args=(server, number)) for server in pair * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(found), len(set(found))) == (6, 1)
    assert ask(pair[0], "/tasks")["totalSize"] == 10


def test_the_runs_of_a_killed_server_run_again_at_the_other_soon(
    pair: tuple[ServerProcess, ServerProcess], url: str
) -> None:
    one, two = pair
    task_ids = [begin(one, f"slow {seconds}") for seconds in (3, 4, 5)]
    (owner,) = {row[0] for row in rows(url, "SELECT owner FROM task")}
    one.kill()
    killed = time.monotonic()
    until(
        lambda: not rows(url, "SELECT 1 FROM task WHERE owner = $1", owner),
        what="the runs to be taken over",
    )
    took = time.monotonic() - killed
    assert [ended(two, task_id) for task_id in task_ids] == ["TASK_STATE_COMPLETED"] * 3
    assert {row[0] for row in rows(url, "SELECT attempt FROM task")} == {2}
    assert took < KILLED_SECONDS + 1


def test_the_runs_of_a_frozen_server_are_taken_over_and_it_can_write_nothing_to_them(
    pair: tuple[ServerProcess, ServerProcess], url: str
) -> None:
    one, two = pair
    task_id = begin(one, "slow 4")
    one.stop_process()
    until(
        lambda: rows(url, "SELECT attempt FROM task")[0][0] == 2, seconds=10, what="the run to be taken over"
    )
    one.continue_process()
    assert ended(two, task_id) == "TASK_STATE_COMPLETED"
    attempts = [row[0] for row in rows(url, "SELECT attempt FROM event ORDER BY seq")]
    assert attempts == sorted(attempts), "nothing of the first attempt after the second began"
    assert ask(one, "/message:send", sending("Hello", "after"))["task"]["status"]["state"] == DONE[0]


def test_a_server_whose_sessions_are_cut_goes_on_and_misses_nothing(
    pair: tuple[ServerProcess, ServerProcess], url: str
) -> None:
    one, two = pair
    task_id = begin(one, "slow 3")
    seen: list[bytes] = []
    reader = Thread(target=lambda: seen.extend(opened(two, f"/tasks/{task_id}:subscribe", {})))
    reader.start()
    until(lambda: len(seen) > 3, what="the stream to begin")
    execute(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE '%replica%' AND pid <> pg_backend_pid()",
    )
    reader.join(20)
    numbers = [int(line[4:]) for line in seen if line.startswith(b"id: ")]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert b"TASK_STATE_COMPLETED" in seen[-2] or b"TASK_STATE_COMPLETED" in seen[-3]
    assert ended(two, task_id) == "TASK_STATE_COMPLETED"
