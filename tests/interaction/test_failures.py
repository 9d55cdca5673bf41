"""When something fails: an agent, the store, the whole process. Callers learn that, and nothing of the inside."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness import stores
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.answers import UNAVAILABLE, refused
from tests.interaction.callers import Caller, HttpCaller, Request, RpcCaller
from tests.interaction.conftest import AGENTS
from tests.interaction.following import ended, got, sent, state_of, texts
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

INSIDE = [b"secret", b"RuntimeError", b"Traceback", b"SELECT", b"probe_agents", b"sqlite", b"no such"]


def check_nothing_inside(body: bytes) -> None:
    """Nothing of an exception is on the wire."""
    assert not [word for word in INSIDE if word in body], body


@covers("crash.failed")
def test_an_agent_that_raises_has_failed_and_its_exception_stays_inside(caller: Caller) -> None:
    loud, context = caller.to("loud"), new_id("ctx")
    reply = loud.call("SendMessage", send_params(contextId=context))
    check_nothing_inside(reply.body)
    status = reply.task["status"]
    assert status["state"] == "TASK_STATE_FAILED"
    assert status["message"]["parts"] == [{"text": "The agent failed while it handled the message."}]
    for operation, params in (
        ("GetTask", {"id": reply.task["id"]}),
        ("ListTasks", {"contextId": context, "includeArtifacts": True, "historyLength": 9}),
        ("CancelTask", {"id": reply.task["id"]}),
        ("SubscribeToTask", {"id": reply.task["id"]}),
        ("SendMessage", send_params(taskId=reply.task["id"])),
        ("SendStreamingMessage", send_params()),
    ):
        check_nothing_inside(loud.call(operation, params).body)


@covers("crash.logged")
def test_the_exception_of_an_agent_is_in_the_log_under_its_task(
    caller: Caller, server: ServerProcess
) -> None:
    task = sent(caller.to("loud"))

    def logged() -> list[dict[str, Any]]:
        lines = [line for line in server.log_lines() if line.get("task_id") == task["id"]]
        return [line for line in lines if line.get("logger") == "dragoman.run"]

    line = until(logged, what="the run's log line")[0]
    assert (line["level"], line["agent"]) == ("error", "loud")
    assert "RuntimeError" in line["error"] and "the-agents-own-secret" in line["error"]


LOST = """
[engine]
sweep = "1s"
[agents.demo]
python = "dragoman.agents.demo:demo"
[agents.careful]
python = "{agents}:hold"
on_lost_worker = "fail"
"""


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of its own, to be broken."""
    folder = tmp_path_factory.mktemp("fragile")
    config = folder / "dragoman.toml"
    config.write_text(LOST.format(agents=AGENTS), encoding="utf-8")
    with ServerProcess(folder / "data", agents=[AGENTS], config=config) as server:
        yield server


@pytest.fixture(params=[HttpCaller, RpcCaller], ids=["http", "jsonrpc"])
def fragile_caller(request: pytest.FixtureRequest, fragile: ServerProcess) -> Iterator[Caller]:
    """A caller of that server, over each binding in turn."""
    with httpx2.Client(timeout=20, trust_env=False) as client:
        yield request.param(client, fragile.url)


@contextmanager
def broken_store(server: ServerProcess) -> Iterator[None]:
    """The server's store without the clock that every write reads: each one fails, until it is there again."""
    seen = "SELECT sql FROM sqlite_schema WHERE name = 'store_clock'"
    if stores.is_postgres():
        seen = "SELECT 'CREATE VIEW store_clock AS ' || pg_get_viewdef('store_clock'::regclass)"
    ((view,),) = stores.query(server.data, seen)
    stores.execute(server.data, "DROP VIEW store_clock")
    try:
        yield
    finally:
        stores.execute(server.data, view)


