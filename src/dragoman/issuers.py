"""The configuration of an issuer of tokens, and what it must be. No I/O here."""

import re
from urllib.parse import urlsplit

from msgspec import Struct

from dragoman.protocol.hosts import is_loopback
from dragoman.tables import ConfigError, seconds

ALGORITHMS = ("ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA")
"""Signatures of JWTs that can be checked: none of them has a secret that the server shares with the issuer."""

MOST_SKEW = 600.0
"""Seconds that two clocks may differ."""


class Oidc(Struct, frozen=True, forbid_unknown_fields=True):
    """`[auth.oidc]`: an OpenID Connect issuer whose signed tokens (JWT) are credentials here.

    `jwks_max_age`, `jwks_refetch` and `jwks_stale` bound how old its keys may be, how often they are fetched, and
    for how long they still count if it cannot be reached.
    """

    issuer: str = ""
    audience: str = ""
    jwks_url: str = ""
    tenant_claim: str = "tenant"
    scope_claim: str = "scope"
    principal_claim: str = "sub"
    algorithms: tuple[str, ...] = ("ES256", "RS256", "EdDSA")
    schemes: tuple[str, ...] = ("https",)
    clock_skew: str = "60s"
    jwks_max_age: str = "10m"
    jwks_refetch: str = "10s"
    jwks_stale: str = "1h"


def check_oidc(oidc: Oidc) -> None:
    """Make sure that an issuer can be believed so.

    Raises:
        ConfigError: it cannot; the message names the key.
    """
    for key in ("issuer", "audience", "tenant_claim", "scope_claim", "principal_claim"):
        if not getattr(oidc, key):
            raise ConfigError(f"auth.oidc.{key} is missing")
    for scheme in oidc.schemes:
        if scheme not in ("https", "http"):
            raise ConfigError(f'auth.oidc.schemes: "{scheme}" is none; there are "https" and "http"')
    _check_url("issuer", oidc.issuer, oidc.schemes)
    if "?" in oidc.issuer:
        raise ConfigError("auth.oidc.issuer has no query (OpenID Connect Core 1.0 §2)")
    if oidc.jwks_url:
        _check_url("jwks_url", oidc.jwks_url, oidc.schemes)
    for name in oidc.algorithms:
        if name not in ALGORITHMS:
            raise ConfigError(
                f'auth.oidc.algorithms: "{name}" is not among {", ".join(ALGORITHMS)}: signatures that anybody '
                "can check and only the issuer can make"
            )
    if not oidc.algorithms:
        raise ConfigError(f"auth.oidc.algorithms is empty; name some of {', '.join(ALGORITHMS)}")
    if seconds(oidc.clock_skew, "auth.oidc.clock_skew") > MOST_SKEW:
        raise ConfigError(f"auth.oidc.clock_skew must be {MOST_SKEW:g}s at most")
    seconds(oidc.jwks_stale, "auth.oidc.jwks_stale")
    for key in ("jwks_max_age", "jwks_refetch"):
        if seconds(getattr(oidc, key), f"auth.oidc.{key}") <= 0:
            raise ConfigError(f'auth.oidc.{key} must be longer than "0s"')


def _check_url(key: str, url: str, schemes: tuple[str, ...]) -> None:
    """Refuse what is no URL of an issuer: by https, or by another scheme that is allowed, or on this machine."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    good = host and port != 0 and re.fullmatch(r"[!-~]+", url) and not {"@", "#", "\\"} & set(url)
    if not good or parts.scheme not in ("https", "http"):
        raise ConfigError(f'auth.oidc.{key} = "{url}" must be a URL such as https://login.example.com')
    if parts.scheme == "http" and "http" not in schemes and not is_loopback(host):
        raise ConfigError(
            f'auth.oidc.{key} = "{url}": anybody on the way could exchange what comes by http; use https, or allow '
            'it with schemes = ["https", "http"]'
        )
