"""Agents elsewhere that a tenant has registered, and what was delegated to them: values, checks, and ports."""

import re
from collections.abc import Sequence
from typing import Protocol

from msgspec import Raw, Struct

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.ports import RunRef
from dragoman.gateway.push import Sealer
from dragoman.model import Message
from dragoman.model.errors import InvalidParams
from dragoman.model.ids import new_id
from dragoman.model.payload import ABSENT

SENDING, FAILED, UNKNOWN = "sending", "failed", "unknown"
"""Statuses beside the states of a remote task: it is under way; nothing was done; nobody here knows what was done."""

INTERRUPTED = "the server stopped, or could not write, while it was under way"
"""What is said of a delegation that nobody sends any more and nobody has told the end of."""

LONGEST_MS = 60_000
"""No delegation is sent for so many milliseconds (see `Sender.send`): nobody sends one any more that is under way for
longer, though its server may live."""

REMOTE_AGENTS, PUSH_CONFIGS = "remote agents", "push notification configurations"
"""Owners of sealed secrets."""

LONGEST_NAME = 200
LONGEST_TOKEN = 8192
SHORTEST_SECRET = 8
"""Characters of a bearer token from which on it is looked for in replies; a shorter one may be any word."""

MOST_REMOTES = 1000
"""Remote agents of a tenant."""

SEAL_BYTES = 5
"""Bytes at the start of a sealed secret that tell its form and key (see `outbound.vault`)."""

_TOKEN = re.compile(r"[\x21-\x7e]+", re.ASCII)


class Remote(Struct, frozen=True, kw_only=True):
    """An agent that a tenant has registered.

    `origin` is that of its endpoint, and `sealed` the bearer token for it, encrypted; empty if there is none.
    `created_at` is in milliseconds since 1970 UTC by the store's clock, which sets it.
    """

    id: str
    tenant: str
    name: str
    endpoint_url: str
    origin: str
    sealed: bytes = b""
    created_at: int = 0


class RemoteChange(Struct, frozen=True, kw_only=True):
    """What of a registration is to be changed; what is `None` stays.

    An empty `sealed` drops the bearer token; another one is good for the origin `sealed_for` alone.
    """

    name: str | None = None
    endpoint_url: str | None = None
    origin: str | None = None
    sealed: bytes | None = None
    sealed_for: str = ""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a delegation.

    `status` is the state of the remote task in lower case (`completed` for a bare message), `FAILED` also where it is
    certain that the remote agent did nothing, or `UNKNOWN` where nothing is certain. `result` is what came back, an
    object with `task` or `message`, as it came. `code` and `error` say what went wrong, there or on the way.
    """

    status: str
    result: Raw = ABSENT
    remote_task_id: str = ""
    code: int | None = None
    error: str = ""


ABANDONED = Outcome(status=UNKNOWN, error=INTERRUPTED)
"""What becomes of a delegation that nobody sends any more."""


class Delegation(Struct, frozen=True, kw_only=True):
    """Something that was, or is being, sent to a remote agent, once.

    It belongs to a principal, who chose `task_id`: the id of the message on its way out. `digest` covers what it says
    and to whom. `origin` is where it went. The store sets the times.
    """

    id: str
    tenant: str
    principal: str
    task_id: str
    remote_id: str
    digest: bytes
    outcome: Outcome
    origin: str = ""
    created_at: int = 0
    changed_at: int = 0


class Seal(Struct, frozen=True):
    """How some sealed secrets begin, which tells their key: `head` has `SEAL_BYTES`. `what` names their owners."""

    what: str
    head: bytes
    number: int

    @property
    def of_remotes(self) -> bool:
        """Whether they are bearer tokens of remote agents."""
        return self.what == REMOTE_AGENTS


class Places(Protocol):
    """Knows where requests may go (see `egress.EgressPolicy`)."""

    def place_of(self, url: str) -> str:
        """Return the origin of a URL that requests may go to.

        Raises:
            ValueError: they may not; the message says why, for whoever named it.
        """
        ...


class RemoteStore(Protocol):
    """Where registrations and delegations are kept. Everything is reached through its tenant.

    Any method raises Unavailable when the store cannot do its work just now. `audit` is what to note, if anything.
    """

    async def add_remote(self, remote: Remote, *, audit: AuditEntry | None = None) -> Remote:
        """Keep a registration, and return it as it is kept.

        Raises:
            QuotaExceeded: the tenant has as many as it may.
        """
        ...

    async def remotes(self, tenant: str, *, after: str, limit: int) -> Sequence[Remote]:
        """Return registrations of a tenant, oldest first, after the one with the id `after`."""
        ...

    async def remote(self, tenant: str, remote_id: str) -> Remote:
        """Return a registration of a tenant.

        Raises:
            RemoteNotFound.
        """
        ...

    async def remotes_named(self, tenant: str, name: str) -> Sequence[Remote]:
        """Return the registrations of a tenant that have a name; two are enough to tell that it is not unique."""
        ...

    async def change_remote(
        self, tenant: str, remote_id: str, change: RemoteChange, *, audit: AuditEntry | None = None
    ) -> Remote:
        """Change a registration, and return it as it is then. A new origin drops the bearer token of the old one.

        Raises:
            RemoteNotFound.
            EntryConflict: the token is for another origin than that of the endpoint by now.
        """
        ...

    async def remove_remote(self, tenant: str, remote_id: str, *, audit: AuditEntry | None = None) -> None:
        """Remove a registration. What was delegated stays recorded.

        Raises:
            RemoteNotFound.
        """
        ...

    async def begin_delegation(
        self, delegation: Delegation, *, audit: AuditEntry | None = None
    ) -> tuple[Delegation, Remote | None]:
        """Record a delegation that is to be sent now, and return it with the agent to send it to.

        If its principal has used its task id before, nothing is recorded; what was is returned, without an agent.

        Raises:
            RemoteNotFound: its tenant has no such agent.
        """
        ...

    async def settle_delegation(
        self, delegation: Delegation, outcome: Outcome, *, audit: AuditEntry | None = None
    ) -> Delegation:
        """Record what became of a delegation, and return it as it is then.

        Unless its status is not that of `delegation` any more: then somebody else was quicker, and nothing is recorded.
        """
        ...

    async def delegation(self, tenant: str, principal: str, delegation_id: str) -> Delegation:
        """Return a delegation of a principal.

        Raises:
            DelegationNotFound.
        """
        ...

    async def delegation_of(self, tenant: str, principal: str, task_id: str) -> Delegation | None:
        """Return the delegation for which a principal has used a task id, if there is one."""
        ...

    async def abandon_delegation(self, delegation: Delegation) -> Delegation:
        """Have one that is under way be `UNKNOWN` if nobody is sending it any more, and return it as it is then.

        This server is not sending it: that is for the caller to know. Another one may be: as long as that one lives,
        and `LONGEST_MS` are not over, it stays as it is.
        """
        ...

    async def abandon_delegations(self) -> int:
        """Have all that are under way and that nobody is sending any more be `UNKNOWN`; return how many.

        As `abandon_delegation`: what another server is sending that lives stays as it is.
        """
        ...

    async def seals(self) -> Sequence[Seal]:
        """Return how the secrets begin that may be needed, so that it shows whether the keys for them are there."""
        ...

    async def add_to_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `TenantStore.add_to_audit`."""
        ...


