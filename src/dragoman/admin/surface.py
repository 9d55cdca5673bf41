"""`/v1/admin/`: what the commands do, over HTTP, for whoever has the scope `admin:*`.

It is no A2A: no version is negotiated, and errors are google.rpc.Status documents as A2A 1.0 has them.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote

import msgspec

from dragoman.admin import shapes
from dragoman.admin.asking import Asked, limit, number
from dragoman.admin.operations import LONGEST_LIFE, Administration
from dragoman.admin.overview import Overview
from dragoman.bindings.directory import Gate
from dragoman.bindings.exchange import Exchange, Reply
from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.operating import RunFilters, RunStore, RunView
from dragoman.gateway.tenants import Book, Declared, Kind, TenantStore, Token
from dragoman.model import Principal, Right, Scope, TaskState
from dragoman.model.allowance import LARGEST
from dragoman.model.errors import (
    EntryNotFound,
    Forbidden,
    InvalidParams,
    MethodNotAllowed,
    MethodNotFound,
    TaskNotFound,
)
from dragoman.protocol import media
from dragoman.protocol.protojson import Fields

PREFIX = "/v1/admin/"
CHANGE = "Administer"
LOOK = "Inspect"
_CREATING = (f"{PREFIX}tenants", f"{PREFIX}tokens")
_HEADERS = ((b"content-type", media.JSON.encode()), (b"cache-control", b"no-store"))

T = TypeVar("T")
Handler = Callable[[Asked], Awaitable[dict[str, Any]]]
Cancel = Callable[[Scope, str, AuditEntry], Awaitable[None]]


class Stores(TenantStore, RunStore, Protocol):
    """What the surface works on."""


class AdminSurface:
    """Serves what is below `PREFIX`."""

    def __init__(
        self,
        gate: Gate,
        stores: Stores,
        declared: Declared,
        *,
        agents: Callable[[], Sequence[dict[str, Any]]],
        cancel: Cancel,
        apply: Callable[[], Awaitable[None]],
    ) -> None:
        """Prepare the surface.

        Args:
            gate: tells who asks.
            stores: what is administered.
            declared: the names of the configuration.
            agents: gives the agents that are served, as they are to be shown, in the order of their ids.
            cancel: cancels a task and stops its handler.
            apply: has the server go by what is kept now; awaited after each change, before the answer.
        """
        self._gate = gate
        self._stores = stores
        self._declared = declared
        self._agents = agents
        self._cancel = cancel
        self._apply = apply
        self._routes = [(_pattern(path), path, handlers) for path, handlers in self._table().items()]

    async def serve(self, exchange: Exchange) -> Reply | None:
        """Return the reply to a request for a path below `PREFIX`; `None` for any other path.

        Raises:
            DragomanError: it is refused; nothing was changed.
        """
        path = exchange.request.path
        if not path.startswith(PREFIX):
            return None
        exchange.route = PREFIX
        principal = await self._enter(exchange)
        for pattern, template, handlers in self._routes:
            found = pattern.fullmatch(path[len(PREFIX) :])
            if found is not None:
                names = tuple(unquote(name) for name in found.groups())
                exchange.route = PREFIX + template
                return await self._answer(exchange, handlers, Asked(exchange, principal, names))
        raise MethodNotFound(
            "There is no such path here; the reference of the admin surface lists those there are"
        )

    async def _enter(self, exchange: Exchange) -> Principal:
        request = exchange.request
        exchange.operation = LOOK if request.method in ("GET", "HEAD") else CHANGE
        principal = await self._gate.identify(
            request.headers.all(b"authorization"), request.address, right=Right.ADMIN
        )
        exchange.principal = principal
        if Right.ADMIN not in principal.rights:
            # A server that is open to everybody is administered by its commands.
            raise Forbidden(Right.ADMIN)
        return principal

    async def _answer(self, exchange: Exchange, handlers: Mapping[str, Handler], asked: Asked) -> Reply:
        method = "GET" if exchange.request.method == "HEAD" else exchange.request.method
        handler = handlers.get(method)
        if handler is None:
            allowed = [*handlers, "HEAD"] if "GET" in handlers else [*handlers]
            raise MethodNotAllowed(exchange.request.method, allowed)
        document = await handler(asked)
        created = method == "POST" and exchange.route in _CREATING
        return Reply(201 if created else 200, list(_HEADERS), msgspec.json.encode(document))

    def _table(self) -> dict[str, dict[str, Handler]]:
        resources: dict[str, dict[str, Handler]] = {}
        for kind in Kind:
            one = f"tenants/{{tenant}}/{kind}s"
            resources[one] = {"GET": self._for(kind, self._list_resources)}
            resources[f"{one}/{{name}}"] = {
                "PUT": self._for(kind, self._add_resource),
                "DELETE": self._for(kind, self._remove_resource),
            }
            resources[f"{one}/{{name}}/grants/{{principal}}"] = {
                "PUT": self._for(kind, self._grant),
                "DELETE": self._for(kind, self._revoke),
            }
        return {
            "tenants": {"GET": self._list_tenants, "POST": self._create_tenant},
            "tenants/{tenant}": {"GET": self._get_tenant, "DELETE": self._remove_tenant},
            "tenants/{tenant}/features/{feature}": {
                "PUT": self._add_feature,
                "DELETE": self._remove_feature,
            },
            "tenants/{tenant}/limits/{limit}": {"PUT": self._set_limit, "DELETE": self._remove_limit},
            "tenants/{tenant}/principals": {"GET": self._list_principals},
            "tenants/{tenant}/principals/{principal}": {
                "PUT": self._add_principal,
                "DELETE": self._remove_principal,
            },
            **resources,
            "tokens": {"GET": self._list_tokens, "POST": self._create_token},
            "tokens/{id}": {"GET": self._get_token, "DELETE": self._revoke_token},
            "agents": {"GET": self._list_agents},
            "runs": {"GET": self._list_runs},
            "runs/{id}": {"GET": self._get_run},
            "runs/{id}:cancel": {"POST": self._cancel_run},
            "audit": {"GET": self._list_audit},
        }

    # ------------------------------------------------------------------------------------------------------- tenants

    async def _list_tenants(self, asked: Asked) -> dict[str, Any]:
        found = (await self._view(tokens=False)).tenants()
        return _page("tenants", [shapes.tenant(one) for one in found], asked, "name")

    async def _create_tenant(self, asked: Asked) -> dict[str, Any]:
        body = await asked.body("name", "features", "adopt")
        name, features, adopt = body.required("name"), body.strings("features"), body.boolean("adopt")
        await self._change(asked, lambda desk: desk.create_tenant(name, features, adopt=adopt))
        return shapes.tenant((await self._view(tokens=False)).tenant(name))

    async def _get_tenant(self, asked: Asked) -> dict[str, Any]:
        asked.query()
        return shapes.tenant((await self._view(tokens=False)).tenant(asked.names[0]))

    async def _remove_tenant(self, asked: Asked) -> dict[str, Any]:
        (tenant,) = asked.names
        left = await self._change(asked, lambda desk: desk.remove_tenant(tenant))
        return {"changed": True, "tasksLeft": left}

    async def _add_feature(self, asked: Asked) -> dict[str, Any]:
        return await self._changed(asked, lambda desk: desk.add_feature(*asked.names))

    async def _remove_feature(self, asked: Asked) -> dict[str, Any]:
        return await self._changed(asked, lambda desk: desk.remove_feature(*asked.names))

    async def _set_limit(self, asked: Asked) -> dict[str, Any]:
        tenant, name = asked.names
        body = await asked.body("most")
        most = body.integer("most", low=1, high=LARGEST)
        if most is None:
            raise InvalidParams.of("most", "is missing")
        return await self._changed(asked, lambda desk: desk.set_limit(tenant, name, most))

    async def _remove_limit(self, asked: Asked) -> dict[str, Any]:
        return await self._changed(asked, lambda desk: desk.remove_limit(*asked.names))

    async def _list_principals(self, asked: Asked) -> dict[str, Any]:
        found = (await self._view()).principals(asked.names[0])
        return _page("principals", [shapes.principal(one) for one in found], asked, "name")

    async def _add_principal(self, asked: Asked) -> dict[str, Any]:
        adopt = (await asked.body("adopt")).boolean("adopt")
        return await self._changed(asked, lambda desk: desk.add_principal(*asked.names, adopt=adopt))

    async def _remove_principal(self, asked: Asked) -> dict[str, Any]:
        left = await self._change(asked, lambda desk: desk.remove_principal(*asked.names))
        return {"changed": True, "tasksLeft": left}

    async def _list_resources(self, kind: Kind, asked: Asked) -> dict[str, Any]:
        found = (await self._view(tokens=False)).resources(asked.names[0], kind)
        return _page(f"{kind}s", [shapes.resource(one) for one in found], asked, "name")

    async def _add_resource(self, kind: Kind, asked: Asked) -> dict[str, Any]:
        tenant, name = asked.names
        return await self._changed(asked, lambda desk: desk.add_resource(tenant, kind, name))

    async def _remove_resource(self, kind: Kind, asked: Asked) -> dict[str, Any]:
        tenant, name = asked.names
        await self._change(asked, lambda desk: desk.remove_resource(tenant, kind, name))
        return {"changed": True}

    async def _grant(self, kind: Kind, asked: Asked) -> dict[str, Any]:
        tenant, name, principal = asked.names
        return await self._changed(asked, lambda desk: desk.grant(tenant, kind, name, principal))

    async def _revoke(self, kind: Kind, asked: Asked) -> dict[str, Any]:
        tenant, name, principal = asked.names
        return await self._changed(asked, lambda desk: desk.revoke(tenant, kind, name, principal))

    # -------------------------------------------------------------------------------------------------------- tokens

    async def _list_tokens(self, asked: Asked) -> dict[str, Any]:
        query = asked.query("tenant", "principal", "after", "limit")
        tenant, principal, size = query.string("tenant"), query.string("principal"), limit(query)

        def look(book: Book) -> tuple[Sequence[Token], int]:
            return book.tokens(tenant, principal, after=query.string("after"), limit=size), book.now

        found, now = await self._stores.consult(look)
        after = found[-1].id if len(found) == size else ""
        return {"tokens": [shapes.token(one, now) for one in found], "after": after}

    async def _create_token(self, asked: Asked) -> dict[str, Any]:
        body = await asked.body("tenant", "principal", "scopes", "expiresIn", "note")
        tenant, principal = body.required("tenant"), body.required("principal")
        scopes, note = body.strings("scopes"), body.string("note")
        seconds = body.integer("expiresIn", low=1, high=LONGEST_LIFE // 1000)
        lifetime = None if seconds is None else seconds * 1000
        token, text = await self._change(
            asked, lambda desk: desk.create_token(tenant, principal, scopes, lifetime=lifetime, note=note)
        )
        return {**shapes.token(token, token.created_at), "token": text}

    async def _get_token(self, asked: Asked) -> dict[str, Any]:
        asked.query()
        (token_id,) = asked.names
        found, now = await self._stores.consult(lambda book: (book.find_token(token_id), book.now))
        if found is None:
            raise EntryNotFound("token with the id", token_id)
        return shapes.token(found, now)

    async def _revoke_token(self, asked: Asked) -> dict[str, Any]:
        return await self._changed(asked, lambda desk: desk.revoke_token(*asked.names))

    # --------------------------------------------------------------------------------------- agents, runs, the audit

    async def _list_agents(self, asked: Asked) -> dict[str, Any]:
        return _page("agents", list(self._agents()), asked, "id")

    async def _list_runs(self, asked: Asked) -> dict[str, Any]:
        query = asked.query("tenant", "principal", "agent", "state", "after", "limit")
        filters = RunFilters(
            tenant=query.string("tenant"),
            principal=query.string("principal"),
            agent=query.string("agent"),
            state=_state(query),
        )
        found, place = await self._stores.runs(filters, before=query.string("after"), limit=limit(query))
        return {"runs": [shapes.run(one) for one in found], "after": place}

    async def _get_run(self, asked: Asked) -> dict[str, Any]:
        asked.query()
        return shapes.run(await self._run(asked.names[0]))

    async def _cancel_run(self, asked: Asked) -> dict[str, Any]:
        asked.query()
        (task_id,) = asked.names
        await asked.body()
        scope = (await self._run(task_id)).scope
        asked.exchange.task_id = task_id
        await self._cancel(scope, task_id, asked.actor.entry("CancelTask"))
        return shapes.run(await self._run(task_id))

    async def _run(self, task_id: str) -> RunView:
        found = await self._stores.run(task_id)
        if found is None:
            raise TaskNotFound(task_id)
        return found

    async def _list_audit(self, asked: Asked) -> dict[str, Any]:
        query = asked.query("since", "after", "limit")
        since, size = query.timestamp("since") or 0, limit(query)
        after = number(query, "after")
        rows = await self._stores.consult(lambda book: book.audited(since=since, after=after, limit=size))
        return {
            "audit": [shapes.audit(row) for row in rows],
            "after": str(rows[-1].id) if len(rows) == size else "",
        }

    # ----------------------------------------------------------------------------------------------------- the stores

    async def _view(self, *, tokens: bool = True) -> Overview:
        return Overview(await self._stores.consult(lambda book: book.read(tokens=tokens)), self._declared)

    async def _change(self, asked: Asked, work: Callable[[Administration], T]) -> T:
        asked.query()
        result = await self._stores.administer(
            lambda book: work(Administration(book, self._declared, asked.actor))
        )
        await self._apply()
        return result

    async def _changed(self, asked: Asked, work: Callable[[Administration], bool]) -> dict[str, Any]:
        return {"changed": await self._change(asked, work)}

    def _for(self, kind: Kind, handler: Callable[[Kind, Asked], Awaitable[dict[str, Any]]]) -> Handler:
        async def handle(asked: Asked) -> dict[str, Any]:
            return await handler(kind, asked)

        return handle


def _pattern(path: str) -> "re.Pattern[str]":
    return re.compile(re.sub(r"\\\{\w+\\\}", "([^/:]+)", re.escape(path)))


def _page(member: str, objects: list[dict[str, Any]], asked: Asked, key: str) -> dict[str, Any]:
    """Return a page of a list that is in the order of `key`."""
    query = asked.query("after", "limit")
    size, after = limit(query), query.string("after")
    left = [one for one in objects if one[key] > after]
    return {member: left[:size], "after": left[size - 1][key] if len(left) > size else ""}


def _state(query: Fields) -> TaskState | None:
    name = query.string("state")
    if not name:
        return None
    state = TaskState.__members__.get(name.upper())
    if state is None:
        known = ", ".join(one.lower() for one in TaskState.__members__)
        raise InvalidParams.of("state", f"{name[:128]!r} is no state; there are {known}")
    return state
