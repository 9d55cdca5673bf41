"""Waits and streams end with their window and runs with their deadline; the first is no error, and the run goes on."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.answers import UNSUPPORTED
from tests.interaction.following import ended, got, sent, state_of, texts
from tests.interaction.hosted.callers import CLOSED, Hosted, refused_outside
from tests.interaction.hosted.conftest import AGENTS, HOSTED, SHORT, TENANTS, prepared
from tests.interaction.hosted.requirements import covers
from tests.interaction.hosted.test_streams import kinds
from tests.interaction.messages import send_params

WINDOW, DEADLINE = 1.0, 4.0
BOUNDS = f'deadline = "{DEADLINE:g}s"\nobservers = {{ window = "{WINDOW:g}s" }}\n'


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a short window and a short deadline; the agents' own deadlines are an hour."""
    config = SHORT + HOSTED + BOUNDS + AGENTS + TENANTS
    with prepared(tmp_path_factory.mktemp("windows"), config) as running:
        yield running


@pytest.fixture
def brief(client: httpx2.Client, short: ServerProcess) -> Hosted:
    """A caller of the agent of these tests on that server."""
    return Hosted(client, short.url, "probe")


@covers("window.waits", "window.goes-on")
def test_a_wait_ends_with_its_window_and_returns_the_task(brief: Hosted, tmp_path: Path) -> None:
    release = tmp_path / "release"
    began = time.monotonic()
    task = sent(brief, f"hold {release}")
    assert WINDOW <= time.monotonic() - began < WINDOW + 1.5
    assert task["status"]["state"] == "TASK_STATE_WORKING"
    release.touch()
    assert texts(ended(brief, task["id"])) == ["released"]


@covers("window.waits", "window.goes-on", "identity.replay")
def test_the_same_message_waits_again(brief: Hosted, tmp_path: Path) -> None:
    release = tmp_path / "release"
    params = send_params(f"hold {release}")
    first = brief.call("SendMessage", params).task
    second = brief.call("SendMessage", params).task
    assert (first["id"], second["status"]["state"]) == (second["id"], "TASK_STATE_WORKING")
    release.touch()
    assert texts(brief.call("SendMessage", params).task) == ["released"]


@covers("window.streams", "window.goes-on")
@pytest.mark.parametrize("operation", ["SendStreamingMessage", "SubscribeToTask"])
def test_a_stream_ends_with_its_window_without_an_error_and_can_be_taken_up(
    brief: Hosted, tmp_path: Path, operation: str
) -> None:
    release = tmp_path / "release"
    text = f"hold {release}"
    params = (
        send_params(text) if operation.startswith("Send") else {"id": sent(brief, text, wait=False)["id"]}
    )
    began = time.monotonic()
    with brief.open(operation, params) as stream:
        items = stream.rest()
    assert WINDOW <= time.monotonic() - began < WINDOW + 1.5
    assert kinds(items)[0] in ("task SUBMITTED", "task WORKING")
    assert set(kinds(items)[1:]) <= {"statusUpdate WORKING"}
    task_id = items[0].value["id"]
    assert state_of(brief, task_id) == "TASK_STATE_WORKING"
    with brief.open("SubscribeToTask", {"id": task_id}) as stream:
        assert kinds([stream.next()]) == ["task WORKING"]
        release.touch()
        assert kinds(stream.rest()) == ["artifactUpdate", "statusUpdate COMPLETED"]


@covers("window.streams")
def test_a_window_is_not_moved_by_what_happens(brief: Hosted) -> None:
    began = time.monotonic()
    with brief.to("demo").open("SendStreamingMessage", send_params("slow 3")) as stream:
        items = stream.rest()
    assert WINDOW <= time.monotonic() - began < WINDOW + 1.5
    assert len(items) > 3
    assert set(kinds(items)[1:]) == {"statusUpdate WORKING"}
    brief.to("demo").call("CancelTask", {"id": items[0].value["id"]})


