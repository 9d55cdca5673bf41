"""Percentiles of measured times."""

import math
from collections.abc import Sequence


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile of `seconds`, in milliseconds.

    Raises:
        ValueError: if there is nothing to take it of.
    """
    if not seconds:
        raise ValueError("no times were measured")
    rank = max(1, math.ceil(percent / 100 * len(seconds)))
    return sorted(seconds)[rank - 1] * 1000
