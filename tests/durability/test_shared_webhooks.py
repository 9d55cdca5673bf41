"""Push notifications of servers that share a PostgreSQL store: real processes, one of which tells a receiver."""

import base64
import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.polling import until
from tests.harness.postgres import rows
from tests.harness.receiver import OK, Notified, Receiver, status
from tests.harness.server import ServerProcess
from tests.migration.test_served import dragoman

pytestmark = pytest.mark.own_store

CONFIG = """
[store]
url = "{url}"
[engine]
lease = "2s"
sweep = "1s"
[vault]
key_env = "SHARED_VAULT_KEY"
[outbound]
allow = ["127.0.0.0/8"]
ports = "any"
schemes = ["https", "http"]
retry = "{retry}"
[agents.demo]
python = "dragoman.agents.demo:demo"
push = true
"""
Pair = tuple[ServerProcess, ServerProcess]
RETRY = "200ms"


@pytest.fixture
def pair(request: pytest.FixtureRequest, url: str, tmp_path: Path) -> Iterator[Pair]:
    """Two servers that know of each other and have one key; `RETRY`, or the parameter, is before the second try."""
    config = tmp_path / "dragoman.toml"
    config.write_text(CONFIG.format(url=url, retry=getattr(request, "param", RETRY)), encoding="utf-8")
    environment = {"SHARED_VAULT_KEY": base64.b64encode(bytes(range(32))).decode()}
    with (
        ServerProcess(tmp_path / "one", config=config, environment=environment) as one,
        ServerProcess(tmp_path / "two", config=config, environment=environment) as two,
    ):
        known_at = rows(url, "SELECT max(beat_at) FROM replica")[0][0]
        until(
            lambda: rows(url, "SELECT min(beat_at) FROM replica")[0][0] > known_at, what="both to have beaten"
        )
        yield one, two


def ask(server: ServerProcess, path: str, document: Any) -> Any:
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{server.url}/agents/demo{path}", data=json.dumps(document).encode(), headers=headers
    )
    return json.load(urllib.request.urlopen(request, timeout=30))


def begin(server: ServerProcess, text: str, hook: dict[str, str] | None = None) -> str:
    """Send a message without waiting, whose task is told to a receiver if there is one; return the task's id."""
    task = ask(
        server,
        "/message:send",
        {
            "message": {"messageId": f"{time.time_ns()}", "role": "ROLE_USER", "parts": [{"text": text}]},
            "configuration": {
                "returnImmediately": True,
                **({"taskPushNotificationConfig": hook} if hook else {}),
            },
        },
    )["task"]
    return str(task["id"])


def told_all(url: str) -> bool:
    """Whether every receiver has taken the last event there can be."""
    return {row[0] for row in rows(url, "SELECT state FROM push_config")} == {"done"}


def teller(url: str, task_id: str) -> int:
    """The number of the server that tells the receiver of a task."""
    found: int = rows(url, "SELECT teller FROM push_config WHERE task_id = $1", task_id)[0][0]
    return found


def last(url: str, task_id: str) -> int:
    """The number of a task's last event."""
    found: int = rows(url, "SELECT seq FROM task WHERE id = $1", task_id)[0][0]
    return found


def sequence(notified: list[Notified]) -> list[int]:
    return [one.sequence for one in notified]


def open_at(server: ServerProcess) -> int:
    """How many configurations a server may have something to tell of."""
    metrics = urllib.request.urlopen(f"{server.url}/metrics", timeout=10).read().decode()
    line = next(one for one in metrics.splitlines() if one.startswith("dragoman_webhooks_open "))
    return int(float(line.split()[1]))


def test_of_two_servers_one_tells_each_receiver_every_event_once(pair: Pair, url: str) -> None:
    with Receiver() as receiver:
        tasks = {
            f"/{number}": begin(pair[number % 2], "stream 15", {"url": receiver.url(f"/{number}")})
            for number in range(20)
        }
        until(lambda: told_all(url), seconds=20, what="every receiver to be told")
        for path, task_id in tasks.items():
            assert sequence(receiver.got(path)) == [*range(1, last(url, task_id) + 1)]
        assert len({teller(url, task_id) for task_id in tasks.values()}) == 2, "both have told some"


