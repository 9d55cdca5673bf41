"""A server that is killed, or that cannot store anything: what callers of 0.3 are told, and that nothing is lost."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction import answers as newer_answers
from tests.interaction.callers import HttpCaller, RpcCaller
from tests.interaction.conftest import AGENTS
from tests.interaction.rows import Rows
from tests.interaction.test_failures import broken_store
from tests.interaction.v0_3.answers import UNAVAILABLE, check_response, refused
from tests.interaction.v0_3.callers import FORMS, PLACES, PROTO, RPC, Caller
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


@covers("store.fails")
def test_a_store_that_fails_is_told_in_the_form_of_each_place_and_nothing_is_lost(
    crashing: ServerProcess, client: httpx2.Client
) -> None:
    rows = Rows(crashing.data)
    callers = [Caller(place, client, crashing.url, "seen") for place in PLACES]
    params = [send_params() for _ in callers]
    with rows.unchanged(), broken_store(crashing):
        for caller, sending in zip(callers, params, strict=True):
            for operation in ("SendMessage", "SendStreamingMessage"):
                reply = caller.call(operation, sending)
                refused(reply, UNAVAILABLE, identifier=1)
                assert int(reply.headers["retry-after"]) > 0
        streaming = Caller(RPC, client, crashing.url, "seen")
        reply = streaming.call("SendStreamingMessage", params[0], headers={"Accept": "text/event-stream"})
        assert (reply.content_type, int(reply.headers["retry-after"]) > 0) == ("text/event-stream", True)
        check_response(json.loads(reply.body.removeprefix(b"data: ")), UNAVAILABLE, identifier=1)
    for caller, sending in zip(callers, params, strict=True):
        reply = caller.call("SendMessage", sending)
        assert (reply.is_replay, reply.value["status"]["state"]) == (False, "completed")
