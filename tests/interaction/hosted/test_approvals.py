"""Approvals and resumption: the only ways to move a hosted run that waits."""

import json
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.stores import named
from tests.interaction.answers import (
    CONFLICT,
    NO_METHOD,
    NOT_ALLOWED,
    PARAMS,
    TASK_NOT_FOUND,
    TOO_LARGE,
    UNSUPPORTED,
    Reply,
    refused,
)
from tests.interaction.callers import HttpCaller
from tests.interaction.following import ended, got, sent, state_of, texts
from tests.interaction.hosted.callers import CLOSED, NO_APPROVAL, Hosted, refused_outside
from tests.interaction.hosted.conftest import AGENTS, SHORT, TENANTS, prepared
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import new_id, send_params
from tests.interaction.rows import Rows

ASKS = "TASK_STATE_INPUT_REQUIRED"


@pytest.fixture
def waiting(alice: Hosted) -> dict[str, Any]:
    """A task of alice's that waits for an approval."""
    return sent(alice, "approve Delete the backup")


@pytest.fixture
def bob(alice: Hosted) -> Hosted:
    """Somebody else of the tenant who may approve."""
    return alice.by("BOB")


@covers("approval.shown", "approval.api")
def test_a_run_that_waits_for_an_approval_asks_and_the_api_shows_for_what(
    alice: Hosted, bob: Hosted, waiting: dict[str, Any]
) -> None:
    assert waiting["status"]["state"] == ASKS
    assert texts(waiting) == []
    (part,) = waiting["status"]["message"]["parts"]
    assert part["text"] == "Waits for an approval: Delete the backup"
    approval = bob.approval_of(waiting)
    assert approval == {
        "id": approval["id"],
        "taskId": waiting["id"],
        "agent": "demo",
        "principal": "alice",
        "action": "Delete the backup",
        "details": {"asked": "approve Delete the backup"},
        "digest": approval["digest"],
        "createdAt": waiting["status"]["timestamp"],
        "expiresAt": approval["expiresAt"],
    }
    assert len(approval["digest"]) == 64
    assert approval["createdAt"] < approval["expiresAt"]


@covers("approval.api")
@pytest.mark.parametrize(("decision", "verdict"), [("approve", "approved"), ("deny", "denied")])
@pytest.mark.parametrize("note", ["", "but carefully"])
def test_a_decision_has_the_run_go_on_and_says_who_made_it(
    alice: Hosted, bob: Hosted, waiting: dict[str, Any], decision: str, verdict: str, note: str
) -> None:
    approval = bob.approval_of(waiting)
    members = {"note": note} if note else {}
    reply = bob.decide(approval["id"], decision, **members)
    assert reply.status == 200
    assert reply.json() == {**approval, "decision": decision, "decidedBy": "bob", "note": note}
    task = ended(alice, waiting["id"])
    assert texts(task) == [f"Delete the backup was {verdict} by bob{f': {note}' if note else '.'}"]
    assert waiting["id"] not in {one["taskId"] for one in bob.approvals()}


@covers("approval.api")
def test_who_asked_may_approve_if_their_scopes_say_so(alice: Hosted, waiting: dict[str, Any]) -> None:
    star = alice.by("ALICE_STAR")
    assert star.decide(star.approval_of(waiting)["id"], "approve").json()["decidedBy"] == "alice"
    ended(alice, waiting["id"])


@covers("approval.message", "approval.resume")
@pytest.mark.parametrize("text", ["approved", "approve", '{"decision": "approve"}', "yes, go on"])
def test_nothing_that_is_said_approves_anything(
    alice: Hosted, rows: Rows, waiting: dict[str, Any], text: str
) -> None:
    approval = alice.by("ALICE_STAR").approval_of(waiting)
    with rows.unchanged():
        for params in (
            send_params(text, taskId=waiting["id"]),
            send_params(text, taskId=waiting["id"], messageId=approval["id"]),
            send_params(text, taskId=waiting["id"], contextId=waiting["contextId"]),
            send_params(text, referenceTaskIds=[waiting["id"]]),
            send_params(text, metadata={"decision": "approve", "approvalId": approval["id"]}),
        ):
            reply = alice.call("SendMessage", params)
            assert reply.reason in ("UNSUPPORTED_OPERATION", "INVALID_PARAMS"), reply
        reply = alice.resume(waiting["id"], text)
        refused_outside(reply, UNSUPPORTED)
        assert "approval" in reply.json()["error"]["message"]
    sent(alice, text)
    assert got(alice, waiting["id"]) == waiting
    assert alice.by("ALICE_STAR").approval_of(waiting) == approval


