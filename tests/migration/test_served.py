"""An older store: refused until it is upgraded by the command, and then served as if nothing had been."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.server import ServerDidNotStartError, ServerProcess
from tests.harness.wire import call
from tests.migration.record import AGENTS, send
from tests.migration.stores import NEWEST, OLDER, make, number_of, rows_of


def migrate(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `dragoman migrate ...`."""
    return dragoman("migrate", *arguments, cwd=cwd)


def dragoman(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *map(str, arguments)],
        cwd=cwd,
        env=kept | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(params=OLDER)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A data folder with a store of an older schema."""
    return make(tmp_path / "data" / "dragoman.db", request.param).parent


@pytest.fixture
def upgraded(data: Path) -> Iterator[ServerProcess]:
    """A server on it, after the upgrade."""
    assert migrate("upgrade", "--data", data, cwd=data.parent).returncode == 0
    with ServerProcess(data, agents=[AGENTS]) as server:
        yield server


def test_a_server_refuses_an_older_store_and_says_what_to_run(data: Path) -> None:
    before, number = rows_of(data / "dragoman.db"), number_of(data / "dragoman.db")
    with pytest.raises(ServerDidNotStartError) as refusal, ServerProcess(data, agents=[AGENTS]):
        pass
    said = str(refusal.value)
    assert "ended with 1" in said
    assert f"has schema {number} and this Dragoman needs {NEWEST}" in said
    assert "`dragoman migrate upgrade`" in said
    assert "Traceback" not in said
    assert rows_of(data / "dragoman.db") == before


def test_the_commands_say_what_is_what(data: Path) -> None:
    file, number = data / "dragoman.db", number_of(data / "dragoman.db")
    status = migrate("status", "--data", data, "--json", cwd=data.parent)
    assert status.returncode == 1
    told = json.loads(status.stdout)
    assert (told["store"], told["schema"], told["newest"]) == (str(file), number, NEWEST)
    assert [name[:4] for name in told["pending"]] == [f"{step:04}" for step in range(number + 1, NEWEST + 1)]
    shown = migrate("sql", "--data", data, cwd=data.parent)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("BEGIN IMMEDIATE;")
    assert shown.stdout.endswith(f"PRAGMA user_version = {NEWEST};\n\nCOMMIT;\n")
    assert number_of(file) == number

    done = migrate("upgrade", "--data", data, "--json", cwd=data.parent)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["store"], told["before"], told["schema"]) == (str(file), number, NEWEST)
    assert number_of(Path(told["backup"])) == number
    assert Path(told["backup"]).parent == data

    again = migrate("upgrade", "--data", data, cwd=data.parent)
    assert (again.returncode, again.stdout) == (0, f"{file}: has schema {NEWEST} already; nothing was done\n")
    assert [found.name for found in data.iterdir() if "schema-" in found.name] == [Path(told["backup"]).name]
    status = migrate("status", "--data", data, cwd=data.parent)
    assert (status.returncode, status.stdout) == (
        0,
        f"{file}: schema {NEWEST}, this Dragoman needs {NEWEST}\n",
    )
    shown = migrate("sql", "--data", data, cwd=data.parent)
    assert (shown.returncode, shown.stdout) == (0, "")


def test_commands_on_no_store_and_on_something_else(tmp_path: Path) -> None:
    status = migrate("status", "--data", tmp_path / "none", cwd=tmp_path)
    assert (status.returncode, status.stderr) == (0, "")
    assert "no store yet" in status.stdout
    assert migrate("upgrade", "--data", tmp_path / "none", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "none").exists()
    (tmp_path / "dragoman.db").write_bytes(b"no database at all\n" * 400)
    for verb in ("status", "upgrade", "sql"):
        refused = migrate(verb, "--data", tmp_path, cwd=tmp_path)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert str(tmp_path / "dragoman.db") in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("tenant", "list"),
        ("tenant", "create", "acme"),
        ("token", "list"),
        ("audit", "export"),
        ("tasks", "cancel"),
    ],
    ids=" ".join,
)
def test_commands_that_need_the_newest_schema_say_what_to_run(data: Path, words: tuple[str, ...]) -> None:
    before, number = rows_of(data / "dragoman.db"), number_of(data / "dragoman.db")
    task_id = before["task"][0][0]
    refused = dragoman(*words, *([task_id] if words[0] == "tasks" else []), "--data", data, cwd=data.parent)
    assert refused.returncode == 1
    assert f"has schema {number} and this Dragoman needs {NEWEST}" in refused.stderr
    assert "`dragoman migrate upgrade`" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert rows_of(data / "dragoman.db") == before


def test_a_backup_never_overwrites(data: Path) -> None:
    taken = data.parent / "taken.db"
    taken.write_text("mine")
    number = number_of(data / "dragoman.db")
    refused = migrate("upgrade", "--data", data, "--backup", taken, cwd=data.parent)
    assert refused.returncode == 2
    assert "is there already" in refused.stderr
    nowhere = migrate("upgrade", "--data", data, "--backup", data / "no" / "copy.db", cwd=data.parent)
    assert (nowhere.returncode, "no such folder" in nowhere.stderr) == (2, True)
    assert taken.read_text() == "mine"
    assert number_of(data / "dragoman.db") == number


def test_an_upgrade_beside_a_server_does_nothing(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", agents=[AGENTS]) as server:
        send(server, "complete")
        done = migrate("upgrade", "--data", server.data, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "nothing was done" in done.stdout
        send(server, "complete more")


def test_an_upgraded_store_is_served(upgraded: ServerProcess) -> None:
    """Finished tasks are as they were, parked ones are answered, and what was lost runs again."""

    def sent_again(text: str, agent: str = "worker") -> Any:
        answer = send(upgraded, text, agent=agent, wait=False)
        return answer.get("task") or answer["message"]

    def state(task: Any) -> str:
        reply = call("GET", f"{upgraded.url}/agents/worker/tasks/{task['id']}")
        name: str = reply.json()["status"]["state"]
        return name.removeprefix("TASK_STATE_")

    texts = {
        "complete größer": "COMPLETED",
        "fail": "FAILED",
        "reject": "REJECTED",
        "sleep 60": "CANCELED",
        "ask again": "COMPLETED",
        "ask": "INPUT_REQUIRED",
        "authorize": "AUTH_REQUIRED",
    }
    # The same messages again: each finds its task.
    tasks = {text: sent_again(text) for text in texts}
    assert {text: state(task) for text, task in tasks.items()} == texts
    first = call("GET", f"{upgraded.url}/agents/worker/tasks/{tasks['complete größer']['id']}").json()
    assert "".join(part["text"] for part in first["artifacts"][0]["parts"]) == "One two."
    assert sent_again("reply", "free")["parts"] == [{"text": "A bare message."}]

    # One was at work and one had no room: both come to their end by themselves.
    for text in ("sleep 1", "wait for room"):
        task = sent_again(text)
        until(lambda task=task: state(task) == "COMPLETED", what=f"{text!r} completes", seconds=15)

    for text, answer in (("ask", "the first"), ("authorize", "a key")):
        ended = send(upgraded, answer, task=tasks[text]["id"])["task"]
        assert ended["status"]["state"] == "TASK_STATE_COMPLETED"
        assert answer in ended["artifacts"][0]["parts"][0]["text"]
    listed = call("GET", f"{upgraded.url}/agents/worker/tasks").json()
    assert listed["totalSize"] == len(texts) + 2
