"""Public agents: who calls without a credential is one of many, and gets only what nobody else could miss."""

import pytest

from tests.interaction.answers import NO_AGENT, PARAMS, TASK_NOT_FOUND, Reply
from tests.interaction.messages import new_id
from tests.security.conftest import CAROL, FULL, READ, Sender
from tests.security.surfaces import (
    FORBIDDEN,
    INVALID,
    SURFACES,
    UNAUTHENTICATED,
    Surface,
    challenged,
    reason,
    refused,
)

PUBLIC = ("anyones", "ours-and-anyones")
IDEMPOTENCY = "urn:dragoman:ext:idempotency:v1"

pytestmark = pytest.mark.parametrize("agent", PUBLIC)


def task_in(surface: Surface, reply: Reply) -> dict[str, str]:
    """The id and the context of the task in the answer to a send, in whatever dialect it is."""
    document = reply.json()
    result = document["result"] if surface.binding == "jsonrpc" else document
    task = result.get("task") or result
    return {"id": task["id"], "contextId": task["contextId"]}


def begun(sender: Sender, surface: Surface, agent: str, token: str | None = None) -> dict[str, str]:
    reply = sender.send(surface.ask("SendMessage", agent, token=token), surface)
    assert reason(surface, reply) == "", reply
    return task_in(surface, reply)


def test_anybody_may_call_and_read_by_the_id_of_the_task(
    sender: Sender, surface: Surface, agent: str
) -> None:
    task = begun(sender, surface, agent)
    assert reason(surface, sender.send(surface.ask("GetTask", agent, task=task["id"]), surface)) == ""
    asked = surface.ask("CancelTask", agent, task=task["id"])
    assert reason(surface, sender.send(asked, surface)) == "TASK_NOT_CANCELABLE"


def test_all_of_them_are_one_principal_of_the_agents_tenant(
    sender: Sender, surface: Surface, agent: str
) -> None:
    begun(sender, surface, agent)
    found = sender.rows.query("SELECT DISTINCT tenant, principal FROM scope WHERE agent = ?", agent)
    assert ("local" if agent == "anyones" else "acme", "anonymous") in found


def test_nobody_lists_what_others_did_without_knowing_where(
    sender: Sender, surface: Surface, agent: str
) -> None:
    if "ListTasks" not in surface.operations:
        return
    task = begun(sender, surface, agent)
    begun(sender, surface, agent)
    reply = sender.send(surface.ask("ListTasks", agent), surface)
    assert reason(surface, reply) == PARAMS.reason
    assert b"contextId" in reply.body
    page = sender.send(surface.ask("ListTasks", agent, contextId=task["contextId"]), surface).json()
    tasks = (page["result"] if surface.binding == "jsonrpc" else page)["tasks"]
    assert [one["id"] for one in tasks] == [task["id"]]


def test_a_message_is_the_same_as_an_earlier_one_only_for_who_asks_for_it(
    sender: Sender, surface: Surface, agent: str
) -> None:
    message_id = new_id("anonymous")
    asked = surface.ask("SendMessage", agent, message_id=message_id)
    first, second = (sender.send(asked, surface) for _ in range(2))
    assert task_in(surface, first)["id"] != task_in(surface, second)["id"]
    assert "idempotent-replayed" not in second.headers
    insisting = surface.ask("SendMessage", agent, message_id=new_id("insisting"))
    insisting = insisting.with_headers(
        **{"a2a_extensions" if surface.version == "1.0" else "x_a2a_extensions": IDEMPOTENCY}
    )
    third, fourth = (sender.send(insisting, surface) for _ in range(2))
    assert task_in(surface, third) == task_in(surface, fourth)
    assert fourth.headers["idempotent-replayed"] == "true"


def test_who_shows_a_credential_is_somebody(sender: Sender, surface: Surface, agent: str) -> None:
    hers, anyones = begun(sender, surface, agent, FULL), begun(sender, surface, agent)
    for task, token, other in ((hers, FULL, None), (anyones, None, FULL)):
        assert (
            reason(surface, sender.send(surface.ask("GetTask", agent, task=task["id"], token=token), surface))
            == ""
        )
        for operation in ("GetTask", "CancelTask", "SubscribeToTask"):
            asked = surface.ask(operation, agent, task=task["id"], token=other)
            refused(surface, sender.send(asked, surface), TASK_NOT_FOUND)


@pytest.mark.usefixtures("nothing_stored")
def test_a_wrong_credential_is_not_taken_for_none(sender: Sender, surface: Surface, agent: str) -> None:
    for wrong in ("Bearer nobody-has-this-token-0000", "Basic x", "Bearer"):
        for operation in surface.operations:
            asked = surface.ask(operation, agent).with_headers(authorization=wrong)
            challenged(surface, sender.send(asked, surface), INVALID, UNAUTHENTICATED)


@pytest.mark.usefixtures("nothing_stored")
def test_a_credential_allows_no_more_than_its_scopes_there_too(
    sender: Sender, surface: Surface, agent: str
) -> None:
    refused(surface, sender.send(surface.ask("SendMessage", agent, token=READ), surface), FORBIDDEN)


def test_a_tenants_public_agent_is_still_not_another_tenants(
    sender: Sender, surface: Surface, agent: str
) -> None:
    reply = sender.send(surface.ask("SendMessage", agent, token=CAROL), surface)
    if agent == "anyones":
        assert reason(surface, reply) == ""
    else:
        refused(surface, reply, NO_AGENT)


def test_the_other_agents_stay_closed(sender: Sender, agent: str) -> None:
    for surface in SURFACES:
        refused(surface, sender.send(surface.ask("GetTask", "ours"), surface), UNAUTHENTICATED)
