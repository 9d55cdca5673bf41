"""Leases of observers."""

import asyncio

import pytest

from dragoman.gateway.watching import Lease, ObserverBounds, Watchers
from dragoman.model import Principal
from dragoman.model.errors import ObserverLimit

BOUNDS = ObserverBounds(everybody=6, tenant=4, principal=2)


def who(name: str, tenant: str = "acme") -> Principal:
    return Principal(tenant, name)


def enter(watchers: Watchers, principal: Principal) -> Lease:
    return asyncio.run(watchers.enter(principal))


def entered(watchers: Watchers, *names: str, tenant: str = "acme") -> list[Lease]:
    return [enter(watchers, who(name, tenant)) for name in names]


def test_the_usual_bounds_are_those_of_the_contract() -> None:
    bounds = ObserverBounds()
    assert (bounds.everybody, bounds.tenant, bounds.principal) == (256, 16, 4)


@pytest.mark.parametrize(
    ("there", "principal"),
    [
        ({"acme": ["a", "a"]}, who("a")),
        ({"acme": ["a", "a", "b", "c"]}, who("d")),
        ({"acme": ["a", "a", "b"], "globex": ["a", "b", "b"]}, who("c", "initech")),
    ],
    ids=["principal", "tenant", "everybody"],
)
def test_one_more_than_the_bound_is_refused_and_let_in_once_another_leaves(
    there: dict[str, list[str]], principal: Principal
) -> None:
    watchers = Watchers(BOUNDS)
    leases = [lease for tenant, names in there.items() for lease in entered(watchers, *names, tenant=tenant)]
    with pytest.raises(ObserverLimit) as refused:
        enter(watchers, principal)
    assert (refused.value.reason, refused.value.retry_after) == ("OBSERVER_LIMIT", 1)
    assert watchers.count() == len(leases), "a refusal counts nobody"
    leases[0].release()
    enter(watchers, principal)


def test_a_lease_is_released_once_however_often_it_is_given_back() -> None:
    watchers = Watchers(BOUNDS)
    first, _ = entered(watchers, "a", "a")
    first.release()
    first.release()
    assert watchers.count() == 1
    entered(watchers, "a")
    with pytest.raises(ObserverLimit):
        enter(watchers, who("a"))


def test_principals_of_one_name_in_two_tenants_have_bounds_of_their_own() -> None:
    watchers = Watchers(BOUNDS)
    entered(watchers, "a", "a")
    entered(watchers, "a", "a", tenant="globex")
    assert watchers.count() == 4


def test_nothing_is_kept_of_those_who_left() -> None:
    watchers = Watchers(BOUNDS)
    for number in range(50):
        entered(watchers, f"p{number}")[0].release()
    assert watchers.count() == 0
    assert not watchers._tenants and not watchers._principals