class RemoteCalls(Protocol):
    """Calls remote agents for handlers (see `gateway.calls`)."""

    async def call(self, run: RunRef, ordinal: int, remote: str, message: Message) -> Outcome:
        """Delegate for a run, as the point of its journal with this number, and return what became of it.

        Once for each point, whichever attempt of the run asks, and from whichever loop. `remote` is the id or the name
        of an agent that the run's tenant has registered. A remote task is followed until it has ended or waits.

        Raises:
            MessageIdConflict: an earlier attempt said something else there.
            Unavailable: the store cannot do its work just now.
        """
        ...


def came_back(token: str, text: bytes) -> bool:
    """Tell whether a reply holds the bearer token that was sent, so that nothing of it may be kept or shown."""
    return len(token) >= SHORTEST_SECRET and token.encode() in text


def remote_path(remote_id: str) -> str:
    """Return the target of what is done to a registration, for the audit."""
    return f"remotes/{remote_id}"


def delegation_path(delegation: Delegation) -> str:
    """Return the target of what is done to a delegation, for the audit."""
    return f"{remote_path(delegation.remote_id)}/delegations/{delegation.id}"


def registered(
    tenant: str, name: str, endpoint_url: str, token: str, places: Places, sealer: Sealer
) -> Remote:
    """Return a registration that is good to be kept; an empty `token` is none.

    Raises:
        InvalidParams: the name or the token is none, or requests may not go to the endpoint.
    """
    _check_name(name)
    origin = _origin(endpoint_url, places)
    return Remote(
        id=new_id(),
        tenant=tenant,
        name=name,
        endpoint_url=endpoint_url,
        origin=origin,
        sealed=_sealed(token, tenant, origin, sealer) if token else b"",
    )


def changed(
    remote: Remote,
    *,
    name: str | None,
    endpoint_url: str | None,
    token: str | None,
    places: Places,
    sealer: Sealer,
) -> RemoteChange:
    """Return a change of a registration that is good to be made; an empty `token` drops the one that is there.

    Raises:
        InvalidParams: the name or the token is none, or requests may not go to the endpoint.
    """
    if name is not None:
        _check_name(name)
    origin = None if endpoint_url is None else _origin(endpoint_url, places)
    place = remote.origin if origin is None else origin
    sealed = _sealed(token, remote.tenant, place, sealer) if token else (None if token is None else b"")
    return RemoteChange(name=name, endpoint_url=endpoint_url, origin=origin, sealed=sealed, sealed_for=place)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidParams.of("name", f"must be 1 to {LONGEST_NAME} printable characters")


def _origin(endpoint_url: str, places: Places) -> str:
    try:
        return places.place_of(endpoint_url)
    except ValueError as error:
        raise InvalidParams.of("endpoint_url", str(error)) from None


def _sealed(token: str, tenant: str, origin: str, sealer: Sealer) -> bytes:
    # What is no token is never shown, not even in a refusal.
    if len(token) > LONGEST_TOKEN or _TOKEN.fullmatch(token) is None:
        raise InvalidParams.of(
            "bearer_token", f"must be 1 to {LONGEST_TOKEN} printable ASCII characters without white space"
        )
    return sealer.seal(token.encode(), tenant, origin)
