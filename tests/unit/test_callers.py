"""Who may call by the configuration, and a server that others can reach only if somebody is named somewhere."""

from pathlib import Path

import pytest

from dragoman.app import check_listen, check_tenants
from dragoman.callers import declared, registry_of, without_tenant
from dragoman.config import Config, read_config
from dragoman.gateway.tenants import Kind
from dragoman.identity import hash_token
from dragoman.model.principal import rights_of
from dragoman.stores.sqlite import StoreError, administer
from dragoman.tables import ConfigError

TOKEN = "a-token-that-nobody-guesses"
HOSTED = {"hosted": {"enabled": True}}


def config(**more: object) -> Config:
    document = {
        "agents": {
            "one": {"python": "a:b", "tenant": "acme", "workspace": "hall"},
            "two": {"python": "a:b", "tenant": "umbrella"},
            "three": {"python": "a:b"},
        },
        "tenants": {
            "acme": {
                "features": ["agent_api"],
                "principals": {
                    "alice": {
                        "workspaces": ["lab"],
                        "sources": ["wiki"],
                        "tokens": [{"env": "ALICE", "scopes": ["ai:answer"]}],
                    },
                    "bob": {},
                },
            }
        },
    }
    return read_config({**document, **more}, {}, "dragoman.toml")


def test_the_names_of_the_configuration_are_declared() -> None:
    found = declared(config())
    assert found.features == {"acme": {"agent_api"}}
    assert found.principals == {("acme", "alice"), ("acme", "bob")}
    lab, hall, wiki = (Kind.WORKSPACE, "lab"), (Kind.WORKSPACE, "hall"), (Kind.SOURCE, "wiki")
    assert found.resources == {("acme", *lab), ("acme", *hall), ("acme", *wiki)}
    assert found.grants == {("acme", "alice"): {lab, wiki}, ("acme", "bob"): set()}


def test_a_token_of_the_configuration_is_called_by_its_place() -> None:
    credential = registry_of(config(), {"ALICE": TOKEN}).tokens[hash_token(TOKEN)]
    assert credential.id == credential.principal.credential == "tenants.acme.principals.alice.tokens[0]"
    assert credential.principal.rights == rights_of(["ai:answer"])


def test_an_agent_whose_tenant_is_nowhere_is_told_of() -> None:
    (warning,) = without_tenant(config(), {"acme"})
    assert warning.startswith("agents.two.tenant: there is no tenant umbrella, so nobody can call the agent;")
    assert "`dragoman tenant create umbrella`" in warning
    assert without_tenant(config(), {"acme", "umbrella"}) == []


def test_a_hosted_profile_without_any_tenant_is_told_of() -> None:
    (warning,) = without_tenant(config(agents={}, tenants={}, **HOSTED), set())
    assert warning.startswith("hosted.enabled: there is no tenant, so nobody can call hosted agents;")
    assert without_tenant(config(agents={}, tenants={}, **HOSTED), {"acme"}) == []


def test_a_server_is_refused_whose_tenants_are_neither_in_the_configuration_nor_in_its_store(
    tmp_path: Path,
) -> None:
    for wanted, key in (
        (config(), "agents.two.tenant"),
        (config(agents={}, tenants={}, **HOSTED), "hosted.enabled"),
    ):
        with pytest.raises(ConfigError, match=key):
            check_tenants(wanted, tmp_path)
    assert list(tmp_path.iterdir()) == []
    administer(tmp_path / "dragoman.db", lambda book: book.add_tenant("umbrella"))
    check_tenants(config(), tmp_path)
    check_tenants(config(agents={}, tenants={}, **HOSTED), tmp_path)
    administer(tmp_path / "dragoman.db", lambda book: book.remove_tenant("umbrella"))
    with pytest.raises(ConfigError, match="there is no tenant umbrella"):
        check_tenants(config(), tmp_path)


def test_others_may_reach_a_server_whose_tenants_are_kept_in_its_store(tmp_path: Path) -> None:
    reachable = config(server={"listen": "0.0.0.0:8080"}, tenants={})
    with pytest.raises(ConfigError, match="nobody would have to show who they are"):
        check_listen(reachable, tmp_path)
    assert list(tmp_path.iterdir()) == []
    administer(tmp_path / "dragoman.db", lambda book: book.add_tenant("acme"))
    assert check_listen(reachable, tmp_path) == ("0.0.0.0", 8080)
    administer(tmp_path / "dragoman.db", lambda book: book.remove_tenant("acme"))
    with pytest.raises(ConfigError, match="nobody would have to show who they are"):
        check_listen(reachable, tmp_path)


def test_a_store_that_cannot_be_read_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "dragoman.db").write_bytes(b"no database at all\n" * 400)
    with pytest.raises(StoreError, match=r"dragoman\.db"):
        check_listen(config(server={"listen": "0.0.0.0:8080"}, tenants={}), tmp_path)
