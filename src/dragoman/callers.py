"""Who may call, as far as the configuration says: names, tokens from where it says that they are, and an issuer's."""

import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from dragoman import __version__
from dragoman.config import Config, TokenRef
from dragoman.gateway.tenants import Declared, Kind
from dragoman.identity import Credential, Failures, Gate, Registry, Verifier, hash_token
from dragoman.identity.tokens import SHORTEST
from dragoman.issuers import Oidc
from dragoman.model import Principal
from dragoman.model.principal import rights_of
from dragoman.tables import ConfigError, seconds

FAILURES_PER_SECOND = 0.2
"""Credentials that are not good, by address: so many a second in the long run."""


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


def registry_of(config: Config, environment: Mapping[str, str] | None) -> Registry:
    """Return who may call by the configuration; tokens are read from where it says they are.

    Without an environment there are none: a process that nobody calls needs no secrets of callers.

    Raises:
        ConfigError: a token is missing, too short, or given twice.
    """
    tokens = {} if environment is None else _tokens(config, environment)
    workspaces: dict[tuple[str, str], tuple[str, ...]] = {}
    sources: dict[tuple[str, str], tuple[str, ...]] = {}
    for tenant, table in config.tenants.items():
        for name, who in table.principals.items():
            workspaces[tenant, name], sources[tenant, name] = who.workspaces, who.sources
    features = {name: table.features for name, table in config.tenants.items()}
    limits = {name: table.limits.limits() for name, table in config.tenants.items()}
    return Registry(features, tokens, workspaces, sources, limits)


def _tokens(config: Config, environment: Mapping[str, str]) -> dict[bytes, Credential]:
    tokens: dict[bytes, Credential] = {}
    for place, owner, ref in _references(config):
        hashed = hash_token(_token(ref, place, environment))
        if hashed in tokens:
            raise ConfigError(f"{place}: this token is in the configuration already")
        tokens[hashed] = Credential(place, Principal(*owner, rights_of(ref.scopes), place))
    return tokens


def gate_of(config: Config, environment: Mapping[str, str] | None, verifier: Verifier | None) -> Gate:
    """Return what lets callers in by the configuration; `verifier` verifies an issuer's tokens.

    See `registry_of` for `environment`.

    Raises:
        ConfigError: as `registry_of`.
    """
    return Gate(
        registry_of(config, environment),
        Failures(config.limits.failed_auth, FAILURES_PER_SECOND),
        verifier=verifier,
        allowance=config.limits.allowance,
    )


def unusable_tokens(config: Config, environment: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the tokens of the configuration, each by its place, as `registry_of` would say it."""
    flaws: list[str] = []
    hashes: set[bytes] = set()
    for place, _, ref in _references(config):
        try:
            hashed = hash_token(_token(ref, place, environment))
        except ConfigError as error:
            flaws.append(str(error))
            continue
        if hashed in hashes:
            flaws.append(f"{place}: this token is in the configuration already")
        hashes.add(hashed)
    return flaws


def exposed_tokens(config: Config) -> list[str]:
    """Return what to tell an operator of files with tokens that anybody on the machine can read."""
    return [
        f"{place}: anybody on this machine can read {ref.file}; take that away with `chmod o= {ref.file}`"
        for place, _, ref in _references(config)
        if ref.file and _is_readable_by_all(Path(ref.file))
    ]


def _references(config: Config) -> Iterator[tuple[str, tuple[str, str], TokenRef]]:
    """Yield every token of the configuration: its place, whose it is, and where it is."""
    for tenant, table in config.tenants.items():
        for name, who in table.principals.items():
            for index, ref in enumerate(who.tokens):
                yield f"tenants.{tenant}.principals.{name}.tokens[{index}]", (tenant, name), ref


def _token(ref: TokenRef, place: str, environment: Mapping[str, str]) -> str:
    if ref.env:
        text, where = environment.get(ref.env), f"the environment variable {ref.env}"
        if text is None:
            raise ConfigError(f"{place}: {where} is not set; it should hold the token")
    else:
        where = ref.file
        try:
            text = Path(ref.file).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{place}: {ref.file} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{place}: {ref.file} holds no text in UTF-8") from error
    token = text.strip()
    if len(token) < SHORTEST:
        raise ConfigError(
            f"{place}: {where} holds {'no token' if not token else 'a token that can be guessed'}; "
            f"a token has {SHORTEST} characters or more"
        )
    return token


def _is_readable_by_all(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


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
