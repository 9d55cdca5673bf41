"""Delegating to a remote agent: recorded before it is sent, sent once, and told the same way ever after."""

import asyncio
import hashlib
import itertools
import logging
from typing import Protocol

from msgspec import Struct

from dragoman.gateway.audit import REPLAYED, AuditEntry
from dragoman.gateway.identity import digest, is_heavy
from dragoman.gateway.remotes import (
    ABANDONED,
    SENDING,
    UNKNOWN,
    Delegation,
    Outcome,
    Remote,
    RemoteStore,
    delegation_path,
)
from dragoman.model import Message
from dragoman.model.errors import (
    FieldViolation,
    MessageIdConflict,
    NotReconcilable,
    QuotaExceeded,
    RemoteNotFound,
    Unavailable,
)
from dragoman.model.ids import new_id
from dragoman.model.operation import SendMessage

_LOG = logging.getLogger("dragoman.delegation")

GENERATION = "1.0"
"""What remote agents are spoken to in."""

MOST_UNDER_WAY, MOST_OF_TENANT = 256, 64
"""Delegations that are sent at a time, of everybody and of one tenant."""

RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Waits between attempts to record an outcome while the store is unavailable; the last one repeats."""

LOOK_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Waits between looks at what another server is sending; the last one repeats."""

NO_TASK = "No task id came back, so the remote agent cannot be asked; the outcome stays as it is recorded"


class Errand(Struct, frozen=True, kw_only=True):
    """What is to be delegated, by whom and to whom.

    `task_id` is chosen by whoever delegates, and is the id of the message too. With `at_once` the remote agent is asked
    not to wait for the end of its work. `audit` is what to note of it, if anything.
    """

    tenant: str
    principal: str
    remote_id: str
    task_id: str
    message: Message
    at_once: bool = False
    audit: AuditEntry | None = None

    def digest(self) -> bytes:
        """Return what tells this errand from another one under the same task id: what it says, and to whom."""
        said = digest(SendMessage(message=self.message, generation=GENERATION))
        return hashlib.sha256(self.remote_id.encode() + b"\0" + said).digest()


class Sender(Protocol):
    """Speaks to remote agents (see `outbound.delegation`)."""

    async def send(self, remote: Remote, delegation_id: str, message: Message, *, at_once: bool) -> Outcome:
        """Send a message, once, and return what became of it, whatever that is, well within `remotes.LONGEST_MS`."""
        ...

    async def ask(self, remote: Remote, task_id: str) -> Outcome:
        """Return how a remote agent's task stands.

        Raises:
            Unavailable: there is no answer, or none that can be believed.
            NotReconcilable: the remote agent does not know the task, or does not tell.
        """
        ...


