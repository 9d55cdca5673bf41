"""The configuration: one TOML document, environment variables over it, flags over both. Typed; no I/O here.

Every key that this build knows is a field below; anything else is refused with the nearest name that exists.
"""

import difflib
import ipaddress
import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct

from dragoman.model.principal import RESERVED

ENVIRONMENT_PREFIX = "DRAGOMAN_"

FOREVER = "never"
"""What stands for an age that is never reached."""

SHORTEST_AGE = 60.0
"""Seconds that a finished task is kept at least: a caller must be able to read it, and to send its message again."""
FEATURES = ("agent_api",)
"""What a tenant can be given beyond the open surfaces."""

NAME_PATTERN = r"[a-z0-9][a-z0-9._@-]{0,127}"
"""Tenants, principals and workspaces."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LISTEN = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:\s\[\]]+):(\d{1,5})")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([a-z0-9._-]+|\[[0-9a-f:]+\])(?::([1-9]\d{0,4}))?", re.ASCII)

S = TypeVar("S", bound=Struct)


class ConfigError(Exception):
    """A configuration is wrong; the message names the key and what would be right."""


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """`[server]`: where the server listens and what it is called outside.

    `cors_origins` are the origins whose pages may call it from a browser; `*` alone is every page.
    """

    listen: str = "127.0.0.1:8080"
    public_url: str = ""
    base_path: str = ""
    cors_origins: tuple[str, ...] = ()
    drain: str = "30s"


class Store(Struct, frozen=True, forbid_unknown_fields=True):
    """`[store]`: where tasks are kept."""

    url: str = ""


class Engine(Struct, frozen=True, forbid_unknown_fields=True):
    """`[engine]`: how runs are executed. `lease` and `sweep` bound how long a lost run lies."""

    kind: str = "embedded"
    lease: str = "15s"
    sweep: str = "5s"
    max_runs: int = 1000


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """`[limits]`: `body` is the size of a request body in bytes; `body_time` how long it may take to arrive."""

    body: int = 4 * 1024 * 1024
    body_time: str = "30s"


class Retention(Struct, frozen=True, forbid_unknown_fields=True):
    """`[retention]`: how long finished tasks are kept: `terminal` in general, the others for tasks that ended so.

    The time counts from the end of the task. Afterwards nothing of it is left.
    """

    terminal: str = "30d"
    completed: str | None = None
    failed: str | None = None
    canceled: str | None = None
    rejected: str | None = None

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
                found[state] = _age(text, f"retention.{key}")
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
    """A bearer token, by the environment variable or the file that holds it, and the scopes that it has."""

    scopes: tuple[str, ...]
    env: str = ""
    file: str = ""


class PrincipalTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[tenants.T.principals.P]`: somebody who may call, the workspaces they are granted, and their tokens."""

    workspaces: tuple[str, ...] = ()
    tokens: tuple[TokenRef, ...] = ()


class TenantTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[tenants.T]`: a tenant, the features that it has, and its principals."""

    features: tuple[str, ...] = ()
    principals: dict[str, PrincipalTable] = {}


class AgentTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[agents.ID]`: an agent to serve; `python` is `module:attribute` or `file.py:attribute`.

    What is set here goes over what the agent sets itself.
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
    tenant: str = ""
    workspace: str = ""
    public: bool = False


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration."""

    server: Server = Server()
    store: Store = Store()
    engine: Engine = Engine()
    limits: Limits = Limits()
    retention: Retention = Retention()
    hosted: Hosted = Hosted()
    agents: dict[str, AgentTable] = {}
    tenants: dict[str, TenantTable] = {}


_SECTIONS: Mapping[str, type[Struct]] = {
    "server": Server,
    "store": Store,
    "engine": Engine,
    "limits": Limits,
    "retention": Retention,
    "hosted": Hosted,
}


def read_config(document: Mapping[str, Any], environment: Mapping[str, str], source: str) -> Config:
    """Return the configuration in a parsed TOML document, with the environment's variables over it.

    Raises:
        ConfigError: a key is unknown or a value is wrong.
    """
    merged: dict[str, Any] = {
        name: dict(value) if isinstance(value, Mapping) else value for name, value in document.items()
    }
    _check_names(merged, Config, f"{source}: ")
    for section, kind in _SECTIONS.items():
        _check_table(merged.get(section, {}), kind, source, section)
    for section, table in _from_environment(environment).items():
        merged.setdefault(section, {}).update(table)
    agents = merged.get("agents", {})
    if not isinstance(agents, Mapping):
        raise ConfigError(f"{source}: agents must be tables such as [agents.demo]")
    for agent_id, table in agents.items():
        _check_table(table, AgentTable, source, f"agents.{agent_id}")
    for section, table in merged.items():
        if section in _SECTIONS:
            _convert(table, _SECTIONS[section], source, section)
    for agent_id, table in agents.items():
        _convert(table, AgentTable, source, f"agents.{agent_id}")
    _check_tenants(merged.get("tenants", {}), source)
    config = msgspec.convert(merged, Config)
    _check_values(config, source)
    return config


def seconds(text: str, key: str) -> float:
    """Return a duration such as "500ms", "30s", "1h" or "7d" in seconds.

    Raises:
        ConfigError: it is none; `key` is named.
    """
    form = _DURATION.fullmatch(text)
    if form is None:
        raise ConfigError(
            f'{key} = "{text}" is no duration; write a number and a unit: "500ms", "30s", "5m", "1h", "7d"'
        )
    return float(form[1]) * _UNITS[form[2]]


def durations(agent_id: str, table: AgentTable) -> dict[str, float]:
    """Return those settings of an agent's table that are durations and that it sets, in seconds.

    Raises:
        ConfigError: one is no duration.
    """
    texts = {"deadline": table.deadline, "parked_deadline": table.parked_deadline}
    return {
        name: seconds(text, f"agents.{agent_id}.{name}") for name, text in texts.items() if text is not None
    }


def _age(text: str, key: str) -> float:
    try:
        age = seconds(text, key)
    except ConfigError:
        raise ConfigError(
            f'{key} = "{text}" is no age; write a number and a unit, "12h" or "30d", or "{FOREVER}" to keep all'
        ) from None
    if age < SHORTEST_AGE:
        raise ConfigError(
            f'{key} = "{text}" is too short: a caller must find its task for a while; write "1m" or more, '
            f'or "{FOREVER}" to keep all'
        )
    return age


def host_and_port(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`.

    Raises:
        ConfigError: it is no such thing.
    """
    form = _LISTEN.fullmatch(text)
    if form is None or int(form[2]) > 65535:
        raise ConfigError(f'server.listen = "{text}" must be HOST:PORT, such as 127.0.0.1:8080')
    return form[1].strip("[]"), int(form[2])


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _from_environment(environment: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return what `DRAGOMAN_<SECTION>_<KEY>` variables set, by section."""
    found: dict[str, dict[str, Any]] = {}
    for variable, text in environment.items():
        section, _, key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().partition("_")
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        kind = _SECTIONS.get(section)
        if kind is None:
            # Other programs may have variables of this prefix, but not ones that differ from ours by a slip.
            near = difflib.get_close_matches(section, _SECTIONS, n=1, cutoff=0.75)
            if section == "agents":
                raise ConfigError(
                    f"{variable}: agents cannot be configured in the environment; use the TOML file"
                )
            if near:
                raise ConfigError(f"{variable}: there is no section {section}; did you mean {near[0]}?")
            continue
        _check_names({key: text}, kind, f"the environment variable {variable}: {section}.")
        value = _typed(kind, key, text)
        _convert({key: value}, kind, f"the environment variable {variable}", section)
        found.setdefault(section, {})[key] = value
    return found


def _convert(table: Any, kind: type[Struct], source: str, path: str) -> None:
    """Make sure that a table's values have their types, naming the key of one that has not."""
    try:
        msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        form = re.fullmatch(r"Expected `(.*)`, got `(.*)` - at `\$\.?(.*)`", str(error))
        if form is None:
            raise ConfigError(f"{source}: {path}: {error}") from error
        wanted, got = (_KINDS.get(name.split(" ")[0], name) for name in form.groups()[:2])
        raise ConfigError(f"{source}: {path}.{form[3]} must be {wanted}, not {got}") from error


_KINDS: Mapping[str, str] = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def _check_table(table: Any, kind: type[Struct], source: str, path: str) -> None:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{source}: {path} must be a table: [{path}]")
    _check_names(table, kind, f"{source}: {path}.")


def _check_names(table: Mapping[str, Any], kind: type[Struct], place: str) -> None:
    for name in table:
        if name not in kind.__struct_fields__:
            near = difflib.get_close_matches(name, kind.__struct_fields__, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(kind.__struct_fields__)}"
            raise ConfigError(f"{place}{name} is not a key of this Dragoman; {hint}")


def _typed(kind: type[Struct], key: str, text: str) -> Any:
    """Return an environment variable's text in the type of its key."""
    field = next(field for field in msgspec.structs.fields(kind) if field.encode_name == key)
    if get_origin(field.type) is tuple:
        return [piece.strip() for piece in text.split(",") if piece.strip()]
    wanted = [field.type, *get_args(field.type)]
    if bool in wanted:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    return int(text) if int in wanted and re.fullmatch(r"\d{1,18}", text, re.ASCII) else text


def _check_tenants(tenants: Any, source: str) -> None:
    """Make sure that what `[tenants]` holds has the right names and types, however deep."""
    if not isinstance(tenants, Mapping):
        raise ConfigError(f"{source}: tenants must be tables such as [tenants.acme]")
    for name, tenant in tenants.items():
        path = f"tenants.{name}"
        _check_table(tenant, TenantTable, source, path)
        principals = tenant.get("principals", {})
        if not isinstance(principals, Mapping):
            raise ConfigError(f"{source}: {path}.principals must be tables such as [{path}.principals.alice]")
        for who, principal in principals.items():
            place = f"{path}.principals.{who}"
            _check_table(principal, PrincipalTable, source, place)
            tokens = principal.get("tokens", [])
            for index, token in enumerate(tokens if isinstance(tokens, list) else []):
                _check_table(token, TokenRef, source, f"{place}.tokens[{index}]")
        _convert(tenant, TenantTable, source, path)


def _check_values(config: Config, source: str) -> None:
    try:
        _check_server(config.server)
        _check_engine(config.engine)
        seconds(config.limits.body_time, "limits.body_time")
        if config.limits.body < 1024:
            raise ConfigError("limits.body must be at least 1024 bytes")
        config.retention.ages()
        if config.store.url and not config.store.url.startswith("sqlite:///"):
            raise ConfigError('store.url must be "sqlite:///path" in this build')
        seconds(config.hosted.deadline, "hosted.deadline")
        seconds(config.hosted.observers.window, "hosted.observers.window")
        if config.hosted.enabled and not config.tenants:
            raise ConfigError(
                "hosted.enabled: nobody could call hosted agents; name tenants in [tenants.NAME]"
            )
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
    seconds(server.drain, "server.drain")
    if server.public_url and not re.fullmatch(r"https?://[^/\s?#]+", server.public_url):
        raise ConfigError(
            "server.public_url must be an origin such as https://agents.example.com, without a path"
        )
    if server.base_path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", server.base_path):
        raise ConfigError("server.base_path must look like /a/b: a slash first and none at the end")
    _check_origins(server.cors_origins)


def _check_engine(engine: Engine) -> None:
    if seconds(engine.lease, "engine.lease") <= 0:
        raise ConfigError('engine.lease must be longer than "0s"')
    if seconds(engine.sweep, "engine.sweep") <= 0:
        raise ConfigError('engine.sweep must be longer than "0s"')
    if engine.max_runs < 1:
        raise ConfigError("engine.max_runs must be at least 1")
    if engine.kind != "embedded":
        raise ConfigError(f'engine.kind = "{engine.kind}" is not in this build; use "embedded"')


def _check_agent(agent_id: str, table: AgentTable, config: Config) -> None:
    if not table.python:
        raise ConfigError(f'agents.{agent_id}.python is missing; write python = "module:attribute"')
    durations(agent_id, table)
    if table.tenant and table.tenant not in config.tenants:
        raise ConfigError(f"agents.{agent_id}.tenant: there is no [tenants.{table.tenant}]")
    if table.workspace and not table.tenant:
        raise ConfigError(f"agents.{agent_id}.workspace: a workspace is a tenant's; write tenant as well")
    if table.public and not config.tenants:
        raise ConfigError(
            f"agents.{agent_id}.public: without [tenants.NAME] nobody has to show who they are; leave it out"
        )


def _check_tenant(name: str, tenant: TenantTable) -> None:
    for owner, kind in ((name, "tenant"), *((who, "principal") for who in tenant.principals)):
        if not re.fullmatch(NAME_PATTERN, owner) or owner in RESERVED:
            raise ConfigError(
                f"tenants.{name}: {owner!r} is no name for a {kind}; write lower-case letters, digits, . _ @ and -, "
                f"and neither {' nor '.join(RESERVED)}"
            )
    for feature in tenant.features:
        if feature not in FEATURES:
            raise ConfigError(f"tenants.{name}.features: {feature} is none; there is {', '.join(FEATURES)}")
    for who, principal in tenant.principals.items():
        for index, token in enumerate(principal.tokens):
            if bool(token.env) == bool(token.file):
                place = f"tenants.{name}.principals.{who}.tokens[{index}]"
                raise ConfigError(f"{place} must have either env or file, which hold the token")


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
