"""Workers apart from the servers that accept: real processes on one PostgreSQL database."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.durability.test_replicas import KILLED_SECONDS, ask, begin, ended, opened, sending, state
from tests.harness.polling import until
from tests.harness.postgres import rows
from tests.harness.server import ServerDidNotStartError, ServerProcess, WorkerProcess

pytestmark = pytest.mark.own_store

CONFIG = """
[store]
url = "{url}"
[engine]
lease = "2s"
sweep = "1s"
runs = "workers"
[agents.demo]
python = "dragoman.agents.demo:demo"
max_runs = {max_runs}
max_waiting = {max_waiting}
"""


class Fleet(NamedTuple):
    """Two servers that execute nothing, and two workers, on one database."""

    one: ServerProcess
    two: ServerProcess
    workers: tuple[WorkerProcess, WorkerProcess]
    url: str

    def at_work(self, task_id: str) -> WorkerProcess:
        """The worker that a run is at, once it is at one."""
        return until(
            lambda: next((one for one in self.workers if has(self.url, task_id, one)), None),
            what="a worker to take the run",
        )


def has(url: str, task_id: str, worker: WorkerProcess) -> bool:
    """Whether a run is at a worker."""
    found = rows(url, "SELECT process FROM replica r JOIN task t ON t.owner = r.id WHERE t.id = $1", task_id)
    return bool(found) and found[0][0].startswith(f"process {worker.pid} ")


def configured(url: str, folder: Path, max_runs: int = 50, max_waiting: int = 1000) -> Path:
    file = folder / "dragoman.toml"
    file.write_text(CONFIG.format(url=url, max_runs=max_runs, max_waiting=max_waiting), encoding="utf-8")
    return file


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    config = configured(url, tmp_path)
    with ExitStack() as processes:
        servers = [
            processes.enter_context(ServerProcess(tmp_path / name, config=config)) for name in ("one", "two")
        ]
        first, second = (
            processes.enter_context(WorkerProcess(tmp_path / name, config=config))
            for name in ("first", "second")
        )
        yield Fleet(servers[0], servers[1], (first, second), url)


def health(worker: WorkerProcess, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{worker.url}{path}", timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_run_is_sent_at_one_server_streamed_at_another_executed_by_a_worker_and_cancelled_at_the_first(
    fleet: Fleet,
) -> None:
    reply = ask(fleet.one, "/message:send", sending("Hello", "m-1"))["task"]
    assert reply["status"]["state"] == "TASK_STATE_COMPLETED"
    assert reply["artifacts"][0]["parts"] == [{"text": "Hello"}]
    task_id = begin(fleet.one, "slow 60")
    stream = opened(fleet.two, f"/tasks/{task_id}:subscribe", {})
    assert f'"id":"{task_id}"' in next(line for line in stream if line.startswith(b"data: ")).decode()
    worker = fleet.at_work(task_id)
    assert ask(fleet.one, f"/tasks/{task_id}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
    told = [json.loads(line[6:]) for line in stream if line.startswith(b"data: ")]
    assert told[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
    until(
        lambda: 'dragoman_runs_running{agent="demo"} 0.0' in health(worker, "/metrics")[1],
        what="the handler to be stopped",
        seconds=1,
    )


def test_a_streaming_send_shows_what_a_worker_does_as_it_comes(fleet: Fleet) -> None:
    stream = opened(fleet.two, "/message:stream", sending("stream 3", "m-1")).read().decode()
    numbers = [line for line in stream.splitlines() if line.startswith("id: ")]
    assert numbers == [f"id: {number}" for number in range(1, 7)]


def test_a_run_that_asked_goes_on_at_a_worker_when_it_is_answered_at_another_server(fleet: Fleet) -> None:
    task = ask(fleet.one, "/message:send", sending("ask", "m-1"))["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    answer = sending("blue", "m-2")
    answer["message"]["taskId"] = task["id"]
    done = ask(fleet.two, "/message:send", answer)["task"]
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert rows(fleet.url, "SELECT attempt FROM task WHERE id = $1", task["id"])[0][0] == 1


def test_the_runs_of_a_killed_worker_are_taken_over_by_the_other(fleet: Fleet) -> None:
    tasks = [begin(fleet.one, "slow 4") for _ in range(4)]
    victim = fleet.at_work(tasks[0])
    lost = [task for task in tasks if fleet.at_work(task) is victim]
    survivor = next(one for one in fleet.workers if one is not victim)
    victim.kill()
    killed_at = time.monotonic()
    until(
        lambda: all(has(fleet.url, task, survivor) for task in lost),
        what="the survivor to have taken all of them",
    )
    assert time.monotonic() - killed_at < KILLED_SECONDS + 1
    assert {ended(fleet.two, task) for task in tasks} == {"TASK_STATE_COMPLETED"}
    attempts = dict(rows(fleet.url, "SELECT id, attempt FROM task"))
    assert {attempts[task] for task in lost} == {2}
    assert {attempts[task] for task in tasks if task not in lost} <= {1}


def test_a_worker_that_is_told_to_end_lets_its_run_end_and_takes_no_new_one(fleet: Fleet) -> None:
    task_id = begin(fleet.one, "slow 3")
    leaving = fleet.at_work(task_id)
    assert leaving.terminate() == 0
    assert state(fleet.one, task_id) == "TASK_STATE_COMPLETED"
    assert rows(fleet.url, "SELECT attempt FROM task WHERE id = $1", task_id)[0][0] == 1


def test_a_worker_that_ends_before_its_run_hands_it_back_at_once(url: str, tmp_path: Path) -> None:
    config = configured(url, tmp_path)
    config.write_text(config.read_text().replace('sweep = "1s"', 'sweep = "1h"') + '[server]\ndrain = "0s"\n')
    with (
        ServerProcess(tmp_path / "server", config=config) as server,
        WorkerProcess(tmp_path / "first", config=config) as first,
    ):
        task_id = begin(server, "slow 6")
        until(lambda: has(url, task_id, first), what="the worker to take it")
        with WorkerProcess(tmp_path / "second", config=config):
            assert first.terminate() == 0
            assert ended(server, task_id) == "TASK_STATE_COMPLETED"
            assert rows(url, "SELECT attempt FROM task WHERE id = $1", task_id)[0][0] == 2


def test_a_frozen_worker_is_passed_over_and_can_write_nothing_when_it_goes_on(fleet: Fleet) -> None:
    task_id = begin(fleet.one, "slow 6")
    frozen = fleet.at_work(task_id)
    survivor = next(one for one in fleet.workers if one is not frozen)
    frozen.stop_process()
    until(lambda: has(fleet.url, task_id, survivor), what="the run to be taken over", seconds=8)
    frozen.continue_process()
    assert ended(fleet.one, task_id) == "TASK_STATE_COMPLETED"
    events = rows(fleet.url, "SELECT seq, attempt FROM event WHERE task_id = $1 ORDER BY seq", task_id)
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    attempts = [attempt for _, attempt in events]
    assert attempts == sorted(attempts), "nothing of the first attempt comes after the second has begun"
    assert set(attempts) == {1, 2}


def test_runs_wait_for_the_first_worker_and_those_of_a_full_worker_wait_for_room(
    url: str, tmp_path: Path
) -> None:
    config = configured(url, tmp_path, max_runs=1, max_waiting=3)
    with ServerProcess(tmp_path / "server", config=config) as server:
        tasks = [
            ask(server, "/message:send", sending("slow 1", f"m-{number}", at_once=True))["task"]["id"]
            for number in range(3)
        ]
        until(lambda: _refusal(server) == "QUOTA_EXCEEDED", what="a fourth run to find no room")
        assert state(server, tasks[0]) == "TASK_STATE_WORKING", "it shows though nobody has taken it"
        with WorkerProcess(tmp_path / "first", config=config) as first:
            until(lambda: has(url, tasks[0], first), what="the worker to take the first")
            assert rows(url, "SELECT count(*) FROM task WHERE owner = 0 AND state = 2")[0][0] == 2
            with WorkerProcess(tmp_path / "second", config=config) as second:
                assert {ended(server, task) for task in tasks} == {"TASK_STATE_COMPLETED"}
                assert health(first, "/readyz") == health(second, "/readyz") == (200, '{"status":"ready"}')


def _refusal(server: ServerProcess) -> str:
    """The reason for which a message is refused; one that is accepted is taken back."""
    try:
        sent = sending("slow 1", f"probe-{time.time_ns()}", at_once=True)
        task = ask(server, "/message:send", sent)["task"]
    except urllib.error.HTTPError as error:
        reason: str = json.load(error)["error"]["details"][0]["reason"]
        return reason
    ask(server, f"/tasks/{task['id']}:cancel", {})
    return ""


def test_a_run_past_its_deadline_is_ended_though_there_is_no_worker(url: str, tmp_path: Path) -> None:
    config = configured(url, tmp_path)
    config.write_text(config.read_text() + 'deadline = "1s"\n')
    with ServerProcess(tmp_path / "server", config=config) as server:
        task = ask(server, "/message:send", sending("Hello", "m-1", at_once=True))["task"]
        assert ended(server, task["id"]) == "TASK_STATE_FAILED"


def test_a_worker_answers_to_health_checks_and_nothing_else(url: str, tmp_path: Path) -> None:
    with WorkerProcess(tmp_path / "worker", config=configured(url, tmp_path)) as worker:
        assert health(worker, "/healthz") == (200, '{"status":"ok"}')
        assert health(worker, "/readyz") == (200, '{"status":"ready"}')
        assert 'dragoman_runs_waiting{agent="demo"} 0.0' in health(worker, "/metrics")[1]
        assert health(worker, "/agents/demo/tasks")[0] == 404
        request = urllib.request.Request(f"{worker.url}/healthz", data=b"{}")
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(request, timeout=10)


@pytest.mark.parametrize(
    ("config", "process", "arguments", "said"),
    [
        ("", WorkerProcess, (), "a file, which belongs to one server process"),
        ("", ServerProcess, ("--no-runs",), "a store in a file belongs to one process"),
        ('[engine]\nruns = "workers"\n', ServerProcess, (), "a store in a file belongs to one process"),
        ('[engine]\nruns = "elsewhere"\n', ServerProcess, (), 'is neither "here" nor "workers"'),
        ('[worker]\nlisten = "8081"\n', WorkerProcess, (), 'worker.listen = "8081" must be HOST:PORT'),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_do(
    tmp_path: Path, config: str, process: type[ServerProcess], arguments: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(config, encoding="utf-8")
    with pytest.raises(ServerDidNotStartError, match=re.escape(said)):
        process(tmp_path / "data", config=file, arguments=arguments).start()
