"""What was given is taken beside a running server: within 5 s, on live streams and waits too, and from nobody else."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.tenants import Book, Kind
from tests.durability.ledger import dragoman
from tests.durability.tenants import (
    EVERYTHING,
    NOTICE_SECONDS,
    Caller,
    Open,
    TenantServer,
    becomes,
    caller,
    person,
)

UNAUTHENTICATED, AGENT_NOT_FOUND, TASK_NOT_FOUND = "UNAUTHENTICATED", "AGENT_NOT_FOUND", "TASK_NOT_FOUND"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TenantServer]:
    """A server with alice and bob of acme, and carol of umbrella."""
    place = TenantServer(tmp_path / "data")

    def provide(book: Book) -> None:
        for tenant, principal in (("acme", "alice"), ("acme", "bob"), ("umbrella", "carol")):
            person(book, tenant, principal)

    place.change(provide)
    with place:
        yield place


def reason(document: dict[str, Any]) -> str:
    """The reason of an error, in either form."""
    error = document["error"]
    details = error.get("details") or error["data"]
    return str(details[0]["reason"])


async def reads(someone: Caller, path: str = "/agents/free/tasks") -> bool:
    return (await someone.http.get(path)).status_code == 200


async def test_a_token_given_beside_a_running_server_is_good_in_time(server: TenantServer) -> None:
    async with caller(server, "acme", "dave") as dave:
        assert await dave.refused()
        server.change(lambda book: person(book, "acme", "dave"))
        await becomes(lambda: reads(dave, "/agents/demo/tasks"), what="the new token is good")


@pytest.mark.parametrize(
    "take",
    [
        lambda book: book.revoke_token("acme-alice"),
        lambda book: book.remove_principal("acme", "alice"),
    ],
    ids=["token", "principal"],
)
async def test_a_credential_that_is_taken_ends_everything_it_had_open(
    server: TenantServer, take: Callable[[Book], Any]
) -> None:
    async with caller(server, "acme", "alice") as alice, caller(server, "acme", "bob") as bob:
        streams = [await one.ready() for one in (alice.stream(), alice.hosted_stream())]
        streams.append(await alice.subscribe(await alice.begun()).ready())
        waiting = asyncio.ensure_future(alice.send("slow 60"))
        bystander = await bob.stream().ready()
        hosted_bystander = await bob.hosted_stream().ready()
        server.change(take)
        changed_at = time.monotonic()
        for stream in streams:
            assert reason(await stream.ended()) == UNAUTHENTICATED
        answered = await asyncio.wait_for(waiting, NOTICE_SECONDS)
        assert (answered.status_code, reason(answered.json())) == (401, UNAUTHENTICATED)
        assert await alice.refused()
        assert time.monotonic() - changed_at < NOTICE_SECONDS
        assert bystander.is_open
        assert hosted_bystander.is_open
        for one in (bystander, hosted_bystander):
            one.drop()


MESSAGE_1_0 = {"messageId": "waits", "role": "ROLE_USER", "parts": [{"text": "slow 60"}]}
MESSAGE_0_3 = {"messageId": "waits", "role": "user", "parts": [{"kind": "text", "text": "slow 60"}]}


@pytest.mark.parametrize(
    ("path", "version", "method", "message"),
    [
        ("/agents/demo/rpc", "1.0", "SendMessage", MESSAGE_1_0),
        ("/agents/demo/rpc", "0.3", "message/send", MESSAGE_0_3),
        ("/v1/a2a/agents/demo/rpc", "1.0", "SendMessage", MESSAGE_1_0),
    ],
    ids=["1.0", "0.3", "hosted"],
)
async def test_a_blocking_wait_over_json_rpc_ends_when_its_token_is_revoked(
    server: TenantServer, path: str, version: str, method: str, message: dict[str, Any]
) -> None:
    document = {"jsonrpc": "2.0", "id": "w-1", "method": method, "params": {"message": message}}
    async with caller(server, "acme", "alice") as alice, caller(server, "acme", "bob") as bob:
        headers = {"A2A-Version": version}
        waiting, bystander = (
            asyncio.ensure_future(one.http.post(path, json=document, headers=headers)) for one in (alice, bob)
        )

        async def begun() -> bool:
            listed = [
                (await alice.http.get("/agents/demo/tasks")).json(),
                (await alice.call("ListTasks")).json()["result"],
            ]
            return sum(one["totalSize"] for one in listed) == 1

        await becomes(begun, what="the wait has a task")
        server.change(lambda book: book.revoke_token("acme-alice"))
        answered = await asyncio.wait_for(waiting, NOTICE_SECONDS)
        # The envelope was read long before, so it is an answer to that request.
        assert (answered.status_code, answered.json()["id"]) == (200, "w-1")
        assert reason(answered.json()) == UNAUTHENTICATED
        assert "result" not in answered.json()
        assert not bystander.done()
        bystander.cancel()


async def test_a_tenant_that_is_removed_is_gone_with_all_its_principals(server: TenantServer) -> None:
    async with caller(server, "acme", "alice") as alice, caller(server, "acme", "bob") as bob:
        streams = [await one.ready() for one in (alice.stream(), alice.hosted_stream(), bob.stream("free"))]
        async with caller(server, "umbrella", "carol") as carol:
            bystander = await carol.stream("free").ready()
            server.change(lambda book: book.remove_tenant("acme"))
            for stream in streams:
                assert reason(await stream.ended()) == UNAUTHENTICATED
            assert await alice.refused()
            assert await bob.refused()
            assert bystander.is_open
            bystander.drop()


async def test_a_grant_that_is_taken_ends_what_it_let_into_and_nothing_else(server: TenantServer) -> None:
    async with caller(server, "acme", "alice") as alice, caller(server, "acme", "bob") as bob:
        task_id = await alice.begun(hosted=True)
        stream, elsewhere = await alice.hosted_stream().ready(), await alice.stream().ready()
        bystander = await bob.hosted_stream().ready()
        server.change(lambda book: book.revoke("acme", Kind.WORKSPACE, "lab", "alice"))
        assert "error" not in await stream.ended()

        assert reason((await alice.call("GetTask", id=task_id)).json()) == TASK_NOT_FOUND
        assert (await alice.call("ListTasks")).json()["result"]["totalSize"] == 0
        sent = await alice.call("SendMessage", message=_message())
        assert (sent.status_code, reason(sent.json())) == (404, AGENT_NOT_FOUND)
        receipt = (await alice.call("CancelTask", id=task_id)).json()["result"]
        assert receipt["status"]["state"] == "TASK_STATE_CANCELED"
        assert "history" not in receipt
        assert "artifacts" not in receipt
        assert elsewhere.is_open
        assert bystander.is_open
        for one in (elsewhere, bystander):
            one.drop()

        server.change(lambda book: book.grant("acme", Kind.WORKSPACE, "lab", "alice"))
        await becomes(lambda: _found(alice, task_id), what="the task is there again")


async def test_a_feature_that_is_taken_closes_the_hosted_surface_and_no_other(server: TenantServer) -> None:
    async with caller(server, "acme", "alice") as alice:
        hosted, opened = await alice.hosted_stream().ready(), await alice.stream().ready()
        server.change(lambda book: book.remove_feature("acme", "agent_api"))
        assert reason(await hosted.ended()) == AGENT_NOT_FOUND
        listed = await alice.call("ListTasks")
        assert (listed.status_code, reason(listed.json())) == (404, AGENT_NOT_FOUND)
        assert opened.is_open
        opened.drop()


async def test_a_token_that_expires_ends_what_it_had_open(server: TenantServer) -> None:
    def give(book: Book) -> None:
        person(book, "acme", "dave", expires_at=int((time.time() + 8) * 1000))

    server.change(give)
    async with caller(server, "acme", "dave") as dave:
        await becomes(lambda: reads(dave), what="the new token is good")
        stream = await dave.stream().ready()
        assert reason(await asyncio.wait_for(_last(stream), 15)) == UNAUTHENTICATED
        assert await dave.refused()


async def test_the_first_tenant_closes_a_server_that_was_open_and_the_last_leaves_it_closed(
    tmp_path: Path,
) -> None:
    # No agent is a tenant's: a server of one whose tenant is nowhere does not start.
    demo = "dragoman.agents.demo:demo"
    config = f'[agents.demo]\npython = "{demo}"\n[agents.free]\npython = "{demo}"\n'
    with TenantServer(tmp_path / "data", config=config) as server:
        async with caller(server) as anybody, caller(server, "acme", "alice") as alice:
            card = (await anybody.http.get("/agents/free/.well-known/agent-card.json")).json()
            assert "securitySchemes" not in card
            stream = await anybody.stream("free").ready()
            task_id = (await anybody.send("Hello", "free")).json()["task"]["id"]
            server.change(lambda book: person(book, "acme", "alice"))
            assert reason(await stream.ended()) == UNAUTHENTICATED
            assert await anybody.refused("/agents/free/tasks")
            card = (await anybody.http.get("/agents/free/.well-known/agent-card.json")).json()
            assert "securitySchemes" in card
            # What was everybody's is nobody's now.
            assert (await alice.http.get(f"/agents/free/tasks/{task_id}")).status_code == 404
            assert (await alice.http.get("/agents/demo/tasks")).status_code == 200
            server.change(lambda book: book.remove_tenant("acme"))
            await becomes(alice.refused, what="alice is refused")
            assert await anybody.refused("/agents/free/tasks")


async def test_commands_beside_a_running_server_let_somebody_in_and_out_again(server: TenantServer) -> None:
    def command(*words: str) -> str:
        done = dragoman(*words, "--data", str(server.data), folder=server.data.parent)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async with caller(server, "umbrella", "carol") as carol:
        sending = asyncio.ensure_future(_sends(carol, 200))
        await asyncio.to_thread(command, "tenant", "principal", "add", "umbrella", "dave")
        scopes = [word for scope in EVERYTHING for word in ("--scope", scope)]
        made = ("token", "create", "--tenant", "umbrella", "--principal", "dave", *scopes, "--json")
        told = json.loads(await asyncio.to_thread(command, *made))
        async with caller(server, text=told["token"]) as dave:
            await becomes(lambda: reads(dave), what="the new token is good")
            stream = await dave.stream("free").ready()
            await asyncio.to_thread(command, "token", "revoke", told["id"])
            assert reason(await stream.ended()) == UNAUTHENTICATED
            assert await dave.refused("/agents/free/tasks")
        # Nobody else was held up or refused meanwhile.
        assert await sending == {200}


async def test_a_server_knows_its_tenants_again_after_a_restart(server: TenantServer) -> None:
    async with caller(server, "acme", "alice") as alice:
        task_id = (await alice.send("Hello")).json()["task"]["id"]
    server.kill()
    server.change(lambda book: book.revoke_token("acme-bob"))
    server.restart()
    async with caller(server, "acme", "alice") as alice, caller(server, "acme", "bob") as bob:
        assert (await alice.http.get(f"/agents/demo/tasks/{task_id}")).status_code == 200
        assert await bob.refused()


async def _sends(someone: Caller, count: int) -> set[int]:
    return {(await someone.send("Hello", "free")).status_code for _ in range(count)}


async def _found(someone: Caller, task_id: str) -> bool:
    return "result" in (await someone.call("GetTask", id=task_id)).json()


async def _last(stream: Open) -> dict[str, Any]:
    return await stream._task


def _message() -> dict[str, Any]:
    return {"messageId": "once", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}
