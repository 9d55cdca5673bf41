"""Remote agents of A2A 0.3 served to callers of 1.0, and callers of 0.3 before a remote agent of 1.0 alone."""

import base64
from collections.abc import Iterator

import pytest

from tests.harness.paths import CHECKOUT
from tests.interop.remotes import checks
from tests.interop.remotes.gateway import agent_at, gateway
from tests.interop.remotes.processes import RemoteServer
from tests.interop.sdks import PYTHON_NEW, Json, Report, Sdk, artifact_text, state
from tests.interop.test_remotes import Pair, new_remote
from tests.interop.v0_3.sdks import PYTHON as PYTHON_OLD
from tests.interop.v0_3.sdks import content, said
from tests.interop.v0_3.sdks import text as old_text

pytestmark = pytest.mark.interop

SCRIPT = CHECKOUT / "tests" / "interop" / "v0_3" / "remote_server.py"
KINDS = {
    "rpc": ("JSONRPC",),
    "http": ("HTTP+JSON",),
    "rpc-polled": ("JSONRPC", "poll"),
    "http-polled": ("HTTP+JSON", "poll"),
}
SCENARIOS = ("parts", "bare_message", "cancel", "stream_chunks", "outcomes")


def old_remote(*options: str, port: int = 0) -> RemoteServer:
    """An agent of A2A 0.3 alone."""
    return RemoteServer("a2a-sdk-server-0.3.26", SCRIPT, *options, port=port)


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Each kind of remote agent in turn."""
    folder = tmp_path_factory.mktemp("remote")
    with old_remote(*KINDS[request.param]) as remote, gateway(folder, {"clerk": remote.url}) as server:
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
    if pair.remote.options == ("HTTP+JSON",):
        # Official servers of 0.3 break a stream over HTTP off where they would refuse it: nobody knows why.
        refused = pair.agent.send("refuse")
        reason = refused["status"]["message"]["metadata"]["urn:dragoman:ext:remote:v1"]
        assert (state(refused), reason) == ("TASK_STATE_FAILED", {"reason": "OUTCOME_UNKNOWN"})
    else:
        checks.check_refusal(pair.agent)


def test_a_cancel_comes_to_the_remote_agent(pair: Pair) -> None:
    checks.check_cancel(pair.agent, pair.remote)


def test_extensions_of_the_remote_agent_can_be_activated(pair: Pair) -> None:
    checks.check_extensions(pair.agent, pair.remote)


# ------------------------------------------------------------------------------------- unmodified clients, across


@pytest.fixture(scope="module", params=["JSONRPC", "HTTP+JSON"])
def before_new(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of our server before a remote agent of 1.0 alone."""
    folder = tmp_path_factory.mktemp("new")
    with new_remote(request.param) as remote, gateway(folder, {"clerk": remote.url}) as server:
        yield server.url


@pytest.fixture(scope="module", params=["JSONRPC", "HTTP+JSON"])
def before_old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of our server before a remote agent of 0.3 alone."""
    folder = tmp_path_factory.mktemp("old")
    with old_remote(request.param) as remote, gateway(folder, {"clerk": remote.url}) as server:
        yield server.url


def approximately(value: object) -> object:
    """A JSON value with its numbers as doubles: official servers of 1.0 keep data so."""
    if isinstance(value, dict):
        return {key: approximately(item) for key, item in value.items()}
    if isinstance(value, list):
        return [approximately(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def part_of(part: Json) -> tuple[object, object]:
    """What a 0.3 part carries, and its metadata."""
    file = part.get("file", {})
    return approximately(content(part)), (
        approximately(part.get("metadata")),
        file.get("name"),
        file.get("mimeType"),
    )


@pytest.mark.parametrize("sdk", PYTHON_OLD[:2], ids=str)
def test_an_old_client_reaches_a_new_remote_agent(sdk: Sdk, before_new: str) -> None:
    seen = sdk.drive(before_new, *SCENARIOS, "dialogue", agent="clerk")
    parts = seen["parts"]
    (artifact,) = parts["task"]["artifacts"]
    assert list(map(part_of, artifact["parts"])) == list(map(part_of, parts["sent"]["parts"]))
    assert approximately(artifact["metadata"]["told"]) == approximately(parts["sent"]["metadata"])
    assert old_text(seen["bare_message"]["sent"]["parts"]) == "bare"
    assert seen["cancel"]["canceled"]["status"]["state"] == "canceled"
    streamed = [one for one in seen["stream_chunks"]["events"] if one["kind"] == "artifact-update"]
    assert [old_text(one["artifact"]["parts"]) for one in streamed] == ["0 ", "1 ", "2 ", "3 ", "4 "]
    _check_old_outcomes(seen)


def _check_old_outcomes(seen: Report) -> None:
    outcomes = seen["outcomes"]
    assert (outcomes["fail"]["status"]["state"], said(outcomes["fail"])) == ("failed", "I cannot.")
    assert (outcomes["reject"]["status"]["state"], said(outcomes["reject"])) == ("rejected", "I will not.")
    turns = seen["dialogue"]
    assert (turns["asked"]["status"]["state"], said(turns["asked"])) == ("input-required", "Which one?")
    assert (turns["asked again"]["status"]["state"], said(turns["asked again"])) == (
        "input-required",
        "When?",
    )
    assert turns["streamed"][-1]["status"]["state"] == "completed"
    assert turns["streamed question"][-1]["status"]["state"] == "input-required"


@pytest.mark.parametrize("sdk", PYTHON_NEW, ids=str)
def test_a_new_client_reaches_an_old_remote_agent(sdk: Sdk, before_old: str) -> None:
    seen = sdk.drive(before_old, *SCENARIOS, "subscribe", agent="clerk")
    parts = seen["parts"]
    (artifact,) = parts["task"]["artifacts"]
    assert list(map(new_part, artifact["parts"])) == list(map(new_part, parts["sent"]["parts"]))
    assert seen["bare_message"]["sent"]["message"]["parts"] == [{"text": "bare"}]
    assert state(seen["cancel"]["canceled"]) == "TASK_STATE_CANCELED"
    assert artifact_text(seen["stream_chunks"]["task"]) == "0 1 2 3 4 "
    updates = [one["artifactUpdate"] for one in seen["stream_chunks"]["events"] if "artifactUpdate" in one]
    assert [one["artifact"]["parts"][0]["text"] for one in updates] == ["0 ", "1 ", "2 ", "3 ", "4 "]
    assert state(seen["outcomes"]["fail"]) == "TASK_STATE_FAILED"
    assert state(seen["outcomes"]["reject"]) == "TASK_STATE_REJECTED"
    assert state(seen["subscribe"]["events"][-1]["statusUpdate"]) == "TASK_STATE_COMPLETED"


def new_part(part: Json) -> Json:
    """A 1.0 part, its bytes as they are."""
    return {**part, "raw": base64.b64decode(part["raw"])} if "raw" in part else part
