"""Rates and quotas: who is over them is refused with the time to come back, and what must stay possible is."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.answers import CONFLICT, FULL, TASK_NOT_FOUND, Refusal, refused
from tests.interaction.callers import Caller, HttpCaller, Request, RpcCaller
from tests.interaction.conftest import AGENTS
from tests.interaction.following import ended, got, sent, state_of
from tests.interaction.messages import send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

RATE = Refusal("RATE_LIMITED", 429, "RESOURCE_EXHAUSTED", -32000, transport=True)
NOBODYS = {"id": "00000000-0000-7000-8000-000000000000"}
AT_ONCE = {"returnImmediately": True}

Start = Callable[[str], ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server of these tests with some limits."""
    servers: list[ServerProcess] = []

    def started(limits: str) -> ServerProcess:
        config = tmp_path / "dragoman.toml"
        config.write_text(f"[limits]\n{limits}\n", encoding="utf-8")
        agents = [AGENTS]
        servers.append(ServerProcess(tmp_path / "data", agents=agents, config=config).start())
        return servers[-1]

    yield started
    for server in servers:
        server.close()


@pytest.fixture(params=[HttpCaller, RpcCaller], ids=["http", "jsonrpc"])
def limited_caller(request: pytest.FixtureRequest, client: httpx2.Client) -> Callable[[str], Caller]:
    """Makes a caller over each binding in turn."""

    def made(origin: str) -> Caller:
        caller: Caller = request.param(client, origin, "hold")
        return caller

    return made


REFUSED: list[tuple[str, Callable[[], dict[str, Any]]]] = [
    ("SendMessage", lambda: send_params("wait")),
    ("SendStreamingMessage", lambda: send_params("wait")),
    ("GetTask", lambda: NOBODYS),
    ("ListTasks", dict),
    ("SubscribeToTask", lambda: NOBODYS),
]


@covers("limits.rate", "limits.cancel")
def test_a_request_too_many_is_refused_with_the_time_to_come_back_whatever_it_is_but_a_cancel(
    start: Start, limited_caller: Callable[[str], Caller]
) -> None:
    server = start("rate = { principal = 4 }")
    caller, rows = limited_caller(server.url), Rows(server.data)
    task = sent(caller, "wait", wait=False)["id"]
    until(lambda: rows.query("SELECT state FROM task WHERE state = 2"), what="the task is worked on")
    for _ in range(3):
        refused(caller.call("GetTask", NOBODYS), TASK_NOT_FOUND, identifier=1)
    with rows.unchanged():
        for operation, params in REFUSED:
            reply = caller.call(operation, params())
            assert refused(reply, RATE) == {"limit": "rate.principal"}, operation
            assert 1 <= int(reply.headers["retry-after"]) <= 15
    canceled = caller.call("CancelTask", {"id": task})
    assert canceled.result["status"]["state"] == "TASK_STATE_CANCELED"
    refused(caller.call("GetTask", NOBODYS), RATE)


@covers("limits.open")
def test_health_metrics_and_cards_are_never_refused(
    start: Start, limited_caller: Callable[[str], Caller]
) -> None:
    server = start("rate = { tenant = 1 }")
    caller = limited_caller(server.url)
    refused(caller.call("GetTask", NOBODYS), TASK_NOT_FOUND, identifier=1)
    assert refused(caller.call("GetTask", NOBODYS), RATE) == {"limit": "rate.tenant"}
    plain = HttpCaller(caller.client, caller.origin)
    for path in ("/healthz", "/readyz", "/metrics", "/agents/hold/.well-known/agent-card.json"):
        assert plain.deliver(Request("GET", path)).status == 200, path


@covers("limits.quota", "limits.cancel", "limits.known")
@pytest.mark.parametrize(
    ("limits", "limit", "seconds"),
    [
        ("running = { principal = 2 }", "running.principal", "5"),
        ("running = { tenant = 2 }", "running.tenant", "5"),
        ("stored = { principal = 2 }", "stored.principal", "60"),
        ("stored = { tenant = 2 }", "stored.tenant", "60"),
    ],
)
def test_a_task_too_many_is_refused_and_not_stored_and_all_else_goes_on(
    start: Start, limited_caller: Callable[[str], Caller], limits: str, limit: str, seconds: str
) -> None:
    server = start(limits)
    caller, rows = limited_caller(server.url), Rows(server.data)
    params = [send_params("wait", configuration=AT_ONCE) for _ in range(2)]
    tasks = [caller.call("SendMessage", one).task["id"] for one in params]
    until(lambda: {state_of(caller, one) for one in tasks} == {"TASK_STATE_WORKING"}, what="both work")
    with rows.unchanged():
        for operation, configuration in (
            ("SendMessage", None),
            ("SendMessage", AT_ONCE),
            ("SendStreamingMessage", None),
        ):
            reply = caller.call(operation, send_params("wait", configuration=configuration))
            assert refused(reply, FULL, identifier=1) == {"limit": limit}
            assert reply.headers["retry-after"] == seconds
        again = caller.call("SendMessage", params[0])
        assert (again.headers["idempotent-replayed"], again.task["id"]) == ("true", tasks[0])
        other = send_params("other", messageId=params[0]["message"]["messageId"])
        refused(caller.call("SendMessage", other), CONFLICT, identifier=1)
    assert sent(caller, "more", wait=False, taskId=tasks[0])["id"] == tasks[0]
    assert {task["id"] for task in caller.call("ListTasks").result["tasks"]} == set(tasks)
    assert got(caller, tasks[1])["status"]["state"] == "TASK_STATE_WORKING"
    with caller.open("SubscribeToTask", {"id": tasks[1]}) as stream:
        assert stream.next().value["id"] == tasks[1]
    caller.call("CancelTask", {"id": tasks[0]})
    if limit.startswith("running"):
        third = sent(caller, "wait", wait=False)["id"]
        caller.call("CancelTask", {"id": third})
    else:
        refused(caller.call("SendMessage", send_params("wait")), FULL, identifier=1)
    caller.call("CancelTask", {"id": tasks[1]})
    assert ended(caller, tasks[1])["status"]["state"] == "TASK_STATE_CANCELED"


@covers("limits.parked")
def test_a_task_that_waits_for_its_caller_counts_and_its_answer_is_never_refused(
    start: Start, limited_caller: Callable[[str], Caller], tmp_path: Path
) -> None:
    config = '[agents.curious]\npython = "dragoman.agents.demo:demo"'
    server = start(f"running = {{ principal = 1 }}\n{config}")
    caller = limited_caller(server.url).to("curious")
    asked = sent(caller, "ask Which one?")
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    refused(caller.call("SendMessage", send_params("hello")), FULL, identifier=1)
    answered = sent(caller, "this one", taskId=asked["id"])
    assert answered["status"]["state"] == "TASK_STATE_COMPLETED"
    assert sent(caller, "hello")["status"]["state"] == "TASK_STATE_COMPLETED"


@covers("limits.restart")
def test_a_quota_counts_what_an_earlier_server_left(
    start: Start, limited_caller: Callable[[str], Caller]
) -> None:
    server = start("stored = { principal = 2 }")
    caller = limited_caller(server.url)
    for _ in range(2):
        task = sent(caller, "wait", wait=False)["id"]
        caller.call("CancelTask", {"id": task})
    server.restart()
    caller = limited_caller(server.url)
    assert refused(caller.call("SendMessage", send_params("wait")), FULL, identifier=1) == {
        "limit": "stored.principal"
    }
