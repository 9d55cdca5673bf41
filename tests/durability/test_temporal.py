"""Temporal as the engine: real processes, a real Temporal server that is stopped, frozen, cut off or wiped."""

import json
import sqlite3
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowHandle

from tests.durability.test_replicas import ask, begin, ended, sending, state
from tests.durability.test_workers import has, health
from tests.harness.polling import until
from tests.harness.postgres import rows
from tests.harness.server import ServerProcess, WorkerProcess
from tests.harness.temporal import SwallowingProxy, TemporalServer
from tests.harness.temporal import ask as ask_temporal

pytestmark = pytest.mark.own_store

CONFIG = """
[engine]
kind = "temporal"
lease = "2s"
sweep = "1s"
[engine.temporal]
address = "{address}"
task_queue = "{queue}"
[agents.demo]
python = "dragoman.agents.demo:demo"
"""
OVER = ("CANCELED", "COMPLETED")
"""How the workflow of a run that was stopped ends: Temporal is told, or its activity sees first that it is over."""

SECRET = "the eagle lands at nine"


@pytest.fixture(scope="module")
def standing() -> Iterator[TemporalServer]:
    """A Temporal server that no test stops."""
    server = TemporalServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def temporal() -> Iterator[TemporalServer]:
    """A Temporal server of the test's own, which is not started yet."""
    server = TemporalServer()
    yield server
    server.remove()


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def configured(folder: Path, address: str, more: str = "", *, url: str = "", name: str = "dragoman") -> Path:
    """A configuration; those of one folder share a queue. With a `url` the store is that database."""
    file = folder / f"{name}.toml"
    store = f'[store]\nurl = "{url}"\n' if url else ""
    file.write_text(store + CONFIG.format(address=address, queue=folder.name) + more, encoding="utf-8")
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name is nobody else's: it is the queue's too."""
    place = tmp_path / uuid4().hex
    place.mkdir()
    return place


def attempts(server: ServerProcess, task_id: str) -> list[int]:
    """The attempt of each event of a task, as its own store file tells, without a server."""
    with closing(sqlite3.connect(server.data / "dragoman.db")) as store:
        found = store.execute("SELECT attempt FROM event WHERE task_id = ? ORDER BY seq", (task_id,))
        return [attempt for (attempt,) in found]


def workflows(address: str, task_id: str) -> list[str]:
    """How each workflow of a run stands, the newest first."""

    async def listed(client: Client) -> list[str]:
        query = f'WorkflowId = "dragoman-{task_id}"'
        return [str(one.status.name if one.status else "") async for one in client.list_workflows(query)]

    return ask_temporal(address, listed)


def send_at_once(server: ServerProcess, text: str) -> str:
    task_id: str = ask(server, "/message:send", sending(text, uuid4().hex, at_once=True))["task"]["id"]
    return task_id


def answer(server: ServerProcess, task_id: str, text: str = "blue") -> Any:
    sent = sending(text, uuid4().hex, at_once=True)
    sent["message"]["taskId"] = task_id
    return ask(server, "/message:send", sent)["task"]


def texts(server: ServerProcess, task_id: str) -> list[str]:
    """The texts of a task's artifacts."""
    task = ask(server, f"/tasks/{task_id}")
    return [part["text"] for artifact in task.get("artifacts", ()) for part in artifact["parts"]]


