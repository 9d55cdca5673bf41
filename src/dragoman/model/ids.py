"""Identifiers. All of ours are UUIDv7 (RFC 9562 §5.7): ordered by time, so that indexes grow at their end."""

import os
import threading
import time

_POOL_BYTES = 4096


class _Sequence:
    """Gives strictly increasing UUIDv7 values within the process, whatever the clock does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._pool = memoryview(b"")

    def next(self) -> str:
        with self._lock:
            # 48 bits of milliseconds and a 12-bit counter, held as one number so that overflow carries into time.
            stamp = max(time.time_ns() // 1_000_000 << 12, self._last + 1)
            self._last = stamp
            if not self._pool:
                # By the block: each call lets the interpreter lock go, and getting that back costs more than the id.
                self._pool = memoryview(os.urandom(_POOL_BYTES))
            chance, self._pool = self._pool[:8], self._pool[8:]
        bits = (
            (stamp >> 12) << 80
            | 0x7 << 76
            | (stamp & 0xFFF) << 64
            | 0b10 << 62
            | int.from_bytes(chance, "big") >> 2
        )
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_SEQUENCE = _Sequence()


def new_id() -> str:
    """Return a new UUIDv7 in its usual text form, greater than every one returned before by this process."""
    return _SEQUENCE.next()
