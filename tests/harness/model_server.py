"""A model server on 127.0.0.1, as a process: it plays what it is told, and tells what it was asked.

`ModelServer` starts it. What the last message says to it is its part: a JSON object as `Part` writes it, or any other
text, which it repeats word by word.
"""

import http.client
import json
import queue
import select
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.harness.paths import CHECKOUT

EVENTS = "text/event-stream"


def chunk(content: str | None = None, finish: str | None = None, **more: Any) -> str:
    """An event with a chunk of a completion, as it stands in a stream."""
    delta = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    text = json.dumps({"object": "chat.completion.chunk", "choices": [choice], **more})
    return f"data: {text}\n\n"


DONE = "data: [DONE]\n\n"
STOP = chunk(finish="stop") + DONE


@dataclass(frozen=True)
class Part:
    """What the server is to do: the head of its reply, then pieces to send (characters are bytes) or seconds to wait.

    At the `end` it closes the connection, holds it until the other side lets go ("hold"), or keeps it for the next
    request ("keep", of a reply in chunks).
    """

    steps: Sequence[str | float] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": EVENTS})
    end: str = "close"

    def __str__(self) -> str:
        return json.dumps(asdict(self))


class ModelServer:
    """The server, as a context manager. `url` is what `/chat/completions` comes after."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.model_server"],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.told('listening')['port']}/v1"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def told(self, what: str, seconds: float = 10.0) -> dict[str, Any]:
        """The next thing of a kind that the server tells; others before it are passed over."""
        deadline = time.monotonic() + seconds
        while True:
            line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            if line["what"] == what:
                return line

    def asked(self) -> list[dict[str, Any]]:
        """All requests that were answered by now and that nobody has looked at, in the order in which they came."""
        # What the server tells comes by a pipe: a request of our own shows when it has told all the others.
        mark = uuid.uuid4().hex
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        connection.request("POST", "/mark", json.dumps({"messages": [{"content": ""}]}), {"X-Mark": mark})
        connection.getresponse().read()
        connection.close()
        found = []
        while (request := self.told("asked"))["headers"].get("x-mark") != mark:
            found.append(request)
        return found

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(json.loads(line))


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        _tell("asked", path=self.path, headers=headers, body=body, port=self.client_address[1])
        part = _part(body["messages"][-1]["content"])
        self.close_connection = part.end != "keep"
        try:
            self._play(part)
        except (BrokenPipeError, ConnectionResetError):
            _tell("gone")
            self.close_connection = True

    def _play(self, part: Part) -> None:
        self.send_response(part.status)
        for name, value in part.headers.items():
            self.send_header(name, value)
        if "Transfer-Encoding" not in part.headers:
            self.send_header("Connection", "close")
        self.end_headers()
        for step in part.steps:
            if isinstance(step, str):
                self._send(step.encode("latin-1"), "Transfer-Encoding" in part.headers)
            else:
                time.sleep(step)
        if part.end == "keep":
            self.wfile.write(b"0\r\n\r\n")
        if part.end == "hold":
            select.select([self.connection], [], [], 60)
            _tell("gone")

    def _send(self, piece: bytes, chunked: bool) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _part(content: str) -> Part:
    try:
        told = json.loads(content)
    except ValueError:
        told = None
    if isinstance(told, dict):
        return Part(**told)
    words = [chunk(f"{word} ") for word in content.split()]
    return Part([*words, STOP])


def _tell(what: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"what": what, **facts}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until killed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Exchange)
    server.daemon_threads = True
    _tell("listening", port=server.server_address[1])
    server.serve_forever()


if __name__ == "__main__":
    main()
