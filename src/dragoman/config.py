"""The configuration: one TOML document, environment variables over it, flags over both. Typed; no I/O here.

Every key that this build knows is a field below; anything else is refused with the nearest name that exists.
"""

import copy
import difflib
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.cards.settings import SigningTable, flaw
from dragoman.egress.settings import Outbound
from dragoman.engines.settings import EngineTable, WorkerTable, check_engine
from dragoman.engines.temporal.settings import TemporalTable
from dragoman.issuers import Oidc, check_oidc
from dragoman.model.allowance import LARGEST, Allowance, Bound
from dragoman.model.principal import FEATURES, RESERVED, SCOPES, is_name
from dragoman.outbound.settings import VaultTable, check_outgoing
from dragoman.protocol.forwarded import networks_of
from dragoman.protocol.hosts import is_host
from dragoman.remote.settings import RemoteTable
from dragoman.stores.target import BY_SESSION, is_postgres, pooling_fault, url_fault
from dragoman.tables import (
    ConfigError,
    check_names,
    check_table,
    convert,
    from_environment,
    seconds,
    table_at,
)

FOREVER = "never"
"""What stands for an age that is never reached."""

SHORTEST_AGE = 60.0
"""Seconds that a finished task is kept at least: a caller must be able to read it, and to send its message again."""

_LISTEN = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:\s\[\]]+):(\d{1,5})")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([a-z0-9._-]+|\[[0-9a-f:]+\])(?::([1-9]\d{0,4}))?", re.ASCII)


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """`[server]`: where the server listens and what it is called outside.

    `cors_origins` are the origins whose pages may call it from a browser; `*` alone is every page. `hosts` are names
    that it answers to beside its own, where it asks nobody who they are. `trusted_proxies` are addresses and networks
    of proxies whose word counts for where a request comes from. Stopping takes `notice` and then `drain`.
    """

    listen: str = "127.0.0.1:8080"
    public_url: str = ""
    base_path: str = ""
    cors_origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    notice: str = "0s"
    drain: str = "30s"
    heartbeat: str = "15s"


class Store(Struct, frozen=True, forbid_unknown_fields=True):
    """`[store]`: where tasks are kept, where a database's password is, and what a pooler before it gives."""

    url: str = ""
    pooling: str = BY_SESSION
    password_env: str = ""
    password_file: str = ""


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """`[limits]`: `body` is the size of a request body in bytes; `body_time` how long it may take to arrive.

    `failed_auth` is how many credentials that are not good one address may send at once. `rate`, `running` and `stored`
    bound what every tenant and every principal may use; nothing is bounded if nothing is said.
    """

    body: int = 4 * 1024 * 1024
    body_time: str = "30s"
    failed_auth: int = 20
    rate: Bound = Bound()
    running: Bound = Bound()
    stored: Bound = Bound()

    @property
    def allowance(self) -> Allowance:
        """What a tenant may use of which nothing else is said."""
        return Allowance(self.rate, self.running, self.stored)


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """`[auth]`: whose word counts for who somebody is, beside the tokens in `[tenants]`."""

    oidc: Oidc | None = None


class Retention(Struct, frozen=True, forbid_unknown_fields=True):
    """`[retention]`: how long finished tasks are kept, and what the audit tells of.

    `terminal` is for finished tasks in general, the others for tasks that ended so. The time counts from the end of the
    task. Afterwards nothing of it is left. `audit` counts from what was done, and has nothing to do with tasks.
    """

    terminal: str = "30d"
    completed: str | None = None
    failed: str | None = None
    canceled: str | None = None
    rejected: str | None = None
    audit: str = "90d"

    def audit_age(self) -> float | None:
        """Return the seconds that the audit is kept, `None` if for ever.

        Raises:
            ConfigError: it is no duration, or too short.
        """
        return (
            None
            if self.audit == FOREVER
            else _age(self.audit, "retention.audit", "whoever looks must find something")
        )

    def ages(self) -> dict[str, float]:
        """Return the seconds that tasks are kept, by the name of their final state; what is kept for ever is left out.

        Raises:
            ConfigError: one is no duration, or too short.
        """
        found = {}
        for state in ("completed", "failed", "canceled", "rejected"):
            own = getattr(self, state)
            key, text = (state, own) if own is not None else ("terminal", self.terminal)
            if text != FOREVER:
                found[state] = _age(text, f"retention.{key}", "a caller must find its task for a while")
        return found


