"""Adding up totals outside of a server's own time."""

from typing import Any

from dragoman.stores.postgres import folding


async def fold_once(pool: Any) -> None:
    """Add up the steps that are there."""
    async with pool.acquire() as one:
        await folding.fold(one)
