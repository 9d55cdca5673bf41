"""The public keys of an issuer (RFC 7517): which of them may check which signature, and how fresh they have to be."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.util import urlsafe_b64decode

from dragoman.identity.issuer import Document, FetchError, read_object
from dragoman.model.errors import Unavailable

_LOG = logging.getLogger("dragoman.identity")

PATIENCE = 5.0
"""Seconds that requests wait for fresh keys while older ones would still do."""

LONGEST_WAIT = 10.0
"""Seconds that a request waits for keys that it cannot do without."""

SHORTEST_AGE = 60.0
"""Seconds that keys count as fresh even if their server says less: it must not be asked for every request."""

RSA_BITS = range(2048, 8193)

Key = ECKey | OKPKey | RSAKey

_KINDS: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        **{f"{family}{bits}": ("RSA", None) for family in ("RS", "PS") for bits in (256, 384, 512)},
        "ES256": ("EC", "P-256"),
        "ES384": ("EC", "P-384"),
        "ES512": ("EC", "P-521"),
        "EdDSA": ("OKP", "Ed25519"),
        "Ed25519": ("OKP", "Ed25519"),
    }
)
"""Algorithm → the kind of key, and the curve, that it is used with here (RFC 7518 §3.1, RFC 8037, RFC 9864)."""

_KEYS: Mapping[str, tuple[type[Key], tuple[str, ...]]] = MappingProxyType(
    {"EC": (ECKey, ("x", "y")), "OKP": (OKPKey, ("x",)), "RSA": (RSAKey, ("n", "e"))}
)
"""Kind of key → its class, and the members that are the key itself."""


class PublicKeys:
    """A JWK Set. What is no public signing key in it is passed over, as RFC 7517 §5 asks for."""

    def __init__(self, members: list[Mapping[str, Any]]) -> None:
        self.members = members
        self._by_kid: dict[str, list[Mapping[str, Any]]] = {}
        for one in members:
            self._by_kid.setdefault(one["kid"], []).append(one)
        self._made: dict[tuple[str, str], Key | None] = {}

    @classmethod
    def read(cls, body: bytes) -> "PublicKeys":
        """Return the keys in a document.

        Raises:
            FetchError: it is no JWK Set.
        """
        found = read_object(body, "the address of the keys").get("keys")
        if not isinstance(found, list):
            raise FetchError("the address of the keys answers with something else than a JWK Set")
        return cls([one for one in found if _is_usable(one)])

    def __contains__(self, kid: str) -> bool:
        return kid in self._by_kid

    def __len__(self) -> int:
        return len(self.members)

    def find(self, kid: str, algorithm: str) -> Key | None:
        """Return the key of this name that checks signatures of this algorithm, if there is one."""
        if kid not in self._by_kid:
            return None
        if (kid, algorithm) not in self._made:
            fitting = (_key(one, algorithm) for one in self._by_kid[kid])
            self._made[kid, algorithm] = next((key for key in fitting if key is not None), None)
        return self._made[kid, algorithm]


def _is_usable(one: object) -> bool:
    """Tell whether a member of a JWK Set has a name, is for signatures, and holds no secret."""
    if not isinstance(one, dict) or not isinstance(one.get("kid"), str) or not one["kid"]:
        return False
    if one.get("kty") not in ("EC", "OKP", "RSA") or "d" in one or one.get("use", "sig") != "sig":
        return False
    operations = one.get("key_ops", ["verify"])
    return isinstance(operations, list) and "verify" in operations


def _key(one: Mapping[str, Any], algorithm: str) -> Key | None:
    """Return the key in a member of a JWK Set, or `None` if it is not for an algorithm."""
    names = ("EdDSA", "Ed25519") if algorithm in ("EdDSA", "Ed25519") else (algorithm,)
    if (one["kty"], one.get("crv")) != _KINDS.get(algorithm) or one.get("alg", algorithm) not in names:
        return None
    kind, members = _KEYS[one["kty"]]
    try:
        if kind is RSAKey and _bits(one["n"]) not in RSA_BITS:
            return None
        # Without what else it says: that was looked at, and the older name of EdDSA would be taken for another one.
        return kind.import_key({name: one[name] for name in ("kty", "crv", *members) if name in one})
    except (JoseError, ValueError, KeyError, TypeError, AttributeError):
        _LOG.warning("a key of the issuer cannot be read, and is passed over")
        return None


def _bits(number: str) -> int:
    return int.from_bytes(urlsafe_b64decode(number.encode())).bit_length()


class KeySource(Protocol):
    """Where keys come from (see `issuer.Issuer`)."""

    async def keys(self) -> Document:
        """Return the JWK Set.

        Raises:
            FetchError: it cannot be had.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class KeyRing:
    """Keeps an issuer's keys, and fetches them when they are needed: one fetch at a time, and never too often.

    Fresh keys are used as they are. Older ones are replaced first; if that fails they still count for a while, so
    that a short outage of the issuer locks nobody out. Keys that are not in the newest set count no more.
    """

    def __init__(
        self,
        source: KeySource,
        *,
        max_age: float,
        refetch: float,
        stale: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the ring.

        Args:
            source: where they come from.
            max_age: seconds that keys are fresh at most; their server may say less.
            refetch: seconds between two fetches at least, whatever asks for them.
            stale: seconds that keys still count after that if no newer ones can be had.
            clock: seconds that only grow.
        """
        self._source = source
        self._max_age = max_age
        self._refetch = refetch
        self._stale = stale
        self._clock = clock
        self._keys: PublicKeys | None = None
        self._fresh_until = -math.inf
        self._tried = -math.inf
        self._failed = False
        self._flight: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to fetch, so that the first request need not wait, and a wrong address shows at once."""
        self._fly()

    async def close(self) -> None:
        """Stop fetching, and let the source go."""
        if self._flight is not None:
            self._flight.cancel()
            await asyncio.wait({self._flight})
        await self._source.close()

    async def current(self) -> PublicKeys:
        """Return the keys that count now.

        Raises:
            Unavailable: there are none, and none can be had.
        """
        now = self._clock()
        if self._keys is not None and now < self._fresh_until:
            return self._keys
        usable = self._keys is not None and now < self._fresh_until + self._stale
        flight = self._fly()
        # After a failure nobody waits for the next try: it may take as long as the last one.
        if flight is not None and not (usable and self._failed):
            await self._wait(flight, max(0.0, self._tried + PATIENCE - now) if usable else LONGEST_WAIT)
        if self._keys is None or self._clock() >= self._fresh_until + self._stale:
            raise self._unavailable()
        return self._keys

    async def looked_for(self, kid: str) -> PublicKeys:
        """Return the keys that count now, fetched once more if that may bring one that is not among them.

        Raises:
            Unavailable: whether it is one of the issuer's cannot be told now.
        """
        keys = await self.current()
        if kid in keys:
            return keys
        flight = self._fly()
        landed = flight is None or await self._wait(flight, LONGEST_WAIT)
        keys = self._keys if self._keys is not None else keys
        if kid not in keys and (self._failed or not landed):
            raise self._unavailable()
        return keys

    def _fly(self) -> "asyncio.Task[None] | None":
        """Return the fetch that goes on: one that began before, or a new one; `None` if it is too early for one."""
        if self._flight is None or self._flight.done():
            now = self._clock()
            if now < self._tried + self._refetch:
                return None
            self._tried = now
            self._flight = asyncio.create_task(self._renew(now))
        return self._flight

    async def _renew(self, now: float) -> None:
        try:
            document = await self._source.keys()
            keys = PublicKeys.read(document.body)
        except FetchError as error:
            self._failed = True
            left = self._fresh_until + self._stale - now
            if self._keys is None or left <= 0:
                _LOG.warning("the issuer's keys cannot be had, so no JWT is good: %s", error)
            else:
                _LOG.warning("the issuer's keys cannot be had; older ones count for %.0f s: %s", left, error)
            return
        if not keys:
            _LOG.warning("the issuer has no key that could check a signature, so no JWT is good")
        age = self._max_age
        if document.max_age is not None:
            age = min(age, max(document.max_age, SHORTEST_AGE))
        self._failed = False
        self._fresh_until = now + age
        # The same object as long as they are the same: what was found out with them still holds.
        if self._keys is None or self._keys.members != keys.members:
            self._keys = keys

    async def _wait(self, flight: "asyncio.Task[None]", seconds: float) -> bool:
        """Wait for the end of a fetch, but not for ever, and tell whether it came."""
        # Never cancelled by one who waits: others wait for it too.
        await asyncio.wait({flight}, timeout=seconds)
        if flight.done() and not flight.cancelled():
            flight.result()
        return flight.done()

    def _unavailable(self) -> Unavailable:
        wait = math.ceil(self._tried + self._refetch - self._clock())
        return Unavailable(
            "Whether this credential is good cannot be told just now; send the same request again",
            retry_after=max(1, wait),
        )