class Delegations:
    """What is delegated, and what became of it. To be used on the serving loop, by one object of each server.

    Of the servers that share a store the one that records a delegation sends it; whoever else is asked for it waits.
    """

    def __init__(self, store: RemoteStore, sender: Sender) -> None:
        self._store = store
        self._sender = sender
        self._under_way: dict[tuple[str, str, str], tuple[bytes, asyncio.Task[tuple[Delegation, bool]]]] = {}
        self._outcomes = {"failed": 0, "unknown": 0, "answered": 0}
        self._closed = False

    async def start(self) -> None:
        """Have what a server was sending when it ended be `UNKNOWN`."""
        await self._store.abandon_delegations()

    async def close(self, seconds: float) -> None:
        """Take nothing more, and wait for what is under way, up to so many seconds.

        What is left then is `UNKNOWN` to the next server.
        """
        self._closed = True
        tasks = [task for _, task in self._under_way.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def outcomes(self) -> dict[str, int]:
        """Return how many delegations were answered, failed, and ended without anybody knowing how."""
        return self._outcomes

    async def delegate(self, errand: Errand) -> tuple[Delegation, bool]:
        """Delegate, and return what became of it; or what did before, and true, if it was delegated before.

        It goes on if whoever waits for it stops to wait.

        Raises:
            RemoteNotFound: the tenant has no such agent.
            MessageIdConflict: the task id was used for something else.
            QuotaExceeded: too many are under way; nothing was recorded.
            Unavailable: the store cannot do its work, or the server stops.
        """
        key = (errand.tenant, errand.principal, errand.task_id)
        wanted = await asyncio.to_thread(errand.digest) if is_heavy(errand.message) else errand.digest()
        while key in self._under_way:
            same, other = self._under_way[key]
            if same == wanted:
                delegation, _ = await asyncio.shield(other)
                await self._note(errand.audit, delegation)
                return delegation, True
            await asyncio.wait([other])
        self._check_room(errand.tenant)
        work = asyncio.create_task(self._perform(errand, wanted))
        self._under_way[key] = wanted, work
        work.add_done_callback(lambda done: self._leave(key, done))
        return await asyncio.shield(work)

    async def find(self, tenant: str, principal: str, delegation_id: str) -> Delegation:
        """Return a delegation of a principal as it stands.

        Raises:
            DelegationNotFound: it has none of this id.
        """
        found = await self._store.delegation(tenant, principal, delegation_id)
        return await self._as_it_stands(found)

    async def reconcile(
        self, tenant: str, principal: str, delegation_id: str, audit: AuditEntry | None = None
    ) -> Delegation:
        """Ask the remote agent how its task stands, record that, and return it.

        Raises:
            DelegationNotFound: the principal has none of this id.
            NotReconcilable: no task id came back, or there is nobody to ask any more, or it does not know the task.
            Unavailable: the remote agent gives no answer now.
        """
        found = await self.find(tenant, principal, delegation_id)
        if not found.outcome.remote_task_id:
            raise NotReconcilable(NO_TASK)
        try:
            remote = await self._store.remote(tenant, found.remote_id)
        except RemoteNotFound:
            raise NotReconcilable("The remote agent is not registered any more") from None
        if remote.origin != found.origin:
            raise NotReconcilable(
                "The remote agent is registered at another origin by now, which has no such task"
            )
        outcome = await self._sender.ask(remote, found.outcome.remote_task_id)
        if outcome == found.outcome and audit is None:
            return found
        return await self._store.settle_delegation(found, outcome, audit=audit)

    def _check_room(self, tenant: str) -> None:
        if self._closed:
            raise Unavailable("The server is stopping; nothing was sent. Send the same again to the next one")
        of_tenant = sum(key[0] == tenant for key in self._under_way)
        if len(self._under_way) >= MOST_UNDER_WAY or of_tenant >= MOST_OF_TENANT:
            raise QuotaExceeded(
                "Too many delegations are under way; nothing was sent. Try again when one of them has ended",
                metadata={"limit": "delegations"},
            )

    def _leave(self, key: tuple[str, str, str], done: asyncio.Task[tuple[Delegation, bool]]) -> None:
        del self._under_way[key]
        if not done.cancelled():
            # Whoever waited has been told; nobody else needs to hear that an exception was not retrieved.
            done.exception()

    async def _perform(self, errand: Errand, wanted: bytes) -> tuple[Delegation, bool]:
        known = await self._store.delegation_of(errand.tenant, errand.principal, errand.task_id)
        if known is None:
            delegation = Delegation(
                id=new_id(),
                tenant=errand.tenant,
                principal=errand.principal,
                task_id=errand.task_id,
                remote_id=errand.remote_id,
                digest=wanted,
                outcome=Outcome(status=SENDING),
            )
            known, remote = await self._store.begin_delegation(delegation, audit=errand.audit)
            if remote is not None:
                outcome = await self._sender.send(remote, known.id, errand.message, at_once=errand.at_once)
                self._count(known, outcome)
                return await self._settle(known, outcome, errand.audit), False
        if known.digest != wanted:
            raise MessageIdConflict(
                [FieldViolation("taskId", "was used before, for another message or another agent")]
            )
        known = await self._told_by_others(known)
        await self._note(errand.audit, known)
        return known, True

    async def _told_by_others(self, known: Delegation) -> Delegation:
        """Return a delegation that this server does not send as soon as no other one sends it any more.

        That is bounded: by the life of the other server, and by `remotes.LONGEST_MS`.
        """
        for look in itertools.count():
            if known.outcome.status == SENDING:
                known = await self._store.abandon_delegation(known)
            if known.outcome.status != SENDING:
                return known
            if self._closed:
                raise Unavailable("The server is stopping; another one is sending it. Ask that one")
            await asyncio.sleep(LOOK_SECONDS[min(look, len(LOOK_SECONDS) - 1)])
        raise AssertionError("unreachable")

    async def _as_it_stands(self, found: Delegation) -> Delegation:
        key = (found.tenant, found.principal, found.task_id)
        if found.outcome.status != SENDING or key in self._under_way:
            return found
        return await self._store.abandon_delegation(found)

    async def _settle(self, delegation: Delegation, outcome: Outcome, audit: AuditEntry | None) -> Delegation:
        """Record an outcome, again and again while the store cannot: what came back is known nowhere else.

        Also where another server has taken this one for dead meanwhile, and said that nobody knows.
        """
        for attempt in itertools.count():
            try:
                settled = await self._store.settle_delegation(delegation, outcome, audit=audit)
                if settled.outcome != ABANDONED or outcome.status == UNKNOWN:
                    return settled
                delegation = settled
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
        raise AssertionError("unreachable")

    async def _note(self, audit: AuditEntry | None, delegation: Delegation) -> None:
        if audit is not None:
            target = delegation_path(delegation)
            await self._store.add_to_audit(
                [audit.on(target, outcome=REPLAYED, detail=delegation.outcome.status)]
            )

    def _count(self, delegation: Delegation, outcome: Outcome) -> None:
        if outcome.status == UNKNOWN:
            # What is said of it is ours: nothing of the reply is in it.
            _LOG.warning(
                "nobody knows what became of a delegation: %s",
                outcome.error,
                extra={"tenant": delegation.tenant, "delegation_id": delegation.id},
            )
        refused = outcome.status in ("failed", UNKNOWN)
        self._outcomes[outcome.status if refused else "answered"] += 1
