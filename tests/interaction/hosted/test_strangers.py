"""What is somebody else's is answered exactly as what is not there: by status, headers, body and time."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.interaction.answers import NO_AGENT, TASK_NOT_FOUND, Reply, refused
from tests.interaction.callers import READY, Request, RpcCaller
from tests.interaction.following import ended, got, sent
from tests.interaction.hosted.callers import NO_APPROVAL, Hosted, refused_outside, without_ids
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import send_params

MISSING = "01a22a12-e644-7000-8b74-5c03475aed23"
NOBODYS = "m-5c03475a-2"
"""An id of the form that tasks and approvals have, and that none has."""


@pytest.fixture(scope="module")
def somebodys(client: Any, server: Any) -> dict[str, dict[str, Any]]:
    """Tasks that are not alice's with the demo agent, by why; each waits for an approval."""
    alice = Hosted(client, server.url)
    open_surface = RpcCaller(client, server.url, "demo")
    found = {
        "another principal's": sent(alice.by("BOB"), "approve it"),
        "another tenant's": sent(alice.by("GINA").to("theirs"), "approve it"),
        "another agent's": sent(alice.to("second"), "approve it"),
        "the open surface's": open_surface.call(
            "SendMessage", send_params("approve it"), headers=alice.credential
        ).task,
    }
    assert {task["status"]["state"] for task in found.values()} == {"TASK_STATE_INPUT_REQUIRED"}
    return found


OPERATIONS: dict[str, Callable[[str], Any]] = {
    "GetTask": lambda task_id: {"id": task_id},
    "CancelTask": lambda task_id: {"id": task_id},
    "SubscribeToTask": lambda task_id: {"id": task_id},
    "GetTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "id": "x"},
    "ListTaskPushNotificationConfigs": lambda task_id: {"taskId": task_id},
    "CreateTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "url": "https://example.org"},
    "DeleteTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "id": "x"},
    "SendMessage": lambda task_id: send_params("x", messageId="same", taskId=task_id),
    "SendStreamingMessage": lambda task_id: send_params("x", messageId="same", taskId=task_id),
}
REFUSALS = {"GetTask": TASK_NOT_FOUND, "CancelTask": TASK_NOT_FOUND, "SubscribeToTask": TASK_NOT_FOUND}

WHOSE = ["another principal's", "another tenant's", "another agent's", "the open surface's"]


@covers("strangers.tasks")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("whose", WHOSE)
def test_a_task_of_somebody_else_is_not_there(
    alice: Hosted, somebodys: dict[str, dict[str, Any]], operation: str, whose: str
) -> None:
    task_id = somebodys[whose]["id"]
    there = alice.call(operation, OPERATIONS[operation](task_id))
    missing = alice.call(operation, OPERATIONS[operation](MISSING))
    assert without_ids(there, task_id) == without_ids(missing, MISSING)
    if operation in REFUSALS:
        refused(there, REFUSALS[operation], identifier=1)


@covers("strangers.tasks", "resume.refused")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("whose", [one for one in WHOSE if one != "another agent's"])
def test_nor_is_it_there_to_be_resumed(
    alice: Hosted, somebodys: dict[str, dict[str, Any]], whose: str
) -> None:
    task_id = somebodys[whose]["id"]
    there, missing = alice.resume(task_id, "approved"), alice.resume(MISSING, "approved")
    assert without_ids(there, task_id) == without_ids(missing, MISSING)
    refused_outside(there, TASK_NOT_FOUND)


@covers("strangers.tasks")
def test_its_owner_has_it_all_the_time(alice: Hosted, somebodys: dict[str, dict[str, Any]]) -> None:
    assert got(alice.by("BOB"), somebodys["another principal's"]["id"]) == somebodys["another principal's"]
    assert got(alice.to("second"), somebodys["another agent's"]["id"]) == somebodys["another agent's"]


@covers("strangers.contexts")
@pytest.mark.parametrize("whose", WHOSE)
def test_a_context_of_somebody_else_holds_nothing(
    alice: Hosted, somebodys: dict[str, dict[str, Any]], whose: str
) -> None:
    context_id = somebodys[whose]["contextId"]
    there = alice.call("ListTasks", {"contextId": context_id})
    missing = alice.call("ListTasks", {"contextId": MISSING})
    assert without_ids(there, context_id) == without_ids(missing, MISSING)
    assert there.result["totalSize"] == 0


@covers("strangers.agents")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", [*OPERATIONS, "ListTasks", "GetExtendedAgentCard"])
def test_an_agent_of_another_tenant_is_not_there(alice: Hosted, operation: str) -> None:
    params = OPERATIONS.get(operation, lambda _: {})("x")
    there, missing = (alice.to(agent).call(operation, params) for agent in ("theirs", "nobody"))
    assert without_ids(there, "theirs") == without_ids(missing, "nobody")
    refused(there, NO_AGENT)


@covers("strangers.agents")
def test_nor_is_its_card(alice: Hosted) -> None:
    for who, agents in (
        ("ALICE", ("theirs", "plain")),
        ("GINA", ("demo", "vault")),
        ("TWIN", ("demo", "vault")),
    ):
        for agent in agents:
            there, missing = (alice.by(who).to(name).card() for name in (agent, "nobody"))
            assert without_ids(there, agent) == without_ids(missing, "nobody")
            refused(there, NO_AGENT)