@covers("store.fails", "voice.42")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage", "CancelTask"])
def test_a_store_that_fails_is_an_error_at_once_and_nothing_of_it_is_told(
    fragile: ServerProcess, fragile_caller: Caller, operation: str
) -> None:
    rows = Rows(fragile.data)
    hold = fragile_caller.to("hold")
    task = sent(hold, "wait", wait=False)
    params = {"id": task["id"]} if operation == "CancelTask" else send_params()
    until(lambda: state_of(hold, task["id"]) == "TASK_STATE_WORKING", what="the task works")
    with rows.unchanged(), broken_store(fragile):
        reply = hold.call(operation, params)
        check_nothing_inside(reply.body)
        assert int(reply.headers["retry-after"]) > 0
        assert got(hold, task["id"])["status"]["state"] == "TASK_STATE_WORKING"
    # Over JSON-RPC the envelope was read, so this is an answer to it.
    assert (reply.status, reply.reason) == (503 if hold.binding == "http" else 200, "UNAVAILABLE")
    refused(reply, UNAVAILABLE, identifier=reply.json().get("id"))
    hold.call("CancelTask", {"id": task["id"]})


@covers("store.fails", "voice.42")
def test_the_same_message_is_accepted_once_the_store_works_again(
    fragile: ServerProcess, fragile_caller: Caller
) -> None:
    params = send_params()
    with broken_store(fragile):
        assert fragile_caller.call("SendMessage", params).reason == "UNAVAILABLE"
    reply = fragile_caller.call("SendMessage", params)
    assert "idempotent-replayed" not in reply.headers
    assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"


@covers("store.fails", "voice.42")
def test_what_an_agent_did_while_the_store_failed_is_stored_afterwards(
    fragile: ServerProcess, fragile_caller: Caller, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    hold = fragile_caller.to("hold")
    task = sent(hold, f"until {gate}", wait=False)
    until(lambda: state_of(hold, task["id"]) == "TASK_STATE_WORKING", what="the task works")
    with broken_store(fragile):
        noted = len(_store_errors(fragile))
        gate.touch()
        until(lambda: len(_store_errors(fragile)) > noted, what="the agent's result could not be written")
        assert state_of(hold, task["id"]) == "TASK_STATE_WORKING"
    assert texts(ended(hold, task["id"])) == ["released"]


def _store_errors(server: ServerProcess) -> list[dict[str, Any]]:
    return [line for line in server.log_lines() if line.get("logger") == "dragoman.store"]


@covers("probe.unready")
def test_a_server_without_a_working_store_is_alive_but_not_ready(fragile: ServerProcess) -> None:
    with httpx2.Client(timeout=20, trust_env=False) as client:
        http = HttpCaller(client, fragile.url)
        with broken_store(fragile):
            unready = http.deliver(Request("GET", "/readyz"))
            assert (unready.status, unready.json()["status"]) == (503, "unready")
            assert unready.json()["reasons"]
            check_nothing_inside(unready.body)
            assert http.deliver(Request("GET", "/healthz")).status == 200
        assert http.deliver(Request("GET", "/readyz")).status == 200


@covers("restart.recovers", "restart.subscribe", "voice.37", "voice.54", "idempotency.restart")
def test_after_a_crash_every_task_is_as_it_was_running_again_or_failed_with_the_reason(
    fragile: ServerProcess,
) -> None:
    with httpx2.Client(timeout=20, trust_env=False) as client:
        before = HttpCaller(client, fragile.url)
        params = send_params("done before")
        done = before.call("SendMessage", params).task
        page = before.call("ListTasks", {"pageSize": 1}).result
        held, careful = sent(before.to("hold"), wait=False), sent(before.to("careful"), wait=False)
        slow = sent(before, "slow 1", wait=False)
        fragile.kill()
        fragile.restart()
        for kind in (HttpCaller, RpcCaller):
            caller = kind(client, fragile.url)
            assert got(caller, done["id"]) == done
            again = caller.call("SendMessage", params)
            assert (again.headers["idempotent-replayed"], again.task) == ("true", done)
            with caller.to("hold").open("SubscribeToTask", {"id": held["id"]}) as stream:
                first = stream.next()
            assert (first.kind, first.value["id"]) == ("task", held["id"])
            assert first.state in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
            lost = ended(caller.to("careful"), careful["id"])
            assert lost["status"]["state"] == "TASK_STATE_FAILED"
            assert "unknown" in lost["status"]["message"]["parts"][0]["text"]
            assert texts(ended(caller, slow["id"])) == ["Took 1 s."]
            token = {"pageSize": 1, "pageToken": page["nextPageToken"]}
            assert not page["nextPageToken"] or caller.call("ListTasks", token).status == 200
        caller.to("hold").call("CancelTask", {"id": held["id"]})
