"""Rates and quotas, as callers of 0.3 are told of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.conftest import AGENTS
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import FULL, TASK_NOT_FOUND, Refusal, refused
from tests.interaction.v0_3.callers import PLACES, Caller
from tests.interaction.v0_3.messages import send_params, sent
from tests.interaction.v0_3.requirements import covers

RATE = Refusal("RateLimitedError", "RATE_LIMITED", 429, -32000, transport=True)
NOBODYS = {"id": "00000000-0000-7000-8000-000000000000"}

Start = Callable[[str], Caller]


@pytest.fixture(params=PLACES, ids=lambda place: place.name)
def limited(request: pytest.FixtureRequest, client: httpx2.Client, tmp_path: Path) -> Iterator[Start]:
    """Starts a server with some limits and gives a caller of it, at each place in turn."""
    servers: list[ServerProcess] = []

    def started(limits: str) -> Caller:
        config = tmp_path / "dragoman.toml"
        config.write_text(f"[limits]\n{limits}\n", encoding="utf-8")
        servers.append(ServerProcess(tmp_path / "data", agents=[AGENTS], config=config).start())
        return Caller(request.param, client, servers[-1].url, "hold")

    yield started
    for server in servers:
        server.close()


def working(folder: Path) -> Rows:
    """The rows of the server, once the task in them is worked on: nothing more comes of itself."""
    rows = Rows(folder / "data")
    until(lambda: rows.query("SELECT id FROM task WHERE state = 2"), what="the task is worked on")
    return rows


@covers("limits.rate")
def test_a_request_too_many_is_refused_with_the_time_to_come_back_unless_it_cancels(
    limited: Start, tmp_path: Path
) -> None:
    caller = limited("rate = { principal = 2 }")
    task_id = sent(caller, "wait", wait=False)["id"]
    refused(caller.call("GetTask", NOBODYS), TASK_NOT_FOUND, identifier=1)
    with working(tmp_path).unchanged():
        for operation, params in (
            ("SendMessage", send_params("wait")),
            ("SendStreamingMessage", send_params("wait")),
            ("GetTask", NOBODYS),
        ):
            reply = caller.call(operation, params)
            refused(reply, RATE)
            assert 1 <= int(reply.headers["retry-after"]) <= 30
    assert caller.call("CancelTask", {"id": task_id}).value["status"]["state"] == "canceled"


@covers("limits.quota")
def test_a_task_too_many_is_refused_and_not_stored_and_all_else_goes_on(
    limited: Start, tmp_path: Path
) -> None:
    caller = limited("running = { principal = 1 }")
    params = send_params("wait", configuration={"blocking": False})
    task_id = caller.call("SendMessage", params).value["id"]
    with working(tmp_path).unchanged():
        for operation in ("SendMessage", "SendStreamingMessage"):
            reply = caller.call(operation, send_params("wait"))
            refused(reply, FULL, identifier=1)
            assert reply.headers["retry-after"] == "5"
        again = caller.call("SendMessage", params)
        assert again.is_replay and again.value["id"] == task_id
    assert caller.call("GetTask", {"id": task_id}).value["id"] == task_id
    assert caller.call("CancelTask", {"id": task_id}).value["status"]["state"] == "canceled"
    assert sent(caller, "wait", wait=False)["id"] != task_id
