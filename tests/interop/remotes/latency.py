"""What our server adds to a streamed send: `python -m tests.interop.remotes.latency [SENDS]`.

One caller streams the same message in turn from an agent on a2a-sdk 1.3.0 and from our agent that mirrors it, over
JSON-RPC and connections that are kept. The added latency is the difference of the medians.
"""

import http.client
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

from tests.interop.remotes.gateway import gateway, said
from tests.interop.test_remotes import new_remote

WARM = 50


class Caller:
    """One connection to one agent."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)

    def stream(self) -> tuple[float, float]:
        """The seconds until the first update of a streamed send, and until its task is completed."""
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendStreamingMessage",
            "params": said("echo", False, None, {}),
        }
        body = json.dumps(request)
        headers = {"A2A-Version": "1.0", "Content-Type": "application/json", "Accept": "text/event-stream"}
        started = time.perf_counter()
        self._connection.request("POST", self._path, body, headers)
        reply = self._connection.getresponse()
        first, state = 0.0, ""
        while line := reply.readline():
            if not line.startswith(b"data:"):
                continue
            update = json.loads(line.removeprefix(b"data:"))["result"].get("statusUpdate")
            if update is not None:
                first = first or time.perf_counter() - started
                state = update["status"]["state"]
                taken = time.perf_counter() - started
        if state != "TASK_STATE_COMPLETED":
            raise RuntimeError(f"the task ended as {state or 'nothing'}")
        return first, taken


def main() -> None:
    """Measure, and print the medians in milliseconds."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with (
        tempfile.TemporaryDirectory() as folder,
        new_remote("JSONRPC") as remote,
        gateway(Path(folder), {"clerk": remote.url}) as server,
    ):
        direct, through = Caller(f"{remote.url}/rpc"), Caller(f"{server.url}/agents/clerk/rpc")
        pairs = [(direct.stream(), through.stream()) for _ in range(WARM + count)][WARM:]
    for index, what in enumerate(("first update", "completed")):
        near, far = [one[index] for one, _ in pairs], [two[index] for _, two in pairs]
        added = (median(far) - median(near)) * 1000
        print(
            f"{what:12}  direct p50 {median(near) * 1000:6.2f} ms   through us p50 {median(far) * 1000:6.2f} ms   "
            f"added p50 {added:5.2f} ms   ({count} each; p95 {p95(near):.2f} and {p95(far):.2f} ms)"
        )


def p95(seconds: Sequence[float]) -> float:
    """The 95th percentile, in milliseconds."""
    return quantiles(seconds, n=20)[-1] * 1000


if __name__ == "__main__":
    main()
