"""`[auth.oidc]`: what names an issuer, and what is refused before anybody could rely on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.app import check_listen
from dragoman.config import Auth, Config, read_config
from dragoman.issuers import Oidc
from dragoman.tables import ConfigError

GOOD: Mapping[str, Any] = {"issuer": "https://login.example.com/realms/a", "audience": "dragoman"}


def read(table: Any, environment: Mapping[str, str] | None = None, **sections: Any) -> Config:
    return read_config({"auth": {"oidc": table}, **sections}, environment or {}, "dragoman.toml")


def refused(table: Any, environment: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        read(table, environment)
    return str(caught.value)


def test_every_key_is_read() -> None:
    table = {
        "issuer": "https://login.example.com",
        "audience": "a",
        "jwks_url": "https://keys.example.com/jwks?v=1",
        "tenant_claim": "https://example.com/tenant",
        "scope_claim": "scp",
        "principal_claim": "oid",
        "algorithms": ["ES384", "PS512"],
        "schemes": ["http"],
        "clock_skew": "10m",
        "jwks_max_age": "1h",
        "jwks_refetch": "1s",
        "jwks_stale": "0s",
    }
    assert set(table) == set(Oidc.__struct_fields__)
    lists = {"algorithms": ("ES384", "PS512"), "schemes": ("http",)}
    assert read(table).auth == Auth(Oidc(**{**table, **lists}))


def test_what_is_left_out_has_a_safe_value() -> None:
    oidc = read(GOOD).auth.oidc
    assert oidc is not None
    assert oidc.algorithms == ("ES256", "RS256", "EdDSA")
    assert oidc.schemes == ("https",)
    assert (oidc.tenant_claim, oidc.scope_claim, oidc.principal_claim) == ("tenant", "scope", "sub")
    assert oidc.clock_skew == "60s"


def test_there_is_no_issuer_unless_one_is_named() -> None:
    assert read_config({}, {}, "x").auth.oidc is None
    assert read_config({"auth": {}}, {}, "x").auth.oidc is None


def test_the_environment_goes_over_the_file() -> None:
    variables = {
        "DRAGOMAN_AUTH_OIDC_AUDIENCE": "other",
        "DRAGOMAN_AUTH_OIDC_JWKS_MAX_AGE": "5m",
        "DRAGOMAN_AUTH_OIDC_ALGORITHMS": "ES256, PS256",
    }
    oidc = read(GOOD, variables).auth.oidc
    assert oidc == Oidc(GOOD["issuer"], "other", jwks_max_age="5m", algorithms=("ES256", "PS256"))
    alone = {f"DRAGOMAN_AUTH_OIDC_{name.upper()}": value for name, value in GOOD.items()}
    document: dict[str, Any] = {"auth": {}}
    assert read_config(document, alone, "x").auth.oidc == Oidc(**GOOD)
    assert document == {"auth": {}}


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("DRAGOMAN_AUTH_OIDC_ISUER", "did you mean issuer?"),
        ("DRAGOMAN_AUTH_ISSUER", "did you mean auth.oidc?"),
        ("DRAGOMAN_AUTHS_OIDC_ISSUER", "did you mean auth.oidc?"),
        ("DRAGOMAN_TENANTS_ACME", "use the TOML file"),
    ],
)
def test_a_variable_that_is_almost_one_of_ours_is_refused(variable: str, said: str) -> None:
    message = refused(GOOD, {variable: "x"})
    assert variable in message and said in message


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"auth": {"oicd": {}}}, "auth.oicd is not a key of this Dragoman; did you mean oidc?"),
        (
            {"auth": {"oidc": {"isuer": "x"}}},
            "auth.oidc.isuer is not a key of this Dragoman; did you mean issuer?",
        ),
        ({"auth": {"oidc": {"jwk_url": "x"}}}, "did you mean jwks_url?"),
        ({"auth": []}, "auth must be a table"),
        ({"auth": {"oidc": "https://login.example.com"}}, "auth.oidc must be a table"),
        ({"auth": {"oidc": {"issuer": 5}}}, "auth.oidc.issuer must be a string, not a whole number"),
        ({"auth": {"oidc": {"algorithms": "ES256"}}}, "auth.oidc.algorithms must be a list, not a string"),
    ],
)
def test_an_unknown_key_or_a_wrong_type_is_refused_by_its_place(document: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(document, {}, "dragoman.toml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"issuer": ""}, "auth.oidc.issuer is missing"),
        ({"audience": ""}, "auth.oidc.audience is missing"),
        ({"tenant_claim": ""}, "auth.oidc.tenant_claim is missing"),
        ({"scope_claim": ""}, "auth.oidc.scope_claim is missing"),
        ({"principal_claim": ""}, "auth.oidc.principal_claim is missing"),
        *(
            ({"issuer": url}, "auth.oidc.issuer")
            for url in (
                *(
                    "login.example.com",
                    "ftp://login.example.com",
                    "https://",
                    "https:///a",
                    "//login.example.com",
                ),
                *(
                    "https://user:secret@login.example.com",
                    "https://login.example.com#f",
                    "https://a b.example",
                ),
                *(
                    "https://login.example.com?realm=a",
                    "https://login.example.com:99999",
                    "https://[::1",
                    "file:///x",
                ),
                *(
                    "https://login.example.com\n",
                    "https://lögin.example.com",
                    "https://login.example.com\\@evil",
                    "x",
                ),
            )
        ),
        *(
            ({"jwks_url": url}, "auth.oidc.jwks_url")
            for url in ("keys", "file:///etc/keys", "https://a@b.example/x")
        ),
        *(
            ({"issuer": url}, "https")
            for url in ("http://login.example.com", "http://10.0.0.1", "http://localhost.example.com")
        ),
        ({"jwks_url": "http://login.example.com/keys"}, "anybody on the way could exchange"),
        *(
            ({"algorithms": [name]}, "auth.oidc.algorithms")
            for name in ("none", "HS256", "ES256K", "es256", "RSA1_5", "")
        ),
        ({"algorithms": ["ES256", "HS512"]}, "HS512"),
        ({"algorithms": []}, "auth.oidc.algorithms is empty"),
        ({"schemes": ["ftp"]}, "auth.oidc.schemes"),
        ({"clock_skew": "11m"}, "auth.oidc.clock_skew"),
        ({"clock_skew": "60"}, "auth.oidc.clock_skew"),
        ({"jwks_max_age": "0s"}, "auth.oidc.jwks_max_age"),
        ({"jwks_refetch": "0s"}, "auth.oidc.jwks_refetch"),
        ({"jwks_stale": "for ever"}, "auth.oidc.jwks_stale"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_could_not_be_relied_on_is_refused_by_its_key(changes: dict[str, Any], key: str) -> None:
    message = refused({**GOOD, **changes})
    assert message.startswith("dragoman.toml: ") and key in message


@pytest.mark.parametrize(
    ("url", "schemes"),
    [
        ("https://login.example.com:8443/a/b/", ["https"]),
        ("https://[2001:db8::1]/", ["https"]),
        ("http://127.0.0.1:8080", ["https"]),
        ("http://localhost/realms/a", ["https"]),
        ("http://[::1]:1", ["https"]),
        ("http://keycloak.auth.svc:8080/realms/a", ["https", "http"]),
        ("https://login.example.com", []),
    ],
)
def test_https_and_this_machine_are_relied_on_and_what_the_operator_allows(
    url: str, schemes: list[str]
) -> None:
    oidc = read({**GOOD, "issuer": url, "jwks_url": url, "schemes": schemes}).auth.oidc
    assert oidc is not None and oidc.issuer == url


def test_with_an_issuer_others_may_reach_the_server(tmp_path: Path) -> None:
    server = {"listen": "0.0.0.0:8080"}
    agents = {"demo": {"python": "m:a", "public": True}}
    assert check_listen(read(GOOD, server=server, agents=agents), tmp_path) == ("0.0.0.0", 8080)
    with pytest.raises(ConfigError, match=r"an issuer in \[auth\.oidc\]"):
        check_listen(read_config({"server": server}, {}, "x"), tmp_path)
