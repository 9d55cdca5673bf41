"""The approval API and the resumption of runs: what moves a run that no A2A message may move."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from dragoman.bindings.bounds import task_within
from dragoman.bindings.directory import HostedGate, ServedAgent
from dragoman.bindings.entering import enter, noted
from dragoman.bindings.exchange import Exchange, Reply
from dragoman.gateway import Call
from dragoman.gateway.access import Access
from dragoman.gateway.approvals import LONGEST_NOTE, PAGE, Approvals, Resumer
from dragoman.model import Approval, Principal, Right, Scope, Task
from dragoman.model.errors import (
    ApprovalNotFound,
    InvalidParams,
    TaskNotFound,
)
from dragoman.model.payload import is_present
from dragoman.protocol import media
from dragoman.protocol.protojson import Fields, kind_of, parse, timestamp_text
from dragoman.protocol.spec import Codec

APPROVALS = "/v1/a2a/approvals"
RUNS = "/v1/a2a/runs/"
_RESUME = ":resume"
BODY_LIMIT = 64 * 1024
LONGEST_TEXT = 32_000
LONGEST_ID = 256
PAGE_BYTES = 512 * 1024
"""Bytes of approvals after which a page takes no further one."""


class ApprovalSurface:
    """Serves `/v1/a2a/approvals` for every agent, and `/v1/a2a/runs/{id}:resume` for hosted ones."""

    def __init__(
        self,
        approvals: Approvals,
        resumer: Resumer,
        gate: HostedGate,
        agents: Mapping[str, ServedAgent],
        codec: Codec,
    ) -> None:
        """Prepare the surface: `agents` are all that are served, by the ids of their runs; `codec` writes tasks."""
        self._approvals = approvals
        self._resumer = resumer
        self._gate = gate
        self._agents = agents
        self._hosted = [agent for agent in agents.values() if agent.workspace]
        self._codec = codec

    async def serve(self, exchange: Exchange) -> Reply | None:
        """Return the reply to a request for one of these paths; `None` for any other path.

        Raises:
            DragomanError: it is refused; nothing was done.
        """
        path = exchange.request.path
        if path == APPROVALS:
            return await self._list(exchange)
        approval_id = path[len(APPROVALS) + 1 :] if path.startswith(APPROVALS + "/") else ""
        if approval_id and "/" not in approval_id:
            return await self._decide(exchange, unquote(approval_id))
        if self._hosted and path.startswith(RUNS) and path.endswith(_RESUME):
            return await self._resume(exchange, unquote(path[len(RUNS) : -len(_RESUME)]))
        return None

    async def _list(self, exchange: Exchange) -> Reply:
        principal = await self._enter(exchange, APPROVALS, "ListApprovals", ("GET", "HEAD"), Right.APPROVE)
        after = exchange.request.query.get("after", [""])[-1]
        found = await self._approvals.open(principal, after)
        shown: list[bytes] = []
        token = found[-1].id if len(found) == PAGE else ""
        for index, approval in enumerate(found):
            if self._may_see(principal, approval):
                shown.append(msgspec.json.encode(_shown(approval)))
                if sum(map(len, shown)) > PAGE_BYTES and index + 1 < len(found):
                    token = approval.id
                    break
        return _reply({"approvals": [msgspec.Raw(text) for text in shown], "after": token})

    async def _decide(self, exchange: Exchange, approval_id: str) -> Reply:
        route = f"{APPROVALS}/{{id}}"
        principal = await self._enter(exchange, route, "DecideApproval", ("POST",), Right.APPROVE)
        fields = await _body(exchange)
        decision = fields.required("decision")
        if decision not in ("approve", "deny"):
            raise fields.wrong("decision", "must be approve or deny")
        note = fields.string("note", longest=LONGEST_NOTE)
        shown = fields.string("digest") or None
        if not self._may_see(principal, await self._approvals.find(principal, approval_id)):
            raise ApprovalNotFound(approval_id)
        approval = await self._approvals.decide(
            principal,
            approval_id,
            approved=decision == "approve",
            note=note,
            shown=shown,
            audit=noted(self._gate, exchange),
        )
        exchange.task_id = approval.task_id
        return _reply(_shown(approval))

    async def _resume(self, exchange: Exchange, task_id: str) -> Reply:
        route = f"{RUNS}{{id}}{_RESUME}"
        principal = await self._enter(exchange, route, "ResumeRun", ("POST",), Right.DELEGATE)
        fields = await _body(exchange)
        text = fields.required("text", longest=LONGEST_TEXT)
        message_id = fields.string("messageId", longest=LONGEST_ID)
        agent, task = await self._resumed(exchange, principal, task_id, text, message_id)
        exchange.agent, exchange.task_id = agent.id, task.id
        body = task_within(agent.policy.result_bytes, task, self._codec.task)
        return Reply(200, list(_HEADERS), body)

    async def _resumed(
        self, exchange: Exchange, principal: Principal, task_id: str, text: str, message_id: str
    ) -> tuple[ServedAgent, Task]:
        for agent in self._hosted:
            if not self._gate.is_let_in(principal, agent.tenant):
                continue
            call = Call(
                principal=principal,
                scope=Scope(principal.tenant, principal.name, agent.id),
                settings=agent.settings,
                policy=agent.policy,
                access=Access(self._gate, principal, agent.workspace),
                audit=noted(self._gate, exchange),
            )
            try:
                return agent, await self._resumer.resume(call, task_id, text, message_id)
            except TaskNotFound:
                continue
        raise TaskNotFound(task_id)

    async def _enter(
        self, exchange: Exchange, route: str, operation: str, methods: tuple[str, ...], right: Right
    ) -> Principal:
        return await enter(self._gate, exchange, route, operation, methods, right)

    def _may_see(self, principal: Principal, approval: Approval) -> bool:
        """Tell whether a principal may see, and decide, an approval of its tenant."""
        agent = self._agents.get(approval.agent)
        if agent is None:
            # Nobody would execute the run: it waits until its agent is served again, or its time is over.
            return False
        if not agent.workspace:
            return agent.tenant in ("", principal.tenant)
        access = Access(self._gate, principal, agent.workspace)
        return self._gate.is_let_in(principal, agent.tenant) and not access.withholds(approval.sources)


async def _body(exchange: Exchange) -> Fields:
    request = exchange.request
    if media.check_content_type(request.headers.get(b"content-type"), (media.JSON,)) is None:
        raise media.unsupported((media.JSON,))
    value = parse(await request.read_body(BODY_LIMIT)).check()
    if not isinstance(value, dict):
        raise InvalidParams.of("body", f"must be an object, not {kind_of(value)}")
    return Fields(value)


def _shown(approval: Approval) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": approval.id,
        "taskId": approval.task_id,
        "agent": approval.agent.partition(":")[0],
        "principal": approval.principal,
        "action": approval.action,
        "digest": approval.digest,
        "createdAt": timestamp_text(approval.created_at),
        "expiresAt": timestamp_text(approval.expires_at),
    }
    if is_present(approval.details):
        document["details"] = approval.details
    if approval.decision is not None:
        document["decision"] = "approve" if approval.decision.approved else "deny"
        document["decidedBy"] = approval.decision.by
        document["note"] = approval.decision.note
    return document


def _reply(document: dict[str, Any]) -> Reply:
    return Reply(200, list(_HEADERS), msgspec.json.encode(document))


_HEADERS = ((b"content-type", media.JSON.encode()), (b"cache-control", b"no-store"))
