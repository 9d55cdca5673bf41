"""Delegations of servers that share a PostgreSQL store: real processes, one of which sends."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.durability.delegating import OPENED, SECRET, delegate, register
from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.postgres import execute, rows
from tests.harness.rogue import HANG, Rogue, reply, task
from tests.harness.server import ServerProcess
from tests.harness.wire import call

pytestmark = pytest.mark.own_store

CONFIG = """
[store]
url = "{url}"
[engine]
lease = "2s"
sweep = "1s"
[vault]
key_env = "SHARED_VAULT_KEY"
"""
Pair = tuple[ServerProcess, ServerProcess]
KEY, WRONG_KEY = (base64.b64encode(bytes(range(start, start + 32))).decode() for start in (0, 1))


def remotes(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `dragoman remotes`."""
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "remotes", *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "SECRET": SECRET, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def pair(url: str, tmp_path: Path) -> Iterator[Pair]:
    """Two servers that may reach loopback and have one key."""
    config = tmp_path / "dragoman.toml"
    config.write_text(CONFIG.format(url=url) + OPENED, encoding="utf-8")
    environment = {"SHARED_VAULT_KEY": KEY}
    with (
        ServerProcess(tmp_path / "one", config=config, environment=environment) as one,
        ServerProcess(tmp_path / "two", config=config, environment=environment) as two,
    ):
        yield one, two


def status(url: str) -> str:
    """How the only delegation stands in the store."""
    ((found,),) = rows(url, "SELECT status FROM delegation")
    return str(found)


def test_three_hundred_at_two_servers_are_one_send_and_one_answer(pair: Pair, other: Rogue, url: str) -> None:
    agent = register(pair[0], other)
    other.script = lambda asked: [2.0, *reply(task(asked))]
    with ThreadPoolExecutor(60) as threads:
        answers = list(threads.map(lambda number: delegate(pair[number % 2], agent), range(300)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert answers[0].json()["status"] == "completed"
    assert len(other.got("SendMessage")) == 1
    assert status(url) == "completed"


def test_what_is_registered_at_one_server_is_used_and_removed_at_the_other(pair: Pair, other: Rogue) -> None:
    one, two = pair
    agent = register(one, other)
    assert delegate(two, agent).json()["status"] == "completed"
    (asked,) = other.got("SendMessage")
    assert asked.headers["authorization"].startswith("Bearer ")
    assert call("DELETE", f"{two.url}/v1/a2a/agents/{agent}").status == 204
    assert delegate(one, agent, "another").status == 404
    assert delegate(one, agent).json()["status"] == "completed", "told also when the agent is gone"


def test_commands_register_for_all_servers_with_the_key_that_those_have(
    pair: Pair, other: Rogue, tmp_path: Path
) -> None:
    where = ["--data", str(tmp_path / "elsewhere"), "--config", str(tmp_path / "dragoman.toml")]
    add = ["add", "helper", other.url(), "--token-env", "SECRET", *where]
    assert (remotes(*add, SHARED_VAULT_KEY=WRONG_KEY).returncode) == 0, "the first secret is of any key"
    listed = json.loads(remotes("list", "--json", *where).stdout)
    assert [(one["name"], one["has_credential"]) for one in listed] == [("helper", True)]
    assert delegate(pair[0], listed[0]["id"], "unreadable").json()["status"] == "failed"
    assert other.got() == []
    refused = remotes(*add, SHARED_VAULT_KEY=KEY)
    assert (refused.returncode, "were sealed with another key" in refused.stderr) == (2, True)
    assert remotes("remove", "helper", *where).returncode == 0
    added = remotes(*add, SHARED_VAULT_KEY=KEY)
    assert added.returncode == 0
    for number, server in enumerate(pair):
        assert delegate(server, added.stdout.strip(), f"t-{number}").json()["status"] == "completed"
    assert {one.headers["authorization"] for one in other.got()} == {f"Bearer {SECRET}"}


def test_a_command_makes_no_key_that_no_server_has(url: str, other: Rogue, tmp_path: Path) -> None:
    config, data = tmp_path / "dragoman.toml", tmp_path / "elsewhere"
    config.write_text(f'[store]\nurl = "{url}"\n{OPENED}', encoding="utf-8")
    where = ["helper", other.url(), "--data", str(data), "--config", str(config)]
    refused = remotes("add", *where, "--token-env", "SECRET")
    assert (refused.returncode, "set vault.key_env or vault.key_file" in refused.stderr) == (2, True)
    assert not (data / "vault.key").exists()
    assert rows(url, "SELECT count(*) FROM remote_agent") == [(0,)]
    assert remotes("add", *where).returncode == 0, "without a token there is nothing to seal"


def test_a_server_that_starts_leaves_alone_what_another_one_sends(pair: Pair, other: Rogue, url: str) -> None:
    one, two = pair
    agent = register(one, other)
    other.script = lambda asked: [HANG]
    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(delegate, one, agent)
        other.wait(1)
        two.kill()
        two.start()
        assert status(url) == "sending"
        other.script = lambda asked: reply(task(asked))
        one.kill()
        assert delegate(two, agent).json()["status"] == "unknown"
        assert isinstance(sent.exception(), OSError)
    assert status(url) == "unknown"
    assert len(other.got("SendMessage")) == 1


def test_whoever_waits_at_another_server_is_told_when_the_one_that_sends_is_killed(
    pair: Pair, other: Rogue, url: str
) -> None:
    one, two = pair
    agent = register(one, other)
    other.script = lambda asked: [HANG]
    with ThreadPoolExecutor(21) as threads:
        sent = threads.submit(delegate, one, agent)
        other.wait(1)
        waiting = [threads.submit(delegate, two, agent) for _ in range(20)]
        one.kill()
        told = [answer.result() for answer in waiting]
        assert isinstance(sent.exception(), OSError)
    assert {answer.status for answer in told} == {200}
    assert {answer.json()["status"] for answer in told} == {"unknown"}
    assert len(other.got("SendMessage")) == 1


def test_a_frozen_server_is_passed_over_and_tells_what_it_was_told_when_it_wakes(
    pair: Pair, other: Rogue, url: str
) -> None:
    one, two = pair
    agent = register(one, other)
    other.script = lambda asked: [3.0, *reply(task(asked))]
    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(delegate, one, agent)
        other.wait(1)
        one.stop_process()
        assert delegate(two, agent).json()["status"] == "unknown"
        one.continue_process()
        assert sent.result().json()["status"] == "completed"
    assert delegate(two, agent).json()["status"] == "completed"
    assert len(other.got("SendMessage")) == 1


def test_what_a_living_server_has_forgotten_is_unknown_when_no_send_takes_so_long(
    pair: Pair, other: Rogue, url: str
) -> None:
    one, two = pair
    agent = register(one, other)
    delegate(one, agent)
    # As a commit leaves it whose server never heard of it.
    execute(url, "UPDATE delegation SET status = 'sending', created_at = created_at - 58000")
    assert delegate(two, agent).json()["status"] == "unknown"
    until(lambda: status(url) == "unknown", what="it is recorded")
    assert len(other.got("SendMessage")) == 1