def test_what_happens_at_one_server_is_told_by_the_other_while_it_happens(pair: Pair, url: str) -> None:
    one, two = pair
    with Receiver() as receiver:
        task_id = begin(one, "slow 60")
        ask(two, f"/tasks/{task_id}/pushNotificationConfigs", {"url": receiver.url(), "id": "c"})
        begun = last(url, task_id)
        notified = receiver.wait(5, seconds=5)
        assert teller(url, task_id) != rows(url, "SELECT owner FROM task")[0][0]
        ask(one, f"/tasks/{task_id}:cancel", {})
        until(lambda: told_all(url), seconds=5, what="the end to be told")
        notified = receiver.got()
        assert sequence(notified) == [*range(notified[0].sequence, last(url, task_id) + 1)]
        assert notified[0].sequence <= begun + 2
        assert notified[-1].json()["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"


def test_what_a_killed_server_had_to_tell_is_told_by_the_other(pair: Pair, url: str) -> None:
    one, two = pair
    with Receiver() as receiver:
        # The answers to these never come: what they were for is sent again by the other server.
        receiver.answer = lambda notified: None if notified.sequence == 4 else OK
        paths = [f"/{number}" for number in range(5)]
        tasks = [begin(one, "stream 15", {"url": receiver.url(path)}) for path in paths]
        for path in paths:
            receiver.wait(4, path)
        one.kill()
        receiver.answer = lambda notified: OK
        until(lambda: told_all(url), seconds=20, what="every receiver to be told")
        for path, task_id in zip(paths, tasks, strict=True):
            seen = sequence(receiver.got(path))
            again = seen.index(4) + 1
            first = seen[again]
            # The last event that was noted may be an earlier one than the last that was taken.
            assert seen[:again] == [1, 2, 3, 4]
            assert first <= 4
            assert seen[again:] == [*range(first, last(url, task_id) + 1)]
        assert open_at(two) == 0


@pytest.mark.parametrize("pair", ["2s"], indirect=True)
def test_a_frozen_server_tells_nothing_more_of_what_the_other_has_taken_over(pair: Pair, url: str) -> None:
    one, two = pair
    frozen: list[int] = []

    def freeze(notified: Notified) -> bytes:
        # The first try is in vain, so that there are several events to tell at once when it is tried again: the server
        # is frozen in the middle of them, with an answer that it has not read yet.
        tries = len(receiver.got())
        if tries == 3:
            os.kill(one.pid, signal.SIGSTOP)
            frozen.append(notified.sequence)
        return status(503) if tries == 1 else OK

    with Receiver(freeze) as receiver:
        task_id = begin(two, "slow 4")
        ask(one, f"/tasks/{task_id}/pushNotificationConfigs", {"url": receiver.url(), "id": "c"})
        first = teller(url, task_id)
        until(lambda: bool(frozen), what="the server to be frozen")
        assert last(url, task_id) > frozen[0] + 1
        until(lambda: told_all(url), seconds=20, what="the receiver to be told by the other")
        assert teller(url, task_id) != first
        before = sequence(receiver.got())
        assert before[:3] == [frozen[0] - 1, frozen[0] - 1, frozen[0]]
        # Nothing of what the frozen server had told was noted yet.
        assert before[3:] == [*range(frozen[0] - 1, last(url, task_id) + 1)]
        one.continue_process()
        until(lambda: open_at(one) == 0, seconds=10, what="the server to find out")
        assert sequence(receiver.got()) == before


@pytest.mark.parametrize("pair", ["5ms"], indirect=True)
def test_a_receiver_that_was_given_up_is_told_again_once_it_is_replaced_at_any_server(
    pair: Pair, url: str
) -> None:
    one, two = pair
    with Receiver(lambda notified: status(503)) as receiver:
        task_id = begin(one, "stream 5", {"url": receiver.url(), "id": "c"})
        until(
            lambda: rows(url, "SELECT state FROM push_config")[0][0] == "dead",
            what="the receiver to be given up",
        )
        tries = len(receiver.got())
        receiver.answer = lambda notified: OK
        ask(two, f"/tasks/{task_id}/pushNotificationConfigs", {"url": receiver.url("/new"), "id": "c"})
        until(lambda: told_all(url), seconds=5, what="the receiver to be told")
        assert sequence(receiver.got("/new")) == [*range(1, last(url, task_id) + 1)]
        assert len(receiver.got("/hook")) == tries


@pytest.mark.parametrize("pair", ["5ms"], indirect=True)
def test_a_command_has_what_was_given_up_redelivered_by_the_server_that_tells_it(
    pair: Pair, url: str, tmp_path: Path
) -> None:
    with Receiver(lambda notified: status(503)) as receiver:
        task_id = begin(pair[1], "stream 5", {"url": receiver.url(), "id": "c"})
        until(
            lambda: rows(url, "SELECT state FROM push_config")[0][0] == "dead",
            what="the receiver to be given up",
        )
        tries = len(receiver.got())
        receiver.answer = lambda notified: OK
        done = dragoman(
            "webhooks", "redeliver", task_id, "--config", tmp_path / "dragoman.toml", cwd=tmp_path
        )
        assert (done.returncode, done.stdout) == (0, "1 to be redelivered\n"), done.stderr
        until(lambda: told_all(url), seconds=5, what="the receiver to be told")
        assert sequence(receiver.got()[tries:]) == [*range(1, last(url, task_id) + 1)]
