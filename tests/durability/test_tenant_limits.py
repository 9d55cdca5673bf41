"""Limits of tenants, set beside a running server: who is bound by them, on every surface, and how soon."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from dragoman.gateway.tenants import Book, Token
from dragoman.identity import hash_token
from dragoman.storage import consult
from tests.durability.ledger import dragoman
from tests.durability.tenants import CONFIG, TenantServer, becomes, caller, person
from tests.harness import stores
from tests.harness.server import ServerProcess

PLENTY = 1_000_000
ROOT = "a-token-of-the-operator-of-acme"
LIMITS = f"""
[limits]
running = {{ tenant = {PLENTY} }}
[tenants.beta.principals.fixed]
[tenants.beta.limits]
rate = {{ principal = 2 }}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TenantServer]:
    """A server of three principals of two tenants."""
    made = TenantServer(tmp_path / "data", config=CONFIG + LIMITS)
    for who in (("acme", "alice"), ("acme", "bob"), ("umbrella", "carol"), ("beta", "dave")):
        made.change(lambda book, who=who: person(book, *who))
    with made as running:
        yield running


def limit(reply: httpx2.Response) -> str:
    """The limit that a reply names, over either binding; empty for a success."""
    error = reply.json().get("error")
    return error.get("details", error.get("data"))[0]["metadata"].get("limit", "") if error else ""


async def test_a_quota_that_is_set_holds_within_seconds_for_its_tenant_alone_on_both_surfaces(
    server: TenantServer,
) -> None:
    async with (
        caller(server, "acme", "alice") as alice,
        caller(server, "acme", "bob") as bob,
        caller(server, "umbrella", "carol") as carol,
    ):
        first, hosted = await alice.begun(), await alice.begun(hosted=True)
        server.change(lambda book: book.set_limit("acme", "running.principal", 2))

        async def refused() -> bool:
            reply = await alice.send("Hello", wait=False)
            return reply.status_code == 429 and limit(reply) == "running.principal"

        await becomes(refused, what="alice is over the quota")
        over = await alice.call("SendMessage", message={**_message(), "messageId": "hosted"})
        assert (over.status_code, limit(over)) == (200, "running.principal")
        assert over.headers["retry-after"] == "5"
        assert (await bob.send("Hello")).status_code == 200
        assert (await carol.send("Hello", "free")).status_code == 200
        listed = (await alice.http.get("/agents/demo/tasks")).json()
        assert first in {task["id"] for task in listed["tasks"]}
        assert (await alice.call("CancelTask", id=hosted)).json()["result"]["id"] == hosted
        assert (await alice.http.post(f"/agents/demo/tasks/{first}:cancel")).status_code == 200
        assert (await alice.send("Hello")).status_code == 200

        server.change(lambda book: book.remove_limit("acme", "running.principal"))

        async def unbound() -> bool:
            begun = [await alice.send("slow 60", wait=False) for _ in range(3)]
            return {one.status_code for one in begun} == {200}

        await becomes(unbound, what="the quota is gone")


async def test_a_rate_holds_for_hosted_calls_cards_and_approvals_and_not_for_cancels_or_administration(
    server: TenantServer,
) -> None:
    def provide(book: Book) -> None:
        book.set_limit("acme", "rate.tenant", 6)
        root = Token(
            id="root", tenant="acme", principal="alice", scopes=("admin:*",), note="", created_at=book.now
        )
        book.add_token(root, hash_token(ROOT))

    server.change(provide)
    server.restart()
    async with caller(server, "acme", "alice") as alice, caller(server, "acme", "bob") as bob:
        task_id = await alice.begun(hosted=True)
        for _ in range(5):
            assert (await bob.call("ListTasks")).status_code == 200
        over = await alice.call("GetTask", id=task_id)
        assert (over.status_code, over.json()["id"], limit(over)) == (429, None, "rate.tenant")
        card = await alice.http.get("/v1/a2a/agents/demo/.well-known/agent-card.json")
        assert (card.status_code, limit(card)) == (429, "rate.tenant")
        for who in (alice, bob):
            assert (await who.http.get("/agents/demo/tasks")).status_code == 429
        # Approvals want another scope, which is looked at first.
        assert (await alice.http.get("/v1/a2a/approvals")).status_code == 403
        assert (await alice.http.get("/healthz")).status_code == 200
        async with caller(server, text=ROOT) as root:
            for _ in range(7):
                assert (await root.http.get("/v1/admin/tenants")).status_code == 200
        assert limit(await bob.send("Hello")) == "rate.tenant"
        canceled = await alice.call("CancelTask", id=task_id)
        assert canceled.json()["result"]["status"]["state"] == "TASK_STATE_CANCELED"

        async def noted() -> bool:
            rows = consult(
                stores.place_of(server.data), lambda book: book.audited(since=0, after=0, limit=99)
            )
            wanted = ("SendMessage", "bob", "RATE_LIMITED")
            return wanted in {(one.entry.action, one.entry.principal, one.entry.outcome) for one in rows}

        await becomes(noted, what="the refused send is in the audit")


async def test_what_the_configuration_says_of_a_tenant_goes_over_what_the_store_keeps(
    server: TenantServer,
) -> None:
    server.change(lambda book: book.set_limit("beta", "rate.principal", PLENTY))
    server.restart()
    async with caller(server, "beta", "dave") as dave:
        for _ in range(2):
            assert (await dave.http.get("/agents/free/tasks")).status_code == 200
        over = await dave.http.get("/agents/free/tasks")
        assert (over.status_code, limit(over)) == (429, "rate.principal")
        assert 1 <= int(over.headers["retry-after"]) <= 30


async def test_tasks_that_a_command_ends_beside_the_server_are_counted_no_more(
    server: TenantServer,
) -> None:
    server.change(lambda book: book.set_limit("acme", "running.principal", 1))
    server.restart()
    async with caller(server, "acme", "alice") as alice:
        task_id = await alice.begun()
        assert limit(await alice.send("Hello")) == "running.principal"
        cancel(server, task_id)

        async def admitted() -> bool:
            return (await alice.send("Hello")).status_code == 200

        await becomes(admitted, what="the task counts no more")


def cancel(server: ServerProcess, task_id: str) -> None:
    """Cancel a task by the command."""
    done = dragoman("tasks", "cancel", task_id, "--data", str(server.data), folder=server.data.parent)
    assert done.returncode == 0, done.stderr


def _message() -> dict[str, object]:
    return {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}
