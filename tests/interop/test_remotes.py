"""Remote agents of A2A 1.0 on official SDK servers, over either binding, streamed or polled, served as ours."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.paths import CHECKOUT
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.harness.wire import call
from tests.interop.remotes import checks
from tests.interop.remotes.gateway import Agent, Json, agent_at, gateway, state, text_of
from tests.interop.remotes.processes import RemoteServer

pytestmark = pytest.mark.interop

SCRIPT = CHECKOUT / "tests" / "interop" / "remotes" / "server.py"
KINDS = {"rpc": ("JSONRPC",), "http": ("HTTP+JSON",), "rpc-polled": ("JSONRPC", "poll")}


def new_remote(*options: str, port: int = 0) -> RemoteServer:
    """An agent of A2A 1.0 alone."""
    return RemoteServer("a2a-sdk-server-1.3.0", SCRIPT, *options, port=port)


@dataclass(frozen=True)
class Pair:
    """A remote agent, and the agent of ours that mirrors it."""

    remote: RemoteServer
    agent: Agent


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Each kind of remote agent in turn."""
    folder = tmp_path_factory.mktemp("remote")
    with new_remote(*KINDS[request.param]) as remote, gateway(folder, {"clerk": remote.url}) as server:
        yield Pair(remote, agent_at(server, "clerk"))


def test_the_card_is_mirrored_with_our_places_and_our_signature(pair: Pair) -> None:
    checks.check_card(pair.agent, pair.remote)


def test_all_parts_and_metadata_come_there_and_back(pair: Pair) -> None:
    checks.check_parts(pair.agent, pair.remote)


def test_a_stream_is_passed_on_as_it_comes(pair: Pair) -> None:
    checks.check_stream(pair.agent, pair.remote)


def test_questions_and_answers_go_to_and_fro(pair: Pair) -> None:
    checks.check_questions(pair.agent, pair.remote)


def test_a_second_question_is_told_from_the_first(pair: Pair) -> None:
    checks.check_two_questions(pair.agent)


def test_tasks_end_as_the_remote_agent_ends_them(pair: Pair) -> None:
    checks.check_endings(pair.agent)


def test_an_error_of_the_remote_agent_has_its_meaning(pair: Pair) -> None:
    checks.check_refusal(pair.agent)


def test_a_cancel_comes_to_the_remote_agent(pair: Pair) -> None:
    checks.check_cancel(pair.agent, pair.remote)


def test_extensions_of_the_remote_agent_can_be_activated(pair: Pair) -> None:
    checks.check_extensions(pair.agent, pair.remote)


HOSTED = """
[hosted]
enabled = true
[agents.clerk]
a2a = "{url}"
tenant = "acme"
workspace = "lab"
[tenants.acme]
features = ["agent_api"]
[tenants.acme.principals.alice]
workspaces = ["lab"]
tokens = [ {{ env = "ALICE", scopes = ["ai:*", "a2a:*"] }} ]
"""
TOKEN = "a-token-of-alice-for-these-tests"


def test_a_remote_agent_can_be_hosted(tmp_path: Path) -> None:
    config = tmp_path / "dragoman.toml"
    with new_remote("JSONRPC") as remote:
        config.write_text(HOSTED.format(url=remote.url), encoding="utf-8")
        with ServerProcess(tmp_path / "data", config=config, environment={"ALICE": TOKEN}) as server:
            asked = _hosted(server, "SendMessage", message=HOSTED_MESSAGE)["task"]
            assert (state(asked), text_of(asked["status"]["message"])) == ("INPUT_REQUIRED", "Which one?")
            resume = f"{server.url}/v1/a2a/runs/{asked['id']}:resume"
            assert call("POST", resume, {"text": "the red one"}, headers=BEARER).status == 200
            done = until(
                lambda: (
                    found
                    if state(found := _hosted(server, "GetTask", id=asked["id"])) == "COMPLETED"
                    else None
                ),
                what="the end of the task",
            )
            # What was given before the question is part of the one result.
            assert [text_of(one) for one in done["artifacts"]] == ["so far\n\nanswered: the red one"]


BEARER = {"Authorization": f"Bearer {TOKEN}"}
HOSTED_MESSAGE = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "ask"}]}


def _hosted(server: ServerProcess, method: str, **params: object) -> Json:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    reply = call("POST", f"{server.url}/v1/a2a/agents/clerk/rpc", request, headers=BEARER)
    result: Json = reply.json()["result"]
    return result