class Observers(Struct, frozen=True, forbid_unknown_fields=True, rename={"everybody": "global"}):
    """`[hosted.observers]`: waits and streams at once, of everybody, a tenant and a principal; how long one lasts."""

    everybody: int = 256
    tenant: int = 16
    principal: int = 4
    window: str = "110s"


class Hosted(Struct, frozen=True, forbid_unknown_fields=True):
    """`[hosted]`: the profile for many tenants' callers. `deadline` is that of every run in it."""

    enabled: bool = False
    deadline: str = "1h"
    observers: Observers = Observers()


class TokenRef(Struct, frozen=True, forbid_unknown_fields=True):
    """`[[tenants.T.principals.P.tokens]]`: a bearer token, by where it is held, and the scopes that it has."""

    scopes: tuple[str, ...]
    env: str = ""
    file: str = ""


class PrincipalTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[tenants.T.principals.P]`: somebody who may call, what they are granted, and their tokens."""

    workspaces: tuple[str, ...] = ()
    tokens: tuple[TokenRef, ...] = ()
    sources: tuple[str, ...] = ()


class TenantTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[tenants.T]`: a tenant, the features that it has, and its principals. Its `limits` go over `[limits]`."""

    features: tuple[str, ...] = ()
    principals: dict[str, PrincipalTable] = {}
    limits: Allowance = Allowance()


class ExtensionTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[[agents.ID.extensions]]`: an extension that the agent declares. `params` is what its card says of it."""

    uri: str
    description: str = ""
    required: bool = False
    params: dict[str, Any] = {}


class ModelTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[agents.ID.openai]`: a model behind an OpenAI-compatible endpoint, asked by streamed chat completions."""

    base_url: str = ""
    model: str = ""
    system: str = ""
    api_key_env: str = ""
    headers_env: dict[str, str] = {}
    idle: str = "30s"


class AgentTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[agents.ID]`: an agent to serve: Python, a command, a model behind an endpoint, or a remote A2A agent.

    What is set here goes over what the agent sets itself. `extensions` are tables, or URIs of those that are shipped.
    """

    python: str = ""
    default: bool = False
    versions: tuple[str, ...] | None = None
    idempotency: str | None = None
    input_modes: tuple[str, ...] | None = None
    strict_input_modes: bool | None = None
    on_lost_worker: str | None = None
    max_attempts: int | None = None
    deadline: str | None = None
    parked_deadline: str | None = None
    max_runs: int | None = None
    max_waiting: int | None = None
    legacy_card: bool | None = None
    extensions: tuple[str | ExtensionTable, ...] | None = None
    tenant: str = ""
    workspace: str = ""
    public: bool = False
    extended_card: bool | None = None
    push: bool | None = None
    command: tuple[str, ...] = ()
    command_env: tuple[str, ...] = ()
    openai: ModelTable | None = None
    a2a: str | RemoteTable | None = None
    name: str | None = None
    description: str | None = None
    version: str | None = None
    output_modes: tuple[str, ...] | None = None
    max_output: int | None = None


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration."""

    server: Server = Server()
    store: Store = Store()
    engine: EngineTable = EngineTable()
    worker: WorkerTable = WorkerTable()
    limits: Limits = Limits()
    retention: Retention = Retention()
    auth: Auth = Auth()
    signing: SigningTable = SigningTable()
    hosted: Hosted = Hosted()
    vault: VaultTable = VaultTable()
    outbound: Outbound = Outbound()
    agents: dict[str, AgentTable] = {}
    tenants: dict[str, TenantTable] = {}

    @property
    def authenticates(self) -> bool:
        """Whether callers have to show who they are."""
        return bool(self.tenants) or self.auth.oidc is not None


