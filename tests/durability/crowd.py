"""Many observers, in a process of their own: `tests/durability/watching.py`, started and asked."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from tests.harness.paths import CHECKOUT


@dataclass
class Crowd:
    """Observers that are all attached.

    Attributes:
        attached: seconds that this took.
        told: how many changes of state they were told of in the seconds after that, all together.
        p99: the age, in seconds, of the oldest hundredth of these when they came.
    """

    attached: float
    told: int
    p99: float
    _output: asyncio.StreamReader

    async def seen(self) -> dict[str, int]:
        """What they saw last, and how many of them, when all their streams have ended; `a gap` if events were lost."""
        report: dict[str, int] = json.loads(await self._output.readline())
        return report


@contextlib.asynccontextmanager
async def crowd(
    urls: Sequence[str], observers: int, task_ids: Sequence[str], seconds: float = 0.0
) -> AsyncIterator[Crowd]:
    """Have tasks of the agent `crowded` observed at each of the servers; they are watched for `seconds` at once."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.durability.watching", "crowded", f"{observers}", f"{seconds}", *urls),
        cwd=CHECKOUT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\n".join(task_ids).encode())
        process.stdin.write_eof()
        _, attached = (await process.stdout.readline()).decode().split()
        _, told, p99 = (await process.stdout.readline()).decode().split()
        yield Crowd(float(attached), int(told), float(p99), process.stdout)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
