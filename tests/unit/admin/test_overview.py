"""What there is of tenants, in the store and in the configuration."""

import pytest

from dragoman.admin import Overview
from dragoman.admin.overview import PrincipalView, ResourceView, TenantView, nearest
from dragoman.gateway.tenants import Declared, Kept, Kind, Token
from dragoman.model.errors import EntryNotFound

WORKSPACE, SOURCE = Kind.WORKSPACE, Kind.SOURCE


def token(principal: str, name: str) -> Token:
    return Token(id=name, tenant="acme", principal=principal, scopes=("*",), note="", created_at=1)


KEPT = Kept(
    version=1,
    tenants=["acme", "umbrella"],
    features={"acme": frozenset({"b"}), "toml": frozenset({"c"})},
    principals=[("acme", "bob"), ("acme", "alice"), ("toml", "bob")],
    tokens={b"1": token("bob", "t1"), b"2": token("bob", "t2"), b"3": token("carol", "t3")},
    resources=[("acme", WORKSPACE, "lab"), ("acme", SOURCE, "wiki"), ("umbrella", WORKSPACE, "lab")],
    grants={
        ("acme", "bob"): frozenset({(WORKSPACE, "lab"), (SOURCE, "wiki")}),
        ("acme", "carol"): frozenset({(WORKSPACE, "office")}),
        ("umbrella", "bob"): frozenset({(WORKSPACE, "lab")}),
    },
    limits={"acme": {"rate.tenant": 600, "running.principal": 5}, "gone": {"stored.tenant": 1}},
)
DECLARED = Declared(
    features={"acme": frozenset({"a", "b"}), "toml": frozenset()},
    limits={"acme": {"rate.tenant": 60}, "toml": {"stored.principal": 9}},
    principals=frozenset({("acme", "bob"), ("acme", "carol")}),
    resources=frozenset({("acme", WORKSPACE, "lab"), ("acme", WORKSPACE, "hall"), ("toml", SOURCE, "mail")}),
    grants={("acme", "carol"): frozenset({(WORKSPACE, "hall"), (WORKSPACE, "lab")})},
)
VIEW = Overview(KEPT, DECLARED)


def test_tenants_of_both_are_shown_with_the_features_of_both() -> None:
    assert VIEW.tenants() == [
        TenantView(
            name="acme",
            origin="both",
            features=("a", "b"),
            principals=3,
            limits={"rate.tenant": 60, "running.principal": 5},
        ),
        TenantView(
            name="toml",
            origin="configuration",
            features=("c",),
            principals=1,
            limits={"stored.principal": 9},
        ),
        TenantView(name="umbrella", origin="store", features=(), principals=0, limits={}),
    ]
    assert VIEW.tenant("toml") == VIEW.tenants()[1]


def test_principals_of_both_are_shown_with_what_both_grant_them() -> None:
    assert VIEW.principals("acme") == [
        PrincipalView(name="alice", origin="store", workspaces=(), sources=(), tokens=0),
        PrincipalView(name="bob", origin="both", workspaces=("lab",), sources=("wiki",), tokens=2),
        PrincipalView(
            name="carol", origin="configuration", workspaces=("hall", "lab", "office"), sources=(), tokens=1
        ),
    ]
    assert VIEW.principals("umbrella") == []


def test_workspaces_and_sources_are_shown_with_whom_they_are_granted_to() -> None:
    assert VIEW.resources("acme", WORKSPACE) == [
        ResourceView(name="hall", origin="configuration", granted=("carol",)),
        ResourceView(name="lab", origin="both", granted=("bob", "carol")),
    ]
    assert VIEW.resources("acme", SOURCE) == [ResourceView(name="wiki", origin="store", granted=("bob",))]
    assert VIEW.resources("umbrella", WORKSPACE) == [ResourceView(name="lab", origin="store", granted=())]
    assert VIEW.resources("toml", WORKSPACE) == []
    assert VIEW.resources("toml", SOURCE) == [ResourceView(name="mail", origin="configuration", granted=())]


def test_a_tenant_that_is_not_there_has_nothing() -> None:
    for look in (VIEW.tenant, VIEW.principals, lambda name: VIEW.resources(name, WORKSPACE)):
        with pytest.raises(EntryNotFound, match="no tenant acne; did you mean acme"):
            look("acne")


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("acmee", ["acme", "umbrella"], "acme"),
        ("zzz", ["acme"], ""),
        ("acme", [], ""),
        ("lap", ["lab", "map"], "map"),
    ],
)
def test_the_nearest_name_is_the_one_that_looks_most_alike(name: str, known: list[str], near: str) -> None:
    assert nearest(name, known) == near