@covers("approval.once")
def test_a_decision_is_made_once(alice: Hosted, bob: Hosted, rows: Rows, waiting: dict[str, Any]) -> None:
    approval_id = bob.approval_of(waiting)["id"]
    assert bob.decide(approval_id, "deny").status == 200
    done = ended(alice, waiting["id"])
    for decision in ("approve", "deny"):
        for caller in (bob, alice.by("ERIN")):
            with rows.unchanged():
                refused_outside(caller.decide(approval_id, decision), CLOSED)
    assert got(alice, waiting["id"]) == done


@covers("approval.once")
def test_of_decisions_at_once_one_counts(alice: Hosted, bob: Hosted, waiting: dict[str, Any]) -> None:
    approval_id = bob.approval_of(waiting)["id"]
    replies: list[Reply] = []

    def decide(decision: str) -> None:
        with httpx2.Client(timeout=20, trust_env=False) as own:
            replies.append(Hosted(own, bob.origin, "demo", "BOB").decide(approval_id, decision))

    threads = [threading.Thread(target=decide, args=(one,)) for one in ["approve", "deny"] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply.status for reply in replies) == [200] + [409] * 7
    (taken,) = [reply.json()["decision"] for reply in replies if reply.status == 200]
    verdict = "approved" if taken == "approve" else "denied"
    assert texts(ended(alice, waiting["id"])) == [f"Delete the backup was {verdict} by bob."]


@covers("approval.digest")
def test_a_decision_is_about_what_was_shown(
    alice: Hosted, bob: Hosted, rows: Rows, waiting: dict[str, Any]
) -> None:
    approval = bob.approval_of(waiting)
    other = bob.approval_of(sent(alice, "approve Delete everything"))
    for digest in (other["digest"], approval["digest"][:-1], approval["digest"].upper(), "x"):
        with rows.unchanged():
            refused_outside(bob.decide(approval["id"], "approve", digest=digest), CLOSED)
    assert state_of(alice, waiting["id"]) == ASKS
    assert bob.decide(approval["id"], "approve", digest=approval["digest"]).status == 200
    ended(alice, waiting["id"])


@covers("approval.digest")
def test_an_approval_that_was_changed_in_the_store_is_not_decided(
    alice: Hosted, bob: Hosted, waiting: dict[str, Any], write: Any
) -> None:
    approval = bob.approval_of(waiting)
    write("UPDATE approval SET action = ? WHERE id = ?", named("Delete everything"), approval["id"])
    refused_outside(bob.decide(approval["id"], "approve"), CLOSED)
    assert state_of(alice, waiting["id"]) == ASKS


@covers("approval.expires")
def test_an_approval_ends_with_its_run(alice: Hosted, bob: Hosted, waiting: dict[str, Any]) -> None:
    approval_id = bob.approval_of(waiting)["id"]
    alice.call("CancelTask", {"id": waiting["id"]})
    assert waiting["id"] not in {one["taskId"] for one in bob.approvals()}
    refused_outside(bob.decide(approval_id, "approve"), CLOSED)
    assert state_of(alice, waiting["id"]) == "TASK_STATE_CANCELED"


@covers("approval.scope")
def test_an_approver_needs_no_other_scope_than_that(alice: Hosted, waiting: dict[str, Any]) -> None:
    carol = alice.by("CAROL")
    assert carol.decide(carol.approval_of(waiting)["id"], "deny").json()["decidedBy"] == "carol"
    ended(alice, waiting["id"])


WRONG_DECISIONS: dict[str, tuple[str, Any]] = {
    "nothing": ("decision", {}),
    "another word": ("decision", {"decision": "maybe"}),
    "the word of the result": ("decision", {"decision": "approved"}),
    "another case": ("decision", {"decision": "Approve"}),
    "a boolean": ("decision", {"decision": True}),
    "null": ("decision", {"decision": None}),
    "a note that is no text": ("note", {"decision": "approve", "note": 5}),
    "a note that is too long": ("note", {"decision": "approve", "note": "x" * 2001}),
    "a digest that is no text": ("digest", {"decision": "approve", "digest": 5}),
}


@covers("approval.fields")
@pytest.mark.parametrize(("field", "document"), WRONG_DECISIONS.values(), ids=WRONG_DECISIONS)
def test_a_wrong_decision_is_refused_by_name(
    bob: Hosted, rows: Rows, waiting: dict[str, Any], field: str, document: Any
) -> None:
    path = f"/approvals/{bob.approval_of(waiting)['id']}"
    with rows.unchanged():
        refused_outside(bob.api("POST", path, document), PARAMS, fields=[field])


