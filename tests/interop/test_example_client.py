"""The example client, with each official Python SDK that it is for: it gets a result, also if replies are lost."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.harness.clients import ClientEnvironment
from tests.harness.paths import CHECKOUT
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.rows import Rows

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

CLIENT = CHECKOUT / "examples" / "a2a" / "client.py"
TOKEN = "token-of-alice-Zm9vYmFyLXNlY3JldA"
SDKS = ["a2a-sdk-1.3.0", "a2a-sdk-1.2.2"]

CONFIG = """
[server]
public_url = "{url}"
[hosted]
enabled = true
observers = {{ window = "2s" }}
[agents.demo]
python = "dragoman.agents.demo:demo"
tenant = "acme"
workspace = "lab"
[tenants.acme]
features = ["agent_api"]
[tenants.acme.principals.alice]
workspaces = ["lab"]
tokens = [{{ env = "ALICE", scopes = ["ai:answer", "a2a:read", "a2a:delegate"] }}]
"""


class Line:
    """What lies between a client and the server. It can cut connections once a message is accepted."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        self.cut = 0
        self._server = ("", 0)
        self._rows: Rows | None = None

    def connect(self, server: ServerProcess) -> None:
        """Begin to lead to a server."""
        place = urlsplit(server.url)
        self._server = (place.hostname or "", place.port or 0)
        self._rows = Rows(server.data)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Lead nowhere any more."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._lead, args=(caller,), daemon=True).start()

    def _lead(self, caller: socket.socket) -> None:
        with closing(caller), closing(socket.create_connection(self._server)) as server:
            threading.Thread(target=self._copy, args=(server, caller), daemon=True).start()
            with suppress(OSError):
                while data := caller.recv(64 * 1024):
                    if b"POST " in data and self.cut < self.cuts:
                        self.cut += 1
                        # The reply is lost from here on: nothing is copied back any more.
                        caller.shutdown(socket.SHUT_WR)
                        server.sendall(data)
                        until(self._is_accepted, what="the message is accepted")
                        return
                    server.sendall(data)

    def _is_accepted(self) -> bool:
        assert self._rows is not None
        return bool(self._rows.query("SELECT 1 FROM identity"))

    @staticmethod
    def _copy(server: socket.socket, caller: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(64 * 1024):
                caller.sendall(data)


@dataclass(frozen=True)
class Run:
    """What one run of the client did."""

    code: int | None
    out: str
    err: str

    @property
    def message_id(self) -> str:
        """The id that it told."""
        return self.err.partition("DRAGOMAN_MESSAGE_ID=")[2].split()[0]


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    """The way to a server, which its card names."""
    between = Line()
    file = tmp_path / "dragoman.toml"
    file.write_text(CONFIG.format(url=between.url), encoding="utf-8")
    with ServerProcess(tmp_path / "data", config=file, environment={"ALICE": TOKEN}) as server:
        between.connect(server)
        yield between
    between.close()


@pytest.fixture(params=SDKS)
def environment(request: pytest.FixtureRequest) -> ClientEnvironment:
    """Each SDK in turn."""
    return ClientEnvironment(request.param)


def run(
    environment: ClientEnvironment, line: Line, *text: str, message_id: str = "", token: str = TOKEN
) -> Run:
    """Run the client."""
    variables = {"DRAGOMAN_AGENT_URL": f"{line.url}/v1/a2a/agents/demo", "DRAGOMAN_API_KEY": token}
    if message_id:
        variables["DRAGOMAN_MESSAGE_ID"] = message_id
    command = [str(environment.program("python")), str(CLIENT), *text]
    return Run(*environment.run(command, CLIENT.parent, timeout=60, environment=variables))


def tasks(line: Line) -> list[tuple[object, ...]]:
    """Id and attempts of every task that the server has."""
    assert line._rows is not None
    return line._rows.query("SELECT id, attempt FROM task")


def test_the_example_prints_what_the_agent_gave(environment: ClientEnvironment, line: Line) -> None:
    done = run(environment, line, "hello")
    assert (done.code, done.out) == (0, "hello\n"), done.err
    assert len(done.message_id) == 36
    ((task_id, attempts),) = tasks(line)
    assert attempts == 1
    assert f"TASK_STATE_COMPLETED {task_id}" in done.err


def test_it_recovers_a_submission_whose_reply_was_lost(environment: ClientEnvironment, line: Line) -> None:
    line.cuts = 1
    done = run(environment, line, "slow 0.5")
    assert (done.code, done.out) == (0, "Took 0.5 s.\n"), done.err
    assert "no reply" in done.err
    assert line.cut == 1
    ((_, attempts),) = tasks(line)
    assert attempts == 1


def test_it_waits_past_the_window_of_the_server(environment: ClientEnvironment, line: Line) -> None:
    done = run(environment, line, "slow 5")
    assert (done.code, done.out) == (0, "Took 5 s.\n"), done.err
    assert len(tasks(line)) == 1


def test_whoever_kept_the_id_recovers_what_it_gave_up(environment: ClientEnvironment, line: Line) -> None:
    line.cuts = 5
    lost = run(environment, line, "hello", message_id="kept-4711")
    assert (lost.code, lost.out, lost.message_id) == (1, "", "kept-4711")
    assert "run this again with the id above" in lost.err
    assert line.cut == 5
    again = run(environment, line, "hello", message_id="kept-4711")
    assert (again.code, again.out) == (0, "hello\n"), again.err
    assert len(tasks(line)) == 1


def test_another_text_under_the_same_id_is_refused(environment: ClientEnvironment, line: Line) -> None:
    assert run(environment, line, "hello", message_id="used").code == 0
    other = run(environment, line, "something else", message_id="used")
    assert (other.code, other.out) == (1, "")
    assert "used before" in other.err
    assert len(tasks(line)) == 1


def test_a_token_that_is_not_good_is_not_tried_again(environment: ClientEnvironment, line: Line) -> None:
    refused = run(environment, line, "hello", token="nobodys-token-at-all-0123456789")
    assert (refused.code, refused.out) == (1, "")
    assert "401" in refused.err
    assert "no reply" not in refused.err and "not known" not in refused.err
    assert tasks(line) == []


def test_an_agent_that_asks_has_not_given_a_result(environment: ClientEnvironment, line: Line) -> None:
    asked = run(environment, line, "ask which?")
    assert (asked.code, asked.out) == (1, "")
    assert "TASK_STATE_INPUT_REQUIRED" in asked.err
