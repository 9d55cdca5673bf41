"""`dragoman serve` as a real process: started, watched, frozen, killed and started again on the same data."""

import atexit
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.harness import engines, stores
from tests.harness.paths import SOURCE
from tests.harness.polling import until

_LISTENING = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")
START_SECONDS = 20.0
STOP_SECONDS = 45.0


class ServerDidNotStartError(Exception):
    """The process ended, or said nothing of listening, before the deadline; the message holds all it printed."""


class ServerProcess:
    """One `dragoman serve` on a free port of 127.0.0.1, with its own data directory.

    `agents` are agent files for the command line; without any the server brings its demo agents. `environment`
    is added to the caller's, from which every `DRAGOMAN_*` variable is taken out: no shell's settings change a
    test.
    Use it as a context manager: on leaving, the process and all it started are gone.
    """

    verb = "serve"

    def __init__(
        self,
        data: Path,
        *,
        agents: Sequence[str | Path] = (),
        config: Path | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.data = data
        self.log_file = data.parent / f"{data.name}.stderr.log"
        self._agents = [str(agent) for agent in agents]
        self._config = config
        self._environment = dict(environment or {})
        self._arguments = list(arguments)
        self._process: subprocess.Popen[str] | None = None
        self._orphans: list[int] = []
        self._stdout: list[str] = []
        self._url: str | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, without a final slash."""
        if self._url is None:
            raise RuntimeError("the server was not started")
        return self._url

    @property
    def pid(self) -> int:
        """The process id of the running (or frozen) server."""
        return self._running().pid

    @property
    def stdout_lines(self) -> list[str]:
        """What this start of the server has printed on stdout so far."""
        return list(self._stdout)

    def start(self, *, listen: str = "127.0.0.1:0") -> Self:
        """Start the process and return once it listens; raises `ServerDidNotStartError` after 20 s."""
        if self._process is not None and self._process.poll() is None:
            raise RuntimeError(f"the server already runs as {self._process.pid}")
        self.data.parent.mkdir(parents=True, exist_ok=True)
        self._stdout, self._url = [], None
        log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(listen),
                cwd=self.data.parent,
                env=self._full_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        atexit.register(self.close)
        self._await_listening(log_start)
        return self

    def log_lines(self) -> list[dict[str, Any]]:
        """Every JSON line of stderr, all starts together; a line that is no JSON object comes as `{"raw": line}`."""
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        return [_log_line(line) for line in lines if line.strip()]

    def terminate(self, seconds: float = STOP_SECONDS) -> int:
        """Ask with SIGTERM, wait for the end and give the exit code; raises TimeoutError if it stays."""
        process = self._running()
        process.terminate()
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the server did not end {seconds} s after SIGTERM") from None
        self._note_orphans(process.pid)
        return code

    def kill(self) -> None:
        """SIGKILL the server process alone, as a crash would, and wait until it is gone."""
        process = self._running()
        process.kill()
        process.wait()
        self._note_orphans(process.pid)

    def restart(self, *, keep_port: bool = False) -> None:
        """End the server if it runs (SIGTERM) and start it on the same data, on a new port unless `keep_port`."""
        listen = self.url.removeprefix("http://") if keep_port else "127.0.0.1:0"
        if self._process is not None and self._process.poll() is None:
            self.terminate()
        self.start(listen=listen)

    def stop_process(self) -> None:
        """Freeze the server (SIGSTOP): it keeps its sockets and locks and does nothing once this returns."""
        os.kill(self.pid, signal.SIGSTOP)
        # A thread on another processor, or one that waits for the disk, goes on for a moment.
        until(self._is_stopped, what="every thread of the server is stopped")

    def _is_stopped(self) -> bool:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{self.pid}/task").iterdir()]
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    def continue_process(self) -> None:
        """Let a frozen server run on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def rss_bytes(self) -> int:
        """Resident memory of the server process now."""
        return int(self._proc_status("VmRSS").removesuffix(" kB")) * 1024

    def thread_count(self) -> int:
        """Threads of the server process now."""
        return int(self._proc_status("Threads"))

    def close(self) -> None:
        """Kill whatever is left of the server and of the processes it started. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            self._note_orphans(process.pid)
        for group in self._orphans:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        if process is not None:
            process.wait()
        self._orphans = []
        atexit.unregister(self.close)

    def _note_orphans(self, group: int) -> None:
        """Remember the group of an ended server if processes that it started still live in it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, 0)
            self._orphans.append(group)

    def _command(self, listen: str) -> list[str]:
        command = [sys.executable, "-m", "dragoman", self.verb, *self._agents]
        command += ["--listen", listen, "--data", str(self.data)]
        if self._config is not None:
            command += ["--config", str(self._config)]
        return command + self._arguments

    def _full_environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        config = "" if self._config is None else self._config.read_text(encoding="utf-8")
        # A configuration that names a store is about that one and its engine; one may name Temporal alone.
        names_store = "\n[store]" in f"\n{config}"
        names_engine = "\n[engine.temporal]" in config
        store = {} if names_store else stores.environment(self.data)
        engine = {} if names_store or names_engine else engines.environment(self.data, config)
        return inherited | {"PYTHONPATH": str(SOURCE)} | store | engine | self._environment

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise RuntimeError("the server was not started, or was closed")
        if self._process.poll() is not None:
            raise RuntimeError(f"the server ended with {self._process.returncode}")
        return self._process

    def _proc_status(self, field: str) -> str:
        text = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return next(
            line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(f"{field}:")
        )

    def _await_listening(self, log_start: int) -> None:
        listening = threading.Event()
        process = self._running()
        threading.Thread(target=self._read_stdout, args=(process, listening), daemon=True).start()
        deadline = time.monotonic() + START_SECONDS
        while not listening.wait(0.05):
            ended = process.poll() is not None
            if (ended and not listening.wait(1.0)) or time.monotonic() > deadline:
                why = (
                    f"ended with {process.returncode}"
                    if ended
                    else f"did not listen within {START_SECONDS} s"
                )
                self.close()
                logged = self.log_file.read_bytes()[log_start:].decode(errors="replace")
                raise ServerDidNotStartError(
                    f"dragoman {self.verb} {why}\n--- stdout\n{''.join(self._stdout)}\n--- stderr\n{logged}"
                )

    def _read_stdout(self, process: subprocess.Popen[str], listening: threading.Event) -> None:
        """Keep the pipe empty for the whole life of the process; note the address when it comes."""
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._stdout.append(line)
                found = _LISTENING.search(line)
                if found and not listening.is_set():
                    self._url = found.group(1)
                    listening.set()


class WorkerProcess(ServerProcess):
    """One `dragoman worker`: `url` is where it answers to health checks."""

    verb = "worker"


def _log_line(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        return {"raw": line}
    return value if isinstance(value, dict) else {"raw": line}
