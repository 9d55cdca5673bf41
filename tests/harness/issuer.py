"""An OpenID Connect issuer on 127.0.0.1: real keys, real HTTP, and every way of failing that its callers must bear."""

import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.harness.signing import Signer

DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/keys"

Answer = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One request to the issuer, answered as the issuer is set to answer."""

    server: "_Server"
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Count and answer; on a connection that outlived the issuer there is nobody any more."""
        if self.server.issuer.is_stopped:
            self.close_connection = True
            return
        self.server.issuer.asked[self.path] += 1
        self.server.issuer.headers.append({name.lower(): value for name, value in self.headers.items()})
        try:
            self.server.issuer.answer(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def reply(self, body: bytes, *, status: int = 200, **headers: str) -> None:
        """Send a whole reply; `_` in the name of a header is `-`."""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self, pieces: Iterator[bytes]) -> None:
        """Send a reply without a length, piece by piece, until the other side has enough of it."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)
            self.server.issuer.sent += len(piece)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, issuer: "LocalIssuer") -> None:
        self.issuer = issuer
        super().__init__(("127.0.0.1", port), Exchange)


class LocalIssuer:
    """An issuer. Use it as a context manager.

    Attributes:
        signers: its keys; those that are published are found at `url + KEYS`.
        answer: what is done with each request; `serve` at first.
        asked: how often each path was asked for.
        headers: those of every request, names in lower case.
        sent: bytes sent by `Exchange.drip`.
    """

    def __init__(self, *signers: Signer, path: str = "") -> None:
        self.signers = list(signers or [Signer("ES256", "first")])
        self.answer: Answer = self.serve
        self.asked: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.sent = 0
        self.keys_url = ""
        self._path = path
        self._port = 0
        self._server: _Server | None = None
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """What its tokens call it."""
        return f"http://127.0.0.1:{self._port}{self._path}"

    @property
    def origin(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def is_stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    def start(self) -> None:
        """Listen: the first time at any free port, later at the same one."""
        self._stopping.clear()
        self._server = _Server(self._port, self)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self._stopping.set()
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def token(
        self, signer: Signer | None = None, *, header: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """A token of alice of acme who may ask and read; `claims` come over that, `None` takes one away."""
        now = time.time()
        merged = {
            "iss": self.url,
            "aud": "dragoman",
            "sub": "alice",
            "tenant": "acme",
            "scope": "ai:answer a2a:read",
            "iat": now,
            "exp": now + 300,
            **claims,
        }
        said = {name: value for name, value in merged.items() if value is not None}
        return (signer or self.signers[0]).sign(said, **(header or {}))

    def key_set(self) -> bytes:
        """The JWK Set of its keys."""
        return json.dumps({"keys": [signer.public() for signer in self.signers]}).encode()

    # ------------------------------------------------------------------------------------------------ ways of answering

    def serve(self, exchange: Exchange) -> None:
        """Answer as an issuer does."""
        if exchange.path == self._path.rstrip("/") + DISCOVERY:
            keys_url = self.keys_url or self.origin + KEYS
            exchange.reply(json.dumps({"issuer": self.url, "jwks_uri": keys_url}).encode())
        elif exchange.path == KEYS:
            exchange.reply(self.key_set())
        else:
            exchange.reply(b"{}", status=404)

    def fail(self, exchange: Exchange) -> None:
        """Answer with an error, and with the keys as its body."""
        exchange.reply(self.key_set(), status=503)

    def babble(self, exchange: Exchange) -> None:
        """Answer with what is no JSON."""
        exchange.reply(b"<html>down for maintenance</html>", Content_Type="text/html")

    def compress(self, exchange: Exchange) -> None:
        """Answer compressed, although nobody offered to take it so."""
        exchange.reply(gzip.compress(self.key_set()), Content_Encoding="gzip")

    def flood(self, exchange: Exchange) -> None:
        """Answer without end."""

        def pieces() -> Iterator[bytes]:
            yield b'{"keys": ["'
            while not self._stopping.is_set():
                yield b"x" * 65536

        exchange.drip(pieces())

    def trickle(self, exchange: Exchange) -> None:
        """Answer one byte now and then, without end."""

        def pieces() -> Iterator[bytes]:
            while not self._stopping.wait(0.05):
                yield b" "

        exchange.drip(pieces())

    def hang(self, exchange: Exchange) -> None:
        """Take the request and never answer."""
        self._stopping.wait(60)
        exchange.close_connection = True
