"""The gate: from the Authorization header of a request to a principal, or a refusal."""

import re
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from dragoman.identity.failures import Failures
from dragoman.identity.rates import Rates
from dragoman.identity.registry import Registry
from dragoman.identity.tokens import PREFIX, hash_token
from dragoman.model import ANONYMOUS, LOCAL, Principal, Right
from dragoman.model.allowance import Allowance
from dragoman.model.errors import Forbidden, RateLimited, Unauthenticated

_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]{1,8192})")
AGENT_API = "agent_api"
"""The feature of a tenant whose principals may call hosted agents."""

_MISSING = "This agent wants a credential; send the header Authorization: Bearer TOKEN"
_INVALID = "This credential is not known here, or not any more; ask for a new one"


UNBOUNDED = Allowance()
"""What nobody runs into."""


class Rejected(Exception):
    """A credential is not good. The message says why, for the log alone: a caller could learn from it."""


class Verifier(Protocol):
    """Tells whom a token stands for that is none of this server's own (see `oidc.JwtVerifier`)."""

    def start(self) -> None:
        """Begin to fetch what is needed to tell."""
        ...

    async def close(self) -> None:
        """Stop, and let go of connections."""
        ...

    async def verify(self, token: str, digest: bytes) -> Principal:
        """Return whom a token stands for; `digest` is what `hash_token` makes of it.

        Raises:
            Rejected: it is not good.
            Unavailable: that cannot be told now.
        """
        ...


class Gate:
    """Tells who calls.

    Without a tenant and without an issuer the server is somebody's own: everybody who reaches it (over loopback
    alone) is `local`, and credentials are not looked at.

    Attributes:
        registry: everybody who may call; replaced when it changes.
        rates: how often they may.
    """

    def __init__(
        self,
        registry: Registry,
        failures: Failures,
        *,
        verifier: Verifier | None = None,
        allowance: Allowance = UNBOUNDED,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Put the gate together.

        Args:
            registry: everybody who may call.
            failures: bounds credentials that are not good.
            verifier: tells about tokens that the registry does not know; without one they are refused.
            allowance: what a tenant may use of which the registry says nothing else.
            clock: seconds since 1970 UTC.
        """
        self.registry = registry
        self._failures = failures
        self._verifier = verifier
        self._clock = clock
        self._was_closed = False
        self._general = allowance if allowance.limits() else UNBOUNDED
        self.rates = Rates()
        self._allowances = self._bounded()

    @property
    def is_open(self) -> bool:
        """Whether nobody has to show who they are."""
        return not (self.registry.tenants or self._verifier is not None or self._was_closed)

    def change(self, registry: Registry) -> None:
        """Let others in from now on. Without the last tenant nobody is let in: a gate that was closed stays so."""
        self._was_closed = not self.is_open
        self.registry = registry
        self._allowances = self._bounded()

    def allowance(self, principal: Principal) -> Allowance | None:
        """Return what bounds a principal and its tenant; `None` if nothing does."""
        found = self._allowances.get(principal.tenant, self._general)
        return None if found is UNBOUNDED else found

    def draw(self, principal: Principal) -> RateLimited | None:
        """Count a request of a principal; return why it is to be refused, if it is one too many."""
        allowance = self.allowance(principal)
        return None if allowance is None else self.rates.draw(principal, allowance)

    def confirm(self, principal: Principal) -> None:
        """Make sure that somebody who was let in before would be let in now.

        Raises:
            Unauthenticated: the credential is not good any more.
        """
        if self.is_open or principal.is_anonymous:
            return
        if principal.credential:
            known = self.registry.credentials.get(principal.credential)
            good = known is not None and known.principal == principal
        else:
            good = principal.tenant in self.registry.tenants
        if not good or (principal.expires_at is not None and principal.expires_at <= self._clock()):
            raise Unauthenticated(_INVALID, invalid=True)

    async def identify(
        self,
        credentials: Sequence[bytes],
        address: str,
        *,
        tenant: str = "",
        public: bool = False,
        right: Right = Right.ANSWER,
    ) -> Principal:
        """Return who sends a request.

        Args:
            credentials: the values of its Authorization headers.
            address: where it comes from.
            tenant: the tenant of the agent that is called, if it has one.
            public: whether that agent may be called without a credential.
            right: what the credential must allow for anything to be allowed.

        Raises:
            Unauthenticated: there is no credential, or none that is good.
            Forbidden: the credential allows nothing here.
            RateLimited: too many that were not good came from there.
            Unavailable: whether it is good cannot be told now.
        """
        if self.is_open:
            return _LOCAL
        if not credentials:
            if public:
                return Principal(tenant or LOCAL, ANONYMOUS)
            raise Unauthenticated(_MISSING, invalid=False)
        form = _BEARER.fullmatch(credentials[0]) if len(credentials) == 1 else None
        token = form[1].decode() if form is not None else ""
        digest = hash_token(token)
        self._failures.check(address, digest)
        try:
            found = self._known(digest) or await self._verified(token, digest)
        except Rejected as flaw:
            self._failures.count(address)
            raise Unauthenticated(_INVALID, invalid=True, flaw=str(flaw)) from None
        self._failures.remember(address, digest)
        if right not in found.rights:
            raise Forbidden(right, by=found)
        return found

    def is_let_in(self, principal: Principal, tenant: str) -> bool:
        """Tell whether a principal may call hosted agents of a tenant: its own, which has that feature."""
        return principal.tenant == tenant and self.registry.has_feature(tenant, AGENT_API)

    def may_enter(self, principal: Principal, workspace: str) -> bool:
        """Tell whether a principal is granted a workspace of its tenant, now."""
        return self.registry.may_enter(principal, workspace)

    def may_use(self, principal: Principal, source: str) -> bool:
        """Tell whether a principal is granted a source of its tenant, now."""
        return self.registry.may_use(principal, source)

    def _bounded(self) -> dict[str, Allowance]:
        return {tenant: self._general.with_others(limits) for tenant, limits in self.registry.limits.items()}

    def _known(self, digest: bytes) -> Principal | None:
        """Return whom one of the registry's tokens stands for.

        Raises:
            Rejected: it has expired.
        """
        credential = self.registry.tokens.get(digest)
        if credential is None:
            return None
        if credential.expires_at is not None and credential.expires_at <= self._clock():
            raise Rejected("it has expired")
        return credential.principal

    async def _verified(self, token: str, digest: bytes) -> Principal:
        """Return whom a token stands for that the registry does not know."""
        if not token:
            raise Rejected("it is no single bearer token")
        if self._verifier is None or token.startswith(PREFIX):
            raise Rejected("no such token is known")
        found = await self._verifier.verify(token, digest)
        if found.tenant not in self.registry.tenants:
            raise Rejected("its tenant is none of this server's")
        return found


_LOCAL = Principal(LOCAL, LOCAL)
