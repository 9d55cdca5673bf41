"""A server whose tenants are kept in its store, changed beside it, and what callers of it have open meanwhile."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2

from dragoman.gateway.tenants import Book, Kind, Token
from dragoman.identity import hash_token
from dragoman.storage import administer
from tests.durability.callers import LIMITS, VERSION
from tests.harness import stores
from tests.harness.server import ServerProcess

NOTICE_SECONDS = 5.0
"""Seconds within which a change takes effect (SPEC P4)."""

EVERYTHING = ("ai:answer", "a2a:read", "a2a:delegate")

CONFIG = """
[hosted]
enabled = true
[agents.demo]
python = "dragoman.agents.demo:demo"
tenant = "acme"
workspace = "lab"
[agents.free]
python = "dragoman.agents.demo:demo"
"""


def token_of(tenant: str, principal: str) -> str:
    """The token that `person` gives to a principal."""
    return f"a-token-for-{principal}-of-{tenant}"


def person(book: Book, tenant: str, principal: str, *, expires_at: int | None = None) -> None:
    """Let somebody in, who may do everything in the workspace lab; a tenant that is missing is made."""
    book.add_tenant(tenant)
    book.add_feature(tenant, "agent_api")
    book.add_principal(tenant, principal)
    book.add_resource(tenant, Kind.WORKSPACE, "lab")
    book.grant(tenant, Kind.WORKSPACE, "lab", principal)
    token = Token(
        id=f"{tenant}-{principal}",
        tenant=tenant,
        principal=principal,
        scopes=EVERYTHING,
        note="",
        created_at=book.now,
        expires_at=expires_at,
    )
    book.add_token(token, hash_token(token_of(tenant, principal)))


class TenantServer(ServerProcess):
    """`dragoman serve` with an agent of the tenant acme, on both surfaces, and one of nobody's."""

    def __init__(self, data: Path, *, config: str = CONFIG) -> None:
        file = data.parent / "tenants.toml"
        file.write_text(config, encoding="utf-8")
        super().__init__(data, config=file)

    def change(self, work: Callable[[Book], Any]) -> None:
        """Write to the book, as a command does: from another process, beside the server if it runs."""
        administer(stores.place_of(self.data), work)


class Caller:
    """One principal's client, and the waits and streams that it has open."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def send(self, text: str, agent: str = "demo", *, wait: bool = True) -> httpx2.Response:
        """SendMessage on the open surface."""
        asked = {"message": message(text), "configuration": {"returnImmediately": not wait}}
        return await self.http.post(f"/agents/{agent}/message:send", json=asked)

    async def call(self, method: str, **params: Any) -> httpx2.Response:
        """Call a method of the hosted demo agent."""
        document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post("/v1/a2a/agents/demo/rpc", json=document)

    async def begun(self, *, hosted: bool = False) -> str:
        """Have a run at work for a minute, and return the id of its task."""
        if hosted:
            reply = await self.call(
                "SendMessage", message=message("slow 60"), configuration={"returnImmediately": True}
            )
            return str(reply.json()["result"]["task"]["id"])
        return str((await self.send("slow 60", wait=False)).json()["task"]["id"])

    async def refused(self, path: str = "/agents/demo/tasks") -> bool:
        """Whether this caller is refused for want of a good credential."""
        return (await self.http.get(path)).status_code == 401

    def stream(self, agent: str = "demo") -> "Open":
        """SendStreamingMessage on the open surface."""
        return Open(self.http, f"/agents/{agent}/message:stream", {"message": message("slow 60")})

    def subscribe(self, task_id: str) -> "Open":
        """SubscribeToTask on the open surface."""
        return Open(self.http, f"/agents/demo/tasks/{task_id}:subscribe", None)

    def hosted_stream(self) -> "Open":
        """SendStreamingMessage on the hosted surface."""
        params = {"message": message("slow 60")}
        document = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
        return Open(self.http, "/v1/a2a/agents/demo/rpc", document)


class Open:
    """A stream that is open: `await ready()`, then `await ended()` for its last data."""

    def __init__(self, http: httpx2.AsyncClient, path: str, document: Any) -> None:
        self._began = asyncio.Event()
        self._task = asyncio.ensure_future(self._read(http, path, document))

    async def ready(self) -> "Open":
        """Wait for its first data."""
        await asyncio.wait_for(self._began.wait(), 10)
        return self

    @property
    def is_open(self) -> bool:
        """Whether it goes on."""
        return not self._task.done()

    async def ended(self) -> dict[str, Any]:
        """The last data, once it ends, which must be in time."""
        return await asyncio.wait_for(self._task, NOTICE_SECONDS)

    def drop(self) -> None:
        """Let go of it."""
        self._task.cancel()

    async def _read(self, http: httpx2.AsyncClient, path: str, document: Any) -> dict[str, Any]:
        last: dict[str, Any] = {}
        async with http.stream("POST", path, json=document) as reply:
            assert reply.status_code == 200, await reply.aread()
            async for line in reply.aiter_lines():
                if line.startswith("data: "):
                    last = json.loads(line.removeprefix("data: "))
                    self._began.set()
        return last


@contextlib.asynccontextmanager
async def caller(
    server: ServerProcess, tenant: str = "", principal: str = "", *, text: str = ""
) -> AsyncIterator[Caller]:
    """A caller with the token of a principal, or with another one, or without a credential."""
    token = token_of(tenant, principal) if tenant else text
    credential = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(
        base_url=server.url, headers=VERSION | credential, limits=LIMITS, timeout=60, trust_env=False
    ) as http:
        yield Caller(http)


async def becomes(probe: Callable[[], Any], *, what: str) -> None:
    """Wait until a coroutine function gives something true, which must be in time."""
    try:
        async with asyncio.timeout(NOTICE_SECONDS):
            while not await probe():
                # Not more often: an address that shows bad credentials again and again is refused for a while.
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise AssertionError(f"not within {NOTICE_SECONDS} s: {what}") from None


def message(text: str) -> dict[str, Any]:
    """A message of its own."""
    return {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
