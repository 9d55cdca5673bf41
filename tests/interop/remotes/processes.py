"""Starts an SDK server, and reads its desk."""

import json
import queue
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import Request, urlopen

from tests.harness.clients import ClientEnvironment
from tests.harness.polling import until


class RemoteServer:
    """An agent on an official SDK server, as a context manager."""

    def __init__(self, environment: str, script: Path, binding: str, *options: str, port: int = 0) -> None:
        self._command = [str(script), binding, str(port), *options]
        self._environment = ClientEnvironment(environment)
        self.options = (binding, *options)
        self.url = ""

    def __enter__(self) -> Self:
        self._environment.prepare()
        self._process = subprocess.Popen(
            [str(self._environment.program("python")), *self._command],
            stdout=subprocess.PIPE,
            text=True,
        )
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        self.url = lines.get(timeout=30).strip()
        assert json.loads(lines.get(timeout=30)) == {"listening": True}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """End the process; it may be called twice."""
        self._process.kill()
        self._process.wait()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def desk(self) -> dict[str, Any]:
        """What came in so far: requests, messages that the agent was given, tasks that were cancelled."""
        with urlopen(f"{self.url}/desk", timeout=10) as reply:
            seen: dict[str, Any] = json.loads(reply.read())
        return seen

    def release(self) -> None:
        """Let the agent go one step on."""
        with urlopen(Request(f"{self.url}/desk/release", method="POST"), timeout=10):
            return

    def came(self, count: int) -> list[dict[str, Any]]:
        """The messages that the agent was given, once there are so many."""
        return until(
            lambda: found if len(found := self.desk()["messages"]) >= count else None,
            what=f"{count} messages at the remote agent",
            seconds=10,
        )

    def _read(self, lines: "queue.Queue[str]") -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                lines.put(line)
