"""What is somebody else's: a principal's, a tenant's, an agent's. To everybody else it is not there."""

from collections.abc import Callable

import pytest

from tests.interaction.answers import NO_AGENT, PARAMS, TASK_NOT_FOUND
from tests.interaction.callers import Request
from tests.interaction.messages import new_id
from tests.security.conftest import BOB, CAROL, FULL, TWIN, Sender
from tests.security.surfaces import SURFACES, Surface, reason, refused, same_refusal

ON_A_TASK = ("GetTask", "CancelTask", "SubscribeToTask")


@pytest.mark.usefixtures("nothing_stored")
def test_another_tenants_agent_is_refused_like_one_that_is_not_there(
    sender: Sender, surface: Surface
) -> None:
    for operation in surface.operations:
        theirs = sender.send(surface.ask(operation, "theirs", token=FULL), surface)
        unknown = sender.send(surface.ask(operation, "unknwn", token=FULL), surface)
        refused(surface, theirs, NO_AGENT)
        assert same_refusal(surface, theirs, unknown), operation


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "POST", "DELETE", "HEAD"])
def test_no_method_and_no_body_tells_it_from_one_that_is_not_there(
    sender: Sender, surface: Surface, method: str
) -> None:
    for headers, body in (
        ({}, None),
        ({"content-type": "text/plain"}, b"x"),
        ({}, b"{"),
        ({}, b"x" * 5_000_000),
    ):
        told = []
        for agent in ("theirs", "unknwn"):
            asked = surface.ask("SendMessage", agent, token=FULL).with_headers(
                **{k.replace("-", "_"): v for k, v in headers.items()}
            )
            told.append(sender.send(Request(method, asked.target, asked.headers, body), surface))
        if method == "HEAD":
            assert [reply.status for reply in told] == [404, 404]
        else:
            refused(surface, told[0], NO_AGENT)
            assert same_refusal(surface, *told)


def test_the_tenant_of_an_agent_may_call_it(sender: Sender, surface: Surface) -> None:
    assert reason(surface, sender.send(surface.ask("SendMessage", "ours", token=FULL), surface)) == ""
    assert reason(surface, sender.send(surface.ask("SendMessage", "ours", token=BOB), surface)) == ""
    assert reason(surface, sender.send(surface.ask("SendMessage", "theirs", token=CAROL), surface)) == ""
    refused(surface, sender.send(surface.ask("SendMessage", "ours", token=CAROL), surface), NO_AGENT)


@pytest.mark.parametrize(
    "token", [BOB, CAROL, TWIN], ids=["colleague", "other tenant", "other tenant, same name"]
)
def test_somebody_elses_task_is_refused_like_one_that_is_not_there(
    sender: Sender, surface: Surface, token: str
) -> None:
    task = sender.task(FULL)
    never = task[:-4] + ("0000" if task[-4:] != "0000" else "1111")
    with sender.rows.unchanged():
        for operation in ON_A_TASK:
            theirs = sender.send(surface.ask(operation, task=task, token=token), surface)
            unknown = sender.send(surface.ask(operation, task=never, token=token), surface)
            refused(surface, theirs, TASK_NOT_FOUND)
            assert (
                theirs.body.replace(task.encode(), never.encode()).decode().split("trace_id")[0]
                == unknown.body.decode().split("trace_id")[0]
            )
        assert reason(surface, sender.send(surface.ask("GetTask", task=task, token=FULL), surface)) == ""


@pytest.mark.parametrize(
    "token", [BOB, CAROL, TWIN], ids=["colleague", "other tenant", "other tenant, same name"]
)
def test_nobody_goes_on_with_refers_to_or_lists_what_is_somebody_elses(
    sender: Sender, surface: Surface, token: str
) -> None:
    task = sender.task(FULL)
    context = sender.send(SURFACES[0].ask("GetTask", task=task, token=FULL)).result["contextId"]
    with sender.rows.unchanged():
        names = {"taskId": task, "contextId": context}
        reply = sender.send(surface.ask("SendMessage", token=token, **names), surface)
        refused(surface, reply, TASK_NOT_FOUND)
    if "ListTasks" in surface.operations:
        told = sender.send(surface.ask("ListTasks", token=token, contextId=context), surface).json()
        page = told["result"] if surface.binding == "jsonrpc" else told
        assert (page["tasks"], page.get("totalSize", 0)) == ([], 0)


