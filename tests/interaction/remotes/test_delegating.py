"""`/v1/a2a/tasks` and `/v1/a2a/delegations`: who may, what is asked, what comes of it, and what is left of it."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.harness import stores
from tests.harness.polling import until
from tests.harness.rogue import Rogue, reply, task
from tests.harness.server import ServerProcess
from tests.interaction.remotes.callers import CONFIG, SECRET, Api, field, reason, rows

PATHS = [
    ("GET", "/agents", None),
    ("POST", "/agents", {"name": "x", "endpoint_url": "https://a.example/rpc"}),
    ("GET", "/agents/ID", None),
    ("PATCH", "/agents/ID", {"name": "y"}),
    ("DELETE", "/agents/ID", None),
    ("POST", "/agents/ID:discover", None),
    ("POST", "/tasks", {"agentId": "ID", "taskId": "t", "message": "x"}),
    ("GET", "/delegations/ID", None),
    ("POST", "/delegations/ID:reconcile", None),
]


# ------------------------------------------------------------------------------------------------------------- who may


@pytest.mark.parametrize(("method", "path", "body"), PATHS)
@pytest.mark.parametrize(
    ("who", "status", "why"),
    [
        (None, 401, "UNAUTHENTICATED"),
        ("READER", 403, "INSUFFICIENT_SCOPE"),
        ("MUTE", 403, "INSUFFICIENT_SCOPE"),
        ("DAVE", 404, "METHOD_NOT_FOUND"),
    ],
)
def test_a_credential_a_scope_and_a_feature_are_needed(
    alice: Api, method: str, path: str, body: Any, who: str | None, status: int, why: str
) -> None:
    before = rows(alice.server, "remote_agent")
    answer = alice.by(who).call(method, path, body)
    assert (answer.status_code, reason(answer)) == (status, why)
    if status == 403:
        assert "a2a:delegate" in answer.text or who == "MUTE"
    assert rows(alice.server, "remote_agent") == before


@pytest.mark.parametrize(("method", "path", "body"), [one for one in PATHS if "ID" in str(one)])
def test_what_is_another_tenants_or_principals_is_answered_like_what_is_not_there(
    alice: Api, other: Rogue, method: str, path: str, body: Any
) -> None:
    agent = alice.register(other.url())
    delegation = alice.delegate(agent, f"mine-{method}-{path}").json()["delegationId"]
    mine = delegation if "delegations" in path else agent
    missing = mine[:-4] + ("0000" if mine[-4:] != "0000" else "1111")
    told = []
    for found in (mine, missing):
        asked = json.loads(json.dumps(body).replace("ID", found))
        answer = alice.by("CAROL").call(method, path.replace("ID", found), asked)
        assert answer.status_code == 404
        headers = {
            name: value for name, value in answer.headers.items() if name not in ("x-request-id", "date")
        }
        told.append((answer.text.replace(found, "ID"), headers))
    assert told[0] == told[1]
    assert len(other.got()) == 1, "nothing was sent or fetched for a stranger"
    if "delegations" in path:
        assert alice.by("BOB").call(method, path.replace("ID", mine)).status_code == 404


def test_a_server_without_tenants_is_somebodys_own(tmp_path: Path, other: Rogue) -> None:
    config = tmp_path / "dragoman.toml"
    config.write_text(CONFIG.partition("[agents")[0], encoding="utf-8")
    with ServerProcess(tmp_path / "data", config=config) as running:
        mine = Api(running, None)
        agent = mine.register(other.url(), None)
        assert mine.delegate(agent, "t-1").json()["status"] == "completed"
        assert "authorization" not in other.got()[0].headers
        spoken = mine.call("POST", "/tasks", b"{}", **{"Content-Type": "text/plain"})
        assert spoken.status_code == 415, "no page can send this without asking first"
        for method, path, body in PATHS:
            rebound = mine.call(method, path, body, Host="evil.example")
            assert (rebound.status_code, reason(rebound)) == (421, "MISDIRECTED_REQUEST")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/agents", "GET, HEAD, POST"),
        ("POST", "/agents/x", "GET, HEAD, PATCH, DELETE"),
        ("GET", "/agents/x:discover", "POST"),
        ("GET", "/tasks", "POST"),
        ("DELETE", "/delegations/x", "GET, HEAD"),
        ("GET", "/delegations/x:reconcile", "POST"),
    ],
)
def test_another_method_is_refused_with_those_that_there_are(
    alice: Api, method: str, path: str, allowed: str
) -> None:
    answer = alice.call(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "path", ["/agents/", "/agents/a/b", "/delegations", "/delegations/", "/delegations/a/b"]
)
def test_other_paths_are_not_there(alice: Api, path: str) -> None:
    assert alice.call("GET", path).status_code == 404


# ---------------------------------------------------------------------------------------------------------- delegating


def test_an_outcome_is_told_as_it_came_then_and_again(alice: Api, other: Rogue) -> None:
    agent = alice.register(other.url())
    answer = alice.delegate(agent, "told")
    assert answer.status_code == 200
    told = answer.json()
    assert set(told) == {"status", "result", "remoteTaskId", "delegationId"}
    assert (told["status"], told["remoteTaskId"]) == ("completed", "remote-1")
    expected = task(other.got()[0])["result"]
    assert told["result"] == expected
    again = alice.delegate(agent, "told", {"parts": [{"text": "Hello"}], "role": "ROLE_USER"})
    assert (again.json(), again.headers["idempotent-replayed"]) == (told, "true")
    kept = alice.call("GET", f"/delegations/{told['delegationId']}").json()
    assert {name: kept.pop(name) for name in ("agentId", "taskId")} == {"agentId": agent, "taskId": "told"}
    assert kept.pop("createdAt") <= kept.pop("changedAt")
    assert kept == told
    assert len(other.got()) == 1


def test_a_whole_message_goes_out_as_it_is_under_the_task_id(alice: Api, other: Rogue) -> None:
    message = {
        "role": "ROLE_USER",
        "parts": [{"data": {"kind": 12345678901234567890123}}, {"raw": "aGk=", "filename": "a"}],
        "contextId": "c-1",
        "taskId": "remote-1",
        "metadata": {"a": [1, {"b": None}]},
        "extensions": ["urn:x"],
        "referenceTaskIds": ["r"],
    }
    assert alice.delegate(alice.register(other.url()), "whole", message).json()["status"] == "completed"
    assert other.got()[0].json()["params"] == {"message": {**message, "messageId": "whole"}}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"taskId": None}, "taskId"),
        ({"taskId": ""}, "taskId"),
        ({"taskId": "x" * 257}, "taskId"),
        ({"taskId": 7}, "taskId"),
        ({"agentId": None}, "agentId"),
        ({"message": None}, "message"),
        ({"message": ""}, "message"),
        ({"message": []}, "message"),
        ({"message": {"parts": []}}, "message.parts"),
        ({"message": {"parts": [{"text": "x", "data": 1}]}}, "message.parts[0]"),
        ({"message": {"parts": [{"kind": "text", "text": "x"}]}}, "message.parts[0].kind"),
        ({"message": {"role": "ROLE_AGENT", "parts": [{"text": "x"}]}}, "message.role"),
        ({"message": {"messageId": "m", "parts": [{"text": "x"}]}}, "message.messageId"),
        ({"message": {"message_id": "m", "parts": [{"text": "x"}]}}, "message.message_id"),
        ({"returnImmediately": "yes"}, "returnImmediately"),
        ({"agent_id": "x"}, "agent_id"),
    ],
)
def test_what_is_wrong_with_a_delegation_is_named_and_nothing_is_sent(
    alice: Api, other: Rogue, change: dict[str, Any], wrong: str
) -> None:
    body = {"agentId": alice.register(other.url()), "taskId": "wrong", "message": "x"} | change
    before = rows(alice.server, "delegation")
    answer = alice.call("POST", "/tasks", body)
    assert (answer.status_code, field(answer)) == (400, wrong)
    assert (rows(alice.server, "delegation"), other.got()) == (before, [])


def test_an_agent_of_this_servers_own_is_gone(alice: Api) -> None:
    answer = alice.delegate("q.demo", "t-1")
    assert (answer.status_code, answer.headers["content-type"]) == (410, "application/problem+json")
    assert "/v1/a2a/agents/{id}/rpc" in answer.json()["detail"]
    assert reason(alice.delegate("demo", "t-1")) == "REMOTE_NOT_FOUND"


def test_other_content_is_a_conflict(alice: Api, other: Rogue) -> None:
    agent, another = alice.register(other.url()), alice.register(other.url())
    alice.delegate(agent, "conflict")
    for answer in (alice.delegate(agent, "conflict", "Bye"), alice.delegate(another, "conflict")):
        assert (answer.status_code, reason(answer), field(answer)) == (409, "MESSAGE_ID_CONFLICT", "taskId")
    assert alice.by("BOB").delegate(agent, "conflict", "Bye").json()["status"] == "completed"
    assert len(other.got()) == 2


def test_twenty_at_once_are_sent_once(alice: Api, other: Rogue) -> None:
    agent = alice.register(other.url())
    other.script = lambda asked: [0.5, *reply(task(asked))]
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda _: alice.delegate(agent, "twenty"), range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert len(other.got()) == 1


def test_failed_and_unknown_are_recorded_outcomes_too(alice: Api, other: Rogue) -> None:
    agent = alice.register(other.url())
    other.script = lambda asked: reply(
        {"jsonrpc": "2.0", "id": asked.id, "error": {"code": -32602, "message": "No\x1b such\nthing"}}
    )
    failed = alice.delegate(agent, "failed")
    assert (failed.status_code, set(failed.json())) == (200, {"status", "error", "delegationId"})
    assert (failed.json()["status"], failed.json()["error"]) == (
        "failed",
        {"code": -32602, "message": "No\ufffd such thing"},
    )
    other.script = lambda asked: reply(b"<html>", 502)
    unknown = alice.delegate(agent, "unknown")
    assert (unknown.status_code, unknown.json()["status"]) == (200, "unknown")
    assert unknown.json()["error"] == {"message": "the remote agent answered 502"}
    told = until(
        lambda: [
            line
            for line in alice.server.log_lines()
            if line.get("delegation_id") == unknown.json()["delegationId"]
        ],
        what="the log says so too",
    )
    assert [(line["logger"], line["level"], line["tenant"]) for line in told] == [
        ("dragoman.delegation", "warning", "acme")
    ]
    other.script = lambda asked: reply(task(asked))
    for before, task_id in ((failed, "failed"), (unknown, "unknown")):
        assert alice.delegate(agent, task_id).json() == before.json()
        place = f"/delegations/{before.json()['delegationId']}:reconcile"
        answer = alice.call("POST", place)
        assert (answer.status_code, reason(answer)) == (409, "NOT_RECONCILABLE")
    assert len(other.got()) == 2


def test_a_task_that_goes_on_is_reconciled_by_its_id(alice: Api, other: Rogue) -> None:
    agent = alice.register(other.url())
    other.script = lambda asked: reply(task(asked, "TASK_STATE_WORKING"))
    told = alice.delegate(agent, "goes-on", returnImmediately=True).json()
    assert told["status"] == "working"
    place = f"/delegations/{told['delegationId']}"
    other.script = lambda asked: reply(b"", 503)
    answer = alice.call("POST", f"{place}:reconcile")
    assert (answer.status_code, reason(answer)) == (503, "UNAVAILABLE")
    assert alice.call("GET", place).json()["status"] == "working", "no answer changes nothing"
    other.script = lambda asked: reply(task(asked, "TASK_STATE_INPUT_REQUIRED"))
    found = alice.call("POST", f"{place}:reconcile").json()
    assert (found["status"], found["remoteTaskId"]) == ("input_required", "remote-1")
    assert found["result"]["task"]["status"] == {"state": "TASK_STATE_INPUT_REQUIRED"}
    assert alice.call("GET", place).json() == found
    assert [one.method for one in other.got()] == ["SendMessage", "GetTask", "GetTask"]


# -------------------------------------------------------------------------------------------------------- what is left


def test_everything_is_audited_and_neither_store_nor_log_holds_a_token(alice: Api, other: Rogue) -> None:
    token = "a-token-that-is-looked-for-afterwards"
    agent = alice.register(other.url(), token, "audited")
    told = alice.delegate(agent, "audited", "a text that is looked for too").json()
    alice.delegate(agent, "audited", "a text that is looked for too")
    alice.delegate(agent, "audited", "other")
    alice.call("POST", f"/delegations/{told['delegationId']}:reconcile")
    alice.call("POST", f"/agents/{agent}:discover")
    alice.call("PATCH", f"/agents/{agent}", {"name": "new"})
    alice.call("DELETE", f"/agents/{agent}")
    one, its = f"remotes/{agent}", f"remotes/{agent}/delegations/{told['delegationId']}"
    found = stores.query(
        alice.server.data,
        "SELECT action, target, outcome, detail FROM audit WHERE principal = 'alice' AND target LIKE ? ORDER BY id",
        f"{one}%",
    )
    dump = stores.dump(alice.server.data).lower()
    assert found == [
        ("RegisterRemote", one, "ok", ""),
        ("Delegate", its, "ok", "sending"),
        ("Delegate", its, "ok", "completed"),
        ("Delegate", its, "replayed", "completed"),
        ("ReconcileDelegation", its, "ok", "completed"),
        ("DiscoverRemote", one, "ok", ""),
        ("ChangeRemote", one, "ok", ""),
        ("RemoveRemote", one, "ok", ""),
    ]
    log = alice.server.log_file.read_text(encoding="utf-8")
    assert told["delegationId"].lower() in dump
    for secret in (token, SECRET, token.encode().hex(), SECRET.encode().hex()):
        assert secret not in dump and secret not in log
    assert "a text that is looked for too" not in log
