"""The gate: from the Authorization header of a request to a principal, or a refusal."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from dragoman.identity.registry import Registry
from dragoman.identity.tokens import hash_token
from dragoman.model import ANONYMOUS, LOCAL, Principal, Right
from dragoman.model.errors import Forbidden, RateLimited, Unauthenticated

_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]{1,8192})")
AGENT_API = "agent_api"
"""The feature of a tenant whose principals may call hosted agents."""

_MISSING = "This agent wants a credential; send the header Authorization: Bearer TOKEN"
_INVALID = "This credential is not known here, or not any more; ask for a new one"


class Failures:
    """Counts failed credentials by address, and bounds them (token bucket)."""

    def __init__(self, burst: int, per_second: float, *, addresses: int = 10_000) -> None:
        """Allow `burst` failures at once and `per_second` in the long run, for the `addresses` seen last."""
        self._burst = float(burst)
        self._rate = per_second
        self._most = addresses
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse an address that failed too often of late.

        Raises:
            RateLimited: it did.
        """
        if address in self._left and self._now_left(address) < 1:
            wait = max(1, round((1 - self._now_left(address)) / self._rate + 0.5))
            raise RateLimited(
                "Too many credentials from this address were not good; wait and send one that is",
                retry_after=wait,
            )

    def count(self, address: str) -> None:
        """Note one more failure."""
        self._left[address] = (self._now_left(address) - 1, time.monotonic())
        self._left.move_to_end(address)
        if len(self._left) > self._most:
            self._left.popitem(last=False)

    def _now_left(self, address: str) -> float:
        left, at = self._left.get(address, (self._burst, 0.0))
        return min(self._burst, left + (time.monotonic() - at) * self._rate)


class Gate:
    """Tells who calls.

    Without a tenant the server is somebody's own: everybody who reaches it (over loopback alone) is `local`, and
    credentials are not looked at.

    Attributes:
        registry: everybody who may call; replaced when it changes.
    """

    def __init__(
        self, registry: Registry, failures: Failures, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.registry = registry
        self._failures = failures
        self._clock = clock

    @property
    def is_open(self) -> bool:
        """Whether nobody has to show who they are."""
        return not self.registry.tenants

    async def identify(
        self, credentials: Sequence[bytes], address: str, *, tenant: str = "", public: bool = False
    ) -> Principal:
        """Return who sends a request.

        Args:
            credentials: the values of its Authorization headers.
            address: where it comes from.
            tenant: the tenant of the agent that is called, if it has one.
            public: whether that agent may be called without a credential.

        Raises:
            Unauthenticated: there is no credential, or none that is good.
            Forbidden: the credential allows nothing here.
            RateLimited: too many that were not good came from there.
        """
        if self.is_open:
            return _LOCAL
        if not credentials:
            if public:
                return Principal(tenant or LOCAL, ANONYMOUS)
            raise Unauthenticated(_MISSING, invalid=False)
        self._failures.check(address)
        found = self._find(credentials)
        if found is None:
            self._failures.count(address)
            raise Unauthenticated(_INVALID, invalid=True)
        if Right.ANSWER not in found.rights:
            raise Forbidden(Right.ANSWER)
        return found

    def is_let_in(self, principal: Principal, tenant: str) -> bool:
        """Tell whether a principal may call hosted agents of a tenant: its own, which has that feature."""
        return principal.tenant == tenant and self.registry.has_feature(tenant, AGENT_API)

    def may_enter(self, principal: Principal, workspace: str) -> bool:
        """Tell whether a principal is granted a workspace of its tenant, now."""
        return self.registry.may_enter(principal, workspace)

    def _find(self, credentials: Sequence[bytes]) -> Principal | None:
        form = _BEARER.fullmatch(credentials[0]) if len(credentials) == 1 else None
        if form is None:
            return None
        credential = self.registry.tokens.get(hash_token(form[1].decode()))
        if credential is None:
            return None
        expired = credential.expires_at is not None and credential.expires_at <= self._clock()
        return None if expired else credential.principal


_LOCAL = Principal(LOCAL, LOCAL)
