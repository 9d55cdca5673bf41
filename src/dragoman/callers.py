"""Who may call, as far as the configuration says: names, tokens from where it says that they are, and an issuer's."""

from collections.abc import Collection, Mapping
from pathlib import Path

from dragoman import __version__
from dragoman.config import Config, ConfigError, Oidc, TokenRef, seconds
from dragoman.gateway.tenants import Declared, Kind
from dragoman.identity import Credential, Registry, Verifier, hash_token
from dragoman.identity.tokens import SHORTEST
from dragoman.model import Principal
from dragoman.model.principal import rights_of


def declared(config: Config) -> Declared:
    """Return the names of the configuration; what agents and principals name of workspaces is there by that."""
    grants = {
        (tenant, name): frozenset(
            [
                *((Kind.WORKSPACE, workspace) for workspace in who.workspaces),
                *((Kind.SOURCE, source) for source in who.sources),
            ]
        )
        for tenant, table in config.tenants.items()
        for name, who in table.principals.items()
    }
    worked_in = {
        (agent.tenant, Kind.WORKSPACE, agent.workspace) for agent in config.agents.values() if agent.workspace
    }
    return Declared(
        features={name: frozenset(table.features) for name, table in config.tenants.items()},
        limits={name: table.limits.limits() for name, table in config.tenants.items()},
        principals=frozenset(grants),
        resources=frozenset(
            worked_in | {(who[0], *one) for who, granted in grants.items() for one in granted}
        ),
        grants=grants,
    )


def without_tenant(config: Config, tenants: Collection[str]) -> list[str]:
    """Return what to tell an operator of what nobody can call, because its tenant is not there."""
    made = "make it with `dragoman tenant create {0}` or in [tenants.{0}]"
    found = [
        f"agents.{agent_id}.tenant: there is no tenant {table.tenant}, so nobody can call the agent; "
        f"{made.format(table.tenant)}"
        for agent_id, table in config.agents.items()
        if table.tenant and table.tenant not in tenants
    ]
    if config.hosted.enabled and not tenants:
        found.append(
            f"hosted.enabled: there is no tenant, so nobody can call hosted agents; {made.format('NAME')}"
        )
    return found


def registry_of(config: Config, environment: Mapping[str, str]) -> Registry:
    """Return who may call by the configuration; tokens are read from where it says they are.

    Raises:
        ConfigError: a token is missing, too short, or given twice.
    """
    tokens: dict[bytes, Credential] = {}
    workspaces: dict[tuple[str, str], tuple[str, ...]] = {}
    sources: dict[tuple[str, str], tuple[str, ...]] = {}
    for tenant, table in config.tenants.items():
        for name, who in table.principals.items():
            workspaces[tenant, name], sources[tenant, name] = who.workspaces, who.sources
            for index, ref in enumerate(who.tokens):
                place = f"tenants.{tenant}.principals.{name}.tokens[{index}]"
                hashed = hash_token(_token(ref, place, environment))
                if hashed in tokens:
                    raise ConfigError(f"{place}: this token is in the configuration already")
                tokens[hashed] = Credential(place, Principal(tenant, name, rights_of(ref.scopes), place))
    features = {name: table.features for name, table in config.tenants.items()}
    limits = {name: table.limits.limits() for name, table in config.tenants.items()}
    return Registry(features, tokens, workspaces, sources, limits)


def _token(ref: TokenRef, place: str, environment: Mapping[str, str]) -> str:
    if ref.env:
        token = environment.get(ref.env, "").strip()
        where = f"the environment variable {ref.env}"
    else:
        where = ref.file
        try:
            token = Path(ref.file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{place}: {ref.file} cannot be read: {error}") from error
    if len(token) < SHORTEST:
        raise ConfigError(
            f"{place}: {where} holds {'no token' if not token else 'a token that can be guessed'}; "
            f"a token has {SHORTEST} characters or more"
        )
    return token


def verifier_of(oidc: Oidc) -> Verifier:
    """Return what verifies the tokens of an issuer."""
    # Only here: a server without an issuer starts without an HTTP client.
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
