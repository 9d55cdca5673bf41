"""The fleet of deploy/compose.yaml without containers: its configuration, its proxy, its roles, on real processes.

What stands in the files of deploy/ is used as it is, but for places: addresses, ports, and folders of secrets and of
temporary files. One time is another too: the proxy cuts off what was silent for 3 seconds, and streams show life each
second.
"""

import os
import re
import ssl
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import asyncpg

from tests.durability.rolling import Caller
from tests.harness.paths import CHECKOUT, SOURCE
from tests.harness.polling import until
from tests.harness.postgres import PostgresServer, ask, execute
from tests.harness.server import ServerProcess, WorkerProcess
from tests.harness.temporal import TemporalServer, free_port

DEPLOY = CHECKOUT / "deploy"
READ_TIMEOUT = 3.0
HEARTBEAT = 1.0


def replaced(text: str, pairs: dict[str, str]) -> str:
    """Return a text in which each key, which must be in it, is its value."""
    for old, new in pairs.items():
        assert old in text, f"{old} is not in the file any more"
        text = text.replace(old, new)
    return text


class Fleet:
    """Two servers, two workers and their proxy, over PostgreSQL and Temporal.

    Attributes:
        servers: what is behind the proxy.
        proxy: its `HOST:PORT`.
        database: PostgreSQL's URL, for its superuser.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-deploy-")))
        # PostgreSQL and the proxy's workers run as nobody.
        self.folder.chmod(0o755)

    def __enter__(self) -> Self:
        with ExitStack() as begun:
            begun.push(self._stack)
            self._start()
            begun.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def caller(self, first: int = 0) -> Caller:
        """Return a caller of the proxy with alice's token; `first` means nothing where there is one place."""
        return Caller([self.proxy], first, context=self.tls, token=self.secret("alice-token"))

    def secret(self, name: str) -> str:
        """Return what deploy/make-secrets made."""
        return (self.secrets / name).read_text(encoding="ascii")

    def proxied(self) -> list[str]:
        """Return the lines of the proxy's log of requests."""
        return self._proxy_log.read_text(encoding="utf-8").splitlines()

    def upstream(self, server: ServerProcess) -> str:
        """Return how the proxy calls a server."""
        return server.url.removeprefix("http://")

    def _start(self) -> None:
        self.secrets = self.folder / "secrets"
        self.secrets.mkdir(mode=0o700)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        made = kept | {"DRAGOMAN": f"{sys.executable} -m dragoman", "PYTHONPATH": str(SOURCE)}
        subprocess.run([DEPLOY / "make-secrets", self.secrets], env=made, check=True, capture_output=True)
        self.tls = ssl.create_default_context(cafile=str(self.secrets / "tls-certificate.pem"))

        postgres = PostgresServer()
        self._stack.callback(postgres.remove)
        execute(postgres.url(), "CREATE DATABASE dragoman TEMPLATE template0 ENCODING 'UTF8'")
        self.database = postgres.url("dragoman")
        execute(self.database, (DEPLOY / "roles.sql").read_text(encoding="utf-8"))
        temporal = TemporalServer()
        self._stack.callback(temporal.remove)
        temporal.start()

        self.config = self.folder / "dragoman.toml"
        text = (DEPLOY / "dragoman.toml").read_text(encoding="utf-8")
        self.config.write_text(replaced(text, {"/run/secrets": str(self.secrets)}), encoding="utf-8")
        self.environment = {
            "DRAGOMAN_STORE_URL": self.database.replace("postgres@", "dragoman@"),
            "DRAGOMAN_ENGINE_TEMPORAL_ADDRESS": temporal.address,
            "DRAGOMAN_ENGINE_TEMPORAL_NAMESPACE": "default",
            "DRAGOMAN_SERVER_TRUSTED_PROXIES": "127.0.0.1",
            "DRAGOMAN_SERVER_HEARTBEAT": f"{HEARTBEAT:g}s",
            "DRAGOMAN_SERVER_NOTICE": "500ms",
        }
        self._migrate(kept)
        self.servers = [self._process(ServerProcess, f"api-{number}") for number in (1, 2)]
        self.workers = [self._process(WorkerProcess, f"worker-{number}") for number in (1, 2)]
        self._start_proxy()

    def _migrate(self, environment: dict[str, str]) -> None:
        owner = {"DRAGOMAN_STORE_URL": self.database.replace("postgres@", "dragoman_owner@")}
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "migrate", "upgrade", "--config", self.config],
            env=environment | self.environment | owner | {"PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def _process(self, kind: type[ServerProcess], name: str) -> ServerProcess:
        made = kind(self.folder / name, config=self.config, environment=self.environment)
        self._stack.callback(made.close)
        return made.start()

    def _start_proxy(self) -> None:
        port, temporary = free_port(), self.folder / "proxy"
        temporary.mkdir()
        text = replaced(
            (DEPLOY / "nginx.conf").read_text(encoding="utf-8"),
            {
                "api-1:8080": self.upstream(self.servers[0]),
                "api-2:8080": self.upstream(self.servers[1]),
                "listen 8443": f"listen 127.0.0.1:{port}",
                " /tmp/": f" {temporary}/",
                "/run/secrets": str(self.secrets),
                "proxy_read_timeout 130s": f"proxy_read_timeout {READ_TIMEOUT:g}s",
            },
        )
        file = self.folder / "nginx.conf"
        file.write_text(text, encoding="utf-8")
        self.proxy = f"localhost:{port}"
        self._proxy_log = self.folder / "proxy.log"
        with self._proxy_log.open("w") as log, (self.folder / "proxy.stderr").open("w") as errors:
            nginx = subprocess.Popen(
                ["nginx", "-p", str(self.folder), "-c", str(file), "-g", "daemon off;"],
                stdout=log,
                stderr=errors,
            )
        self._stack.callback(nginx.wait)
        self._stack.callback(nginx.terminate)
        until(self._is_served, what="the proxy to serve")

    def _is_served(self) -> bool:
        try:
            with self.caller() as caller:
                caller.read("/agents/demo/.well-known/agent-card.json")
        except ConnectionRefusedError:
            return False
        return True


def may_not(url: str, statement: str) -> bool:
    """Tell whether a role is refused a statement."""

    async def tried(connection: Any) -> bool:
        try:
            await connection.execute(statement)
        except asyncpg.InsufficientPrivilegeError:
            return True
        return False

    return ask(url, tried)


def events(text: str) -> list[int]:
    """Return the ids of events in a stream."""
    return [int(number) for number in re.findall(r"^id: (\d+)$", text, re.MULTILINE)]
