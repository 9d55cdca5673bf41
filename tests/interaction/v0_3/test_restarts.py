"""After the end of a server: a message is still the same one, and a run that was lost goes on."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction import answers as newer_answers
from tests.interaction.callers import HttpCaller, RpcCaller
from tests.interaction.conftest import AGENTS
from tests.interaction.v0_3.callers import FORMS, PLACES, PROTO, Caller
from tests.interaction.v0_3.messages import ended, send_params, sent, state_of, texts
from tests.interaction.v0_3.requirements import covers
from tests.interaction.v0_3.test_idempotency import newer_params


@pytest.fixture(scope="module")
def crashing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of its own, to be killed."""
    with ServerProcess(tmp_path_factory.mktemp("crashing") / "data", agents=[AGENTS]) as running:
        yield running


@covers("idempotency.restart", "restart.recovers", "difference.snapshots")
def test_a_message_is_the_same_after_a_crash_and_its_run_goes_on(
    crashing: ServerProcess, client: httpx2.Client, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    finished, held = send_params("good day"), send_params(f"until {gate}", configuration={"blocking": False})
    first = Caller(PROTO, client, crashing.url, "seen").call("SendMessage", finished).value
    hold = Caller(PROTO, client, crashing.url, "hold")
    lost = hold.call("SendMessage", held).value["id"]
    until(lambda: state_of(hold, lost) == "working", what="the run works")
    crashing.kill()
    crashing.start()
    for place in PLACES:
        again = Caller(place, client, crashing.url, "seen").call("SendMessage", finished)
        assert again.is_replay and again.value == first
    for kind in (HttpCaller, RpcCaller):
        reply = kind(client, crashing.url, "seen").call("SendMessage", newer_params(finished))
        newer_answers.refused(reply, newer_answers.CONFLICT, identifier=1)
    gate.touch()
    for place in FORMS:
        hold = Caller(place, client, crashing.url, "hold")
        task = ended(hold, lost)
        assert texts(task) == ["released"]
        assert hold.call("SendMessage", held).value == task
        # What the lost attempt had said no longer counts, so the task is shown once more.
        with hold.open("SubscribeToTask", {"id": lost}, headers={"Last-Event-ID": "1"}) as stream:
            items = stream.rest()
        kinds = [item.kind for item in items]
        assert kinds.count("task") == 1 and kinds[0] != "task"
        assert [item.final for item in items] == [False] * (len(items) - 1) + [True]
        assert items[-1].value["status"] == task["status"]
    assert sent(Caller(PROTO, client, crashing.url, "seen"))["status"]["state"] == "completed"
