"""The JSON-RPC binding: one endpoint an agent, the method in the body, in whichever version is negotiated."""

import asyncio

from dragoman.bindings.directory import Directory, ServedAgent
from dragoman.bindings.exchange import Exchange
from dragoman.bindings.forms import JsonRpcForm
from dragoman.bindings.http import LIGHT, Decoded, check_rate, check_right
from dragoman.gateway.capability import check_capability
from dragoman.model import Principal
from dragoman.model.errors import (
    DragomanError,
    FieldViolation,
    InvalidParams,
    MethodNotAllowed,
    MethodNotFound,
    VersionNotSupported,
)
from dragoman.model.operation import Operation
from dragoman.protocol import media
from dragoman.protocol.jsonrpc import Envelope, notification, read_envelope, request_id
from dragoman.protocol.negotiation import jsonrpc_version, requested_version, unsupported
from dragoman.protocol.protojson import parse
from dragoman.telemetry.metrics import REJECTED


class JsonRpcBinding:
    """Reads JSON-RPC requests."""

    def __init__(self, directory: Directory, *, body_limit: int | None = None) -> None:
        """Serve the agents of `directory`; `body_limit` is a bound below that of every body, in bytes."""
        self._directory = directory
        self._body_limit = body_limit

    def negotiate(self, exchange: Exchange, agent_id: str) -> tuple[JsonRpcForm, VersionNotSupported | None]:
        """Return the form of every reply from here on, and the refusal of the version, if it is refused.

        A refusal is answered once the envelope is read, under the request's id.
        """
        request = exchange.request
        agent = self._directory.agents.get(agent_id)
        served = self._directory.versions if agent is None else agent.versions
        try:
            requested = requested_version(
                request.headers.all(b"a2a-version"), request.query.get("A2A-Version", ()), served
            )
            version = jsonrpc_version(requested, served)
        except VersionNotSupported as error:
            exchange.version = REJECTED
            exchange.form = form = JsonRpcForm(self._directory.newest.jsonrpc, "")
            return form, error
        exchange.version = version
        exchange.form = form = JsonRpcForm(served[version].jsonrpc, version, named=requested is not None)
        return form, None

    async def decode(
        self,
        exchange: Exchange,
        agent_id: str,
        form: JsonRpcForm,
        refusal: VersionNotSupported | None,
        principal: Principal,
    ) -> Decoded:
        """Return what a principal asks; the form learns the request's id on the way.

        Raises:
            DragomanError: it cannot be read or is not allowed; nothing was done.
        """
        request = exchange.request
        agent = self.find(agent_id, principal)
        if request.method != "POST":
            raise MethodNotAllowed(request.method, ["POST"])
        if media.check_content_type(request.headers.get(b"content-type"), (media.JSON,)) is None:
            raise media.unsupported((media.JSON,))
        body = await request.read_body(self._body_limit)
        is_light = len(body) <= LIGHT
        parsed = parse(body) if is_light else await asyncio.to_thread(parse, body)
        form.id = request_id(parsed.value)
        envelope = read_envelope(parsed.value)
        if not envelope.has_id and not (refusal is None and form.dialect.notifications_last):
            raise notification()
        form.answers = True
        if parsed.violations:
            # Fields are named as on the other binding: from the request message on.
            raise InvalidParams(
                [
                    FieldViolation(one.field.removeprefix("params."), one.description)
                    for one in parsed.violations
                ]
            )
        if refusal is not None:
            raise refusal
        spec = self._directory.versions[form.version]
        method = spec.jsonrpc.methods.get(envelope.method)
        if method is None:
            raise self._unknown(exchange, form, envelope, agent_id)
        exchange.operation = method.operation.value
        check_right(principal, method.operation)
        check_rate(exchange, method.operation)
        agent = agent or self.admit(agent_id, principal, method.operation)
        exchange.agent = agent.id
        form.streams = (
            method.operation.streams
            and spec.jsonrpc.streams_refusals
            and media.names(request.headers.joined(b"accept"), media.EVENT_STREAM)
        )
        check_capability(agent.settings, method.operation)
        tenant = self.tenant(agent_id)
        asked = (
            method.decode(envelope.params, tenant)
            if is_light
            else await asyncio.to_thread(method.decode, envelope.params, tenant)
        )
        if not envelope.has_id:
            raise notification()
        return Decoded(agent, spec, method.operation, asked)

    def _unknown(
        self, exchange: Exchange, form: JsonRpcForm, envelope: Envelope, agent_id: str
    ) -> DragomanError:
        """Return the refusal of a method that the version of the request does not have."""
        others = [
            spec.version
            for spec in self._directory.versions.values()
            if envelope.method in spec.jsonrpc.methods
        ]
        if not others:
            return MethodNotFound(f"There is no such method in A2A {form.version}")
        if form.named:
            return MethodNotFound(
                f"{envelope.method} is a method of A2A {others[0]}, but the request speaks {form.version}; "
                "its A2A-Version header must match"
            )
        # No version was named, which stands for an older one: that must never be taken for consent to it.
        exchange.version = REJECTED
        exchange.form = refused = JsonRpcForm(self._directory.newest.jsonrpc, "", form.id)
        refused.answers = True
        agent = self._directory.agents.get(agent_id)
        return unsupported(None, self._directory.versions if agent is None else agent.versions)

    def find(self, agent_id: str, principal: Principal) -> ServedAgent | None:
        """Return the agent that is called, if it may be looked for before it is known what is asked of it.

        Raises:
            AgentNotFound: it is not there for this principal.
        """
        return self._directory.find(agent_id, principal)

    def tenant(self, agent_id: str) -> str:
        """Return what a request may have as its tenant, if anything."""
        return agent_id

    def admit(self, agent_id: str, principal: Principal, operation: Operation) -> ServedAgent:
        """Return the agent that is called, once it is known what is asked.

        Raises:
            AgentNotFound: it is not there for this principal.
        """
        return self._directory.find(agent_id, principal)
