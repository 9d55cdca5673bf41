"""Rights: each operation needs the scope that names it, on every surface, and nothing that looks like it."""

import pytest

from tests.interaction.answers import Reply
from tests.interaction.callers import Request
from tests.security.conftest import ADMIN, FULL, LIKE, MUTE, READ, WRITE, Sender
from tests.security.surfaces import CHALLENGE, FORBIDDEN, NEEDS, SURFACES, Surface, challenged, reason

OUTCOMES = {
    "SendMessage": {""},
    "SendStreamingMessage": {""},
    "GetTask": {""},
    "ListTasks": {""},
    "CancelTask": {"TASK_NOT_CANCELABLE"},
    # A finished task: 0.3 shows it once more, 1.0 has nothing to follow.
    "SubscribeToTask": {"", "UNSUPPORTED_OPERATION"},
    "CreateTaskPushNotificationConfig": {"PUSH_NOTIFICATION_NOT_SUPPORTED"},
    "GetTaskPushNotificationConfig": {"PUSH_NOTIFICATION_NOT_SUPPORTED"},
    "ListTaskPushNotificationConfigs": {"PUSH_NOTIFICATION_NOT_SUPPORTED"},
    "DeleteTaskPushNotificationConfig": {"PUSH_NOTIFICATION_NOT_SUPPORTED"},
    "GetExtendedAgentCard": {"UNSUPPORTED_OPERATION"},
}
"""Operation → how it may end for somebody who may do it, on a finished task of the demo agent."""


@pytest.mark.parametrize(
    ("token", "covered"),
    [(FULL, {"a2a:read", "a2a:delegate"}), (READ, {"a2a:read"}), (WRITE, {"a2a:delegate"})],
    ids=["full", "read", "delegate"],
)
def test_each_operation_needs_its_scope_and_no_other(
    sender: Sender, surface: Surface, token: str, covered: set[str]
) -> None:
    task = sender.task(FULL)
    for operation in surface.operations:
        reply = sender.send(surface.ask(operation, task=task, token=token), surface)
        if NEEDS[operation] in covered:
            assert reason(surface, reply) in OUTCOMES[operation], (operation, reply)
        else:
            forbidden(surface, reply, NEEDS[operation])


def forbidden(surface: Surface, reply: Reply, scope: str) -> None:
    """Check a refusal that names the scope that is missing."""
    challenge = f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'
    challenged(surface, reply, challenge, FORBIDDEN)
    document = reply.json()
    if surface.binding == "jsonrpc":
        assert document["error"]["data"][0]["metadata"] == {"scope": scope}
        assert scope in document["error"]["message"]
    elif surface.version == "1.0":
        assert document["error"]["details"][0]["metadata"] == {"scope": scope}
        assert scope in document["error"]["message"]
    else:
        assert scope in document["detail"]


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("token", "kept"), [(MUTE, "no ai:answer"), (ADMIN, "admin:* covers nothing else")])
def test_without_the_right_to_ask_every_operation_is_forbidden(
    sender: Sender, surface: Surface, token: str, kept: str
) -> None:
    for operation in surface.operations:
        for agent in ("demo", "theirs", "unknown"):
            forbidden(surface, sender.send(surface.ask(operation, agent, token=token), surface), "ai:answer")


@pytest.mark.usefixtures("nothing_stored")
def test_scopes_that_only_look_alike_cover_nothing(sender: Sender, surface: Surface) -> None:
    for operation in surface.operations:
        forbidden(surface, sender.send(surface.ask(operation, token=LIKE), surface), NEEDS[operation])


@pytest.mark.usefixtures("nothing_stored")
def test_what_may_not_be_done_is_not_done(sender: Sender, surface: Surface) -> None:
    for body in (None, b"{}", b'{"message": 5}'):
        asked = surface.ask("SendMessage", token=READ)
        if body is not None and surface.binding == "http":
            asked = Request(asked.method, asked.target, asked.headers, body)
        forbidden(surface, sender.send(asked, surface), "a2a:delegate")


def test_a_task_is_not_cancelled_by_a_reader(sender: Sender, surface: Surface) -> None:
    begun = sender.task(FULL, "slow 30", wait=False)
    try:
        forbidden(
            surface, sender.send(surface.ask("CancelTask", task=begun, token=READ), surface), "a2a:delegate"
        )
        state = sender.send(SURFACES[0].ask("GetTask", task=begun, token=READ)).result["status"]["state"]
        assert state in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    finally:
        ended = sender.send(surface.ask("CancelTask", task=begun, token=WRITE), surface)
        assert reason(surface, ended) == ""