@covers("deadline.saved")
def test_a_run_ends_with_the_deadline_of_the_profile(brief: Hosted) -> None:
    began = time.monotonic()
    task_id = sent(brief, "hold", wait=False)["id"]
    task = ended(brief, task_id)
    assert DEADLINE - 0.1 <= time.monotonic() - began < DEADLINE + 3
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert "deadline" in task["status"]["message"]["parts"][0]["text"]


@covers("deadline.saved")
def test_a_saved_deadline_stays_when_the_configuration_changes(client: httpx2.Client, tmp_path: Path) -> None:
    server = prepared(tmp_path, SHORT + HOSTED + BOUNDS + AGENTS + TENANTS)
    with server:
        task_id = sent(Hosted(client, server.url, "probe"), "hold", wait=False)["id"]
        began = time.monotonic()
        server.terminate()
        (tmp_path / "dragoman.toml").write_text(SHORT + HOSTED + AGENTS + TENANTS, encoding="utf-8")
        server.start()
        task = ended(Hosted(client, server.url, "probe"), task_id)
        assert task["status"]["state"] == "TASK_STATE_FAILED"
        assert time.monotonic() - began < DEADLINE + 5


@covers("deadline.flat", "approval.expires", "resume.refused")
@pytest.mark.parametrize("text", ["ask which?", "auth", "approve it"])
def test_waiting_for_somebody_does_not_move_it(brief: Hosted, text: str) -> None:
    demo, bob = brief.to("demo"), brief.by("BOB")
    began = time.monotonic()
    task = sent(demo, text)
    approval_id = bob.approval_of(task)["id"] if text == "approve it" else ""
    done = ended(demo, task["id"])
    assert DEADLINE - 0.1 <= time.monotonic() - began < DEADLINE + 3
    assert done["status"]["state"] == "TASK_STATE_FAILED"
    assert "deadline" in done["status"]["message"]["parts"][0]["text"]
    refused_outside(demo.resume(task["id"], "too late"), UNSUPPORTED)
    if approval_id:
        refused_outside(bob.decide(approval_id, "approve"), CLOSED)
        assert task["id"] not in {one["taskId"] for one in bob.approvals()}
    assert got(demo, task["id"]) == done


@covers("deadline.flat")
def test_the_time_that_a_run_waited_is_gone_for_it(brief: Hosted) -> None:
    """It asks for half of its time, and then has the other half left."""
    began = time.monotonic()
    task_id = sent(brief, "patient")["id"]
    until(lambda: time.monotonic() - began > DEADLINE / 2, what="half of the deadline is over")
    assert brief.resume(task_id, "go on").status == 200
    task = ended(brief, task_id)
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert time.monotonic() - began < DEADLINE + 3


@covers("deadline.flat", "approval.expires")
def test_an_approval_says_when_its_run_ends(brief: Hosted) -> None:
    task = sent(brief.to("demo"), "approve it")
    approval = brief.by("BOB").approval_of(task)
    lasts = _seconds(approval["expiresAt"]) - _seconds(approval["createdAt"])
    assert DEADLINE - 1.5 < lasts <= DEADLINE
    brief.to("demo").call("CancelTask", {"id": task["id"]})


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


@covers("deadline.saved")
def test_a_run_that_takes_longer_than_a_lease_is_not_entered_again(
    client: httpx2.Client, tmp_path: Path
) -> None:
    engine = '[server]\ndrain = "1s"\n[engine]\nsweep = "100ms"\nlease = "300ms"\n'
    with prepared(tmp_path, engine + HOSTED + BOUNDS + AGENTS + TENANTS) as server:
        brief = Hosted(client, server.url, "probe")
        # The deadline is more than ten leases away, and a sweep has come after each.
        task = ended(brief, sent(brief, "hold", wait=False)["id"])
    assert "deadline" in task["status"]["message"]["parts"][0]["text"]
    assert "took over a lost run" not in [line.get("message") for line in server.log_lines()]
