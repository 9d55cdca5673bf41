"""Who may do what: tokens, scopes, workspaces."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.interaction.answers import NO_AGENT, NO_PUSH, TASK_NOT_FOUND, UNSUPPORTED, Refusal, Reply, refused
from tests.interaction.following import sent
from tests.interaction.hosted.callers import FORBIDDEN, UNAUTHENTICATED, Hosted, refused_outside
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import send_params

READ, DELEGATE, APPROVE = "a2a:read", "a2a:delegate", "a2a:approve"
UNKNOWN = {"id": "0198f0a0-0000-7000-8000-000000000000"}

CALLS: dict[str, tuple[str, Any]] = {
    "SendMessage": (DELEGATE, None),
    "SendStreamingMessage": (DELEGATE, None),
    "GetTask": (READ, UNKNOWN),
    "ListTasks": (READ, {}),
    "CancelTask": (DELEGATE, UNKNOWN),
    "SubscribeToTask": (READ, UNKNOWN),
    "CreateTaskPushNotificationConfig": (DELEGATE, {"taskId": "x", "url": "https://example.org"}),
    "GetTaskPushNotificationConfig": (READ, {"taskId": "x", "id": "y"}),
    "ListTaskPushNotificationConfigs": (READ, {"taskId": "x"}),
    "DeleteTaskPushNotificationConfig": (DELEGATE, {"taskId": "x", "id": "y"}),
    "GetExtendedAgentCard": (READ, {}),
}
"""Operation → the scope that it needs beside `ai:answer`, and parameters."""

PATHS = {
    "the card": (READ, lambda caller: caller.card()),
    "the approvals": (APPROVE, lambda caller: caller.api("GET", "/approvals")),
    "a decision": (APPROVE, lambda caller: caller.decide("nothing", "approve")),
    "a resumption": (DELEGATE, lambda caller: caller.resume("nothing", "text")),
}
"""What is no operation: the scope that it needs, and how it is called."""


def every_call(caller: Hosted) -> Iterator[tuple[str, str, Reply]]:
    """Each way in: its name, the scope that it needs, and what this caller is answered."""
    for operation, (scope, params) in CALLS.items():
        yield operation, scope, caller.call(operation, send_params() if params is None else params)
    for name, (scope, call) in PATHS.items():
        yield name, scope, call(caller)


def denied(name: str, reply: Reply, refusal: Refusal) -> dict[str, str]:
    """Check a refusal of a way in, and return its metadata."""
    outside = name in PATHS and name != "the card"
    return refused_outside(reply, refusal) if outside else refused(reply, refusal)


def allowed(reply: Reply) -> bool:
    """Whether the caller was let in, whatever came of it then."""
    return reply.status not in (401, 403)


@covers("auth.missing")
@pytest.mark.usefixtures("nothing_stored")
def test_without_a_token_everything_is_401_with_a_challenge(alice: Hosted) -> None:
    for agent in ("demo", "nobody"):
        for name, _, reply in every_call(alice.by(None).to(agent)):
            denied(name, reply, UNAUTHENTICATED)
            assert reply.headers["www-authenticate"] == 'Bearer realm="dragoman"', name


@covers("auth.invalid")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("header", ["Bearer nobodys-token-at-all-0123", "Basic YWxpY2U6eA==", "Bearer", ""])
def test_a_token_that_is_not_good_is_401_and_says_so(alice: Hosted, header: str) -> None:
    reply = alice.call("ListTasks", {}, headers={"authorization": header})
    refused(reply, UNAUTHENTICATED)
    assert reply.headers["www-authenticate"] == 'Bearer realm="dragoman", error="invalid_token"'


@covers("scope.read", "scope.delegate", "scope.wildcards")
@pytest.mark.parametrize(
    ("who", "covered"),
    [
        ("ALICE", {READ, DELEGATE}),
        ("ALICE_READ", {READ}),
        ("ALICE_WRITE", {DELEGATE}),
        ("CAROL", {APPROVE}),
        ("ALICE_STAR", {READ, DELEGATE, APPROVE}),
        ("ALICE_STARS", {READ, DELEGATE, APPROVE}),
        ("ALICE_ADMIN", set()),
    ],
)
def test_a_scope_lets_its_holder_do_exactly_its_part(alice: Hosted, who: str, covered: set[str]) -> None:
    for name, scope, reply in every_call(alice.by(who)):
        assert allowed(reply) == (scope in covered), (name, reply)
        if scope not in covered:
            assert denied(name, reply, FORBIDDEN) == {"scope": scope}, name
            assert reply.headers["www-authenticate"] == (
                f'Bearer realm="dragoman", error="insufficient_scope", scope="{scope}"'
            )


@covers("scope.answer")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("who", ["ALICE_MUTE", "ALICE_NOTHING"])
def test_without_ai_answer_nothing_is_allowed(alice: Hosted, who: str) -> None:
    for name, _, reply in every_call(alice.by(who)):
        assert denied(name, reply, FORBIDDEN) == {"scope": "ai:answer"}, name


@covers("scope.look-alikes")
@pytest.mark.usefixtures("nothing_stored")
def test_what_only_looks_like_a_scope_covers_nothing(alice: Hosted) -> None:
    for name, scope, reply in every_call(alice.by("ALICE_LIKE")):
        assert denied(name, reply, FORBIDDEN) == {"scope": scope}, name


@covers("scope.wildcards")
def test_a_caller_who_is_let_in_is_answered_as_the_operation_answers(alice: Hosted) -> None:
    star = alice.by("ALICE_STAR")
    assert star.call("SendMessage", send_params()).task["status"]["state"] == "TASK_STATE_COMPLETED"
    refused(star.call("GetTask", UNKNOWN), TASK_NOT_FOUND, identifier=1)
    refused(star.call("GetExtendedAgentCard"), UNSUPPORTED, identifier=1)
    refused(
        star.call(*next((name, CALLS[name][1]) for name in CALLS if "Push" in name)), NO_PUSH, identifier=1
    )
    assert "tasks" in star.call("ListTasks").result
    assert star.card().status == 200


@covers("scope.not-enough")
def test_every_scope_there_is_gives_nobody_the_task_of_another_principal(alice: Hosted) -> None:
    task = sent(alice)
    for who in ("BOB", "ERIN"):
        caller = alice.by(who)
        for operation in ("GetTask", "CancelTask", "SubscribeToTask"):
            refused(caller.call(operation, {"id": task["id"]}), TASK_NOT_FOUND, identifier=1)
        listed = caller.call("ListTasks", {"contextId": task["contextId"]}).result
        assert (listed["tasks"], listed["totalSize"]) == ([], 0)


@covers("workspace.needed")
@pytest.mark.parametrize("who", ["DORA", "BOB"])
@pytest.mark.usefixtures("nothing_stored")
def test_card_and_sends_need_the_grant_on_the_workspace(alice: Hosted, who: str) -> None:
    caller = alice.by(who).to("vault")
    missing = caller.to("nobody")
    for ask in (
        lambda one: one.card(),
        lambda one: one.call("SendMessage", send_params()),
        lambda one: one.call("SendStreamingMessage", send_params()),
    ):
        refused(ask(caller), NO_AGENT)
        assert ask(caller).body == ask(missing).body
    assert caller.call("ListTasks").result["totalSize"] == 0
    refused(caller.call("GetTask", UNKNOWN), TASK_NOT_FOUND, identifier=1)