def test_runs_are_executed_asked_and_cancelled_in_one_process_on_a_file(
    standing: TemporalServer, folder: Path, processes: ExitStack
) -> None:
    server = processes.enter_context(
        ServerProcess(folder / "data", config=configured(folder, standing.address))
    )
    done = ask(server, "/message:send", sending(SECRET, "m-1"))["task"]
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert done["artifacts"][0]["parts"] == [{"text": SECRET}]
    asked = ask(server, "/message:send", sending("ask", "m-2"))["task"]
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    answer(server, asked["id"], SECRET)
    assert ended(server, asked["id"]) == "TASK_STATE_COMPLETED"
    assert attempts(server, asked["id"])[-1] == 1
    until(lambda: workflows(standing.address, asked["id"]) == ["COMPLETED", "CONTINUED_AS_NEW"], what="both")
    slow = begin(server, "slow 60")
    assert ask(server, f"/tasks/{slow}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
    until(lambda: workflows(standing.address, slow)[0] in OVER, what="its workflow to end")
    parked = ask(server, "/message:send", sending("ask", "m-3"))["task"]["id"]
    assert ask(server, f"/tasks/{parked}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
    until(lambda: workflows(standing.address, parked) == ["CANCELED"], what="its workflow to end too")


def test_a_history_holds_ids_and_numbers_alone(
    standing: TemporalServer, folder: Path, processes: ExitStack
) -> None:
    server = processes.enter_context(
        ServerProcess(folder / "data", config=configured(folder, standing.address))
    )
    tasks = [ask(server, "/message:send", sending(text, text))["task"]["id"] for text in (SECRET, "fail it")]
    asked = ask(server, "/message:send", sending("ask", "m-2"))["task"]["id"]
    answer(server, asked, SECRET)
    for task_id in (*tasks, asked):
        assert ended(server, task_id) in ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED")

    async def histories(client: Client) -> str:
        found = []
        for task_id in (*tasks, asked):
            query = f'WorkflowId = "dragoman-{task_id}"'
            async for one in client.list_workflows(query):
                handle: WorkflowHandle[Any, Any] = client.get_workflow_handle(one.id, run_id=one.run_id)
                found.append((await handle.fetch_history()).to_json())
        return " ".join(found)

    until(lambda: len(workflows(standing.address, asked)) == 2, what="all of them to be listed")
    written = standing.ask(histories)
    for word in ("eagle", "blue", "data:", "dragoman.db", "fail it"):
        assert word not in written
    assert b64encode(f'"{asked}"'.encode()).decode() in written
    assert b64encode(b"eagle").decode()[:5] not in written


def test_messages_are_accepted_while_temporal_is_away_and_executed_once_when_it_comes(
    temporal: TemporalServer, folder: Path, processes: ExitStack
) -> None:
    server = processes.enter_context(
        ServerProcess(folder / "data", config=configured(folder, temporal.address))
    )
    early = [send_at_once(server, "slow 1") for _ in range(3)]
    cancelled = send_at_once(server, "slow 1")
    assert ask(server, f"/tasks/{cancelled}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
    assert health(server, "/readyz")[0] == 200, "it does what it is for: it accepts"
    temporal.start()
    assert {ended(server, task) for task in early} == {"TASK_STATE_COMPLETED"}
    running, parked = begin(server, "slow 4"), ask(server, "/message:send", sending("ask", "m"))["task"]["id"]
    temporal.kill()
    late = send_at_once(server, "slow 1")
    answer(server, parked)
    assert ended(server, running) == "TASK_STATE_COMPLETED", "the handler goes on meanwhile"
    assert state(server, late) == state(server, parked) == "TASK_STATE_WORKING"
    temporal.start()
    for task_id in (late, parked):
        assert ended(server, task_id) == "TASK_STATE_COMPLETED"
    for task_id in (*early, running, late, parked):
        assert attempts(server, task_id)[-1] == 1
        assert len(texts(server, task_id)) == 1
        until(lambda one=task_id: workflows(temporal.address, one)[:1] == ["COMPLETED"], what="its end")
    assert workflows(temporal.address, cancelled) == []


def test_a_start_whose_reply_is_lost_is_one_start(
    standing: TemporalServer, folder: Path, url: str, processes: ExitStack
) -> None:
    proxy = SwallowingProxy(standing.port)
    processes.callback(proxy.close)
    through = configured(folder, proxy.address, url=url, name="through")
    server = processes.enter_context(
        ServerProcess(folder / "server", config=through, arguments=["--no-runs"])
    )
    before = send_at_once(server, "Hello")
    until(lambda: notice(url, before) == "none", what="the start to be confirmed")
    proxy.swallow()
    task_id = send_at_once(server, "slow 1")
    until(lambda: workflows(standing.address, task_id) == ["RUNNING"], what="the start to have come")
    until(lambda: tries(url, task_id) > 0, what="its reply to be missed", seconds=15)
    assert notice(url, task_id) == "start"
    proxy.pass_on()
    until(lambda: notice(url, task_id) == "none", what="the start to be confirmed", seconds=30)
    assert workflows(standing.address, task_id) == ["RUNNING"]
    processes.enter_context(
        WorkerProcess(folder / "worker", config=configured(folder, standing.address, url=url))
    )
    assert ended(server, task_id) == ended(server, before) == "TASK_STATE_COMPLETED"
    assert rows(url, "SELECT max(attempt) FROM task")[0][0] == 1
    until(lambda: not rows(url, "SELECT 1 FROM dispatch"), what="nothing to be left to tell")


def notice(url: str, task_id: str) -> str:
    """What Temporal is still to be told of a run."""
    found = rows(url, "SELECT notice FROM dispatch WHERE task_id = $1", task_id)
    return str(found[0][0]) if found else ""


def tries(url: str, task_id: str) -> int:
    """How often it was told in vain."""
    return int(rows(url, "SELECT tries FROM dispatch WHERE task_id = $1", task_id)[0][0])


def test_a_frozen_temporal_keeps_nobody_from_being_accepted_or_cancelled(
    temporal: TemporalServer, folder: Path, processes: ExitStack
) -> None:
    temporal.start()
    server = processes.enter_context(
        ServerProcess(folder / "data", config=configured(folder, temporal.address))
    )
    assert ask(server, "/message:send", sending("Hello", "m-1"))["task"]
    running = begin(server, "slow 60")
    temporal.freeze()
    began = time.monotonic()
    task_id = send_at_once(server, "slow 1")
    assert ask(server, f"/tasks/{running}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
    until(
        lambda: 'dragoman_runs_running{agent="demo"} 0.0' in health(server, "/metrics")[1],
        what="its handler to be stopped",
    )
    assert time.monotonic() - began < 2
    temporal.thaw()
    assert ended(server, task_id, 40) == "TASK_STATE_COMPLETED"
    assert attempts(server, task_id)[-1] == 1
    until(lambda: workflows(temporal.address, task_id) == ["COMPLETED"], what="one workflow, and its end")


def test_a_run_that_temporal_has_forgotten_fails_and_is_never_started_again(
    folder: Path, url: str, processes: ExitStack
) -> None:
    temporal = TemporalServer()
    processes.callback(temporal.remove)
    temporal.start()
    config = configured(folder, temporal.address, url=url)
    server = processes.enter_context(ServerProcess(folder / "server", config=config, arguments=["--no-runs"]))
    worker = processes.enter_context(WorkerProcess(folder / "worker", config=config))
    parked = ask(server, "/message:send", sending("ask", "m-1"))["task"]["id"]
    worker.terminate()
    waiting = send_at_once(server, "slow 1")
    until(lambda: notice(url, waiting) == "none", what="Temporal to know it")
    temporal.kill()
    temporal.forget()
    temporal.start()
    answer(server, parked)
    processes.enter_context(WorkerProcess(folder / "other", config=config))
    for task_id in (parked, waiting):
        assert ended(server, task_id, 40) == "TASK_STATE_FAILED"
        said = ask(server, f"/tasks/{task_id}")["status"]["message"]["parts"][0]["text"]
        assert "outcome is unknown and it was not started again" in said
        assert workflows(temporal.address, task_id) == []
    until(lambda: not rows(url, "SELECT 1 FROM dispatch"), what="nothing to be left to tell")


@pytest.fixture
def fleet(
    standing: TemporalServer, folder: Path, url: str, processes: ExitStack
) -> tuple[ServerProcess, tuple[WorkerProcess, WorkerProcess]]:
    """A server that executes nothing, and two workers."""
    config = configured(folder, standing.address, url=url)
    server = processes.enter_context(ServerProcess(folder / "server", config=config, arguments=["--no-runs"]))
    first, second = (
        processes.enter_context(WorkerProcess(folder / name, config=config)) for name in ("first", "second")
    )
    until(lambda: health(first, "/readyz")[0] == health(second, "/readyz")[0] == 200, what="both to work")
    return server, (first, second)


def at_work(
    url: str, task_id: str, workers: tuple[WorkerProcess, WorkerProcess]
) -> tuple[WorkerProcess, WorkerProcess]:
    """The worker that has a run, once one has it, and the other one."""
    first, second = workers
    until(lambda: has(url, task_id, first) or has(url, task_id, second), what="a worker to have it")
    return (first, second) if has(url, task_id, first) else (second, first)


def test_the_run_of_a_killed_worker_goes_on_at_another(
    fleet: tuple[ServerProcess, tuple[WorkerProcess, WorkerProcess]], url: str
) -> None:
    server, workers = fleet
    task_id = begin(server, "slow 3")
    victim, survivor = at_work(url, task_id, workers)
    victim.kill()
    until(lambda: has(url, task_id, survivor), what="the other one to have it", seconds=15)
    assert ended(server, task_id) == "TASK_STATE_COMPLETED"
    assert rows(url, "SELECT attempt FROM task WHERE id = $1", task_id)[0][0] == 2


def test_a_worker_that_was_frozen_past_its_lease_can_write_nothing_more(
    fleet: tuple[ServerProcess, tuple[WorkerProcess, WorkerProcess]], url: str
) -> None:
    server, workers = fleet
    task_id = begin(server, "slow 6")
    frozen, survivor = at_work(url, task_id, workers)
    frozen.stop_process()
    until(lambda: has(url, task_id, survivor), what="the other one to have it", seconds=15)
    frozen.continue_process()
    assert ended(server, task_id) == "TASK_STATE_COMPLETED"
    events = rows(url, "SELECT seq, attempt FROM event WHERE task_id = $1 ORDER BY seq", task_id)
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    found = [attempt for _, attempt in events]
    assert found == sorted(found), "nothing of the first attempt comes after the second has begun"
    assert set(found) == {1, 2}
    assert ask(server, "/message:send", sending("Hello", "m-2"))["task"], "both work on"


def test_a_cancel_at_a_server_stops_the_handler_at_a_worker_within_a_second(
    fleet: tuple[ServerProcess, tuple[WorkerProcess, WorkerProcess]], url: str
) -> None:
    server, workers = fleet
    task_id = begin(server, "slow 60")
    worker, _ = at_work(url, task_id, workers)
    assert ask(server, f"/tasks/{task_id}:cancel", {})["status"]["state"] == "TASK_STATE_CANCELED"
    until(
        lambda: 'dragoman_runs_running{agent="demo"} 0.0' in health(worker, "/metrics")[1],
        what="the handler to be stopped",
        seconds=1,
    )


def test_a_worker_is_not_ready_while_temporal_does_not_answer_and_a_server_is(
    temporal: TemporalServer, folder: Path, url: str, processes: ExitStack
) -> None:
    config = configured(folder, temporal.address, url=url)
    server = processes.enter_context(ServerProcess(folder / "server", config=config, arguments=["--no-runs"]))
    worker = processes.enter_context(WorkerProcess(folder / "worker", config=config))
    reason = {"status": "unready", "reasons": ["Temporal cannot be reached: runs are accepted and wait"]}
    assert (health(worker, "/readyz")[0], json.loads(health(worker, "/readyz")[1])) == (503, reason)
    temporal.start()
    until(lambda: health(worker, "/readyz")[0] == 200, what="the worker to reach it")
    temporal.kill()
    assert health(worker, "/readyz")[0] == 503
    assert health(server, "/readyz")[0] == 200


def test_a_worker_that_ends_hands_its_run_back(
    standing: TemporalServer, folder: Path, url: str, processes: ExitStack
) -> None:
    config = configured(folder, standing.address, '[server]\ndrain = "0s"\n', url=url)
    server = processes.enter_context(ServerProcess(folder / "server", config=config, arguments=["--no-runs"]))
    first = processes.enter_context(WorkerProcess(folder / "first", config=config))
    second = processes.enter_context(WorkerProcess(folder / "second", config=config))
    task_id = begin(server, "slow 4")
    worker, _ = at_work(url, task_id, (first, second))
    assert worker.terminate() == 0
    assert ended(server, task_id) == "TASK_STATE_COMPLETED"
    assert rows(url, "SELECT attempt FROM task WHERE id = $1", task_id)[0][0] == 2


def test_a_run_past_its_deadline_is_ended_in_the_store_and_then_in_temporal(
    standing: TemporalServer, folder: Path, processes: ExitStack
) -> None:
    config = configured(folder, standing.address, 'deadline = "2s"\n')
    server = processes.enter_context(ServerProcess(folder / "data", config=config))
    task_id = begin(server, "slow 60")
    assert ended(server, task_id) == "TASK_STATE_FAILED"
    until(lambda: workflows(standing.address, task_id)[0] in OVER, what="its workflow to end")


def test_a_decision_moves_a_run_on(standing: TemporalServer, folder: Path, processes: ExitStack) -> None:
    server = processes.enter_context(
        ServerProcess(folder / "data", config=configured(folder, standing.address))
    )
    task_id = ask(server, "/message:send", sending("approve", "m-1"))["task"]["id"]
    with urllib.request.urlopen(f"{server.url}/v1/a2a/approvals", timeout=10) as reply:
        (approval,) = json.load(reply)["approvals"]
    body = json.dumps({"decision": "approve"}).encode()
    decide = urllib.request.Request(
        f"{server.url}/v1/a2a/approvals/{approval['id']}", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(decide, timeout=10) as reply:
        assert reply.status == 200
    assert ended(server, task_id) == "TASK_STATE_COMPLETED"
    until(lambda: workflows(standing.address, task_id)[:1] == ["COMPLETED"], what="its workflow to end")


def test_runs_of_the_embedded_engine_are_finished_when_temporal_becomes_the_engine(
    standing: TemporalServer, folder: Path, processes: ExitStack
) -> None:
    config = configured(folder, standing.address)
    temporal_config = config.read_text()
    config.write_text(temporal_config.replace('kind = "temporal"', 'kind = "embedded"'))
    server = processes.enter_context(ServerProcess(folder / "data", config=config))
    running, parked = begin(server, "slow 2"), ask(server, "/message:send", sending("ask", "m"))["task"]["id"]
    server.kill()
    config.write_text(temporal_config)
    server.start()
    assert ended(server, running) == "TASK_STATE_COMPLETED"
    assert workflows(standing.address, running) == []
    answer(server, parked)
    assert ended(server, parked) == "TASK_STATE_COMPLETED"
    until(lambda: workflows(standing.address, parked) == ["COMPLETED"], what="its workflow to end")
