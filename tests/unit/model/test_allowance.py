"""Bounds by their names, and some of them set to others."""

from dragoman.model.allowance import LIMITS, Allowance, Bound


def test_every_kind_has_a_bound_of_a_tenant_and_one_of_a_principal() -> None:
    assert LIMITS == (
        "rate.tenant",
        "rate.principal",
        "running.tenant",
        "running.principal",
        "stored.tenant",
        "stored.principal",
    )


def test_only_what_is_set_is_a_limit() -> None:
    assert Allowance().limits() == {}
    allowance = Allowance(rate=Bound(principal=60), stored=Bound(tenant=1000, principal=100))
    assert allowance.limits() == {"rate.principal": 60, "stored.tenant": 1000, "stored.principal": 100}


def test_a_tenants_own_limits_go_over_the_general_ones_one_by_one() -> None:
    general = Allowance(rate=Bound(tenant=600, principal=60), running=Bound(principal=5))
    own = general.with_others({"rate.principal": 10, "stored.tenant": 7})
    assert own == Allowance(
        rate=Bound(tenant=600, principal=10), running=Bound(principal=5), stored=Bound(tenant=7)
    )
    assert general.with_others({}) == general
