"""Sends: what comes back, when, and that an accepted run is never lost or doubled."""

import json
import threading
import time
from pathlib import Path

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.stores import named
from tests.interaction.answers import CONFLICT, refused
from tests.interaction.following import ended, got, sent, state_of, texts
from tests.interaction.hosted.callers import Hosted, Watcher
from tests.interaction.hosted.conftest import AGENTS, HOSTED, SHORT, TENANTS, prepared
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import message, new_id, send_params
from tests.interaction.rows import Rows


@covers("rpc.endpoint", "input.text", "send.waits")
@pytest.mark.parametrize("path", ["/rpc", "/rpc/"])
def test_a_send_waits_for_the_end_of_its_run(alice: Hosted, path: str) -> None:
    request = alice.request("SendMessage", send_params("slow 0.5"))
    reply = alice.deliver(
        type(request)("POST", request.target.removesuffix("/rpc") + path, request.headers, request.body)
    )
    task = reply.task
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert texts(task) == ["Took 0.5 s."]


@covers("send.waits")
@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("ask", "TASK_STATE_INPUT_REQUIRED"),
        ("auth", "TASK_STATE_AUTH_REQUIRED"),
        ("approve", "TASK_STATE_INPUT_REQUIRED"),
        ("fail", "TASK_STATE_FAILED"),
        ("reject", "TASK_STATE_REJECTED"),
        ("crash", "TASK_STATE_FAILED"),
    ],
)
def test_it_returns_when_the_run_is_interrupted_or_ends_otherwise(
    alice: Hosted, text: str, state: str
) -> None:
    task = sent(alice, text)
    assert task["status"]["state"] == state
    assert not task.get("artifacts")


@covers("send.immediately")
@pytest.mark.alone
def test_return_immediately_returns_at_once_and_the_run_goes_on(alice: Hosted) -> None:
    began = time.monotonic()
    task = sent(alice, "slow 1.5", wait=False)
    assert time.monotonic() - began < 1.0
    assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    assert texts(ended(alice, task["id"])) == ["Took 1.5 s."]


@covers("identity.replay")
def test_the_same_message_is_the_same_run_by_every_kind_of_send(alice: Hosted) -> None:
    params = send_params("slow 1")
    first = alice.call("SendMessage", {**params, "configuration": {"returnImmediately": True}})
    assert "idempotent-replayed" not in first.headers
    running = alice.call("SendMessage", {**params, "configuration": {"returnImmediately": True}})
    with alice.open("SendStreamingMessage", params) as stream:
        followed = stream.rest()
        assert stream.headers["idempotent-replayed"] == "true"
    waited = alice.call("SendMessage", params)
    for reply in (running, waited):
        assert reply.headers["idempotent-replayed"] == "true"
        assert reply.task["id"] == first.task["id"]
    assert followed[0].value["id"] == first.task["id"]
    assert waited.task == got(alice, first.task["id"])
    with alice.open("SendStreamingMessage", params) as stream:
        (only,) = stream.rest()
        assert only.value == waited.task


@covers("identity.conflict")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_other_content_under_the_same_id_is_refused(alice: Hosted, rows: Rows, operation: str) -> None:
    used = message("first")
    task = alice.call("SendMessage", {"message": used}).task
    for parts in ([{"text": "second"}], [{"text": "first"}, {"text": "second"}], [{"text": "First"}]):
        with rows.unchanged():
            refused(alice.call(operation, {"message": {**used, "parts": parts}}), CONFLICT, identifier=1)
    assert got(alice, task["id"]) == task


@covers("identity.scope")
def test_a_message_id_is_one_principals_with_one_agent(alice: Hosted) -> None:
    used = message("whose?")
    callers = [alice, alice.by("BOB"), alice.to("second"), alice.by("TWIN").to("theirs")]
    replies = [caller.call("SendMessage", {"message": used}) for caller in callers]
    assert len({reply.task["id"] for reply in replies}) == len(callers)
    assert not any("idempotent-replayed" in reply.headers for reply in replies)
    again = [caller.call("SendMessage", {"message": used}).task["id"] for caller in callers]
    assert again == [reply.task["id"] for reply in replies]


@covers("identity.request-id")
def test_the_id_of_the_request_has_nothing_to_do_with_the_message(alice: Hosted) -> None:
    used = send_params("once")
    replies = []
    for identifier in ("1", '"m"', '"\\u2028 \\u00e9"', "12345678901234567890"):
        request = alice.request("SendMessage", used)
        body = request.body or b""
        reply = alice.deliver(alice.post(body.replace(b'"id":1', b'"id":' + identifier.encode())))
        assert reply.json()["id"] == json.loads(identifier)
        replies.append(reply.json()["result"]["task"]["id"])
    assert len(set(replies)) == 1
    same = alice.call("SendMessage", send_params("once")).task["id"]
    assert same not in replies, "the id of a request alone makes nothing the same"


@covers("identity.disconnect")
def test_a_caller_who_hangs_up_starts_no_second_run_and_ends_none(alice: Hosted, rows: Rows) -> None:
    for operation in ("SendMessage", "SendStreamingMessage"):
        params = send_params("slow 1.5")
        where = "SELECT task_id FROM identity WHERE message_id = ?", named(params["message"]["messageId"])
        with Watcher(alice.origin, alice.request(operation, params)):
            until(lambda where=where: rows.query(*where), what="the message is accepted")
        ((task_id,),) = rows.query(*where)
        again = alice.call("SendMessage", params).task
        assert (again["id"], again["status"]["state"]) == (task_id, "TASK_STATE_COMPLETED")
        assert rows.query("SELECT attempt FROM task WHERE id = ?", task_id) == [(1,)]


@covers("send.durable")
def test_an_accepted_run_is_finished_by_a_later_server(client: httpx2.Client, tmp_path: Path) -> None:
    release = tmp_path / "release"
    with prepared(tmp_path, SHORT + HOSTED + AGENTS + TENANTS) as server:
        used = message(f"hold {release}", messageId=new_id())
        lost: list[Exception] = []

        def wait() -> None:
            try:
                Hosted(httpx2.Client(timeout=30, trust_env=False), server.url, "probe").call(
                    "SendMessage", {"message": used}
                )
            except httpx2.HTTPError as error:
                lost.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        rows = Rows(server.data)
        until(lambda: rows.query("SELECT 1 FROM task WHERE state = 2"), what="the run works")
        server.kill()
        waiting.join(10)
        assert lost, "the reply is lost"
        server.start()
        again = Hosted(client, server.url, "probe")
        params = {"message": used, "configuration": {"returnImmediately": True}}
        task = again.call("SendMessage", params).task
        assert state_of(again, task["id"]) == "TASK_STATE_WORKING"
        release.touch()
        assert texts(ended(again, task["id"])) == ["released"]
        assert rows.query("SELECT count(*) FROM task") == [(1,)]
