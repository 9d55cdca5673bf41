"""Denials on their way into the audit: the same ones are counted for a moment, so that a flood is a few rows."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from msgspec import structs

from dragoman.gateway.audit import Audit, AuditEntry
from dragoman.model.errors import Unavailable

GATHER_SECONDS = 2.0
"""Seconds for which denials are gathered before they are written."""

MOST = 1000
"""Different denials that are gathered at once; of what goes beyond, only the number is kept."""

OTHERS = AuditEntry(action="…", target="…", outcome="…")
"""Stands for what went beyond."""

_LOG = logging.getLogger("dragoman.audit")

Write = Callable[[Sequence[AuditEntry]], Awaitable[None]]


class AuditTrail(Audit):
    """Gathers denials and has them written. Lives on the serving loop."""

    def __init__(self, write: Write) -> None:
        """Write by `write`, which raises Unavailable if that is not possible just now."""
        self._write = write
        self._waiting: Counter[AuditEntry] = Counter()
        self._writing: asyncio.Task[None] | None = None

    def note(self, entry: AuditEntry) -> None:
        """See `Audit`."""
        known = entry in self._waiting or len(self._waiting) < MOST
        self._waiting[entry if known else OTHERS] += 1
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_soon())

    async def close(self) -> None:
        """Write what waits."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        try:
            await self._flush()
        except Unavailable as error:
            _LOG.error("%d denials are missing in the audit: %s", self._waiting.total(), error.message)

    async def _write_soon(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(GATHER_SECONDS)
                try:
                    await self._flush()
                except Unavailable as error:
                    _LOG.error("denials wait to be written to the audit: %s", error.message)
        finally:
            self._writing = None

    async def _flush(self) -> None:
        taken, self._waiting = self._waiting, Counter()
        if not taken:
            return
        try:
            await self._write([structs.replace(entry, times=times) for entry, times in taken.items()])
        except BaseException:
            # Nothing was written, or nobody knows: rather twice in the audit than not at all.
            self._waiting += taken
            raise
