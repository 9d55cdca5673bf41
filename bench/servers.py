"""The servers that can be measured: Dragoman and its peers, each with an echo agent.

A server is named here once: how its process is started, where its agent is, and
which operations it has. Peers keep their tasks in memory; Dragoman's are durable.
"""

import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.environments import ENVIRONMENTS, Environment, Unavailable
from bench.wire import Operation, Routes

REPOSITORY = Path(__file__).resolve().parent.parent
CACHE = REPOSITORY / ".cache" / "bench"
ECHO = REPOSITORY / "bench" / "agents" / "echo.py"
OURS = "dragoman"
_CARD = "/.well-known/agent-card.json"


@dataclass(frozen=True)
class Server:
    """One server that can be started."""

    name: str
    routes: Routes
    environment: Environment | None
    """The peer's own environment; None for Dragoman, which runs in this one."""
    lacks: frozenset[Operation] = field(default_factory=frozenset)
    configuration: str = ""
    """For Dragoman: its configuration, `{folder}` being where its files are; if empty, it serves the echo agent."""
    token: str = ""
    """What the file `token` in that folder holds."""
    store_url: str = ""
    """For Dragoman: the database where its tasks are; if empty, they are in a file in its folder."""

    @property
    def is_ours(self) -> bool:
        """Whether this is Dragoman."""
        return self.name == OURS

    def prepare(self) -> None:
        """Make its environment if it is not there yet.

        Raises:
            Unavailable: if that cannot be done.
        """
        if self.environment is not None:
            self.environment.make(CACHE / self.name)
        elif importlib.util.find_spec("dragoman") is None:
            raise Unavailable("the package dragoman cannot be imported (PYTHONPATH=src:.)")

    def command(self, data: Path) -> list[str]:
        """What starts it; Dragoman keeps its tasks in the folder `data`."""
        if self.environment is not None:
            return self.environment.command(CACHE / self.name)
        serve = [sys.executable, "-m", "dragoman", "serve"]
        if self.configuration:
            file = data.parent / "dragoman.toml"
            file.write_text(self.configuration.replace("{folder}", str(data.parent)), encoding="utf-8")
            (data.parent / "token").write_text(self.token, encoding="utf-8")
            serve += ["--config", str(file)]
        else:
            serve.append(str(ECHO))
        return [*serve, "--listen", "127.0.0.1:0", "--data", str(data)]


SERVERS = {
    server.name: server
    for server in (
        Server(
            OURS,
            Routes(card=f"/agents/echo{_CARD}", rpc="/agents/echo/rpc", rest="/agents/echo"),
            environment=None,
        ),
        Server("a2a-sdk", Routes(card=_CARD, rpc="/rpc", rest=""), ENVIRONMENTS["a2a-sdk"]),
        Server("js", Routes(card=_CARD, rpc="/rpc", rest="/rest"), ENVIRONMENTS["js"]),
        Server(
            "fasta2a",
            Routes(card=_CARD, rpc="/"),
            ENVIRONMENTS["fasta2a"],
            # Its sends answer SUBMITTED whatever is asked, and it has no ListTasks.
            lacks=frozenset({Operation.SEND, Operation.LIST}),
        ),
    )
}
PEERS = tuple(name for name in SERVERS if name != OURS)
