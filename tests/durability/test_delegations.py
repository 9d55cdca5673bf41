"""Delegations through kill -9 and restarts: one send, one outcome. And the keys of the credentials that they need."""

import base64
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.delegating import AGENTS, OPENED, SECRET, delegate, register, statuses
from tests.harness import stores
from tests.harness.polling import until
from tests.harness.rogue import HANG, Rogue, reply, task
from tests.harness.server import ServerDidNotStartError, ServerProcess
from tests.harness.wire import call

# ------------------------------------------------------------------------------------------------- what the API is told


def test_a_server_that_is_killed_while_it_sends_never_sends_again(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    agent = register(delegating, other)
    done = delegate(delegating, agent, "done")
    other.script = lambda asked: [HANG]
    with ThreadPoolExecutor(20) as threads:
        lost = [threads.submit(delegate, delegating, agent) for _ in range(20)]
        other.wait(2)
        assert statuses(delegating) == ["completed", "sending"], "recorded before a byte was sent"
        delegating.kill()
        assert all(isinstance(one.exception(), OSError) for one in lost)
        other.script = lambda asked: reply(task(asked))
        delegating.start()
        if not stores.is_postgres():
            # There it is so to whoever asks, as soon as the dead one has been silent for long enough.
            assert statuses(delegating) == ["completed", "unknown"]
        answers = list(threads.map(lambda _: delegate(delegating, agent), range(20)))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert statuses(delegating) == ["completed", "unknown"]
    told = answers[0].json()
    assert (told["status"], "stopped" in told["error"]["message"]) == ("unknown", True)
    assert delegate(delegating, agent, "done").json() == done.json()
    assert len(other.got("SendMessage")) == 2


def test_a_server_that_is_told_to_stop_waits_for_what_is_under_way(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    agent = register(delegating, other)
    other.script = lambda asked: [1.0, *reply(task(asked))]
    with ThreadPoolExecutor(1) as threads:
        under_way = threads.submit(delegate, delegating, agent)
        other.wait(1)
        assert delegating.terminate() == 0
        assert under_way.exception() is not None or under_way.result().json()["status"] == "completed"
    assert statuses(delegating) == ["completed"]
    delegating.start()
    assert delegate(delegating, agent).json()["status"] == "completed"
    assert len(other.got()) == 1


@pytest.mark.sqlite  # For PostgreSQL: test_shared_delegations.py.
def test_a_frozen_server_that_was_passed_over_changes_nothing_any_more(
    delegating: ServerProcess, other: Rogue, tmp_path: Path
) -> None:
    delegating.start()
    agent = register(delegating, other)
    other.script = lambda asked: [HANG]
    with ThreadPoolExecutor(1) as threads:
        lost = threads.submit(delegate, delegating, agent)
        other.wait(1)
        delegating.stop_process()
        config = tmp_path / "dragoman.toml"
        with closing(sqlite3.connect(delegating.data / "dragoman.db", timeout=10)) as store:
            # As if its heartbeat were old.
            store.execute("UPDATE server SET heartbeat_at = heartbeat_at - 60000")
            store.commit()
        with ServerProcess(delegating.data, agents=[AGENTS], config=config) as next_one:
            assert delegate(next_one, agent).json()["status"] == "unknown"
            delegating.continue_process()
            until(
                lambda: "taken the store over" in delegating.log_file.read_text(encoding="utf-8"),
                what="it finds that it was passed over",
            )
            assert delegate(next_one, agent).json()["status"] == "unknown"
        assert lost.exception() is not None or lost.result().status >= 500
    assert len(other.got("SendMessage")) == 1


# ------------------------------------------------------------------------------------------------ the keys of the vault


def key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


def with_key(folder: Path, name: str, text: str | None) -> ServerProcess:
    config = folder / "dragoman.toml"
    config.write_text(f'{OPENED}[vault]\nkey_env = "VAULT"\n', encoding="utf-8")
    environment = {} if text is None else {"VAULT": text}
    return ServerProcess(folder / name, config=config, environment=environment)


def test_a_replaced_key_still_reads_and_a_wrong_one_is_refused_at_the_start(
    tmp_path: Path, other: Rogue
) -> None:
    old, new = key(), key()
    with with_key(tmp_path, "data", old) as server:
        agent = register(server, other)
    with with_key(tmp_path, "data", f"{new}\n{old}") as server:
        assert delegate(server, agent, "rotated").json()["status"] == "completed"
        second = register(server, other)
    with with_key(tmp_path, "data", f"{old} {new}") as server:
        assert delegate(server, second, "either").json()["status"] == "completed"
    assert {one.headers["authorization"] for one in other.got()} == {f"Bearer {SECRET}"}
    for text, words in (
        (new, "the secrets of 1 remote agents in the store were sealed with another key"),
        (key(), "were sealed with another key"),
        (None, "holds no key"),
        ("short", "no key; a key is 32 bytes"),
    ):
        with pytest.raises(ServerDidNotStartError) as refused, with_key(tmp_path, "data", text):
            raise AssertionError("it has started")
        assert words in str(refused.value)
        assert "vault.key_env: the environment variable VAULT" in str(refused.value)
        assert "Traceback" not in str(refused.value)
        for secret in (old, new):
            assert secret not in str(refused.value)


def test_a_key_that_is_gone_from_the_data_folder_is_not_made_anew(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    register(delegating, other)
    delegating.terminate()
    own = delegating.data / "vault.key"
    kept = own.read_bytes()
    own.unlink()
    with pytest.raises(ServerDidNotStartError, match=r"vault\.key is not there, and 1 secrets"):
        delegating.start()
    assert not own.exists()
    own.write_bytes(kept)
    own.chmod(0o600)
    delegating.start()


def test_a_server_without_secrets_needs_no_key(tmp_path: Path) -> None:
    with with_key(tmp_path, "data", None) as server:
        body = {"name": "x", "endpoint_url": "https://a.example/", "bearer_token": SECRET}
        answer = call("POST", f"{server.url}/v1/a2a/agents", body)
        assert answer.status == 503
        assert call("POST", f"{server.url}/v1/a2a/agents", {**body, "bearer_token": None}).status == 201
