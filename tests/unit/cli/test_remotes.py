"""`dragoman remotes` and `dragoman delegate`: on a store, and over a server's API."""

import base64
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.harness.paths import SOURCE
from tests.harness.rogue import Rogue, reply, task
from tests.harness.server import ServerProcess

SECRET = "s3cr3t-of-the-remote-agent"
ALICE = "alice-of-acme-Zm9vYmFyLXNlY3JldA"
OPENED = """
[outbound]
allow = ["127.0.0.0/8"]
ports = "any"
schemes = ["https", "http"]
[agents.demo]
python = "dragoman.agents.demo:demo"
"""
TENANTS = """
[tenants.acme]
features = ["agent_api"]
[tenants.acme.principals.alice]
tokens = [{ env = "ALICE", scopes = ["*"] }]
[tenants.beta]
"""

Done = subprocess.CompletedProcess[str]


class Place:
    """A folder with a configuration and a server, and commands that run there."""

    def __init__(self, folder: Path, config: str) -> None:
        self.config = folder / "dragoman.toml"
        self.config.write_text(config, encoding="utf-8")
        self.server = ServerProcess(folder / "data", config=self.config, environment={"ALICE": ALICE})
        self.server.start()

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run a command of `remotes`."""
        where = ["--data", str(self.server.data), "--config", str(self.config)]
        return self._run(["remotes", *arguments, *where], environment)

    def delegate(self, *arguments: str, **environment: str) -> Done:
        """Run `delegate`."""
        return self._run(["delegate", *arguments, "--url", self.server.url], environment)

    def _run(self, arguments: list[str], environment: dict[str, str]) -> Done:
        return subprocess.run(
            [sys.executable, "-m", "dragoman", *arguments],
            env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server without tenants."""
    place = Place(tmp_path_factory.mktemp("mine"), OPENED)
    yield place
    place.server.close()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server of two tenants."""
    place = Place(tmp_path_factory.mktemp("theirs"), OPENED + TENANTS)
    yield place
    place.server.close()


def test_an_agent_is_added_beside_the_server_used_at_once_and_removed(mine: Place) -> None:
    with Rogue() as other:
        added = mine.run("add", "helper", other.url(), "--token-env", "HELPER", HELPER=SECRET)
        assert added.returncode == 0, added.stderr
        agent = added.stdout.strip()
        (row,) = json.loads(mine.run("list", "--json").stdout)
        assert (row["id"], row["name"], row["has_credential"]) == (agent, "helper", True)
        listed = mine.run("list").stdout.splitlines()
        assert listed[0].split("\t") == ["id", "name", "endpoint_url", "has_credential", "created_at"]
        assert listed[1].split("\t")[:4] == [agent, "helper", other.url(), "yes"]
        first = mine.delegate("helper", "Hello", "--task-id", "t-1", "--json")
        assert first.returncode == 0, first.stderr
        assert json.loads(first.stdout)["status"] == "completed"
        assert json.loads(mine.delegate(agent, "Hello", "--task-id", "t-1", "--json").stdout) == json.loads(
            first.stdout
        )
        (asked,) = other.got()
        assert asked.headers["authorization"] == f"Bearer {SECRET}"
    removed = mine.run("remove", "helper")
    assert (removed.returncode, removed.stdout) == (0, f"{agent} is removed\n")
    assert mine.run("list").stderr == "no remote agents of local\n"
    with closing(sqlite3.connect(mine.server.data / "dragoman.db")) as store:
        dump = "\n".join(store.iterdump())
        actions = store.execute("SELECT action FROM audit WHERE target = ?", (f"remotes/{agent}",)).fetchall()
    assert SECRET not in dump
    assert [action for (action,) in actions] == ["RegisterRemote", "RemoveRemote"]


def test_what_came_is_printed_and_the_exit_code_tells_how_it_went(mine: Place) -> None:
    with Rogue() as other:
        agent = mine.run("add", "talker", other.url()).stdout.strip()
        parts = [{"text": "one"}, {"data": 1}, {"text": "two"}]
        other.script = lambda asked: reply(task(asked, artifacts=[{"artifactId": "a", "parts": parts}]))
        said = mine.delegate(agent, "Hello", "--return-immediately")
        assert (said.returncode, said.stdout) == (0, "one\ntwo\n")
        assert "task id: " in said.stderr and "remote task  remote-1" in said.stderr
        assert other.got()[0].json()["params"]["configuration"] == {"returnImmediately": True}
        other.script = lambda asked: reply(b"", 500)
        unknown = mine.delegate(agent, "Hello")
        assert (unknown.returncode, unknown.stdout) == (1, "")
        assert "status       unknown" in unknown.stderr
        assert "answered 500" in unknown.stderr
        conflict = mine.delegate(agent, "Hello", "--task-id", "t-1")
        assert conflict.returncode == 1
        conflict = mine.delegate(agent, "Bye", "--task-id", "t-1")
        assert (conflict.returncode, "answered 409" in conflict.stderr) == (1, True)
        mine.run("remove", agent)


def test_a_card_is_discovered(mine: Place) -> None:
    agent = mine.run("add", "self", f"{mine.server.url}/agents/demo/rpc").stdout.strip()
    found = mine.run("discover", "self")
    assert (found.returncode, found.stderr) == (0, "")
    assert "signature\tgood" in found.stdout and "/agents/demo/rpc" in found.stdout
    assert json.loads(mine.run("discover", "self", "--json").stdout)["card"]["name"] == "Demo"
    mine.run("remove", agent)
    with Rogue(reads="head", script=lambda asked: reply(b"", 404)) as other:
        agent = mine.run("add", "none", other.url()).stdout.strip()
        missing = mine.run("discover", "none")
        assert (missing.returncode, "answers 404" in missing.stderr) == (1, True)
        mine.run("remove", agent)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["add", "x", "http://10.0.0.1/"], 2, "endpoint_url: leads to an address"),
        (["add", "x", "ftp://a.example/"], 2, "endpoint_url: must be an https URL"),
        (["add", "", "https://a.example/"], 2, "name: must be 1 to 200"),
        (
            ["add", "x", "https://a.example/", "--token-env", "NOTHING_THERE"],
            2,
            "NOTHING_THERE holds no token",
        ),
        (["add", "x", "https://a.example/", "--token-file", "/nowhere"], 2, "/nowhere cannot be read"),
        (["add", "x", "https://a.example/", "--token-env", "A", "--token-file", "b"], 2, "one place only"),
        (["remove", "nobody"], 1, "remotes list"),
        (["discover", "nobody"], 1, "remotes list"),
        (["list", "--tenant", "nobody"], 1, "no tenant nobody"),
    ],
)
def test_what_is_wrong_is_said(mine: Place, arguments: list[str], code: int, words: str) -> None:
    refused = mine.run(*arguments)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert words in refused.stderr


def test_two_of_a_name_are_told_apart_by_their_ids(mine: Place) -> None:
    ids = [mine.run("add", "twin", "https://a.example/rpc").stdout.strip() for _ in range(2)]
    for refused in (mine.run("remove", "twin"), mine.delegate("twin", "Hello")):
        assert (refused.returncode, "2 remote agents twin" in refused.stderr) == (1, True)
    for agent in ids:
        assert mine.run("remove", agent).returncode == 0


def test_where_there_are_tenants_it_is_said_whose(theirs: Place) -> None:
    unsaid = theirs.run("list")
    assert (unsaid.returncode, "acme, beta" in unsaid.stderr) == (2, True)
    assert theirs.run("add", "x", "https://a.example/", "--tenant", "acme").returncode == 0
    assert json.loads(theirs.run("list", "--tenant", "beta", "--json").stdout) == []
    assert len(json.loads(theirs.run("list", "--tenant", "acme", "--json").stdout)) == 1
    assert theirs.run("remove", "x", "--tenant", "beta").returncode == 1
    keyless = theirs.delegate("x", "Hello")
    assert (keyless.returncode, "401" in keyless.stderr, "holds no token" in keyless.stderr) == (
        1,
        True,
        True,
    )
    nobody = theirs.delegate("nobody", "Hello", DRAGOMAN_API_KEY=ALICE)
    assert (nobody.returncode, "no remote agent nobody" in nobody.stderr) == (1, True)


def test_a_token_is_not_sealed_with_another_key_than_the_servers(theirs: Place) -> None:
    url = ["https://b.example/", "--tenant", "beta", "--token-env", "T"]
    assert theirs.run("add", "x", *url, T=SECRET).returncode == 0
    key = base64.b64encode(os.urandom(32)).decode()
    refused = theirs.run("add", "y", *url, T=SECRET, DRAGOMAN_VAULT_KEY_ENV="K", K=key)
    assert (refused.returncode, "sealed with another key" in refused.stderr) == (2, True)
