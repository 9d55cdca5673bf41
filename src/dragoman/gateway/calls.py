"""Calling remote agents for handlers: each call is a delegation, followed until the remote task has ended or waits."""

import asyncio
import itertools
from collections.abc import Callable
from concurrent.futures import Future

from msgspec import structs

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.delegate import Delegations, Errand
from dragoman.gateway.ports import RunRef
from dragoman.gateway.remotes import FAILED, SENDING, UNKNOWN, Delegation, Outcome, RemoteCalls, RemoteStore
from dragoman.model import Message, Role, TaskState
from dragoman.model.errors import (
    DelegationNotFound,
    NotReconcilable,
    QuotaExceeded,
    RemoteNotFound,
    Unavailable,
)

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between two looks at a remote task; the last one repeats."""

_GOES_ON = frozenset({SENDING, *(state.name.lower() for state in (TaskState.SUBMITTED, TaskState.WORKING))})


class Calls(RemoteCalls):
    """Implements `RemoteCalls` on the loop of the delegations."""

    def __init__(
        self,
        delegations: Delegations,
        store: RemoteStore,
        loop: asyncio.AbstractEventLoop,
        *,
        is_member: Callable[[str], bool],
        audited: Callable[[], bool],
    ) -> None:
        """Prepare to call.

        Args:
            delegations: what is delegated.
            store: where registrations are.
            loop: the loop that both are used on.
            is_member: tells whether a tenant may have remote agents, now.
            audited: tells whether there is an audit to note calls in.
        """
        self._delegations = delegations
        self._store = store
        self._loop = loop
        self._is_member = is_member
        self._audited = audited

    async def call(self, run: RunRef, ordinal: int, remote: str, message: Message) -> Outcome:
        """See `RemoteCalls.call`."""
        work = self._call(run, ordinal, remote, message)
        if asyncio.get_running_loop() is self._loop:
            return await work
        future: Future[Outcome] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return await asyncio.wrap_future(future)

    async def _call(self, run: RunRef, ordinal: int, remote: str, message: Message) -> Outcome:
        tenant, principal = run.scope.tenant, run.scope.principal
        task_id = f"{run.lease.task_id}-call-{ordinal}"
        # The one that an earlier attempt used, whatever has become of its name since.
        before = await self._store.delegation_of(tenant, principal, task_id)
        remote_id = before.remote_id if before is not None else await self._find(tenant, remote)
        if not remote_id:
            return Outcome(
                status=FAILED,
                error="there is no remote agent of this id or name, or more than one of this name",
            )
        errand = Errand(
            tenant=tenant,
            principal=principal,
            remote_id=remote_id,
            task_id=task_id,
            message=structs.replace(message, message_id=task_id, role=Role.USER),
            at_once=True,
            audit=AuditEntry(action="Delegate", tenant=tenant, principal=principal)
            if self._audited()
            else None,
        )
        try:
            return await self._follow(await self._delegate(errand))
        except RemoteNotFound:
            return Outcome(status=FAILED, error="the remote agent was removed")

    async def _find(self, tenant: str, remote: str) -> str:
        """Return the id of a remote agent by its id or its name; empty if there is none, or more than one."""
        if not self._is_member(tenant):
            return ""
        try:
            return (await self._store.remote(tenant, remote)).id
        except RemoteNotFound:
            named = await self._store.remotes_named(tenant, remote)
            return named[0].id if len(named) == 1 else ""

    async def _delegate(self, errand: Errand) -> Delegation:
        while True:
            try:
                delegation, _ = await self._delegations.delegate(errand)
            except QuotaExceeded as error:
                await asyncio.sleep(error.retry_after)
                continue
            return delegation

    async def _follow(self, delegation: Delegation) -> Outcome:
        """Ask for a remote task until it has ended, waits for somebody, or cannot be asked for any more."""
        found = delegation
        for look in itertools.count():
            if found.outcome.status not in _GOES_ON:
                # One whose state could not be read has an id to ask by.
                if found.outcome.status != UNKNOWN or not found.outcome.remote_task_id:
                    return found.outcome
                if look >= len(PAUSES):
                    return found.outcome
            await asyncio.sleep(PAUSES[min(look, len(PAUSES) - 1)])
            try:
                found = await self._delegations.reconcile(found.tenant, found.principal, found.id)
            except Unavailable:
                continue
            except (NotReconcilable, DelegationNotFound) as error:
                return Outcome(
                    status=UNKNOWN,
                    remote_task_id=found.outcome.remote_task_id,
                    error=error.message,
                )
        raise AssertionError("unreachable")
