"""Tasks of several turns through the official 0.3 SDKs: an agent that asks its caller, and one that wants leave."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.server import ServerProcess
from tests.interop.sdks import Json, Report, Sdk, artifact_text, state
from tests.interop.v0_3.sdks import ALL_SDKS, UNFINISHED, history_texts, of_kind, said

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def asking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of the agents that ask."""
    agents = Path(__file__).with_name("own_agents.py")
    with ServerProcess(tmp_path_factory.mktemp("turns") / "data", agents=[agents]) as running:
        yield running


@pytest.fixture(scope="module", params=ALL_SDKS, ids=str)
def dialogue(request: pytest.FixtureRequest, asking_server: ServerProcess) -> Json:
    """A dialogue as one SDK saw it."""
    sdk: Sdk = request.param
    seen: Json = sdk.drive(asking_server.url, "dialogue", agent="asking")["dialogue"]
    return seen


def test_a_question_is_the_answer_to_a_blocking_send(dialogue: Json) -> None:
    asked = dialogue["asked"]
    assert (state(asked), said(asked)) == ("input-required", "Where to?")
    assert not asked.get("artifacts")


def test_a_message_to_the_waiting_task_takes_it_to_its_next_question(dialogue: Json) -> None:
    again = dialogue["asked again"]
    assert again["id"] == dialogue["asked"]["id"]
    assert (state(again), said(again)) == ("input-required", "When to Rome?")


def test_a_streamed_message_to_the_waiting_task_is_followed_to_the_end(dialogue: Json) -> None:
    events = dialogue["streamed"]
    assert (events[0]["kind"], events[0]["id"]) == ("task", dialogue["asked"]["id"])
    assert state(events[-1]) == "completed"
    finals = [update.get("final", False) for update in of_kind(events, "status-update")]
    assert finals == [False] * (len(finals) - 1) + [True]
    assert artifact_text(dialogue["read"]) == "To Rome on Monday."


def test_a_question_ends_a_stream_with_the_final_update(dialogue: Json) -> None:
    events = dialogue["streamed question"]
    assert state(events[0]) in UNFINISHED
    assert (state(events[-1]), said(events[-1])) == ("input-required", "Where to?")
    finals = [update.get("final", False) for update in of_kind(events, "status-update")]
    assert finals == [False] * (len(finals) - 1) + [True]


def test_the_history_holds_each_question_and_answer_once_in_order(dialogue: Json) -> None:
    assert history_texts(dialogue["read"]) == [
        ("user", "a journey"),
        ("agent", "Where to?"),
        ("user", "Rome"),
        ("agent", "When to Rome?"),
        ("user", "Monday"),
    ]


@pytest.mark.parametrize("sdk", ALL_SDKS, ids=str)
def test_a_stream_stays_open_where_the_caller_is_to_authorize_something(
    asking_server: ServerProcess, sdk: Sdk
) -> None:
    report: Report = sdk.drive(asking_server.url, "answer_within_stream", agent="guarded")
    events = report["answer_within_stream"]
    updates = of_kind(events, "status-update")
    (asked,) = [update for update in updates if state(update) == "auth-required"]
    assert said(asked) == "Who are you?"
    assert not asked.get("final", False)
    assert (state(updates[-1]), updates[-1]["final"]) == ("completed", True)
    (artifact,) = of_kind(events, "artifact-update")
    assert artifact["artifact"]["parts"][0]["text"] == "Come in, a friend."
