"""How things look on the admin surface: JSON objects in camel case, times as in A2A."""

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.admin.overview import PrincipalView, ResourceView, TenantView
from dragoman.bindings.directory import ServedAgent
from dragoman.gateway.audit import AuditRow
from dragoman.gateway.operating import RunView
from dragoman.gateway.tenants import Token
from dragoman.protocol.protojson import timestamp_text

Object = dict[str, Any]


def tenant(view: TenantView) -> Object:
    """Return a tenant."""
    return {
        "name": view.name,
        "origin": view.origin,
        "features": list(view.features),
        "principals": view.principals,
        "limits": dict(view.limits),
    }


def principal(view: PrincipalView) -> Object:
    """Return a principal."""
    return {
        "name": view.name,
        "origin": view.origin,
        "workspaces": list(view.workspaces),
        "sources": list(view.sources),
        "tokens": view.tokens,
    }


def resource(view: ResourceView) -> Object:
    """Return a workspace or a source."""
    return {"name": view.name, "origin": view.origin, "granted": list(view.granted)}


def token(kept: Token, now: int) -> Object:
    """Return a token, without its text."""
    shown: Object = {
        "id": kept.id,
        "tenant": kept.tenant,
        "principal": kept.principal,
        "scopes": list(kept.scopes),
        "note": kept.note,
        "state": kept.state(now),
        "createdAt": timestamp_text(kept.created_at),
    }
    for name, at in (("expiresAt", kept.expires_at), ("revokedAt", kept.revoked_at)):
        if at is not None:
            shown[name] = timestamp_text(at)
    return shown


def run(view: RunView) -> Object:
    """Return a run. An agent of the hosted profile is called by the id that its callers know."""
    agent, _, hosted = view.scope.agent.partition(":")
    return {
        "taskId": view.task_id,
        "tenant": view.scope.tenant,
        "principal": view.scope.principal,
        "agent": agent,
        "hosted": bool(hosted),
        "contextId": view.context_id,
        "state": view.state.name.lower(),
        "since": timestamp_text(view.since),
        "createdAt": timestamp_text(view.created_at),
        "deadlineAt": timestamp_text(view.deadline_at),
        "attempt": view.attempt,
        "waitsForRoom": view.waits,
        "waitsForCaller": view.parked,
    }


def audit(row: AuditRow) -> Object:
    """Return a row of the audit."""
    entry = row.entry
    return {
        "id": row.id,
        "time": timestamp_text(row.at),
        "tenant": entry.tenant,
        "principal": entry.principal,
        "credential": entry.credential,
        "address": entry.address,
        "action": entry.action,
        "target": entry.target,
        "outcome": entry.outcome,
        "detail": entry.detail,
        "times": entry.times,
    }


def agents(served: Iterable[ServedAgent], counts: Mapping[str, tuple[int, int]]) -> list[Object]:
    """Return agents in the order of their ids, with how many runs of each are running and wait for room.

    One that is served by the hosted profile too has both kinds of runs.
    """
    found: dict[str, Object] = {}
    for agent in sorted(served, key=lambda one: one.id):
        name, _, hosted = agent.id.partition(":")
        running, waiting = counts.get(agent.id, (0, 0))
        if hosted:
            shown = found[name]
            shown["workspace"], shown["hosted"] = agent.workspace, True
            shown["running"] += running
            shown["waiting"] += waiting
        else:
            found[name] = {
                "id": name,
                "tenant": agent.tenant,
                "workspace": "",
                "public": agent.public,
                "hosted": False,
                "versions": list(agent.versions),
                "running": running,
                "waiting": waiting,
            }
    return list(found.values())
