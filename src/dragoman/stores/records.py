"""Model values to stored bytes and back: version-neutral JSON by msgspec."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.gateway.operating import RunFilters, RunView
from dragoman.gateway.ports import Acceptance, Accepted, RunRequest
from dragoman.model import Approval, ArtifactChunk, Change, Decision, Scope, TaskEvent, TaskFold, TaskState
from dragoman.model.errors import ArtifactUnverified, MessageIdConflict
from dragoman.model.payload import ABSENT

_LOG = logging.getLogger("dragoman.store")

encode = msgspec.json.Encoder().encode
decode_change = msgspec.json.Decoder(Change).decode
decode_request = msgspec.json.Decoder(RunRequest).decode
decode_given = msgspec.json.Decoder(tuple[ArtifactChunk, ...]).decode
_decision = msgspec.json.Decoder(Decision).decode
_sources = msgspec.json.Decoder(tuple[str, ...]).decode

RECEIVED = b'{"c":"received"'
"""How the record of a Received begins."""


def event_from_row(task_id: str, context_id: str, row: tuple[int, int, int, bytes]) -> TaskEvent:
    """Return the event of a row (seq, attempt, at, payload).

    Raises:
        ArtifactUnverified: nothing of ours was ever written like that.
    """
    seq, attempt, at, payload = row
    return TaskEvent(task_id, context_id, seq, at, attempt, change_from_row(task_id, payload))


def accepted_from_row(row: tuple[bytes, str] | None, acceptance: Acceptance) -> Accepted | None:
    """Return what became of a message whose identity has this row (digest, task id), if it has one.

    Raises:
        MessageIdConflict: the row is another message's.
    """
    if row is None:
        return None
    digest, task_id = row
    if digest != acceptance.digest:
        raise MessageIdConflict.of(
            "message.messageId", "was used before for another message; send a new message under a new id"
        )
    return Accepted(task_id=task_id, replayed=True, events=())


def change_from_row(task_id: str, payload: bytes) -> Change:
    """Return the change that an event's payload tells of.

    Raises:
        ArtifactUnverified: nothing of ours was ever written like that.
    """
    try:
        return decode_change(payload)
    except msgspec.DecodeError as error:
        raise _damaged(task_id, error) from error


def folded(
    task_id: str, context_id: str, events: Iterable[TaskEvent], *, metadata: bytes | None, deadline: int
) -> TaskFold:
    """Return the fold of a task's events, and of what its row says of it: its metadata, and its deadline at first.

    Raises:
        ArtifactUnverified: one is missing.
    """
    fold = TaskFold(task_id, context_id, Raw(metadata) if metadata else ABSENT, deadline=deadline)
    try:
        fold.apply_all(events)
    except ValueError as error:
        raise _damaged(task_id, error) from error
    return fold


def approval_from_row(row: Sequence[Any]) -> Approval:
    """Return the approval of a row, which ends with the run's deadline, the decision, and its sources in JSON."""
    approval_id, task_id, tenant, agent, principal, action, details, digest, created, deadline, *rest = row
    decision, sources = rest
    return Approval(
        id=approval_id,
        task_id=task_id,
        tenant=tenant,
        agent=agent,
        principal=principal,
        action=action,
        details=msgspec.Raw(details),
        digest=digest,
        created_at=created,
        expires_at=deadline,
        sources=_sources(sources),
        decision=None if decision is None else _decision(decision),
    )


def passes(view: RunView, filters: RunFilters) -> bool:
    """Tell whether filters let a run through."""
    return (
        filters.tenant in ("", view.scope.tenant)
        and filters.principal in ("", view.scope.principal)
        and filters.agent in ("", view.scope.agent)
        and filters.state in (None, view.state)
    )


def run_from_row(row: Sequence[Any]) -> RunView:
    """Return the run of a row: id, scope, context, state and since when, beginning, deadline, attempt, dispatch."""
    (
        task_id,
        tenant,
        principal,
        agent,
        context_id,
        state,
        since,
        created_at,
        deadline_at,
        attempt,
        dispatch,
    ) = row
    return RunView(
        task_id=task_id,
        scope=Scope(tenant, principal, agent),
        context_id=context_id,
        state=TaskState(state),
        since=since,
        created_at=created_at,
        deadline_at=deadline_at,
        attempt=attempt,
        waits=dispatch == "pending",
        parked=dispatch == "parked",
    )


def _damaged(task_id: str, error: Exception) -> ArtifactUnverified:
    _LOG.error("the events of a task are damaged: %s", error, extra={"task_id": task_id})
    return ArtifactUnverified(task_id)
