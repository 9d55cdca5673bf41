"""The one way a request goes, and the one place where its errors are caught.

    negotiate → identify → decode → gateway → encode

Whatever is raised on the way is turned into an answer here, in the form that was negotiated; what is no error of
the tree is logged with its cause and answered without it.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Protocol

from msgspec import structs

from dragoman.bindings import sse
from dragoman.bindings.approvals import ApprovalSurface
from dragoman.bindings.auditing import entry_of, refusal_of
from dragoman.bindings.bounds import page_within, task_within
from dragoman.bindings.directory import CardForm, Directory, HostedGate, ServedAgent
from dragoman.bindings.exchange import Exchange, Form, HeaderList, RawRequest, Reply, StreamReply
from dragoman.bindings.fixed import CARD_PATH, JWKS_PATH, FixedEndpoints, kept
from dragoman.bindings.forms import HttpForm
from dragoman.bindings.hosted import PREFIX as HOSTED
from dragoman.bindings.hosted import HostedSurface
from dragoman.bindings.hosts import KnownHosts
from dragoman.bindings.http import Decoded, HttpBinding
from dragoman.bindings.jsonrpc import JsonRpcBinding
from dragoman.bindings.retired import retired
from dragoman.gateway import Answer, Call, Committed, EventStream, Gateway
from dragoman.gateway.access import Access
from dragoman.gateway.audit import Audit
from dragoman.gateway.cards import ExtendedCard
from dragoman.gateway.extensions import activated
from dragoman.model import Principal, PushConfig, PushConfigs, Scope, Task, TaskPage
from dragoman.model.errors import (
    DragomanError,
    Forbidden,
    InternalError,
    MethodNotFound,
    NotAcceptable,
    RateLimited,
    Unauthenticated,
)
from dragoman.model.operation import SubscribeToTask
from dragoman.protocol import media
from dragoman.protocol.spec import HttpDialect, ProtocolSpec
from dragoman.telemetry.logs import LogSink, RequestLine
from dragoman.telemetry.metrics import Metrics

_LOG = logging.getLogger("dragoman.pipeline")
_AGENTS = "/agents/"
_MEMBERS = "/v1/a2a/"
"""Where the surfaces stand that belong to a tenant beside agents."""


class Surface(Protocol):
    """Serves some paths by itself (see `admin.AdminSurface`)."""

    async def serve(self, exchange: Exchange) -> Reply | None:
        """Return the reply to a request for one of its paths; `None` for any other path.

        Raises:
            DragomanError: it is refused.
        """
        ...


class Pipeline:
    """Takes a request from its bytes to its answer."""

    def __init__(
        self,
        gateway: Gateway,
        directory: Directory,
        gate: HostedGate,
        fixed: FixedEndpoints,
        metrics: Metrics,
        log: LogSink,
        hosted: HostedSurface | None = None,
        approvals: ApprovalSurface | None = None,
        admin: Surface | None = None,
        audit: Audit | None = None,
        hosts: KnownHosts | None = None,
        members: Sequence[Surface] = (),
    ) -> None:
        self._gateway = gateway
        self._hosted = hosted
        self._approvals = approvals
        self._admin = admin
        self._audit = audit
        self._hosts = hosts
        self._members = members
        self._directory = directory
        self._gate = gate
        self._fixed = fixed
        self._http = HttpBinding(directory)
        self._jsonrpc = JsonRpcBinding(directory)
        self._metrics = metrics
        self._log = log

    async def handle(self, request: RawRequest) -> Reply | StreamReply:
        """Return the answer to a request. Never raises for what a caller or an agent did."""
        began = time.perf_counter()
        exchange = self.open(request)
        reply: Reply | StreamReply
        try:
            reply = await self._serve(exchange)
        except asyncio.CancelledError:
            exchange.outcome = "CALLER_GONE"
            self.close(exchange, Reply(499, []), began)
            raise
        except DragomanError as error:
            reply = self._failure(exchange, error)
        except Exception as error:  # the catch site: nothing internal may reach the wire
            _LOG.exception("a request failed", exc_info=error, extra={"request_id": request.id})
            reply = self._failure(exchange, InternalError())
        self.close(exchange, reply, began)
        return reply

    def open(self, request: RawRequest) -> Exchange:
        """Return what is known of a request at first; its errors have the newest version's form."""
        return Exchange(request, self._http.refusal_form(request))

    def close(self, exchange: Exchange, reply: Reply | StreamReply, began: float) -> None:
        """Give a reply its request id, and note it in the metrics and the log.

        Args:
            exchange: what became known of the request.
            reply: the reply, ready to be sent.
            began: when the request came, by `time.perf_counter`.
        """
        seconds = time.perf_counter() - began
        reply.headers.append((b"x-request-id", exchange.request.id.encode()))
        self._metrics.count(exchange.version, exchange.operation, exchange.outcome, seconds)
        method = exchange.request.method
        self._log.write(
            RequestLine(
                time=round(time.time(), 3),
                level="info" if reply.status < 500 else "error",
                logger="dragoman.request",
                request_id=exchange.request.id,
                method=method if len(method) < 12 else "OTHER",
                route=exchange.route,
                status=reply.status,
                ms=round(seconds * 1000, 2),
                version=exchange.version,
                outcome=exchange.outcome,
                operation=exchange.operation,
                agent=exchange.agent,
                tenant=exchange.tenant,
                task_id=exchange.task_id,
                flaw=exchange.flaw,
                address=exchange.address,
            )
        )

    async def _serve(self, exchange: Exchange) -> Reply | StreamReply:
        path = exchange.request.path
        member = await self._of_members(exchange) if path.startswith(_MEMBERS) else None
        if member is not None:
            return member
        if not path.startswith(_AGENTS):
            self._check_host(exchange)
            gone = retired(exchange) if self._hosted is not None else None
            other = gone or (await self._approvals.serve(exchange) if self._approvals is not None else None)
            if other is None and self._admin is not None:
                other = await self._admin.serve(exchange)
            if other is not None:
                return other
            fixed = await self._fixed.serve(exchange)
            if fixed is None:
                raise MethodNotFound("There is no such path here; agents are below /agents/{id}")
            return fixed
        agent_id, slash, rest = path[len(_AGENTS) :].partition("/")
        rest = slash + rest
        exchange.route = "/agents/{agent}"
        if rest == CARD_PATH:
            self._check_host(exchange)
            return self._fixed.card(exchange, agent_id)
        if rest == JWKS_PATH and self._fixed.jwks is not None and agent_id in self._directory.agents:
            self._check_host(exchange)
            return self._fixed.keys(exchange, self._fixed.jwks)
        if rest in ("/rpc", "/rpc/"):
            exchange.route = "/agents/{agent}/rpc"
            form, refusal = self._jsonrpc.negotiate(exchange, agent_id)
            principal = await self._identify(exchange, agent_id)
            decoded = await self._jsonrpc.decode(exchange, agent_id, form, refusal, principal)
        else:
            version, dialect = self._http.negotiate(exchange, agent_id, rest)
            if self._is_card(agent_id, rest[len(dialect.mount) :], dialect):
                self._check_host(exchange)
                return self._fixed.card_of(exchange, agent_id, version)
            principal = await self._identify(exchange, agent_id)
            decoded = await self._http.decode(exchange, agent_id, rest, version, dialect, principal)
        return await self._perform(exchange, decoded, principal)

    async def _of_members(self, exchange: Exchange) -> Reply | StreamReply | None:
        self._check_host(exchange)
        path = exchange.request.path
        hosted = self._hosted if path.startswith(HOSTED) else None
        # What is directly below HOSTED is the registry's of remote agents; what is below that belongs to ours.
        if hosted is None or "/" not in path[len(HOSTED) :]:
            for surface in self._members:
                reply = await surface.serve(exchange)
                if reply is not None:
                    return reply
        if hosted is None:
            return None
        asked = await hosted.serve(exchange)
        return asked if isinstance(asked, Reply) else await self._perform(exchange, *asked)

    def _is_card(self, agent_id: str, path: str, dialect: HttpDialect) -> bool:
        """Tell whether the card that everybody may have stands at a path.

        Where a version has its extended card at the same path, that one does for agents that declare one.
        """
        agent = self._directory.agents.get(agent_id)
        extended = agent is not None and agent.settings.extended_card and path in dialect.routes
        return path in dialect.card_paths and not extended

    async def _identify(self, exchange: Exchange, agent_id: str) -> Principal:
        """Return who calls an agent, which may not be there: then a caller without a credential is not told so."""
        self._check_host(exchange)
        request = exchange.request
        agent = self._directory.agents.get(agent_id)
        principal = await self._gate.identify(
            request.headers.all(b"authorization"),
            request.address,
            tenant=agent.tenant if agent is not None else "",
            public=agent is not None and agent.public,
        )
        exchange.principal = principal
        exchange.excess = self._gate.draw(principal)
        return principal

    def _check_host(self, exchange: Exchange) -> None:
        """Refuse what came under a name that is not ours, where nothing else tells who asks. See `hosts`."""
        if self._hosts is not None and self._gate.is_open:
            self._hosts.check(exchange.request.headers)

    async def _perform(
        self, exchange: Exchange, decoded: Decoded, principal: Principal
    ) -> Reply | StreamReply:
        agent = decoded.agent
        declared = agent.settings.capabilities.extensions
        call = Call(
            principal=principal,
            scope=Scope(principal.tenant, principal.name, agent.id),
            settings=agent.settings,
            policy=agent.policy,
            access=Access(self._gate, principal, agent.workspace) if agent.workspace else None,
            still=partial(self._confirm, agent, principal),
            audit=entry_of(exchange) if decoded.operation.writes and not self._gate.is_open else None,
            allowance=self._gate.allowance(principal),
            extensions=activated(_requested_extensions(exchange.request, decoded.spec), declared)
            if declared
            else (),
        )
        asked = decoded.request
        if isinstance(asked, SubscribeToTask):
            asked = structs.replace(
                asked, last_event=sse.last_event(exchange.request.headers.get(b"last-event-id"))
            )
        if decoded.operation.writes:
            self._check_acceptable(exchange, decoded)
        result = await self._gateway.perform(call, decoded.operation, asked)
        try:
            if not decoded.operation.writes:
                # Only now: what cannot be read is told as such, whatever the caller accepts.
                self._check_acceptable(exchange, decoded)
        except NotAcceptable:
            if isinstance(result, EventStream):
                result.release()
            raise
        if isinstance(result, ExtendedCard):
            return _extended(exchange, agent.extended[decoded.spec.version])
        reply = self._reply(exchange, result, agent.policy.result_bytes)
        if call.extensions:
            named = decoded.spec.extension_headers[0]
            reply.headers.append((named, ", ".join(call.extensions).encode()))
        return reply

    def _confirm(self, agent: ServedAgent, principal: Principal) -> None:
        self._gate.confirm(principal)
        if self._hosted is not None and agent.workspace:
            self._hosted.confirm(agent, principal)

    def _check_acceptable(self, exchange: Exchange, decoded: Decoded) -> None:
        known = exchange.form.media_types
        if decoded.operation.streams:
            known = (*known, media.EVENT_STREAM)
        if not media.accepts(exchange.request.headers.joined(b"accept"), known):
            raise NotAcceptable(f"This reply comes as {' or '.join(known)}; name one of these in Accept")

    def _reply(self, exchange: Exchange, result: Any, most: int | None) -> Reply | StreamReply:
        form = exchange.form
        codec = form.codec
        match result:
            case Answer(result=Task() as task):
                exchange.task_id = task.id
                return _replayed(form.success(task_within(most, task, codec.answer)), result.replayed)
            case Answer():
                return _replayed(form.success(codec.answer(result.result)), result.replayed)
            case Task():
                exchange.task_id = result.id
                return form.success(task_within(most, result, codec.task))
            case TaskPage():
                return form.success(page_within(most, result, codec.page))
            case PushConfig():
                exchange.task_id = result.task_id
                return form.success(codec.push_config(result))
            case PushConfigs():
                return form.success(codec.push_configs(result))
            case None:
                return form.success(codec.nothing)
            case EventStream():
                exchange.task_id = result.task_id
                frames = self._frames(exchange.request, form, result)
                stream = StreamReply([*sse.HEADERS, *form.headers()], frames, result.release)
                return _replayed(stream, result.replayed)
            case _:
                raise TypeError(f"no binding knows the result {type(result).__name__}")

    async def _frames(self, request: RawRequest, form: Form, stream: EventStream) -> AsyncGenerator[bytes]:
        codec = form.codec
        try:
            async with aclosing(stream.items) as items:
                async for item in items:
                    if item is None:
                        yield sse.KEEP_ALIVE
                        continue
                    value = item.value
                    if isinstance(value, Committed):
                        kept = (codec.name, item.last)
                        text = value.forms.get(kept)
                        if text is None:
                            text = value.forms[kept] = sse.one_line(codec.item(value.event, item.last))
                    else:
                        text = sse.one_line(codec.item(value, item.last))
                    yield sse.frame(form.stream_data(text), event_id=item.seq)
        except DragomanError as error:
            yield self._last_frame(form, error)
        except Exception as error:  # as in `handle`, for a reply that has begun
            _LOG.exception("a stream failed", exc_info=error, extra={"request_id": request.id})
            yield self._last_frame(form, InternalError())

    def _last_frame(self, form: Form, error: DragomanError) -> bytes:
        event, data = form.stream_failure(error)
        return sse.frame(sse.one_line(data), event=event)

    def _failure(self, exchange: Exchange, error: DragomanError) -> Reply:
        exchange.outcome = error.reason
        if self._audit is not None and not self._gate.is_open:
            entry = refusal_of(exchange, error, self._directory.agents)
            if entry is not None:
                self._audit.note(entry)
        if isinstance(error, Unauthenticated | Forbidden | RateLimited):
            exchange.address = exchange.request.address
        if isinstance(error, Unauthenticated):
            exchange.flaw = error.flaw
        return exchange.form.failure(error)


def _requested_extensions(request: RawRequest, spec: ProtocolSpec) -> list[str]:
    values = [value for name in spec.extension_headers for value in request.headers.all(name)]
    return [uri.strip() for value in values for uri in value.decode("latin-1").split(",") if uri.strip()]


def _extended(exchange: Exchange, card: CardForm) -> Reply:
    form = exchange.form
    if isinstance(form, HttpForm):
        return kept(exchange, card, form.content_type, by="private")
    return form.success(card.body)


def _replayed(reply: Reply | StreamReply, replayed: bool) -> Reply | StreamReply:
    if replayed:
        headers: HeaderList = reply.headers
        headers.append((b"idempotent-replayed", b"true"))
    return reply
