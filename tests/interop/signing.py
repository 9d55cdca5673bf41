"""A server whose cards are signed, its keys rotated, and the official SDKs that verify and sign cards."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.harness.clients import ClientEnvironment
from tests.harness.paths import CLIENT_SPECS, SOURCE
from tests.harness.polling import until
from tests.harness.server import ServerProcess

NAME = "Café 😀 ﬡ"

TOKEN = "a-token-of-alice-for-these-tests"

AGENTS = f"""
from dragoman.agents import Agent, Skill
from dragoman.model.card import Provider

cafe = Agent(
    id="cafe",
    name="{NAME}",
    description="Sert du café ☕ и чай 茶",
    skills=[Skill(id="thé", name="Thé", description="Du thé.", tags=["😀", "ﬡ", "é"], examples=["Un thé"])],
    extended_skills=[Skill(id="café", name="Café", description="Du café ☕.", tags=["é"])],
    provider=Provider(organization="Öl & Söhne", url="https://oel.example"),
    idempotency="requested",
)


@cafe.handler
async def serve(run):
    return run.text
"""

CONFIGURATION = """
[agents.cafe]
python = "{agents}:cafe"
[tenants.acme.principals.alice]
tokens = [ {{ env = "ALICE", scopes = ["ai:answer", "a2a:read"] }} ]
"""
"""With somebody who may call, so that cards declare what callers have to show."""


@dataclass(frozen=True)
class Verifier:
    """One official SDK that verifies cards."""

    environment: str
    script: Path

    def __str__(self) -> str:
        return self.environment

    def verify(self, agent_url: str, jwks: Path) -> dict[str, Any]:
        """What it makes of every form of a card, by the keys in a file."""
        seen: dict[str, Any] = ClientEnvironment(self.environment).run_driver(
            self.script, "verify", agent_url, str(jwks)
        )
        return seen

    def extended(self, agent_url: str, jwks: Path) -> dict[str, list[str]]:
        """The skills of the extended card by binding, once it was verified."""
        seen: dict[str, list[str]] = ClientEnvironment(self.environment).run_driver(
            self.script, "extended", agent_url, str(jwks), environment={"AGENT_BEARER": TOKEN}
        )
        return seen

    def sign(self, card: Path, key: Path) -> dict[str, Any]:
        """A card, signed by it."""
        made: dict[str, Any] = ClientEnvironment(self.environment).run_driver(
            self.script, "sign", str(card), str(key)
        )
        return made


NEW = Verifier("a2a-sdk-1.3.0", CLIENT_SPECS / "a2a-sdk" / "signing.py")
SIGNERS = [
    NEW,
    Verifier("a2a-sdk-1.2.2", CLIENT_SPECS / "a2a-sdk" / "signing.py"),
    Verifier("a2a-js-sdk-1.3.0", CLIENT_SPECS / "a2a-js-sdk-1.3.0" / "signing.mjs"),
]
OLD = Verifier("a2a-sdk-0.3.26", CLIENT_SPECS / "a2a-sdk-0.3.26" / "signing.py")


def dragoman(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *words],
        env=kept | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def keys(data: Path, *words: str) -> str:
    """What a command about the keys in a data folder prints; it must end well."""
    done = dragoman("keys", *words, "--data", str(data))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class SignedServer:
    """`dragoman serve` with cards to sign, and what an operator does to its keys."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.agent_url = f"{server.url}/agents/cafe"

    def keys(self, *words: str) -> str:
        """What a command about this server's keys prints."""
        return keys(self.server.data, *words)

    def pin(self, name: str) -> Path:
        """A file with the keys as they are published now."""
        file = self.folder / name
        file.write_bytes(self.fetch("/.well-known/jwks.json"))
        return file

    def published(self) -> list[str]:
        """The names of the keys that are published now, the newest first."""
        return [one["kid"] for one in json.loads(self.fetch("/.well-known/jwks.json"))["keys"]]

    def follows(self, count: int) -> list[str]:
        """The names of the keys once so many are published."""
        return until(
            lambda: found if len(found := self.published()) == count else None,
            what=f"{count} keys",
            seconds=5,
        )

    def fetch(self, path: str, **headers: str) -> bytes:
        """What stands at a path of the agent."""
        with urlopen(Request(self.agent_url + path, headers=headers), timeout=20) as reply:
            body: bytes = reply.read()
        return body


@contextmanager
def signed_server(folder: Path) -> Iterator[SignedServer]:
    """A server with the agent above."""
    agents, config = folder / "agents.py", folder / "dragoman.toml"
    agents.write_text(AGENTS, encoding="utf-8")
    config.write_text(CONFIGURATION.format(agents=agents), encoding="utf-8")
    environment = {"ALICE": TOKEN}
    with ServerProcess(folder / "data", config=config, environment=environment) as server:
        yield SignedServer(server, folder)


@dataclass(frozen=True)
class Rotation:
    """What verifiers saw of a rotation: of cards before, during and after it, by keys pinned before, during, after."""

    seen: dict[tuple[str, str], dict[str, Any]]

    def outcome(self, card: str, keys: str, form: str) -> str:
        """Whether a form of the card of one phase is good by the keys of another."""
        return str(self.seen[card, keys][form]["as it came"])


def rotate(server: SignedServer, verifier: Verifier) -> Rotation:
    """Rotate the keys of a server and have every card verified by all keys that were pinned until then."""
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    pins: dict[str, Path] = {}

    def look(phase: str) -> None:
        pins[phase] = server.pin(f"{verifier}-{phase}.json")
        for name, file in pins.items():
            seen[phase, name] = verifier.verify(server.agent_url, file)

    (old,) = server.follows(1)
    look("before")
    server.keys("rotate")
    server.follows(2)
    look("during")
    server.keys("retire", old)
    (new,) = server.follows(1)
    assert new != old
    look("after")
    return Rotation(seen)


@contextmanager
def serving(card: bytes) -> Iterator[str]:
    """The base URL of an agent whose card are these bytes, handed out by a plain web server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(card)))
            self.end_headers()
            self.wfile.write(card)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/agents/theirs"
        finally:
            server.shutdown()
