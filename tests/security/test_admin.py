"""The admin surface of a real server: who gets in, what takes effect before the answer, and what leaks nowhere."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.durability.tenants import caller, message
from tests.harness.server import ServerProcess
from tests.security.conftest import (
    ADMIN,
    AGENTS,
    FULL,
    LIKE,
    MUTE,
    SERVER,
    TENANTS,
    add_look_alikes,
    started,
)

BASE = "/v1/admin"
PATHS = ("tenants", "tenants/acme", "tenants/nobody", "tokens", "agents", "runs", "audit", "no-such-path", "")


@pytest.fixture(scope="module")
def administered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of its own, whose tenants are changed."""
    made = started(tmp_path_factory.mktemp("admin"), SERVER + AGENTS + TENANTS)
    add_look_alikes(made)
    with made as running:
        yield running


def ask(
    server: ServerProcess, method: str, path: str, document: Any = None, *, token: str | None = ADMIN
) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx2.Client(trust_env=False, timeout=20) as client:
        return client.request(method, f"{server.url}{BASE}/{path}", json=document, headers=headers)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_nobody_without_a_good_credential_learns_which_paths_there_are(
    administered: ServerProcess, method: str, path: str
) -> None:
    for token, flaw in ((None, ""), ("bad-" + ADMIN, ', error="invalid_token"')):
        reply = ask(administered, method, path, token=token)
        assert (reply.status_code, reply.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
        assert reply.headers["www-authenticate"] == f'Bearer realm="dragoman"{flaw}'


@pytest.mark.parametrize("token", [FULL, MUTE, LIKE], ids=["full", "mute", "like"])
@pytest.mark.parametrize("path", PATHS)
def test_no_other_scope_covers_that_of_administrators(
    administered: ServerProcess, token: str, path: str
) -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        reply = ask(administered, method, path, token=token)
        assert (reply.status_code, reply.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
        assert reply.json()["error"]["details"][0]["metadata"] == {"scope": "admin:*"}


def test_the_scope_of_administrators_covers_nothing_else(administered: ServerProcess) -> None:
    assert ask(administered, "GET", "tenants").status_code == 200
    with httpx2.Client(trust_env=False) as client:
        headers = {"Authorization": f"Bearer {ADMIN}", "A2A-Version": "1.0"}
        reply = client.get(f"{administered.url}/agents/demo/tasks", headers=headers)
    assert (reply.status_code, reply.json()["error"]["details"][0]["metadata"]["scope"]) == (403, "ai:answer")


def test_a_server_that_is_open_to_everybody_is_administered_by_nobody(tmp_path: Path) -> None:
    with started(tmp_path, "") as server:
        for token in (None, ADMIN):
            reply = ask(server, "POST", "tenants", {"name": "acme"}, token=token)
            assert reply.status_code == 403
        with httpx2.Client(trust_env=False) as client:
            listed = client.get(f"{server.url}/agents/demo/tasks", headers={"A2A-Version": "1.0"})
        assert listed.status_code == 200


def test_errors_name_fields_as_those_of_a2a_do(administered: ServerProcess) -> None:
    reply = ask(administered, "POST", "tenants", {"name": "A", "features": []})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    (violation,) = error["details"][1]["fieldViolations"]
    assert violation["field"] == "name"
    too_large = ask(administered, "POST", "tenants", {"name": "a" * 70_000})
    assert (too_large.status_code, too_large.json()["error"]["code"]) == (413, 413)
    wrong = ask(administered, "PATCH", "tenants")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, POST, HEAD")
    head = ask(administered, "HEAD", "tenants")
    assert (head.status_code, head.content) == (200, b"")


def test_what_is_changed_is_so_before_the_answer_on_live_streams_too(
    administered: ServerProcess,
) -> None:
    async def scenario() -> None:
        async def change(method: str, path: str, document: Any = None) -> Any:
            reply = await asyncio.to_thread(ask, administered, method, path, document)
            assert reply.status_code in (200, 201), reply.text
            return reply.json()

        await change("POST", "tenants", {"name": "umbrella"})
        await change("PUT", "tenants/umbrella/principals/dave")
        asked = {"tenant": "umbrella", "principal": "dave", "scopes": ["ai:*", "a2a:*"]}
        made = await change("POST", "tokens", asked)
        async with caller(administered, text=made["token"]) as dave:
            assert (await dave.http.get("/agents/demo/tasks")).status_code == 200
            stream = await dave.stream().ready()
            await change("DELETE", f"tokens/{made['id']}")
            last = await asyncio.wait_for(stream.ended(), 2)
            assert last["error"]["status"] == "UNAUTHENTICATED"
            assert (await dave.http.get("/agents/demo/tasks")).status_code == 401
        again = await change("POST", "tokens", asked)
        async with caller(administered, text=again["token"]) as dave:
            sent = await dave.http.post("/agents/demo/message:send", json={"message": message("Hello")})
            assert sent.status_code == 200
            assert (await change("DELETE", "tenants/umbrella"))["tasksLeft"] is True
            assert (await dave.http.get("/agents/demo/tasks")).status_code == 401
        refused = await asyncio.to_thread(ask, administered, "POST", "tenants", {"name": "umbrella"})
        assert (refused.status_code, "adopt" in refused.json()["error"]["message"]) == (409, True)

    asyncio.run(scenario())


def test_a_run_that_is_cancelled_stops_and_is_told_to_who_waits(administered: ServerProcess) -> None:
    async def scenario() -> None:
        async with caller(administered, text=FULL) as alice:
            stream = await alice.stream().ready()
            (run,) = (await asyncio.to_thread(ask, administered, "GET", "runs?state=working&limit=1")).json()[
                "runs"
            ]
            assert (run["tenant"], run["principal"], run["agent"]) == ("acme", "alice", "demo")
            reply = await asyncio.to_thread(ask, administered, "POST", f"runs/{run['taskId']}:cancel")
            assert (reply.status_code, reply.json()["state"]) == (200, "canceled")
            last = await asyncio.wait_for(stream.ended(), 2)
            assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"

    asyncio.run(scenario())


def test_a_token_is_in_its_answer_and_nowhere_else(
    administered: ServerProcess, client: httpx2.Client
) -> None:
    asked = {"tenant": "acme", "principal": "bob", "scopes": ["*"], "note": "for a test"}
    made = ask(administered, "POST", "tokens", asked).json()
    text = made.pop("token")
    for path in ("tokens", f"tokens/{made['id']}", "audit", "tenants/acme/principals"):
        assert text not in ask(administered, "GET", path).text
    assert text not in json.dumps(administered.log_lines())
    files = b"".join(file.read_bytes() for file in administered.data.iterdir())
    assert text.encode() not in files
    assert ask(administered, "GET", f"tokens/{made['id']}").json() == made