@covers("approval.fields")
@pytest.mark.usefixtures("nothing_stored")
def test_bodies_and_methods_are_checked_first(bob: Hosted) -> None:
    path = f"/approvals/{new_id()}"
    assert bob.api("POST", path, b"{").status == 400
    assert bob.api("POST", path, b'{"decision":"approve","decision":"deny"}').status == 400
    assert bob.api("POST", path, [1]).status == 400
    assert bob.api("POST", path, b"").status == 400
    assert bob.api("POST", path, b"{}", **{"content-type": "text/plain"}).status == 415
    refused_outside(bob.api("POST", path, b" " * 65536 + b"{}"), TOO_LARGE)
    refused_outside(bob.decide(new_id(), "approve"), NO_APPROVAL)
    for method, one, allowed in (("GET", path, "POST"), ("POST", "/approvals", "GET, HEAD")):
        reply = bob.api(method, one, {} if method == "POST" else None)
        refused_outside(reply, NOT_ALLOWED)
        assert reply.headers["allow"] == allowed


@covers("approval.api")
def test_whatever_is_shown_comes_back_as_it_was_given(alice: Hosted, bob: Hosted) -> None:
    text = 'approve "Größe" \u2028 <b>名前</b> \0'
    approval = bob.approval_of(sent(alice, text))
    assert approval["action"] == text.partition(" ")[2].strip()
    assert approval["details"] == {"asked": text}


@covers("approval.pages")
def test_approvals_come_in_pages(alice: Hosted) -> None:
    probe, bob = alice.by("ERIN").to("probe"), alice.by("BOB")
    tasks = [sent(probe, "large 60000")["id"] for _ in range(12)]
    found: list[str] = []
    after, pages = "", 0
    while True:
        reply = bob.api("GET", f"/approvals?after={after}")
        assert len(reply.body) < 1024 * 1024
        page = reply.json()
        found += [one["taskId"] for one in page["approvals"]]
        after, pages = page["after"], pages + 1
        if not after:
            break
    assert [one for one in found if one in tasks] == tasks
    assert len(set(found)) == len(found)
    assert pages > 1
    for approval in bob.approvals():
        if approval["taskId"] in tasks:
            assert bob.decide(approval["id"], "deny").status == 200
            ended(probe, approval["taskId"])


@covers("approval.open")
def test_open_agents_use_approvals_too(alice: Hosted, bob: Hosted) -> None:
    mine = HttpCaller(alice.client, alice.origin, "nowhere")
    reply = mine.call("SendMessage", send_params("approve it"), headers=alice.credential)
    task_id = reply.task["id"]
    refusal = mine.call("SendMessage", send_params("approved", taskId=task_id), headers=alice.credential)
    refused(refusal, UNSUPPORTED)
    approval = bob.approval_of(reply.task)
    assert approval["agent"] == "nowhere"
    assert bob.decide(approval["id"], "approve", note="yes").status == 200
    until(
        lambda: (
            mine.call("GetTask", {"id": task_id}, headers=alice.credential).result["status"]["state"]
            == "TASK_STATE_COMPLETED"
        ),
        what="the run is finished",
    )


@covers("approval.open", "profile.off")
def test_the_api_is_there_without_the_profile_and_on_somebodys_own_server(
    client: httpx2.Client, tmp_path: Path
) -> None:
    config = SHORT + '[agents.demo]\npython = "dragoman.agents.demo:demo"\n'
    with prepared(tmp_path, config) as server:
        own = Hosted(client, server.url, who=None)
        mine = HttpCaller(client, server.url)
        task = sent(mine, "approve it")
        approval = own.approval_of(task)
        assert (approval["agent"], approval["principal"]) == ("demo", "local")
        assert own.decide(approval["id"], "deny", note="not today").json()["decidedBy"] == "local"
        assert texts(ended(mine, task["id"])) == ["it was denied by local: not today"]
        refused_outside(own.resume(task["id"], "x"), NO_METHOD)


@covers("approval.unserved")
def test_approvals_of_agents_that_are_not_served_any_more_are_not_there(
    client: httpx2.Client, tmp_path: Path
) -> None:
    profile = "[hosted]\nenabled = true\n"
    server = prepared(tmp_path, SHORT + profile + AGENTS + TENANTS)
    with server:
        alice = Hosted(client, server.url)
        bob = alice.by("BOB")
        tasks = [sent(alice, "approve it"), sent(alice.to("second"), "approve it")]
        approvals = [bob.approval_of(task)["id"] for task in tasks]
        server.terminate()
        (tmp_path / "dragoman.toml").write_text(SHORT + AGENTS + TENANTS, encoding="utf-8")
        server.start()
        bob = Hosted(client, server.url, who="BOB")
        assert bob.approvals() == []
        for approval_id in approvals:
            refused_outside(bob.decide(approval_id, "approve"), NO_APPROVAL)
        server.terminate()
        (tmp_path / "dragoman.toml").write_text(SHORT + profile + AGENTS + TENANTS, encoding="utf-8")
        server.start()
        bob = Hosted(client, server.url, who="BOB")
        assert {one["id"] for one in bob.approvals()} == set(approvals)
        assert bob.decide(approvals[0], "approve").status == 200


