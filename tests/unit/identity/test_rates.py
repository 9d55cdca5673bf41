"""Requests a minute: how many pass, when the next one does, and who pays for whom."""

import math

import pytest

from dragoman.identity import Rates
from dragoman.model import Principal
from dragoman.model.allowance import Allowance, Bound
from dragoman.model.errors import RateLimited

ALICE, BOB, CAROL = Principal("acme", "alice"), Principal("acme", "bob"), Principal("beta", "alice")


class Clock:
    """Seconds that a test passes itself."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rates(clock: Clock) -> Rates:
    return Rates(clock=clock)


def refusal(rates: Rates, who: Principal, allowance: Allowance) -> RateLimited:
    found = rates.draw(who, allowance)
    assert found is not None
    return found


def passes(rates: Rates, who: Principal, allowance: Allowance) -> int:
    """How many requests pass at once."""
    count = 0
    while rates.draw(who, allowance) is None:
        count += 1
    return count


@pytest.mark.parametrize("most", [1, 7, 60, 1000])
def test_as_many_as_in_a_minute_pass_at_once_and_then_one_whenever_it_is_due(
    rates: Rates, clock: Clock, most: int
) -> None:
    allowance = Allowance(rate=Bound(principal=most))
    assert passes(rates, ALICE, allowance) == most
    for _ in range(3):
        clock.now += 60 / most * 1.001
        assert passes(rates, ALICE, allowance) == 1
    clock.now += 60
    assert passes(rates, ALICE, allowance) == most
    clock.now += 86400
    assert passes(rates, ALICE, allowance) == most, "nobody saves more than a minute's worth"


@pytest.mark.parametrize("most", [1, 7, 60, 1000])
def test_whoever_waits_as_long_as_was_said_passes(rates: Rates, clock: Clock, most: int) -> None:
    allowance = Allowance(rate=Bound(principal=most))
    passes(rates, ALICE, allowance)
    wait = refusal(rates, ALICE, allowance).retry_after
    assert wait == math.ceil(60 / most)
    clock.now += wait
    assert rates.draw(ALICE, allowance) is None


def test_a_refused_request_costs_nothing(rates: Rates, clock: Clock) -> None:
    allowance = Allowance(rate=Bound(principal=1))
    assert rates.draw(ALICE, allowance) is None
    for _ in range(59):
        clock.now += 1
        refusal(rates, ALICE, allowance)
    clock.now += 1
    assert rates.draw(ALICE, allowance) is None


def test_principals_have_a_rate_of_their_own_also_of_the_same_name_in_another_tenant(rates: Rates) -> None:
    allowance = Allowance(rate=Bound(principal=2))
    assert [passes(rates, who, allowance) for who in (ALICE, BOB, CAROL)] == [2, 2, 2]


def test_the_principals_of_a_tenant_share_its_rate(rates: Rates) -> None:
    allowance = Allowance(rate=Bound(tenant=5, principal=3))
    assert [passes(rates, who, allowance) for who in (ALICE, BOB, CAROL)] == [3, 2, 3]
    assert refusal(rates, ALICE, allowance).metadata == {"limit": "rate.principal"}
    assert refusal(rates, BOB, allowance).metadata == {"limit": "rate.tenant"}


def test_who_is_over_its_own_rate_takes_nothing_from_the_others(rates: Rates) -> None:
    allowance = Allowance(rate=Bound(tenant=10, principal=3))
    passes(rates, ALICE, allowance)
    for _ in range(100):
        refusal(rates, ALICE, allowance)
    assert passes(rates, BOB, allowance) == 3


def test_a_limit_that_is_changed_holds_at_once(rates: Rates) -> None:
    assert passes(rates, ALICE, Allowance(rate=Bound(principal=10))) == 10
    assert passes(rates, BOB, Allowance(rate=Bound(principal=2))) == 2
    assert rates.draw(ALICE, Allowance(rate=Bound(principal=2))) is not None
    assert rates.draw(ALICE, Allowance()) is None


def test_who_has_not_asked_for_a_minute_is_forgotten_and_nobody_else(rates: Rates, clock: Clock) -> None:
    allowance = Allowance(rate=Bound(principal=2))
    for number in range(100):
        rates.draw(Principal("acme", f"p{number}"), allowance)
    clock.now += 59
    assert passes(rates, ALICE, allowance) == 2
    assert len(rates) == 101
    clock.now += 1
    rates.draw(BOB, allowance)
    assert len(rates) == 2
    assert passes(rates, ALICE, allowance) == 0


def test_nothing_is_remembered_where_nothing_is_bounded(rates: Rates) -> None:
    assert rates.draw(ALICE, Allowance(running=Bound(principal=1))) is None
    assert len(rates) == 0


def test_what_is_drawn_at_one_server_counts_at_the_other(clock: Clock) -> None:
    here, there = Rates(clock=clock), Rates(clock=clock)
    here.shares = there.shares = True
    allowance = Allowance(rate=Bound(principal=7, tenant=10))
    alice = Principal("ac me/é", "a:b c/d")
    assert passes(here, alice, allowance) == 7
    told = here.take_spent()
    assert here.take_spent() == []
    assert not any(" " in word for word in told)
    there.hear(told)
    assert passes(there, alice, allowance) == 0
    assert there.take_spent() == [], "what was heard is told to nobody"
    assert passes(there, Principal("ac me/é", "bob"), allowance) == 3, "the tenant's rate too"
    clock.now += 60 / 7 * 1.001
    assert passes(there, alice, allowance) == 1


def test_what_is_heard_of_somebody_unknown_is_forgotten_after_a_minute(rates: Rates, clock: Clock) -> None:
    rates.hear(["acme/alice:5", "acme/alice:3"])
    assert len(rates) == 1
    clock.now += 60
    rates.hear(["acme:1"])
    assert len(rates) == 1
    assert passes(rates, ALICE, Allowance(rate=Bound(principal=2))) == 2


def test_nothing_is_noted_to_be_told_where_nobody_is_told(rates: Rates) -> None:
    passes(rates, ALICE, Allowance(rate=Bound(principal=3)))
    assert rates.take_spent() == []
