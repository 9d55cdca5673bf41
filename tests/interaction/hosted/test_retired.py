"""Retired paths, and a server without the profile."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.harness.server import ServerProcess
from tests.interaction.callers import READY, HttpCaller
from tests.interaction.hosted.callers import Hosted
from tests.interaction.hosted.conftest import AGENTS, SHORT, TENANTS, prepared
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import send_params

CARD, RPC = "/v1/a2a/agents/{id}/.well-known/agent-card.json", "/v1/a2a/agents/{id}/rpc"

RETIRED = [
    ("GET", "/.well-known/agent.json", CARD),
    ("HEAD", "/.well-known/agent.json", ""),
    ("GET", "/cards", CARD),
    ("GET", "/tasks/t-1", RPC),
    ("POST", "/tasks/t-1", RPC),
    ("GET", "/tasks/t-1/artifacts/2", RPC),
    ("POST", "/tasks/t-1/cancel", RPC),
    ("POST", "/SendMessage", RPC),
    ("POST", "/GetTask", RPC),
    ("POST", "/ListTasks", RPC),
    ("POST", "/CancelTask", RPC),
]
"""Method and path below /v1/a2a → what the answer must name as what took its place."""

OTHERS = [
    ("POST", "/cards"),
    ("GET", "/cards/x"),
    ("POST", "/.well-known/agent.json"),
    ("GET", "/.well-known/agent-card.json"),
    ("DELETE", "/tasks/t-1"),
    ("GET", "/tasks/"),
    ("GET", "/SendMessage"),
    ("POST", "/SubscribeToTask"),
    ("POST", "/sendmessage"),
    ("POST", "/GetTask/x"),
    ("GET", ""),
]


@covers("retired.paths")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("method", "path", "instead"), RETIRED)
@pytest.mark.parametrize("who", [None, "ALICE", "nobodys-token-at-all-0123"])
def test_a_retired_path_is_gone_for_everybody_and_names_what_took_its_place(
    alice: Hosted, method: str, path: str, instead: str, who: str | None
) -> None:
    reply = alice.by(who).api(method, path, {} if method == "POST" else None)
    assert reply.status == 410
    assert reply.headers["content-type"] == "application/problem+json"
    if method == "HEAD":
        assert reply.body == b""
        return
    problem = reply.json()
    assert (problem["status"], problem["title"], problem["instance"]) == (410, "Gone", f"/v1/a2a{path}")
    assert problem["trace_id"] == reply.headers["x-request-id"]
    assert instead in problem["detail"]
    if "/tasks/" in path:
        assert "cannot be restored" in problem["detail"]
    if instead == RPC and "/tasks/" not in path:
        assert path[1:] in problem["detail"], "the method that is to be called"


@covers("retired.others")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_what_only_looks_like_one_is_not_there(alice: Hosted, method: str, path: str) -> None:
    assert alice.api(method, path, {} if method == "POST" else None).status == 404


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The same tenants and agents, without a word of the profile."""
    with prepared(tmp_path_factory.mktemp("without"), SHORT + AGENTS + TENANTS) as running:
        yield running


@covers("profile.off")
def test_the_profile_is_off_by_itself(client: httpx2.Client, without: ServerProcess) -> None:
    alice = Hosted(client, without.url)
    for who in ("ALICE_STAR", None):
        caller = alice.by(who)
        replies = [
            caller.card(),
            caller.call("SendMessage", send_params("x")),
            caller.call("ListTasks"),
            caller.to("nobody").call("ListTasks"),
            caller.resume("x", "y"),
            *(caller.api(method, path, {} if method == "POST" else None) for method, path, _ in RETIRED),
        ]
        assert {reply.status for reply in replies} == {404}
    unknown = alice.api("GET", "/nothing/of/the/kind", **READY)
    off = alice.card(READY)
    assert _form(off) == _form(unknown)


def _form(reply: Any) -> Any:
    changing = ("x-request-id", "date")
    return reply.status, reply.body, {k: v for k, v in reply.headers.items() if k not in changing}


@covers("profile.off")
def test_the_open_surfaces_need_no_profile(client: httpx2.Client, without: ServerProcess) -> None:
    alice = Hosted(client, without.url)
    open_surface = HttpCaller(client, without.url)
    reply = open_surface.call("SendMessage", send_params("hello"), headers=alice.credential)
    assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert open_surface.call("SendMessage", send_params("hello")).status == 401
