"""Waiting for something to become true, with a deadline instead of a guess."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(probe: Callable[[], T | None], *, what: str, seconds: float = 10.0, every: float = 0.02) -> T:
    """The first truthy value of `probe`, asked again each `every` seconds.

    Raises TimeoutError naming `what` when nothing truthy came within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {seconds} s: {what} (last seen: {value!r})")
        time.sleep(every)
