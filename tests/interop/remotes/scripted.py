"""A remote agent of A2A 1.0 over JSON-RPC that plays what a test tells it to: for what no SDK server ever does."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

EVENTS = "text/event-stream"
HOLD = -1.0
"""A step: the connection is held until the other side lets go of it."""


class Reply:
    """What to answer: status, headers, and pieces of the body to send or seconds to wait between them."""

    def __init__(self, *steps: bytes | float, status: int = 200, **headers: str) -> None:
        self.steps = steps
        self.status = status
        self.headers = {"Content-Type": EVENTS} | {
            name.replace("_", "-"): text for name, text in headers.items()
        }


Script = Callable[[Json], Reply]


class ScriptedRemote:
    """The agent, as a context manager. `plays` gives the reply to a call by its method."""

    def __init__(self, plays: Mapping[str, Script], port: int = 0, **card: Any) -> None:
        self.plays = dict(plays)
        self.calls: list[Json] = []
        self.requests: list[tuple[str, str, Mapping[str, str]]] = []
        self._server = _Server(("127.0.0.1", port), _Exchange)
        self._server.remote = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.card: Json | bytes = card_of(self.url) | card

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Listen no longer; it may be called twice."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_port

    def sent(self) -> list[Json]:
        """The messages that it was sent."""
        return [call["params"]["message"] for call in list(self.calls) if "message" in call["params"]]


def card_of(url: str) -> Json:
    """A card that leads to a URL."""
    return {
        "name": "Scripted",
        "description": "Plays.",
        "version": "1",
        "supportedInterfaces": [
            {"url": f"{url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "play", "name": "Play", "description": "Plays.", "tags": ["test"]}],
    }


def task(state: str, **more: Any) -> Json:
    """A task of the remote agent, as a result has it."""
    return {"id": "far-1", "contextId": "c-1", "status": {"state": f"TASK_STATE_{state}"}, **more}


def update(state: str, task_id: str = "far-1") -> Json:
    """A status update, as a result has it."""
    return {
        "statusUpdate": {"taskId": task_id, "contextId": "c-1", "status": {"state": f"TASK_STATE_{state}"}}
    }


def chunk(text: str, *, append: bool = True) -> Json:
    """A piece of the one artifact, as a result has it."""
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "far-1", "contextId": "c-1", "artifact": artifact, "append": append}}


def event(call: Json, result: Json) -> bytes:
    """An event of a stream that answers a call."""
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': result})}\n\n".encode()


def stream(*results: Json | float) -> Script:
    """Streams results, with seconds to wait between them."""

    def play(call: Json) -> Reply:
        return Reply(*(one if isinstance(one, float) else event(call, one) for one in results))

    return play


def answer(result: Json) -> Script:
    """Answers with one result."""
    return lambda call: whole({"jsonrpc": "2.0", "id": call["id"], "result": result})


def error(code: int, message: str = "", status: int = 200) -> Script:
    """Answers with an error."""
    return lambda call: whole(
        {"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}}, status
    )


def whole(document: Json, status: int = 200) -> Reply:
    """A reply with a document."""
    return Reply(json.dumps(document).encode(), status=status, Content_Type="application/json")


def always(reply: Reply) -> Script:
    """Answers the same whatever is asked."""
    return lambda call: reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    remote: ScriptedRemote


class _Exchange(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._note()
        card = self.server.remote.card
        body = card if isinstance(card, bytes) else json.dumps(card).encode()
        known = self.path.endswith("/agent-card.json")
        self._play(
            Reply(body if known else b"", status=200 if known else 404, Content_Type="application/json")
        )

    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._note()
        self.server.remote.calls.append(call)
        self._play(self.server.remote.plays[call["method"]](call))

    def _note(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.remote.requests.append((self.command, self.path, headers))

    def _play(self, reply: Reply) -> None:
        with contextlib.suppress(ConnectionError):
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self._send(reply.steps)

    def _send(self, steps: Sequence[bytes | float]) -> None:
        for step in steps:
            if isinstance(step, bytes):
                self.wfile.write(step)
                self.wfile.flush()
            elif step == HOLD:
                self.connection.settimeout(60)
                self.connection.recv(1)
            else:
                time.sleep(step)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