_SECTIONS: Mapping[str, type[Struct]] = {
    "server": Server,
    "store": Store,
    "engine": EngineTable,
    "engine.temporal": TemporalTable,
    "worker": WorkerTable,
    "limits": Limits,
    "limits.rate": Bound,
    "limits.running": Bound,
    "limits.stored": Bound,
    "retention": Retention,
    "auth.oidc": Oidc,
    "signing": SigningTable,
    "hosted": Hosted,
    "vault": VaultTable,
    "outbound": Outbound,
}
"""The sections whose keys are known by name, so that the environment can set them too."""


def read_config(document: Mapping[str, Any], environment: Mapping[str, str], source: str) -> Config:
    """Return the configuration in a parsed TOML document, with the environment's variables over it.

    Raises:
        ConfigError: a key is unknown or a value is wrong.
    """
    config = _converted(document, environment, source)
    _check_values(config, source)
    return config


def _converted(document: Mapping[str, Any], environment: Mapping[str, str], source: str) -> Config:
    merged: dict[str, Any] = copy.deepcopy(dict(document))
    check_names(merged, Config, f"{source}: ")
    check_table(merged.get("auth", {}), Auth, source, "auth")
    for section, kind in _SECTIONS.items():
        check_table(table_at(merged, section), kind, source, section)
    for section, table in from_environment(environment, _SECTIONS).items():
        place = merged
        for name in section.split("."):
            place = place.setdefault(name, {})
        place.update(table)
    agents = merged.get("agents", {})
    if not isinstance(agents, Mapping):
        raise ConfigError(f"{source}: agents must be tables such as [agents.demo]")
    for agent_id, table in agents.items():
        check_table(table, AgentTable, source, f"agents.{agent_id}")
        _check_extensions(table.get("extensions"), f"{source}: agents.{agent_id}.extensions")
        if "openai" in table:
            check_table(table["openai"], ModelTable, source, f"agents.{agent_id}.openai")
        if isinstance(table.get("a2a"), Mapping):
            check_table(table["a2a"], RemoteTable, source, f"agents.{agent_id}.a2a")
    for section, kind in _SECTIONS.items():
        convert(table_at(merged, section), kind, source, section)
    for agent_id, table in agents.items():
        convert(table, AgentTable, source, f"agents.{agent_id}")
    _check_tenants(merged.get("tenants", {}), source)
    return msgspec.convert(merged, Config)


def _age(text: str, key: str, why: str) -> float:
    try:
        age = seconds(text, key)
    except ConfigError:
        raise ConfigError(
            f'{key} = "{text}" is no age; write a number and a unit, "12h" or "30d", or "{FOREVER}" to keep all'
        ) from None
    if age < SHORTEST_AGE:
        raise ConfigError(
            f'{key} = "{text}" is too short: {why}; write "1m" or more, or "{FOREVER}" to keep all'
        )
    return age


