"""Runs `wrk` for one closed-loop measurement: so many callers, each waiting for its reply."""

import json
import resource
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from bench.environments import Unavailable
from bench.processes import Running
from bench.wire import EXPECTED, MESSAGE_ID, REFUSAL, Operation

_SCRIPT = Path(__file__).with_name("load.lua")
_REPLY_LIMIT = 10  # seconds that one reply may take
_RESULT = "bench-result "


@dataclass(frozen=True)
class Load:
    """What wrk saw in one run."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    errors: int
    """Bad replies, and connections that could not be made, read or written, or that timed out."""
    first_error: str
    client_cpu: float
    """Seconds of CPU that wrk took: when close to `seconds`, it is the limit, not the server."""


def find_wrk() -> str:
    """Where wrk is.

    Raises:
        Unavailable: if it is not installed.
    """
    found = shutil.which("wrk")
    if found is None:
        raise Unavailable("wrk is not installed (Debian: apt-get install wrk)")
    return found


def load(
    running: Running,
    operation: Operation,
    requests: list[bytes],
    connections: int,
    seconds: int,
) -> Load:
    """Send `requests` in turn from `connections` connections for `seconds` seconds."""
    # A run's seed is its start in milliseconds: two runs never share one, nor, so, a message id.
    time.sleep(0.002)
    seed = f"{time.time_ns() // 1_000_000:012x}"
    with NamedTemporaryFile() as file:
        file.write(b"\0".join(requests))
        file.flush()
        command = [find_wrk(), "--threads", "1", "--connections", str(connections)]
        command += ["--duration", f"{seconds}s", "--timeout", f"{_REPLY_LIMIT}s"]
        command += ["--script", str(_SCRIPT), f"http://{running.host}:{running.port}/", "--"]
        command += [file.name, MESSAGE_ID, seed, EXPECTED[operation].decode(), REFUSAL.decode()]
        before = _children_cpu()
        limit = seconds + _REPLY_LIMIT + 30
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"wrk did not end after {limit} s") from error
        client_cpu = _children_cpu() - before
    for line in done.stdout.splitlines():
        if line.startswith(_RESULT):
            return _as_load(json.loads(line.removeprefix(_RESULT)), client_cpu)
    raise Unavailable(f"wrk gave no result: {done.stdout[-500:]}{done.stderr[-500:]}")


def _as_load(result: dict[str, int | str], client_cpu: float) -> Load:
    counts = {name: value for name, value in result.items() if isinstance(value, int)}
    broken = {name: counts[name] for name in ("connect", "read", "write", "timeout")}
    shown = str(result["shown"]) or ", ".join(
        f"{count} {name} errors" for name, count in broken.items() if count
    )
    return Load(
        requests=counts["requests"],
        seconds=counts["microseconds"] / 1e6,
        p50_ms=counts["p50"] / 1e3,
        p99_ms=counts["p99"] / 1e3,
        errors=sum(broken.values()) + counts["failures"],
        first_error=shown,
        client_cpu=client_cpu,
    )


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
