"""Identifiers. All of ours are UUIDv7 (RFC 9562 §5.7): ordered by time, so that indexes grow at their end."""

import os
import threading
import time
from collections.abc import Iterator

_POOL_BYTES = 4096


class _Sequence:
    """Gives strictly increasing UUIDv7 values within the process, whatever the clock does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._pool: Iterator[int] = iter(())

    def next(self) -> str:
        with self._lock:
            # 48 bits of milliseconds and a 12-bit counter, held as one number so that overflow carries into time.
            stamp = max(time.time_ns() // 1_000_000 << 12, self._last + 1)
            self._last = stamp
            chance = next(self._pool, None)
            if chance is None:
                # By the block: each call lets the interpreter lock go, and getting that back costs more than the id.
                self._pool = iter(memoryview(os.urandom(_POOL_BYTES)).cast("Q"))
                chance = next(self._pool)
        return (
            f"{stamp >> 28:08x}-{stamp >> 12 & 0xFFFF:04x}-7{stamp & 0xFFF:03x}"
            f"-{0x8000 | chance >> 50:04x}-{chance & 0xFFFF_FFFF_FFFF:012x}"
        )


_SEQUENCE = _Sequence()


def new_id() -> str:
    """Return a new UUIDv7 in its usual text form, greater than every one returned before by this process."""
    return _SEQUENCE.next()