def host_and_port(text: str, key: str = "server.listen") -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, the value of `key`.

    Raises:
        ConfigError: it is no such thing.
    """
    form = _LISTEN.fullmatch(text)
    if form is None or int(form[2]) > 65535:
        raise ConfigError(f'{key} = "{text}" must be HOST:PORT, such as 127.0.0.1:8080')
    return form[1].strip("[]"), int(form[2])


def _check_extensions(extensions: Any, path: str) -> None:
    """Make sure that each extension in a list is a URI or a table with one."""
    for index, extension in enumerate(extensions if isinstance(extensions, list) else []):
        place = f"{path}[{index}]"
        if isinstance(extension, Mapping):
            check_names(extension, ExtensionTable, f"{place}.")
        if not isinstance(extension, str) and not (isinstance(extension, Mapping) and "uri" in extension):
            raise ConfigError(f"{place} must be a URI or a table with one: {{ uri = ... }}")


def _check_tenants(tenants: Any, source: str) -> None:
    """Make sure that what `[tenants]` holds has the right names and types, however deep."""
    if not isinstance(tenants, Mapping):
        raise ConfigError(f"{source}: tenants must be tables such as [tenants.acme]")
    for name, tenant in tenants.items():
        path = f"tenants.{name}"
        check_table(tenant, TenantTable, source, path)
        check_table(tenant.get("limits", {}), Allowance, source, f"{path}.limits")
        for kind, bound in tenant.get("limits", {}).items():
            check_table(bound, Bound, source, f"{path}.limits.{kind}")
        principals = tenant.get("principals", {})
        if not isinstance(principals, Mapping):
            raise ConfigError(f"{source}: {path}.principals must be tables such as [{path}.principals.alice]")
        for who, principal in principals.items():
            place = f"{path}.principals.{who}"
            check_table(principal, PrincipalTable, source, place)
            tokens = principal.get("tokens", [])
            for index, token in enumerate(tokens if isinstance(tokens, list) else []):
                check_table(token, TokenRef, source, f"{place}.tokens[{index}]")
        convert(tenant, TenantTable, source, path)


def _check_values(config: Config, source: str) -> None:
    try:
        _check_server(config.server)
        _check_engine(config)
        _check_limits(config.limits)
        config.retention.ages()
        config.retention.audit_age()
        store, signing = config.store, config.signing
        for key, fault in (("url", url_fault(store.url)), ("pooling", pooling_fault(store.pooling))):
            if fault:
                raise ConfigError(f"store.{key} {fault}")
        if wrong := flaw(signing.alg, seconds(signing.overlap, "signing.overlap")):
            raise ConfigError(f"signing.{wrong}")
        _check_hosted(config.hosted)
        _check_outbound(config.outbound, config.vault)
        if config.auth.oidc is not None:
            check_oidc(config.auth.oidc)
        for agent_id, table in config.agents.items():
            _check_agent(agent_id, table, config)
        for name, tenant in config.tenants.items():
            _check_tenant(name, tenant)
        if sum(table.default for table in config.agents.values()) > 1:
            raise ConfigError("only one agent can have default = true")
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _check_server(server: Server) -> None:
    host_and_port(server.listen)
    seconds(server.notice, "server.notice")
    seconds(server.drain, "server.drain")
    if seconds(server.heartbeat, "server.heartbeat") < 0.1:
        raise ConfigError('server.heartbeat must be at least "100ms"')
    if server.public_url and not re.fullmatch(r"https?://[^/\s?#]+", server.public_url):
        raise ConfigError("server.public_url must be an origin like https://agents.example.com, and no path")
    if server.base_path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", server.base_path):
        raise ConfigError("server.base_path must look like /a/b: a slash first and none at the end")
    _check_origins(server.cors_origins)
    for host in server.hosts:
        if not is_host(host):
            raise ConfigError(
                f'server.hosts: "{host}" is no host; write a name in lower case or an address, without a port'
            )
    try:
        networks_of(server.trusted_proxies)
    except ValueError as error:
        raise ConfigError(
            f"server.trusted_proxies: {error}; write an address or a network, such as 10.0.0.0/8"
        ) from error


def _check_engine(config: Config) -> None:
    host_and_port(config.worker.listen, "worker.listen")
    for key in ("lease", "sweep"):
        if seconds(getattr(config.engine, key), f"engine.{key}") <= 0:
            raise ConfigError(f'engine.{key} must be longer than "0s"')
    try:
        check_engine(config.engine, shares_store=is_postgres(config.store.url))
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _check_limits(limits: Limits) -> None:
    seconds(limits.body_time, "limits.body_time")
    if limits.body < 1024:
        raise ConfigError("limits.body must be at least 1024 bytes")
    if limits.failed_auth < 1:
        raise ConfigError("limits.failed_auth must be at least 1")
    _check_allowance(limits.allowance, "limits")


def _check_allowance(allowance: Allowance, path: str) -> None:
    for name, most in allowance.limits().items():
        if not 1 <= most <= LARGEST:
            raise ConfigError(f"{path}.{name} must be 1 to {LARGEST}; leave it out for no limit")


def _check_hosted(hosted: Hosted) -> None:
    for key, text in (("deadline", hosted.deadline), ("observers.window", hosted.observers.window)):
        if seconds(text, f"hosted.{key}") <= 0:
            raise ConfigError(f'hosted.{key} must be longer than "0s"')
    bounds = hosted.observers
    for key, most in (
        ("global", bounds.everybody),
        ("tenant", bounds.tenant),
        ("principal", bounds.principal),
    ):
        if most < 1:
            raise ConfigError(f"hosted.observers.{key} must be at least 1")


def _check_outbound(outbound: Outbound, vault: VaultTable) -> None:
    try:
        check_outgoing(outbound, vault, seconds(outbound.retry, "outbound.retry"))
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _check_agent(agent_id: str, table: AgentTable, config: Config) -> None:
    if sum(map(bool, (table.python, table.command, table.openai, table.a2a))) != 1:
        raise ConfigError(
            f"agents.{agent_id}.python, .command, .openai or .a2a must be there, and only one of them"
        )
    for key in ("deadline", "parked_deadline"):
        if (text := getattr(table, key)) is not None:
            seconds(text, f"agents.{agent_id}.{key}")
    if table.tenant and not is_name(table.tenant):
        raise ConfigError(f"agents.{agent_id}.tenant: {table.tenant!r} is no name for a tenant")
    if table.workspace and not table.tenant:
        raise ConfigError(f"agents.{agent_id}.workspace: a workspace is a tenant's; write tenant as well")


def _check_tenant(name: str, tenant: TenantTable) -> None:
    for owner, kind in ((name, "tenant"), *((who, "principal") for who in tenant.principals)):
        if not is_name(owner):
            raise ConfigError(
                f"tenants.{name}: {owner!r} is no name for a {kind}; write lower-case letters, digits, . _ @ and -, "
                f"and neither {' nor '.join(RESERVED)}"
            )
    _check_allowance(tenant.limits, f"tenants.{name}.limits")
    for feature in tenant.features:
        if feature not in FEATURES:
            raise ConfigError(f"tenants.{name}.features: {feature} is none; there is {', '.join(FEATURES)}")
    for who, principal in tenant.principals.items():
        for index, token in enumerate(principal.tokens):
            place = f"tenants.{name}.principals.{who}.tokens[{index}]"
            if bool(token.env) == bool(token.file):
                raise ConfigError(f"{place} must have either env or file, which hold the token")
            for scope in token.scopes:
                if scope not in SCOPES:
                    near = difflib.get_close_matches(scope, SCOPES, n=1, cutoff=0.5)
                    hint = f"did you mean {near[0]}? " if near else ""
                    raise ConfigError(
                        f'{place}.scopes: "{scope}" is none; {hint}there are {", ".join(SCOPES)}'
                    )


def _check_origins(origins: tuple[str, ...]) -> None:
    """Refuse what no browser ever sends as an origin (RFC 6454 §6.2): it would never match."""
    if "*" in origins:
        if len(origins) > 1:
            raise ConfigError('server.cors_origins: "*" is everybody; leave the others out, or leave it out')
        return
    for origin in origins:
        form = _ORIGIN.fullmatch(origin)
        if form is None or (form[1], form[3]) in (("https", "443"), ("http", "80")):
            raise ConfigError(
                f'server.cors_origins: "{origin}" is no origin as browsers write it; write scheme and host in lower '
                "case, a port unless it is the usual one, and no path, such as https://app.example.com"
            )
