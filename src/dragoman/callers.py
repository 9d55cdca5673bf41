"""Who may call by the configuration: what tells about the tokens of an issuer that it names."""

from dragoman import __version__
from dragoman.config import Oidc, seconds
from dragoman.identity import Verifier


def verifier_of(oidc: Oidc) -> Verifier:
    """Return what verifies the tokens of an issuer."""
    # Only here: a server without an issuer starts without cryptography and an HTTP client.
    from dragoman.identity.issuer import Issuer  # noqa: PLC0415 - see above
    from dragoman.identity.keys import KeyRing  # noqa: PLC0415 - see above
    from dragoman.identity.oidc import JwtVerifier, Trust  # noqa: PLC0415 - see above

    trust = Trust(
        issuer=oidc.issuer,
        audience=oidc.audience,
        tenant_claim=oidc.tenant_claim,
        scope_claim=oidc.scope_claim,
        principal_claim=oidc.principal_claim,
        algorithms=oidc.algorithms,
        skew=seconds(oidc.clock_skew, "auth.oidc.clock_skew"),
    )
    ring = KeyRing(
        Issuer(oidc.issuer, oidc.jwks_url, user_agent=f"dragoman/{__version__}"),
        max_age=seconds(oidc.jwks_max_age, "auth.oidc.jwks_max_age"),
        refetch=seconds(oidc.jwks_refetch, "auth.oidc.jwks_refetch"),
        stale=seconds(oidc.jwks_stale, "auth.oidc.jwks_stale"),
    )
    return JwtVerifier(trust, ring)
