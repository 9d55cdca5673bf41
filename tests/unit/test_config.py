"""The configuration: every key known, every wrong one named."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.config import (
    AgentTable,
    Config,
    ExtensionTable,
    ModelTable,
    PrincipalTable,
    Retention,
    TenantTable,
    TokenRef,
    host_and_port,
    read_config,
)
from dragoman.egress.settings import policy_of
from dragoman.engines.settings import EngineTable
from dragoman.model.allowance import Allowance, Bound
from dragoman.protocol.hosts import is_loopback
from dragoman.tables import ConfigError, seconds

DAY = 86_400


def read(document: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> Config:
    return read_config(document or {}, environment or {}, "dragoman.toml")


def refused(document: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as refusal:
        read(document, environment)
    return str(refusal.value)


def test_nothing_configured_is_a_configuration() -> None:
    config = read()
    assert (config.server.listen, config.server.public_url, config.server.drain) == (
        "127.0.0.1:8080",
        "",
        "30s",
    )
    assert (config.store.url, config.engine.kind, config.engine.lease) == ("", "embedded", "15s")
    assert (config.limits.body, config.limits.body_time) == (4 * 1024 * 1024, "30s")
    assert config.retention.ages() == dict.fromkeys(("completed", "failed", "canceled", "rejected"), 30 * DAY)
    assert config.agents == {}


def test_every_key_is_read() -> None:
    config = read(
        {
            "server": {
                "listen": "[::1]:0",
                "public_url": "https://a.example:8443",
                "base_path": "/a/b",
                "cors_origins": ["https://app.example", "http://localhost:3000"],
                "notice": "5s",
                "drain": "1m",
                "heartbeat": "20s",
            },
            "store": {"url": "sqlite:///x.db"},
            "engine": {"kind": "embedded", "lease": "2s", "sweep": "500ms", "max_runs": 50},
            "limits": {"body": 1024, "body_time": "5s", "rate": {"tenant": 600}, "stored": {"principal": 50}},
            "retention": {
                "terminal": "1h",
                "completed": "1m",
                "failed": "90d",
                "canceled": "never",
                "rejected": "2d",
                "audit": "400d",
            },
            "agents": {
                "demo": {
                    "python": "m:a",
                    "default": True,
                    "versions": ["1.0"],
                    "idempotency": "requested",
                    "input_modes": ["text/plain"],
                    "strict_input_modes": False,
                    "on_lost_worker": "fail",
                    "max_attempts": 5,
                    "deadline": "2h",
                    "parked_deadline": "3d",
                    "max_runs": 7,
                    "max_waiting": 30,
                    "legacy_card": False,
                    "extensions": ["urn:x", {"uri": "urn:y", "required": True, "params": {"a": 1}}],
                    "tenant": "acme",
                    "workspace": "lab",
                    "public": True,
                },
                "shell": {
                    "command": ["wc", "-w"],
                    "command_env": ["EDITOR"],
                    "name": "Counter",
                    "description": "Counts.",
                    "version": "2",
                    "output_modes": ["text/plain"],
                    "max_output": 10,
                },
                "model": {
                    "openai": {
                        "base_url": "http://127.0.0.1/v1",
                        "model": "m",
                        "system": "Be brief.",
                        "api_key_env": "KEY",
                        "headers_env": {"X-Team": "TEAM"},
                        "idle": "5s",
                    }
                },
            },
            "tenants": {
                "acme": {
                    "features": ["agent_api"],
                    "principals": {
                        "alice": {"workspaces": ["lab"], "tokens": [{"env": "ALICE", "scopes": ["a2a:*"]}]}
                    },
                    "limits": {"running": {"tenant": 9, "principal": 3}},
                }
            },
        }
    )
    alice = PrincipalTable(("lab",), (TokenRef(("a2a:*",), "ALICE"),))
    own = Allowance(running=Bound(9, 3))
    assert config.tenants == {"acme": TenantTable(("agent_api",), {"alice": alice}, own)}
    assert config.limits.allowance == Allowance(rate=Bound(tenant=600), stored=Bound(principal=50))
    assert (config.server.listen, config.limits.body) == ("[::1]:0", 1024)
    assert config.server.cors_origins == ("https://app.example", "http://localhost:3000")
    assert config.retention == Retention("1h", "1m", "90d", "never", "2d", "400d")
    assert config.agents["demo"] == AgentTable(
        "m:a",
        True,
        ("1.0",),
        "requested",
        ("text/plain",),
        False,
        "fail",
        5,
        "2h",
        "3d",
        7,
        30,
        False,
        ("urn:x", ExtensionTable("urn:y", "", True, {"a": 1})),
        "acme",
        "lab",
        True,
    )
    assert config.agents["shell"] == AgentTable(
        command=("wc", "-w"),
        command_env=("EDITOR",),
        name="Counter",
        description="Counts.",
        version="2",
        output_modes=("text/plain",),
        max_output=10,
    )
    model = ModelTable("http://127.0.0.1/v1", "m", "Be brief.", "KEY", {"X-Team": "TEAM"}, "5s")
    assert config.agents["model"] == AgentTable(openai=model)
    assert (config.engine.max_runs, EngineTable().max_runs) == (50, 1000)


@pytest.mark.parametrize(
    ("document", "wrong", "near"),
    [
        ({"servre": {}}, "servre", "server"),
        ({"agent": {"demo": {}}}, "agent", "agents"),
        ({"server": {"lisen": "x"}}, "server.lisen", "listen"),
        ({"server": {"public_ulr": "x"}}, "server.public_ulr", "public_url"),
        ({"store": {"uri": "x"}}, "store.uri", "url"),
        (
            {"agents": {"a": {"extensions": ["urn:x", {"uri": "urn:y", "require": True}]}}},
            "agents.a.extensions[1].require",
            "required",
        ),
        ({"engine": {"leese": "x"}}, "engine.leese", "lease"),
        ({"limits": {"bodytime": "x"}}, "limits.bodytime", "body_time"),
        ({"limits": {"rates": {}}}, "limits.rates", "rate"),
        ({"limits": {"rate": {"principle": 1}}}, "limits.rate.principle", "principal"),
        ({"tenants": {"acme": {"limit": {}}}}, "tenants.acme.limit", "limits"),
        ({"tenants": {"acme": {"limits": {"rat": {}}}}}, "tenants.acme.limits.rat", "rate"),
        (
            {"tenants": {"acme": {"limits": {"rate": {"tenent": 1}}}}},
            "tenants.acme.limits.rate.tenent",
            "tenant",
        ),
        ({"retention": {"complete": "1h"}}, "retention.complete", "completed"),
        ({"retention": {"cancelled": "1h"}}, "retention.cancelled", "canceled"),
        ({"agents": {"demo": {"pyton": "m:a"}}}, "agents.demo.pyton", "python"),
        ({"agents": {"demo": {"python": "m:a", "dead_line": "1h"}}}, "agents.demo.dead_line", "deadline"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(document: Any, wrong: str, near: str) -> None:
    assert refused(document) == f"dragoman.toml: {wrong} is not a key of this Dragoman; did you mean {near}?"


@pytest.mark.parametrize(
    ("outbound", "said"),
    [
        ({"allow": ["10.0.0.1/8"]}, 'outbound.allow: "10.0.0.1/8" is no range'),
        ({"allow": ["localhost"]}, 'outbound.allow: "localhost" is no range'),
        ({"ports": []}, "outbound.ports must be a list of ports"),
        ({"ports": [0]}, "outbound.ports must be a list of ports"),
        ({"ports": [65536]}, "outbound.ports must be a list of ports"),
        ({"ports": "all"}, "outbound.ports must be a list of ports"),
        ({"schemes": ["ftp"]}, 'outbound.schemes: "ftp" is none'),
        ({"schemes": []}, "outbound.schemes is empty"),
        ({"retry": "0s"}, 'outbound.retry must be longer than "0s"'),
        ({"retry": "soon"}, 'outbound.retry = "soon" is no duration'),
        ({"alow": []}, "outbound.alow is not a key of this Dragoman; did you mean allow?"),
    ],
)
def test_what_is_wrong_about_the_way_out_is_named(outbound: dict[str, Any], said: str) -> None:
    assert said in refused({"outbound": outbound})


def test_the_vaults_key_is_in_one_place() -> None:
    assert "vault.key_env and vault.key_file" in refused({"vault": {"key_env": "A", "key_file": "b"}})


def test_the_way_out_may_be_set_by_the_environment() -> None:
    outbound = read(
        environment={
            "DRAGOMAN_OUTBOUND_ALLOW": "127.0.0.0/8, ::1/128",
            "DRAGOMAN_OUTBOUND_PORTS": "443,8443",
            "DRAGOMAN_OUTBOUND_SCHEMES": "https,http",
        }
    ).outbound
    policy = policy_of(outbound)
    assert [str(one) for one in policy.allowed] == ["127.0.0.0/8", "::1/128"]
    assert (policy.ports, policy.schemes) == ((443, 8443), ("https", "http"))
    assert policy_of(read({"outbound": {"ports": "any"}}).outbound).ports is None


@pytest.mark.parametrize("section", ["remotes", "gateway"])
def test_a_section_of_a_feature_that_this_build_has_not_is_refused(section: str) -> None:
    said = refused({section: {"enabled": True}})
    assert said.startswith(f"dragoman.toml: {section} is not a key of this Dragoman; ")
    assert "did you mean" in said or "known here: server, store, engine, worker, " in said


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"server": 5}, "server"),
        ({"server": []}, "server"),
        ({"agents": []}, "agents"),
        ({"agents": {"demo": "m:a"}}, "agents.demo"),
        ({"server": {"listen": 8080}}, "server.listen"),
        ({"server": {"listen": "8080"}}, "server.listen"),
        ({"server": {"listen": ":8080"}}, "server.listen"),
        ({"server": {"listen": "host:"}}, "server.listen"),
        ({"server": {"listen": "host:65536"}}, "server.listen"),
        ({"server": {"listen": "::1:80"}}, "server.listen"),
        ({"server": {"listen": "http://host:80"}}, "server.listen"),
        ({"server": {"drain": 30}}, "server.drain"),
        ({"server": {"drain": "30"}}, "server.drain"),
        ({"server": {"notice": "soon"}}, "server.notice"),
        ({"server": {"heartbeat": "99ms"}}, "server.heartbeat"),
        ({"server": {"heartbeat": "15"}}, "server.heartbeat"),
        ({"server": {"public_url": "a.example"}}, "server.public_url"),
        ({"server": {"public_url": "https://a.example/path"}}, "server.public_url"),
        ({"server": {"public_url": "https://a.example/"}}, "server.public_url"),
        ({"server": {"public_url": "ftp://a.example"}}, "server.public_url"),
        ({"server": {"base_path": "a"}}, "server.base_path"),
        ({"server": {"base_path": "/a/"}}, "server.base_path"),
        ({"server": {"base_path": "/"}}, "server.base_path"),
        ({"server": {"base_path": "/a b"}}, "server.base_path"),
        ({"store": {"url": "mysql://host/db"}}, "store.url"),
        ({"store": {"url": "postgresql://[::1/db"}}, "store.url"),
        ({"store": {"url": "postgresql://me:secret@host/db"}}, "store.url"),
        ({"store": {"url": "postgresql://me@host/db?password=secret"}}, "store.url"),
        ({"store": {"pooling": "statement"}}, "store.pooling"),
        ({"store": {"url": "x.db"}}, "store.url"),
        ({"engine": {"kind": "celery"}}, "engine.kind"),
        ({"engine": {"runs": "elsewhere"}}, "engine.runs"),
        ({"engine": {"runs": "workers"}}, "engine.runs"),
        ({"engine": {"temporal": {"address": ""}}}, "engine.temporal.address"),
        ({"engine": {"temporal": {"tls_cert_file": "c.pem"}}}, "engine.temporal.tls_cert_file"),
        ({"worker": {"listen": "8081"}}, "worker.listen"),
        ({"engine": {"lease": "0s"}}, "engine.lease"),
        ({"engine": {"lease": "-5s"}}, "engine.lease"),
        ({"engine": {"sweep": "soon"}}, "engine.sweep"),
        ({"engine": {"sweep": "0ms"}}, "engine.sweep"),
        ({"engine": {"max_runs": 0}}, "engine.max_runs"),
        ({"engine": {"max_runs": "1000"}}, "engine.max_runs"),
        ({"limits": {"body": 10}}, "limits.body"),
        ({"limits": {"body": "4 MiB"}}, "limits.body"),
        ({"limits": {"body": 1.5}}, "limits.body"),
        ({"limits": {"body": True}}, "limits.body"),
        ({"limits": {"body_time": "1 min"}}, "limits.body_time"),
        ({"limits": {"failed_auth": 0}}, "limits.failed_auth"),
        ({"server": {"hosts": ["Box.internal"]}}, 'server.hosts: "Box.internal"'),
        ({"server": {"hosts": ["box.internal:80"]}}, 'server.hosts: "box.internal:80"'),
        ({"server": {"trusted_proxies": ["proxy"]}}, "server.trusted_proxies: 'proxy'"),
        ({"server": {"trusted_proxies": ["10.0.0.1/8"]}}, "server.trusted_proxies: 10.0.0.1/8"),
        ({"limits": {"failed_auth": "20"}}, "limits.failed_auth"),
        (
            {"tenants": {"a": {"principals": {"b": {"tokens": [{"env": "E", "scopes": ["a2a:reed"]}]}}}}},
            'tenants.a.principals.b.tokens[0].scopes: "a2a:reed" is none; did you mean a2a:read? there are ai:answer',
        ),
        (
            {"tenants": {"a": {"principals": {"b": {"tokens": [{"env": "E", "scopes": ["*", " a2a:*"]}]}}}}},
            'tenants.a.principals.b.tokens[0].scopes: " a2a:*" is none; did you mean a2a:*?',
        ),
        ({"limits": {"rate": 60}}, "limits.rate"),
        ({"limits": {"rate": {"tenant": 0}}}, "limits.rate.tenant"),
        ({"limits": {"running": {"principal": -1}}}, "limits.running.principal"),
        ({"limits": {"stored": {"tenant": "9"}}}, "limits.stored.tenant"),
        ({"tenants": {"acme": {"limits": {"stored": {"tenant": 0}}}}}, "tenants.acme.limits.stored.tenant"),
        ({"tenants": {"acme": {"limits": {"rate": 9}}}}, "tenants.acme.limits.rate"),
        ({"tenants": {"acme": {"limits": []}}}, "tenants.acme.limits"),
        ({"retention": {"terminal": "soon"}}, "retention.terminal"),
        ({"retention": {"terminal": "0s"}}, "retention.terminal"),
        ({"retention": {"terminal": "59s"}}, "retention.terminal"),
        ({"retention": {"terminal": "Never"}}, "retention.terminal"),
        ({"retention": {"terminal": ""}}, "retention.terminal"),
        ({"retention": {"terminal": 30}}, "retention.terminal"),
        ({"retention": {"terminal": False}}, "retention.terminal"),
        ({"retention": {"failed": "90"}}, "retention.failed"),
        ({"retention": {"rejected": "1s"}}, "retention.rejected"),
        ({"agents": {"demo": {}}}, "agents.demo.python"),
        ({"agents": {"demo": {"python": ""}}}, "agents.demo.python"),
        ({"agents": {"demo": {"python": 5}}}, "agents.demo.python"),
        ({"agents": {"demo": {"python": "m:a", "command": ["x"]}}}, "only one of them"),
        ({"agents": {"demo": {"command": "wc"}}}, "agents.demo.command must be a list"),
        ({"agents": {"demo": {"openai": {"modle": "m"}}}}, "agents.demo.openai.modle is not a key"),
        ({"agents": {"demo": {"openai": "m"}}}, "agents.demo.openai must be a table"),
        ({"agents": {"demo": {"openai": {"model": 5}}}}, "agents.demo.openai.model must be a string"),
        ({"agents": {"demo": {"python": "m:a", "deadline": "tomorrow"}}}, "agents.demo.deadline"),
        ({"agents": {"demo": {"python": "m:a", "deadline": 3600}}}, "agents.demo.deadline"),
        ({"agents": {"demo": {"python": "m:a", "max_runs": "many"}}}, "agents.demo.max_runs"),
        ({"agents": {"demo": {"python": "m:a", "max_waiting": 1.5}}}, "agents.demo.max_waiting"),
        ({"agents": {"demo": {"python": "m:a", "versions": "1.0"}}}, "agents.demo.versions"),
        ({"agents": {"demo": {"python": "m:a", "versions": [1.0]}}}, "agents.demo.versions"),
        ({"agents": {"demo": {"python": "m:a", "default": "yes"}}}, "agents.demo.default"),
        ({"agents": {"demo": {"python": "m:a", "strict_input_modes": 1}}}, "agents.demo.strict_input_modes"),
    ],
)
def test_a_wrong_value_is_refused_by_its_key(document: Any, key: str) -> None:
    said = refused(document)
    assert said.startswith("dragoman.toml: ")
    assert key in said


def test_two_default_agents_are_refused() -> None:
    tables = {name: {"python": "m:a", "default": True} for name in ("a", "b")}
    assert refused({"agents": tables}) == "dragoman.toml: only one agent can have default = true"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, {"completed": 30 * DAY, "failed": 30 * DAY, "canceled": 30 * DAY, "rejected": 30 * DAY}),
        ({"terminal": "never"}, {}),
        ({"terminal": "never", "failed": "1d"}, {"failed": DAY}),
        (
            {"terminal": "2d", "failed": "never", "rejected": "1m"},
            {"completed": 2 * DAY, "canceled": 2 * DAY, "rejected": 60},
        ),
    ],
)
def test_a_final_state_has_its_own_age_or_the_general_one(
    table: dict[str, str], expected: dict[str, float]
) -> None:
    assert read({"retention": table}).retention.ages() == expected


def test_an_age_that_is_too_short_is_refused_with_the_reason_and_the_way_out() -> None:
    said = refused({}, {"DRAGOMAN_RETENTION_TERMINAL": "0s"})
    assert 'retention.terminal = "0s" is too short' in said
    assert '"1m"' in said
    assert '"never"' in said


def test_environment_variables_go_over_the_file() -> None:
    document = {"server": {"listen": "127.0.0.1:1", "drain": "1s"}, "limits": {"body": 2048}}
    environment = {
        "DRAGOMAN_SERVER_LISTEN": "127.0.0.1:2",
        "DRAGOMAN_SERVER_PUBLIC_URL": "https://a.example",
        "DRAGOMAN_LIMITS_BODY": "4096",
        "DRAGOMAN_LIMITS_BODY_TIME": "7s",
        "DRAGOMAN_STORE_URL": "sqlite:////x/y.db",
        "DRAGOMAN_SERVER_CORS_ORIGINS": "https://a.example, https://b.example,",
    }
    config = read(document, environment)
    assert (config.server.listen, config.server.drain) == ("127.0.0.1:2", "1s")
    assert config.server.public_url == "https://a.example"
    assert (config.limits.body, config.limits.body_time) == (4096, "7s")
    assert config.store.url == "sqlite:////x/y.db"
    assert config.server.cors_origins == ("https://a.example", "https://b.example")
    assert document["server"] == {"listen": "127.0.0.1:1", "drain": "1s"}


def test_variables_that_are_not_ours_are_left_alone() -> None:
    environment = {
        "SERVER_LISTEN": "x",
        "DRAGOMAN_REQUIRE_ALL": "1",
        "DRAGOMAN_AGENT_URL": "x",
        "dragoman_server_listen": "x",
        "MY_DRAGOMAN_SERVER_LISTEN": "x",
        "DRAGOMAN_": "x",
    }
    assert read({}, environment) == read()


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("DRAGOMAN_SERVER_LISTN", "listen"),
        ("DRAGOMAN_STORE_URI", "url"),
        ("DRAGOMAN_LIMITS_BODYTIME", "body_time"),
    ],
)
def test_an_unknown_variable_of_a_section_is_refused_with_the_nearest_key(variable: str, near: str) -> None:
    said = refused({}, {variable: "x"})
    assert variable in said
    assert f"did you mean {near}?" in said


@pytest.mark.parametrize(
    ("variable", "value", "key"),
    [
        ("DRAGOMAN_SERVER_LISTEN", "8080", "server.listen"),
        ("DRAGOMAN_ENGINE_LEASE", "15", "engine.lease"),
        ("DRAGOMAN_LIMITS_BODY", "many", "limits.body"),
        ("DRAGOMAN_LIMITS_BODY", "-5", "limits.body"),
        ("DRAGOMAN_LIMITS_BODY", "", "limits.body"),
        ("DRAGOMAN_LIMITS_BODY", "²", "limits.body"),
        ("DRAGOMAN_LIMITS_BODY", "9" * 5000, "limits.body"),
        ("DRAGOMAN_SERVER", "x", "DRAGOMAN_SERVER"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_key(variable: str, value: str, key: str) -> None:
    assert key in refused({}, {variable: value})


def test_a_variable_over_a_section_that_is_no_table_is_refused_by_that_section() -> None:
    assert "server must be a table" in refused({"server": 5}, {"DRAGOMAN_SERVER_LISTEN": "127.0.0.1:1"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 0.5), ("0s", 0), ("1.5s", 1.5), ("30s", 30), ("5m", 300), ("1h", 3600), ("7d", 604_800)],
)
def test_durations_are_a_number_and_a_unit(text: str, expected: float) -> None:
    assert seconds(text, "k") == expected


@pytest.mark.parametrize(
    "text", ["", "5 s", " 5s", "5s\n", *"5 s -5s +5s 5S 5sec 1h30m .5s 5.s 1e3s ∞".split()]
)
def test_what_is_no_duration_is_refused_by_its_key(text: str) -> None:
    with pytest.raises(ConfigError, match=r"engine\.lease"):
        seconds(text, "engine.lease")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:65535", ("::1", 65535)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("a-b.example:1", ("a-b.example", 1)),
    ],
)
def test_a_place_to_listen_is_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert host_and_port(text) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("128.0.0.1", False),
        ("example.org", False),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org", False),
        ("127.example.org", False),
        ("", False),
    ],
)
def test_only_this_machine_reaches_a_loopback_address(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_signing_has_its_table() -> None:
    table = {"alg": "EdDSA", "key_file": "/run/keys.json", "overlap": "30d"}
    config = read_config({"signing": table}, {}, "x.toml")
    assert (config.signing.alg, config.signing.key_file, config.signing.overlap) == tuple(table.values())
    usual = read_config({}, {"DRAGOMAN_SIGNING_KEY_FILE": "k.json"}, "the environment").signing
    assert (usual.alg, usual.key_file, usual.overlap) == ("ES256", "k.json", "7d")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"alg": "HS256"}, 'signing.alg = "HS256" is none of ES256, EdDSA'),
        ({"alg": "none"}, 'signing.alg = "none" is none of ES256, EdDSA'),
        ({"overlap": "9m"}, 'signing.overlap must be "10m" or more'),
        ({"overlap": "soon"}, 'signing.overlap = "soon" is no duration'),
        ({"key": "x"}, "signing.key is not a key of this Dragoman"),
    ],
)
def test_signing_that_cannot_be_is_refused(table: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read_config({"signing": table}, {}, "x.toml")


def test_limits_can_come_from_the_environment() -> None:
    variables = {"DRAGOMAN_LIMITS_RATE_PRINCIPAL": "60", "DRAGOMAN_LIMITS_BODY": "2048"}
    config = read_config({"limits": {"rate": {"tenant": 600, "principal": 6}}}, variables, "here")
    assert config.limits.rate == Bound(tenant=600, principal=60)
    assert config.limits.body == 2048
    with pytest.raises(ConfigError, match=r"DRAGOMAN_LIMITS_RATE_PRINCIPLE: limits\.rate\.principle"):
        read_config({}, {"DRAGOMAN_LIMITS_RATE_PRINCIPLE": "60"}, "here")
    with pytest.raises(ConfigError, match=r"limits\.rate must be a table"):
        read_config({}, {"DRAGOMAN_LIMITS_RATE": "60"}, "here")


@pytest.mark.parametrize("wrong", [3, ["urn:x"], {"required": True}])
def test_an_extension_that_is_neither_a_uri_nor_a_table_with_one_is_refused(wrong: Any) -> None:
    said = refused({"agents": {"a": {"extensions": ["urn:x", wrong]}}})
    assert said == "dragoman.toml: agents.a.extensions[1] must be a URI or a table with one: { uri = ... }"
