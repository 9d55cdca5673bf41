"""Agents of the hosted profile through the official SDKs, with a bearer."""

import hashlib
from collections.abc import Iterator

import pytest

from tests.harness.server import ServerProcess
from tests.interop.sdks import (
    JAVASCRIPT,
    JSONRPC,
    PYTHON_NEW,
    PYTHON_OLD,
    UNFINISHED,
    Json,
    Report,
    Sdk,
    artifact_text,
    assert_task_stream,
    kinds,
    only,
    state,
    text,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SDKS = [sdk for sdk in (*PYTHON_NEW, *PYTHON_OLD, *JAVASCRIPT) if sdk.binding == JSONRPC]
BELOW = "/v1/a2a/agents"
NAMES = [f"P{number}" for number in range(2 * len(SDKS))]
SCENARIOS = (
    *("card", "echo", "return_immediately", "stream_chunks", "stream_progress", "history", "cancel"),
    *("subscribe", "errors", "repeat", "outcomes"),
)

# Scenarios of a driver run all at once, so that they need more places than a caller has by itself.
CONFIG = """
[hosted]
enabled = true
observers = { principal = 64, tenant = 256 }
[agents.demo]
python = "dragoman.agents.demo:demo"
tenant = "acme"
workspace = "lab"
[tenants.acme]
features = ["agent_api"]
""" + "".join(
    f'[tenants.acme.principals.{name.lower()}]\nworkspaces = ["lab"]\n'
    f'tokens = [{{ env = "{name}", scopes = ["ai:answer", "a2a:read", "a2a:delegate"] }}]\n'
    for name in NAMES
)
TOKENS = {name: f"token-of-{name}-Zm9vYmFyLXNlY3JldA" for name in NAMES}


@pytest.fixture(scope="module")
def hosting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the hosted profile, and two callers for each SDK."""
    folder = tmp_path_factory.mktemp("hosting")
    file = folder / "dragoman.toml"
    file.write_text(CONFIG, encoding="utf-8")
    with ServerProcess(folder / "data", config=file, environment=TOKENS) as running:
        yield running


@pytest.fixture(scope="module", params=range(len(SDKS)), ids=[str(sdk) for sdk in SDKS])
def hosted(request: pytest.FixtureRequest, hosting: ServerProcess) -> Report:
    """All scenarios that the profile allows, as one SDK saw them."""
    sdk: Sdk = SDKS[request.param]
    bearer = TOKENS[NAMES[2 * request.param]]
    return sdk.drive(hosting.url, *SCENARIOS, below=BELOW, bearer=bearer)


@pytest.fixture(scope="module", params=range(len(SDKS)), ids=[str(sdk) for sdk in SDKS])
def listing(request: pytest.FixtureRequest, hosting: ServerProcess) -> Json:
    """A listing of all that a caller has, as one SDK saw it."""
    sdk: Sdk = SDKS[request.param]
    bearer = TOKENS[NAMES[2 * request.param + 1]]
    seen: Json = sdk.drive(hosting.url, "own_listing", below=BELOW, bearer=bearer)["own_listing"]
    return seen


def test_the_card_is_found_with_a_bearer_and_names_the_one_endpoint(
    hosted: Report, hosting: ServerProcess
) -> None:
    card = hosted["card"]
    (interface,) = card["supportedInterfaces"]
    assert interface["url"] == f"{hosting.url}{BELOW}/demo/rpc"
    assert (interface["protocolBinding"], interface["protocolVersion"]) == ("JSONRPC", "1.0")
    posts = {call for call in hosted.seen["calls"] if call.startswith("POST ")}
    assert posts == {f"POST {BELOW}/demo/rpc"}


def test_a_blocking_send_gives_one_verified_result(hosted: Report) -> None:
    task = hosted["echo"]["task"]
    assert state(task) == "TASK_STATE_COMPLETED"
    (artifact,) = task["artifacts"]
    content = text(artifact["parts"]).encode()
    assert content.decode() == "A dragoman carries words, not opinions. Größe: 名前 🕊"
    assert artifact["metadata"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert artifact["metadata"]["byteCount"] == len(content)
    assert artifact["parts"][0]["mediaType"] == "text/markdown"


def test_return_immediately_gives_the_task_before_its_work_is_done(hosted: Report) -> None:
    seen = hosted["return_immediately"]
    assert state(seen["first"]) in UNFINISHED
    assert state(seen["last"]) == "TASK_STATE_COMPLETED"
    assert seen["last"]["id"] == seen["first"]["id"]


def test_a_stream_gives_the_result_whole_before_the_completion(hosted: Report) -> None:
    seen = hosted["stream_chunks"]
    assert_task_stream(seen["events"])
    assert kinds(seen["events"])[-2:] == ["artifactUpdate", "statusUpdate"]
    (update,) = only(seen["events"], "artifactUpdate")
    assert text(update["artifact"]["parts"]) == "chunk 1 chunk 2 chunk 3 chunk 4 chunk 5 "
    assert seen["task"]["artifacts"][0]["artifactId"] == update["artifact"]["artifactId"]


def test_a_stream_shows_progress_as_it_comes(hosted: Report) -> None:
    events = hosted["stream_progress"]
    assert_task_stream(events)
    assert len(only(events, "statusUpdate")) >= 5


def test_a_task_is_read_with_as_much_history_as_is_asked_for(hosted: Report) -> None:
    seen = hosted["history"]
    assert artifact_text(seen["absent"]) == "remember this"
    assert not seen["zero"].get("history")
    assert seen["one"]["history"] == seen["absent"]["history"][-1:]


def test_a_cancel_ends_a_running_task_and_a_second_one_is_refused(hosted: Report) -> None:
    seen = hosted["cancel"]
    assert state(seen["canceled"]) == state(seen["read"]) == "TASK_STATE_CANCELED"
    assert seen["again"]["type"] == "TaskNotCancelableError"


def test_a_subscription_follows_a_task_to_its_end(hosted: Report) -> None:
    seen = hosted["subscribe"]
    assert_task_stream(seen["events"])
    assert seen["events"][0]["task"]["id"] == seen["running"]["id"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("get unknown", "TaskNotFoundError"),
        ("cancel unknown", "TaskNotFoundError"),
        ("subscribe unknown", "TaskNotFoundError"),
        ("message to unknown", "UnsupportedOperationError"),
        ("message to finished", "UnsupportedOperationError"),
        ("subscribe finished", "UnsupportedOperationError"),
        ("cancel finished", "TaskNotCancelableError"),
        ("push create", "PushNotificationNotSupportedError"),
    ],
)
def test_each_refusal_is_the_typed_error_of_the_standard(hosted: Report, call: str, expected: str) -> None:
    assert hosted["errors"][call]["type"] == expected, hosted["errors"][call]


def test_the_same_message_sent_again_gives_the_same_task(hosted: Report) -> None:
    seen = hosted["repeat"]
    assert seen["second"] == seen["first"]
    assert seen["changed"]["type"] is not None


def test_an_agent_that_does_not_succeed_says_so(hosted: Report) -> None:
    states = {asked: state(task) for asked, task in hosted["outcomes"].items()}
    assert states == {
        "fail": "TASK_STATE_FAILED",
        "reject": "TASK_STATE_REJECTED",
        "crash": "TASK_STATE_FAILED",
    }


def _ids(page: Json) -> list[str]:
    return [task["id"] for task in page.get("tasks", [])]


def test_pages_hold_the_callers_own_tasks_newest_first(listing: Json) -> None:
    assert [len(_ids(page)) for page in listing["pages"]] == [2, 2, 1]
    assert [task_id for page in listing["pages"] for task_id in _ids(page)] == listing["sent"][::-1]
    assert {page["totalSize"] for page in listing["pages"]} == {5}


def test_lists_are_filtered_and_hold_results_only_if_they_are_asked_for(listing: Json) -> None:
    assert _ids(listing["failed"]) == [listing["sent"][2]]
    assert _ids(listing["of one context"]) == [listing["sent"][1]]
    assert not any(task.get("artifacts") for page in listing["pages"] for task in page["tasks"])
    texts = [artifact_text(task) for task in listing["with_artifacts"]["tasks"] if task.get("artifacts")]
    assert texts == ["four", "three", "two", "one"]
