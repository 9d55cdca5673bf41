"""Signed tokens (JWT, RFC 7519) of an OpenID Connect issuer as credentials. The rules are those of RFC 8725.

Imported only where an issuer is configured: the HTTP client that it needs costs every start memory and time.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.util import urlsafe_b64decode
from msgspec import Struct

from dragoman.identity.gate import Rejected, Verifier
from dragoman.identity.keys import KeyRing, PublicKeys
from dragoman.jose import Algorithms, Key
from dragoman.model import Principal
from dragoman.model.errors import InvalidParams, MalformedJson
from dragoman.model.principal import is_name, rights_of
from dragoman.protocol.protojson import parse

MOST_KEPT = 10_000
KEEP_SECONDS = 300.0
"""How many verified tokens are remembered, and for how long at most."""

LATEST = 2**53
"""Seconds since 1970 that a date may say: beyond them a number is no date."""

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})


class Trust(Struct, frozen=True, kw_only=True):
    """What is believed: whose tokens, for whom, signed how, and which of their claims say what.

    `skew` is how many seconds the issuer's clock and ours may differ.
    """

    issuer: str
    audience: str
    tenant_claim: str
    scope_claim: str
    principal_claim: str
    algorithms: Sequence[str]
    skew: float


class _Verified(Struct, frozen=True):
    """A token that was good: as long as it is so by its own words, and the keys are those that it was checked with."""

    principal: Principal
    until: float
    keys: PublicKeys


class JwtVerifier(Verifier):
    """Tells whom a signed token stands for."""

    def __init__(self, trust: Trust, ring: KeyRing, *, clock: Callable[[], float] = time.time) -> None:
        self._trust = trust
        self._ring = ring
        self._clock = clock
        names = set(trust.algorithms)
        self._names = frozenset(names | {"Ed25519"} if "EdDSA" in names else names)
        # Members of a header that nobody here knows are no harm, unless `crit` names them.
        self._algorithms = Algorithms(algorithms=sorted(self._names), strict_check_header=False)
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()

    def start(self) -> None:
        self._ring.start()

    async def close(self) -> None:
        await self._ring.close()

    async def verify(self, token: str, digest: bytes) -> Principal:
        form = _COMPACT.fullmatch(token)
        if form is None:
            raise Rejected("it is no token of this server, and no JWT")
        keys = await self._ring.current()
        known = self._verified.get(digest)
        if known is not None and known.keys is keys and self._clock() < known.until:
            return known.principal
        kid, algorithm = self._read_header(form[1])
        if kid not in keys:
            keys = await self._ring.looked_for(kid)
        key = keys.find(kid, algorithm)
        if key is None:
            raise Rejected("the issuer has no such key")
        principal, until = self._read_claims(self._payload(token, key))
        self._remember(digest, _Verified(principal, min(until, self._clock() + KEEP_SECONDS), keys))
        return principal

    def _remember(self, digest: bytes, verified: _Verified) -> None:
        self._verified[digest] = verified
        self._verified.move_to_end(digest)
        if len(self._verified) > MOST_KEPT:
            self._verified.popitem(last=False)

    def _read_header(self, segment: str) -> tuple[str, str]:
        """Return which key is said to have signed, and how. Nothing else in a header is believed: it names no key
        that would count, wherever it says one is.
        """
        try:
            header = _object(urlsafe_b64decode(segment.encode()))
        except ValueError:
            raise Rejected("its header cannot be read") from None
        algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
        if not isinstance(algorithm, str) or algorithm not in self._names:
            raise Rejected("it is signed by another algorithm than auth.oidc.algorithms")
        if "crit" in header or "b64" in header:
            raise Rejected("its header asks for an extension")
        if not isinstance(kind, str) or kind.lower() not in _TYPES:
            raise Rejected("it is not for access: its typ is another one")
        if not isinstance(kid, str) or not kid:
            raise Rejected("its header names no key (kid)")
        return kid, algorithm

    def _payload(self, token: str, key: Key) -> Mapping[str, Any]:
        try:
            return _object(jws.deserialize_compact(token, key, registry=self._algorithms).payload)
        except (JoseError, ValueError):
            raise Rejected("its signature is not good") from None

    def _read_claims(self, claims: Mapping[str, Any]) -> tuple[Principal, float]:
        """Return whom the claims of a token are about, and until when they hold."""
        trust, now = self._trust, self._clock()
        if claims.get("iss") != trust.issuer:
            raise Rejected("it is of another issuer")
        audience = claims.get("aud")
        if audience != trust.audience and not (isinstance(audience, list) and trust.audience in audience):
            raise Rejected("it is for another audience")
        until = _date(claims, "exp")
        if until is None:
            raise Rejected("it does not say when it expires (exp)")
        if until + trust.skew <= now:
            raise Rejected("it has expired")
        for date in ("nbf", "iat"):
            since = _date(claims, date)
            if since is not None and since - trust.skew > now:
                raise Rejected(f"it is not good yet ({date})")
        if "cnf" in claims:
            raise Rejected("it is bound to a key that nobody can show here (cnf)")
        name, tenant = claims.get(trust.principal_claim), claims.get(trust.tenant_claim)
        if not isinstance(name, str) or not is_name(name):
            raise Rejected(f"its {trust.principal_claim} is no name of a principal")
        if not isinstance(tenant, str) or not is_name(tenant):
            raise Rejected(f"its {trust.tenant_claim} is no name of a tenant")
        rights, until = rights_of(_scopes(claims, trust.scope_claim)), until + trust.skew
        return Principal(tenant, name, rights, expires_at=until), until


def _object(body: bytes) -> Mapping[str, Any]:
    """Return a JSON object. One with a key given twice, say, is none: readers could differ about it.

    Raises:
        ValueError: it is none.
    """
    try:
        value = parse(body).check()
    except (MalformedJson, InvalidParams):
        value = None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value


def _date(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a date in seconds since 1970, or `None` if there is none."""
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        raise Rejected(f"its {name} is no date")
    return float(value)


def _scopes(claims: Mapping[str, Any], name: str) -> Sequence[str]:
    """Return the scopes that a token has: a text in which spaces part them (RFC 6749 §3.3), or an array of texts."""
    value = claims.get(name, "")
    if isinstance(value, str):
        return value.split(" ")
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise Rejected(f"its {name} holds no scopes")