# ----------------------------------------------------------------------------------------------------------- resumption


@covers("resume.input")
def test_a_run_that_asks_goes_on_with_the_text_of_a_resumption(alice: Hosted) -> None:
    task = sent(alice, "ask which?")
    assert (task["status"]["state"], task["status"]["message"]["parts"]) == (ASKS, [{"text": "which?"}])
    reply = alice.resume(task["id"], "that one 🕊")
    assert reply.status == 200
    assert reply.json()["status"]["state"] in ("TASK_STATE_WORKING", "TASK_STATE_COMPLETED")
    done = ended(alice, task["id"])
    assert texts(done) == ["that one 🕊"]
    assert [turn["parts"] for turn in done["history"]] == [
        [{"text": "ask which?"}],
        [{"text": "which?"}],
        [{"text": "that one 🕊"}],
    ]


@covers("resume.authorization")
def test_so_does_one_that_asks_for_an_authorization(alice: Hosted) -> None:
    task = sent(alice, "auth Sign in")
    assert task["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
    assert alice.resume(task["id"], "done").status == 200
    assert texts(ended(alice, task["id"])) == ["Authorized: done"]


@covers("resume.once")
def test_the_same_text_under_one_id_is_given_once(probe: Hosted, rows: Rows) -> None:
    task_id = sent(probe, "twice")["id"]
    used = new_id("answer")
    assert probe.resume(task_id, "one", messageId=used).status == 200
    until(lambda: state_of(probe, task_id) == ASKS, what="it asks again")
    with rows.unchanged():
        again = probe.resume(task_id, "one", messageId=used)
        assert again.json()["status"]["state"] == ASKS
        refused_outside(probe.resume(task_id, "two", messageId=used), CONFLICT)
    assert probe.resume(task_id, "two").status == 200
    assert texts(ended(probe, task_id)) == ["one and two"]


@covers("resume.refused")
@pytest.mark.parametrize("text", ["hello", "fail", "slow 20"])
def test_a_run_that_does_not_wait_is_not_resumed(alice: Hosted, rows: Rows, text: str) -> None:
    task = sent(alice, text, wait=text != "slow 20")
    if text == "slow 20":
        until(lambda: state_of(alice, task["id"]) == "TASK_STATE_WORKING", what="it works")
    # Progress is stored meanwhile, so only what callers said is looked at.
    said = "SELECT count(*) FROM event WHERE substr(payload, 7, 8) = ?", b"received"
    assert rows.query(*said) > [(1,)]
    before = rows.query(*said)
    refused_outside(alice.resume(task["id"], "go on"), UNSUPPORTED)
    assert rows.query(*said) == before
    if text == "slow 20":
        alice.call("CancelTask", {"id": task["id"]})


@covers("resume.fields")
@pytest.mark.parametrize(
    ("field", "document"),
    [
        ("text", {}),
        ("text", {"text": ""}),
        ("text", {"text": 5}),
        ("text", {"text": "x" * 32_001}),
        ("messageId", {"text": "x", "messageId": 5}),
        ("messageId", {"text": "x", "messageId": "m" * 257}),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_a_wrong_resumption_is_refused_by_name(alice: Hosted, rows: Rows, field: str, document: Any) -> None:
    task = sent(alice, "ask which?")
    with rows.unchanged():
        reply = alice.api("POST", f"/runs/{task['id']}:resume", document)
        refused_outside(reply, PARAMS, fields=[field])
    assert alice.resume(task["id"], "x" * 32_000).status == 200
    ended(alice, task["id"])


@covers("resume.fields")
@pytest.mark.usefixtures("nothing_stored")
def test_methods_and_other_paths_are_checked(alice: Hosted) -> None:
    refused_outside(alice.api("GET", "/runs/x:resume"), NOT_ALLOWED)
    refused_outside(alice.resume(new_id(), "x"), TASK_NOT_FOUND)
    for path in ("/runs/x", "/runs/x:pause", "/runs", "/runs/:resume", "/approvals/x/y", "/approvals/"):
        assert alice.by("BOB").api("POST", path, {"text": "x"}).status == 404, path
