"""The bound on failed authentication: who is refused, for how long, and who is not."""

import pytest

from dragoman.identity import Failures
from dragoman.model.errors import RateLimited


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def refusal(failures: Failures, address: str = "a", digest: bytes = b"guess") -> int | None:
    """How long a credential from an address has to wait; nothing if it is looked at."""
    try:
        failures.check(address, digest)
    except RateLimited as error:
        return error.retry_after
    return None


def counted(failures: Failures, times: int, address: str = "a") -> None:
    for _ in range(times):
        failures.count(address)


def test_so_many_failures_are_free_and_the_next_credential_is_refused() -> None:
    failures = Failures(3, 0.5, clock=Clock())
    assert refusal(failures) is None
    for _ in range(3):
        assert refusal(failures) is None
        failures.count("a")
    assert refusal(failures) == 2
    assert refusal(failures, "b") is None


def test_one_more_is_looked_at_after_exactly_the_time_that_was_named() -> None:
    clock = Clock()
    failures = Failures(3, 0.5, clock=clock)
    counted(failures, 3)
    clock.now += 1.5
    assert refusal(failures) == 1
    clock.now += 0.5
    assert refusal(failures) is None
    failures.count("a")
    assert refusal(failures) == 2


def test_an_address_that_keeps_quiet_has_all_of_them_again_and_no_more() -> None:
    clock = Clock()
    failures = Failures(3, 0.5, clock=clock)
    counted(failures, 3)
    clock.now += 1_000_000
    counted(failures, 2)
    assert refusal(failures) is None
    failures.count("a")
    assert refusal(failures) == 2


def test_failures_that_came_all_at_once_cost_no_more_than_the_bound() -> None:
    failures = Failures(3, 0.5, clock=Clock())
    counted(failures, 10_000)
    assert refusal(failures) == 2


def test_a_credential_that_was_good_from_there_before_is_still_looked_at() -> None:
    failures = Failures(1, 0.5, clock=Clock())
    failures.remember("a", b"good")
    counted(failures, 5)
    assert refusal(failures, digest=b"good") is None
    assert refusal(failures, digest=b"guess") == 2
    counted(failures, 5, "b")
    assert refusal(failures, "b", b"good") == 2, "it was never good from there"


def test_only_so_many_addresses_and_credentials_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.identity.failures.MOST_REMEMBERED", 2)
    failures = Failures(1, 0.5, addresses=2, clock=Clock())
    for address in "abc":
        failures.remember(address, b"good")
        failures.count(address)
    assert [refusal(failures, address) for address in "abc"] == [None, 2, 2]
    assert [refusal(failures, address, b"good") for address in "bc"] == [None, None]
    failures.remember("b", b"good")
    failures.remember("d", b"good")
    assert [refusal(failures, address, b"good") for address in "bc"] == [None, 2]
