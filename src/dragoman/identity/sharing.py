"""Telling other servers what was drawn here, so that a rate is one for all that share a store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from dragoman.identity.gate import Gate
from dragoman.model.errors import Unavailable

EVERY_SECONDS = 0.2
"""Seconds between two tellings: what comes to several servers within them may be over the rate."""


class RateSharing:
    """Lives on the serving loop. A server that cannot tell the others bounds what comes to itself."""

    def __init__(self, gate: Gate, tell: Callable[[Sequence[str]], Awaitable[None]]) -> None:
        """Prepare to tell what passes a gate; `tell` raises Unavailable."""
        self._rates = gate.rates
        self._rates.shares = True
        self._tell = tell

    async def run(self) -> None:
        """Tell, again and again, until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            spent = self._rates.take_spent()
            if spent:
                try:
                    await self._tell(spent)
                except Unavailable:
                    # The store logs that; what comes next is told again.
                    continue
