"""JSON log lines on standard error, gathered for a moment so that a request never waits for the disk or terminal."""

import logging
import sys
import threading
import time
from collections import deque
from typing import Any, TextIO

import msgspec
from msgspec import Struct

_encode = msgspec.json.Encoder(enc_hook=str).encode
_FACTS = ("agent", "tenant", "task_id", "attempt", "delegation_id", "request_id")
FLUSH_SECONDS = 0.05


class RequestLine(Struct, omit_defaults=True):
    """What is logged of a request: `time` in seconds since 1970 UTC, `ms` until its reply was ready.

    What did not become known of it is left out, from `operation` on.
    """

    time: float
    level: str
    logger: str
    request_id: str
    method: str
    route: str
    status: int
    ms: float
    version: str
    outcome: str
    operation: str = ""
    agent: str = ""
    tenant: str = ""
    task_id: str = ""
    flaw: str = ""
    address: str = ""


class LogSink:
    """Writes lines of JSON to a stream, at most `FLUSH_SECONDS` late; nothing is lost at exit (`close`)."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = (stream or sys.stderr).buffer
        self._lines: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._flush_worker, name="log-writer", daemon=True)
        self._thread.start()

    def write(self, record: RequestLine | dict[str, Any]) -> None:
        """Add a line; may be called from any thread."""
        self._lines.append(_encode(record))
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Write what is left and end."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout=2.0)
        self._flush()

    def _flush_worker(self) -> None:
        while not self._closing:
            self._wake.wait()
            time.sleep(FLUSH_SECONDS)
            self._wake.clear()
            self._flush()

    def _flush(self) -> None:
        with self._lock:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if not lines:
                return
            try:
                self._stream.write(b"\n".join(lines) + b"\n")
                self._stream.flush()
            except (OSError, ValueError):
                # Whoever read the log has gone; serving goes on without it.
                return


class JsonHandler(logging.Handler):
    """Puts ordinary log records into a LogSink. Exceptions appear with their place and type."""

    def __init__(self, sink: LogSink) -> None:
        super().__init__()
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        line: dict[str, Any] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for fact in _FACTS:
            value = getattr(record, fact, None)
            if value is not None:
                line[fact] = value
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = logging.Formatter().formatException(record.exc_info)
        self._sink.write(line)


def configure(sink: LogSink, level: int = logging.INFO) -> None:
    """Send all logging of this process to `sink`."""
    root = logging.getLogger()
    root.handlers[:] = [JsonHandler(sink)]
    root.setLevel(level)
    logging.getLogger("uvicorn.access").disabled = True
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.WARNING)
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
