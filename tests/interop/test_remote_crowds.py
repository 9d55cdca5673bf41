"""Many callers of a remote agent at once: each stream is passed on beside all the others."""

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from tests.harness.server import ServerProcess
from tests.interop.remotes import waiting
from tests.interop.remotes.gateway import said, state

pytestmark = [pytest.mark.interop, pytest.mark.alone, pytest.mark.timeout(300)]

CONFIG = """
[agents.clerk]
a2a = "{url}"
max_runs = {streams}
"""
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
HEADERS = {"A2A-Version": "1.0", "Accept": "text/event-stream"}


class Crowd:
    """So many streams of one agent. `begun` is set once all of them have told that the work began."""

    def __init__(self, streams: int) -> None:
        self.begun = asyncio.Event()
        self._left = streams
        self._streams = streams

    async def follow(self, url: str, text: str) -> list[list[str]]:
        """Follow all streams to their ends; return the states that each of them went through."""
        async with httpx2.AsyncClient(limits=LIMITS, timeout=120) as http:
            return await asyncio.gather(*(self._one(http, url, text) for _ in range(self._streams)))

    async def _one(self, http: httpx2.AsyncClient, url: str, text: str) -> list[str]:
        states = []
        request = said(text, False, None, {})
        async with http.stream("POST", f"{url}/message:stream", json=request, headers=HEADERS) as reply:
            async for line in reply.aiter_lines():
                if not line.startswith("data:"):
                    continue
                update = json.loads(line.removeprefix("data:")).get("statusUpdate")
                if update is None or states[-1:] == [state(update)]:
                    continue
                states.append(state(update))
                if states == ["WORKING"]:
                    self._left -= 1
                    if not self._left:
                        self.begun.set()
        return states


@pytest.mark.parametrize("streams", [50, pytest.param(500, marks=pytest.mark.soak)])
def test_streams_of_many_callers_are_passed_on_at_once(tmp_path: Path, streams: int) -> None:
    config, signal = tmp_path / "dragoman.toml", tmp_path / "over"
    with ServerProcess(tmp_path / "remote", agents=[Path(waiting.__file__)]) as remote:
        config.write_text(
            CONFIG.format(url=f"{remote.url}/agents/waiting", streams=streams), encoding="utf-8"
        )
        with ServerProcess(tmp_path / "data", config=config) as server:
            told = asyncio.run(_held(f"{server.url}/agents/clerk", signal, streams))
    assert told == [["WORKING", "COMPLETED"]] * streams


async def _held(url: str, signal: Path, streams: int) -> list[list[str]]:
    """Open all streams, have them end once all have begun, and return what they told."""
    crowd = Crowd(streams)
    async with asyncio.timeout(120):
        told = asyncio.create_task(crowd.follow(url, str(signal)))
        await crowd.begun.wait()
        # All of them are open at this moment, here and there.
        signal.touch()
        return await told
