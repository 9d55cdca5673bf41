"""Delegating over HTTP: `/v1/a2a/tasks`, and what became of it at `/v1/a2a/delegations/{id}`.

Every recorded outcome is a result, with status 200: also one that failed, and one that nobody knows.
"""

from typing import Any
from urllib.parse import unquote

import msgspec

from dragoman.bindings.exchange import Exchange, Reply
from dragoman.bindings.membership import Membership, json_reply, read_object
from dragoman.gateway.delegate import GENERATION, Delegations, Errand
from dragoman.gateway.remotes import Delegation
from dragoman.model import Message, Role, TextPart
from dragoman.model.errors import InvalidParams
from dragoman.model.operation import Operation, SendMessage
from dragoman.model.payload import is_present
from dragoman.protocol.media import PROBLEM_JSON
from dragoman.protocol.protojson import Fields, kind_of, timestamp_text
from dragoman.protocol.requests import LONGEST_ID
from dragoman.protocol.spec import ProtocolSpec

TASKS = "/v1/a2a/tasks"
DELEGATIONS = "/v1/a2a/delegations/"
_RECONCILE = ":reconcile"
_LOCAL = "q."
"""How the ids of this server's own agents began in an earlier contract."""


class DelegationSurface:
    """Serves `/v1/a2a/tasks` and `/v1/a2a/delegations/{id}`."""

    def __init__(self, delegations: Delegations, membership: Membership, newest: ProtocolSpec) -> None:
        """Prepare the surface; `newest` reads messages."""
        self._delegations = delegations
        self._membership = membership
        self._decode = newest.jsonrpc.methods[Operation.SEND_MESSAGE.value].decode

    async def serve(self, exchange: Exchange) -> Reply | None:
        """Return the reply to a request for one of these paths; `None` for any other path.

        Raises:
            DragomanError: it is refused; nothing was sent.
        """
        path = exchange.request.path
        if path == TASKS:
            return await self._delegate(exchange)
        delegation_id = path[len(DELEGATIONS) :] if path.startswith(DELEGATIONS) else ""
        if not delegation_id or "/" in delegation_id:
            return None
        if delegation_id.endswith(_RECONCILE):
            return await self._reconcile(exchange, unquote(delegation_id[: -len(_RECONCILE)]))
        return await self._get(exchange, unquote(delegation_id))

    async def _delegate(self, exchange: Exchange) -> Reply:
        principal = await self._membership.enter(exchange, TASKS, "Delegate", ("POST",))
        body = await read_object(exchange, ("agentId", "taskId", "message", "returnImmediately"))
        agent_id = body.required("agentId", longest=LONGEST_ID)
        task_id = body.required("taskId", longest=LONGEST_ID)
        if agent_id.startswith(_LOCAL):
            return _gone(exchange)
        errand = Errand(
            tenant=principal.tenant,
            principal=principal.name,
            remote_id=agent_id,
            task_id=task_id,
            message=self._message(body, task_id),
            at_once=body.boolean("returnImmediately"),
            audit=self._membership.audit(exchange),
        )
        delegation, replayed = await self._delegations.delegate(errand)
        reply = json_reply(shown(delegation))
        if replayed:
            reply.headers.append((b"idempotent-replayed", b"true"))
        return reply

    async def _get(self, exchange: Exchange, delegation_id: str) -> Reply:
        route = f"{DELEGATIONS}{{id}}"
        principal = await self._membership.enter(exchange, route, "GetDelegation", ("GET", "HEAD"))
        found = await self._delegations.find(principal.tenant, principal.name, delegation_id)
        return json_reply(shown(found) | _facts(found))

    async def _reconcile(self, exchange: Exchange, delegation_id: str) -> Reply:
        route = f"{DELEGATIONS}{{id}}{_RECONCILE}"
        principal = await self._membership.enter(exchange, route, "ReconcileDelegation", ("POST",))
        found = await self._delegations.reconcile(
            principal.tenant, principal.name, delegation_id, self._membership.audit(exchange)
        )
        return json_reply(shown(found) | _facts(found))

    def _message(self, body: Fields, task_id: str) -> Message:
        """Return what is to be said: a text, or a message that lacks nothing but the id, which is the task id."""
        said = body.get("message")
        if isinstance(said, str):
            if not said:
                raise body.wrong("message", "must not be empty")
            return Message(message_id=task_id, role=Role.USER, parts=(TextPart(text=said),))
        if not isinstance(said, dict):
            raise body.wrong("message", f"must be a string or a message, not {kind_of(said)}")
        for name in ("messageId", "message_id"):
            if name in said:
                raise InvalidParams.of(f"message.{name}", "must be left out: it is the taskId")
        request = self._decode({"message": {"role": "ROLE_USER", **said, "messageId": task_id}}, "")
        if not isinstance(request, SendMessage) or request.generation != GENERATION:
            raise TypeError("messages are read in A2A 1.0")
        return request.message


def shown(delegation: Delegation) -> dict[str, Any]:
    """Return what became of a delegation as it is shown."""
    outcome = delegation.outcome
    document: dict[str, Any] = {"status": outcome.status}
    if is_present(outcome.result):
        document["result"] = outcome.result
    if outcome.error:
        document["error"] = {"message": outcome.error}
        if outcome.code is not None:
            document["error"]["code"] = outcome.code
    if outcome.remote_task_id:
        document["remoteTaskId"] = outcome.remote_task_id
    document["delegationId"] = delegation.id
    return document


def _facts(delegation: Delegation) -> dict[str, Any]:
    return {
        "agentId": delegation.remote_id,
        "taskId": delegation.task_id,
        "createdAt": timestamp_text(delegation.created_at),
        "changedAt": timestamp_text(delegation.changed_at),
    }


def _gone(exchange: Exchange) -> Reply:
    """Return the answer to whoever delegates to what was a task or an agent of this server's own."""
    exchange.outcome = "GONE"
    document = {
        "type": "Gone",
        "title": "Gone",
        "status": 410,
        "detail": "Agents of this server are not delegated to; send to the JSON-RPC endpoint of the agent, "
        "POST /v1/a2a/agents/{id}/rpc. What was known to one process only cannot be restored.",
        "instance": exchange.request.path,
        "trace_id": exchange.request.id,
    }
    return Reply(410, [(b"content-type", PROBLEM_JSON.encode())], msgspec.json.encode(document))