def test_the_same_message_id_of_two_principals_is_two_messages(sender: Sender, surface: Surface) -> None:
    message_id = new_id("shared")
    for token in (FULL, BOB, CAROL, TWIN):
        reply = sender.send(surface.ask("SendMessage", token=token, message_id=message_id), surface)
        assert reason(surface, reply) == "", reply
        assert "idempotent-replayed" not in reply.headers
    again = sender.send(surface.ask("SendMessage", token=FULL, message_id=message_id), surface)
    assert again.headers["idempotent-replayed"] == "true"


def test_another_agents_task_is_not_there(sender: Sender, surface: Surface) -> None:
    task = sender.task(FULL)
    with sender.rows.unchanged():
        for operation in ON_A_TASK:
            refused(
                surface,
                sender.send(surface.ask(operation, "ours", task=task, token=FULL), surface),
                TASK_NOT_FOUND,
            )


# ------------------------------------------------------------------------------- where a tenant is never taken from


def with_query(name: str) -> Callable[[Request], Request]:
    def change(asked: Request) -> Request:
        joint = "&" if "?" in asked.target else "?"
        return Request(asked.method, f"{asked.target}{joint}{name}=beta", asked.headers, asked.body)

    return change


def with_header(name: str) -> Callable[[Request], Request]:
    return lambda asked: asked.with_headers(**{name: "beta"})


SAID = {
    **{
        name: with_header(name)
        for name in ("x_tenant", "x_tenant_id", "tenant", "x_dragoman_tenant", "x_principal")
    },
    **{f"?{name}": with_query(name) for name in ("tenant_id", "principal", "org")},
}


@pytest.mark.parametrize("change", SAID.values(), ids=SAID)
def test_no_header_and_no_parameter_changes_the_tenant(
    sender: Sender, surface: Surface, change: Callable[[Request], Request]
) -> None:
    refused(surface, sender.send(change(surface.ask("SendMessage", "theirs", token=FULL)), surface), NO_AGENT)
    message_id = new_id("tenant")
    first = sender.send(change(surface.ask("SendMessage", token=FULL, message_id=message_id)), surface)
    assert reason(surface, first) == ""
    again = sender.send(surface.ask("SendMessage", token=FULL, message_id=message_id), surface)
    assert again.headers["idempotent-replayed"] == "true", "it is alice of acme's message"
    other = sender.send(surface.ask("SendMessage", token=TWIN, message_id=message_id), surface)
    assert "idempotent-replayed" not in other.headers


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("tenant", ["beta", "acme", "theirs"])
def test_a_tenant_in_the_body_or_the_query_is_no_tenant_of_ours(sender: Sender, tenant: str) -> None:
    http, rpc = SURFACES[:2]
    for surface, body in (
        (
            http,
            b'{"tenant": "%s", "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}',
        ),
        (
            rpc,
            b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"tenant": "%s", "message": '
            b'{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}}',
        ),
    ):
        asked = surface.ask("SendMessage", token=FULL)
        sent = Request(asked.method, asked.target, asked.headers, body % tenant.encode())
        refused(surface, sender.send(sent, surface), PARAMS)
        sent = Request(
            asked.method, asked.target.replace("demo", "theirs"), asked.headers, body % tenant.encode()
        )
        refused(surface, sender.send(sent, surface), NO_AGENT)
    listing = http.ask("ListTasks", token=FULL)
    refused(http, sender.send(Request("GET", f"{listing.target}?tenant={tenant}", listing.headers)), PARAMS)


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "path",
    [
        "/beta/agents/theirs/tasks",
        "/agents/beta/theirs/tasks",
        "/agents/theirs/beta/tasks",
        "/tenants/beta/agents/theirs/tasks",
        "/agents/ours/../theirs/tasks",
        "/agents/ours%2f..%2ftheirs/tasks",
        "/agents/THEIRS/tasks",
        "/agents/theirs%00/tasks",
        "/agents//theirs/tasks",
        "//agents/theirs/tasks",
    ],
)
def test_no_path_leads_around(sender: Sender, path: str) -> None:
    asked = SURFACES[0].ask("ListTasks", token=FULL)
    with_path = sender.send(Request("GET", path, asked.headers))
    assert with_path.status == 404
    assert reason(SURFACES[0], with_path) in ("AGENT_NOT_FOUND", "METHOD_NOT_FOUND")