@covers("strangers.approvals")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_an_approval_of_another_tenant_is_not_there(
    alice: Hosted, somebodys: dict[str, dict[str, Any]], decision: str
) -> None:
    gina, bob = alice.by("GINA"), alice.by("BOB")
    approval_id = gina.approval_of(somebodys["another tenant's"])["id"]
    there, missing = bob.decide(approval_id, decision), bob.decide(MISSING, decision)
    assert without_ids(there, approval_id) == without_ids(missing, MISSING)
    refused_outside(there, NO_APPROVAL)
    assert approval_id not in {one["id"] for one in bob.approvals()}


@covers("strangers.approvals")
def test_an_approval_of_another_workspace_is_not_there(alice: Hosted, rows: Any) -> None:
    star, bob = alice.by("ALICE_STAR").to("vault"), alice.by("BOB")
    task = sent(star, "approved")
    approval_id = star.approval_of(task)["id"]
    with rows.unchanged():
        there, missing = bob.decide(approval_id, "approve"), bob.decide(MISSING, "approve")
    assert without_ids(there, approval_id) == without_ids(missing, MISSING)
    assert approval_id not in {one["id"] for one in bob.approvals()}
    assert star.decide(approval_id, "deny").status == 200
    ended(star, task["id"])


@covers("strangers.tenant")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"X-Tenant": "globex", "X-Tenant-Id": "globex", "Tenant": "globex"}, ""),
        ({"X-Principal": "gina", "X-Forwarded-User": "gina", "From": "gina"}, ""),
        ({}, "?tenant=globex&principal=gina"),
        ({"Cookie": "tenant=globex"}, "?tenant_id=globex"),
    ],
)
def test_nothing_but_the_credential_says_whose_a_request_is(
    alice: Hosted, somebodys: dict[str, dict[str, Any]], headers: dict[str, str], query: str
) -> None:
    task_id = somebodys["another tenant's"]["id"]
    for agent, refusal in (("demo", TASK_NOT_FOUND), ("theirs", NO_AGENT)):
        request = alice.to(agent).request("GetTask", {"id": task_id}, headers={**READY, **headers})
        asked = Request(request.method, request.target + query, request.headers, request.body)
        refused(alice.deliver(asked), refusal, identifier=1 if refusal is TASK_NOT_FOUND else None)


@covers("strangers.tenant")
@pytest.mark.parametrize(
    "path",
    [
        "/globex/agents/theirs/rpc",
        "/agents/globex/theirs/rpc",
        "/agents/globex:theirs/rpc",
        "/agents/demo:hosted/rpc",
    ],
)
def test_no_path_says_it_either(alice: Hosted, path: str) -> None:
    reply = alice.api("POST", path, {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}, **READY)
    assert reply.status == 404


@covers("strangers.tasks")
def test_the_ids_by_which_runs_are_kept_are_no_agents_of_the_open_surface(alice: Hosted) -> None:
    for agent in ("demo:hosted", "demo%3Ahosted"):
        reply = RpcCaller(alice.client, alice.origin, agent).call("ListTasks", headers=alice.credential)
        refused(reply, NO_AGENT)


PAIRS = 40


def medians(first: Callable[[], Reply], second: Callable[[], Reply]) -> tuple[float, float]:
    """Seconds that two requests take in the middle, asked in turn so that whatever else happens happens to both."""
    taken: tuple[list[float], list[float]] = [], []
    for _ in range(PAIRS):
        for request, times in zip((first, second), taken, strict=True):
            began = time.perf_counter()
            request()
            times.append(time.perf_counter() - began)
    return statistics.median(taken[0]), statistics.median(taken[1])


@covers("strangers.timing")
@pytest.mark.alone
@pytest.mark.parametrize("operation", ["GetTask", "CancelTask", "SubscribeToTask"])
@pytest.mark.parametrize("whose", WHOSE)
def test_it_takes_the_same_time(
    alice: Hosted, somebodys: dict[str, dict[str, Any]], operation: str, whose: str
) -> None:
    task_id = somebodys[whose]["id"]
    there, missing = medians(
        lambda: alice.call(operation, {"id": task_id}), lambda: alice.call(operation, {"id": MISSING})
    )
    # The noise of a machine that does other things; a read of the task itself would be told in milliseconds.
    assert abs(there - missing) < 0.5 * min(there, missing) + 0.002, (there, missing)


@covers("strangers.timing")
@pytest.mark.alone
def test_so_does_a_decision_on_an_approval_of_another_tenant(
    alice: Hosted, somebodys: dict[str, dict[str, Any]]
) -> None:
    bob = alice.by("BOB")
    approval_id = alice.by("GINA").approval_of(somebodys["another tenant's"])["id"]
    there, missing = medians(
        lambda: bob.decide(approval_id, "approve"), lambda: bob.decide(MISSING, "approve")
    )
    assert abs(there - missing) < 0.5 * min(there, missing) + 0.002, (there, missing)


@covers("strangers.tasks")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "task_id", ["x", "../x", "1' OR '1'='1", "%", "\0", "é" * 300, MISSING.upper(), NOBODYS]
)
def test_what_can_be_no_id_is_a_missing_one(alice: Hosted, task_id: str) -> None:
    for operation in ("GetTask", "CancelTask", "SubscribeToTask"):
        refused(alice.call(operation, {"id": task_id}), TASK_NOT_FOUND, identifier=1)
