"""What principals are granted, by the picture of the moment."""

import pytest

from dragoman.identity import Failures, Gate, Registry
from dragoman.model import Principal

ALICE, TWIN, BOB = Principal("acme", "alice"), Principal("globex", "alice"), Principal("acme", "bob")
SOME = Registry(
    {"acme": ["agent_api"], "globex": []},
    {},
    {("acme", "alice"): ["lab"], ("globex", "alice"): ["office"]},
    {("acme", "alice"): ["wiki"]},
)


@pytest.mark.parametrize(
    ("principal", "workspace", "source"),
    [(ALICE, "lab", "wiki"), (TWIN, "office", "wiki"), (BOB, "lab", "wiki"), (ALICE, "Lab", "wiki2")],
)
def test_a_grant_is_one_principals_in_one_tenant_by_its_exact_name(
    principal: Principal, workspace: str, source: str
) -> None:
    enters = (principal, workspace) in {(ALICE, "lab"), (TWIN, "office")}
    uses = (principal, source) == (ALICE, "wiki")
    assert (SOME.may_enter(principal, workspace), SOME.may_use(principal, source)) == (enters, uses)


def test_two_pictures_add_up() -> None:
    more = Registry(
        {"globex": ["agent_api"]},
        {},
        {("acme", "alice"): ["attic"], ("acme", "bob"): ["lab"]},
        {("acme", "alice"): ["crm"], ("acme", "bob"): ["wiki"]},
    )
    both = SOME.with_more(more)
    assert all(both.may_enter(ALICE, one) for one in ("lab", "attic"))
    assert all(both.may_use(ALICE, one) for one in ("wiki", "crm"))
    assert both.may_enter(BOB, "lab") and both.may_use(BOB, "wiki")
    assert both.has_feature("globex", "agent_api") and both.has_feature("acme", "agent_api")
    assert not SOME.may_use(ALICE, "crm"), "neither of them is changed"


def test_a_gate_asks_the_picture_of_the_moment() -> None:
    gate = Gate(SOME, Failures(1, 1.0))
    assert (gate.may_enter(ALICE, "lab"), gate.may_use(ALICE, "wiki")) == (True, True)
    assert (gate.is_let_in(ALICE, "acme"), gate.is_let_in(TWIN, "globex"), gate.is_let_in(BOB, "globex")) == (
        True,
        False,
        False,
    )
    gate.registry = Registry({"acme": []})
    assert (gate.may_enter(ALICE, "lab"), gate.may_use(ALICE, "wiki")) == (False, False)
    assert not gate.is_let_in(ALICE, "acme")
