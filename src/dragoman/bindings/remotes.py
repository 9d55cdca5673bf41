"""The registry of remote agents over HTTP: `/v1/a2a/agents`, which belongs to a tenant. It holds no cards."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import unquote

from dragoman.bindings.exchange import Exchange, Reply
from dragoman.bindings.membership import Membership, json_reply, read_object
from dragoman.gateway.push import Sealer
from dragoman.gateway.remotes import (
    LONGEST_NAME,
    Places,
    Remote,
    RemoteStore,
    changed,
    registered,
    remote_path,
)
from dragoman.model import Principal
from dragoman.model.errors import InvalidParams
from dragoman.protocol.protojson import Fields, timestamp_text

AGENTS = "/v1/a2a/agents"
PAGE, LARGEST_PAGE = 100, 500
BODY_LIMIT = 64 * 1024
_ONE = f"{AGENTS}/{{id}}"
_DISCOVER = ":discover"
_KNOWN = ("name", "endpoint_url", "bearer_token")

Discover = Callable[[Remote], Awaitable[dict[str, Any]]]
"""Fetches and judges the card of a remote agent, and returns it as it is to be shown; raises Unavailable."""


class Outside(Sealer, Protocol):
    """What registrations are checked against, and what keeps their tokens unreadable (see `delegating.Abroad`).

    `seal` raises Unavailable if there is no key for it.
    """

    @property
    def places(self) -> Places:
        """Where requests may go."""
        ...

    async def discover(self, remote: Remote) -> dict[str, Any]:
        """Return the card of a remote agent as it is to be shown, judged and untrusted.

        Raises:
            Unavailable: there is none, or it cannot be had now.
        """
        ...


class RemoteSurface:
    """Serves `/v1/a2a/agents` and what is directly below it, without a further slash."""

    def __init__(self, store: RemoteStore, membership: Membership, outside: Outside) -> None:
        self._store = store
        self._membership = membership
        self._outside = outside

    async def serve(self, exchange: Exchange) -> Reply | None:
        """Return the reply to a request for one of these paths; `None` for any other path.

        Raises:
            DragomanError: it is refused; nothing was done.
        """
        path, method = exchange.request.path, exchange.request.method
        if path == AGENTS:
            return await (self._register(exchange) if method == "POST" else self._list(exchange))
        remote_id = path[len(AGENTS) + 1 :] if path.startswith(f"{AGENTS}/") else ""
        if not remote_id or "/" in remote_id:
            return None
        if remote_id.endswith(_DISCOVER):
            return await self._discover(exchange, unquote(remote_id[: -len(_DISCOVER)]))
        match method:
            case "PATCH":
                return await self._change(exchange, unquote(remote_id))
            case "DELETE":
                return await self._remove(exchange, unquote(remote_id))
            case _:
                return await self._get(exchange, unquote(remote_id))

    async def _register(self, exchange: Exchange) -> Reply:
        principal = await self._enter(exchange, AGENTS, "RegisterRemote")
        body = await read_object(exchange, _KNOWN, BODY_LIMIT)
        remote = registered(
            principal.tenant,
            body.required("name", longest=LONGEST_NAME),
            body.required("endpoint_url"),
            _token(body) or "",
            self._outside.places,
            self._outside,
        )
        kept = await self._store.add_remote(remote, audit=self._membership.audit(exchange))
        return json_reply(shown(kept), 201)

    async def _list(self, exchange: Exchange) -> Reply:
        principal = await self._enter(exchange, AGENTS, "ListRemotes")
        query = Fields({name: values[-1] for name, values in exchange.request.query.items()})
        size = query.integer("limit", low=1, high=LARGEST_PAGE) or PAGE
        found = await self._store.remotes(principal.tenant, after=query.string("after"), limit=size + 1)
        after = found[size - 1].id if len(found) > size else ""
        return json_reply({"agents": [shown(one) for one in found[:size]], "after": after})

    async def _get(self, exchange: Exchange, remote_id: str) -> Reply:
        principal = await self._enter(exchange, _ONE, "GetRemote")
        return json_reply(shown(await self._store.remote(principal.tenant, remote_id)))

    async def _change(self, exchange: Exchange, remote_id: str) -> Reply:
        principal = await self._enter(exchange, _ONE, "ChangeRemote")
        body = await read_object(exchange, _KNOWN, BODY_LIMIT)
        remote = await self._store.remote(principal.tenant, remote_id)
        change = changed(
            remote,
            name=body.string("name") if "name" in body.members else None,
            endpoint_url=body.required("endpoint_url") if "endpoint_url" in body.members else None,
            token=_token(body) or "" if "bearer_token" in body.members else None,
            places=self._outside.places,
            sealer=self._outside,
        )
        kept = await self._store.change_remote(
            principal.tenant, remote_id, change, audit=self._membership.audit(exchange)
        )
        return json_reply(shown(kept))

    async def _remove(self, exchange: Exchange, remote_id: str) -> Reply:
        principal = await self._enter(exchange, _ONE, "RemoveRemote")
        await self._store.remove_remote(principal.tenant, remote_id, audit=self._membership.audit(exchange))
        return Reply(204, [(b"cache-control", b"no-store")])

    async def _discover(self, exchange: Exchange, remote_id: str) -> Reply:
        principal = await self._enter(exchange, f"{_ONE}{_DISCOVER}", "DiscoverRemote")
        remote = await self._store.remote(principal.tenant, remote_id)
        audit = self._membership.audit(exchange)
        if audit is not None:
            await self._store.add_to_audit([audit.on(remote_path(remote.id))])
        return json_reply(await self._outside.discover(remote))

    async def _enter(self, exchange: Exchange, route: str, operation: str) -> Principal:
        methods = {
            AGENTS: ("GET", "HEAD", "POST"),
            _ONE: ("GET", "HEAD", "PATCH", "DELETE"),
        }.get(route, ("POST",))
        return await self._membership.enter(exchange, route, operation, methods)


def shown(remote: Remote) -> dict[str, Any]:
    """Return a registration as it is shown: never its token."""
    return {
        "id": remote.id,
        "name": remote.name,
        "endpoint_url": remote.endpoint_url,
        "has_credential": bool(remote.sealed),
        "created_at": timestamp_text(remote.created_at),
    }


def _token(body: Fields) -> str | None:
    """Return the bearer token; `None` if it is to be none."""
    token = body.string("bearer_token")
    if "bearer_token" in body.members and body.get("bearer_token") == "":
        raise InvalidParams.of("bearer_token", "must not be empty; null, or to leave it out, means none")
    return token or None
