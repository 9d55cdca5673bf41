"""Agents without code on the wire: commands and models, their cards, their streams, and what becomes of cancels."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.model_server import ModelServer, Part, chunk
from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.server import ServerDidNotStartError, ServerProcess
from tests.harness.wire import call

CONFIG = """
[engine]
sweep = "100ms"

[agents.upper]
command = ["tr", "a-z", "A-Z"]
name = "Upper"
description = "Writes in capitals."
version = "3.0"

[agents.late]
command = ["sh", "-c", "echo $$ >$PIDS/$DRAGOMAN_TASK_ID; echo begun; cat >/dev/null; sleep 60"]
command_env = ["PIDS"]
deadline = "1s"

[agents.slow]
command = ["sh", "-c", "echo $$ >$PIDS/$DRAGOMAN_TASK_ID; echo begun; cat >/dev/null; sleep 60"]
command_env = ["PIDS"]

[agents.model]
openai = {{ base_url = "{url}", model = "tiny", api_key_env = "MODEL_KEY" }}

[agents.late-model]
deadline = "1s"
openai = {{ base_url = "{url}", model = "tiny" }}
"""

KEY = "sk-0123456789abcdef0123456789"


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with ModelServer() as started:
        yield started


@pytest.fixture(scope="module")
def codeless(models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("without-code")
    (folder / "dragoman.toml").write_text(CONFIG.format(url=models.url), encoding="utf-8")
    (folder / "pids").mkdir()
    environment = {"PIDS": str(folder / "pids"), "MODEL_KEY": KEY}
    with ServerProcess(folder / "data", config=folder / "dragoman.toml", environment=environment) as started:
        yield started


def send(
    codeless: ServerProcess, agent: str, *parts: dict[str, Any], at_once: bool = False
) -> dict[str, Any]:
    message = {"messageId": str(time.monotonic_ns()), "role": "ROLE_USER", "parts": parts}
    sent = {"message": message, "configuration": {"returnImmediately": at_once}}
    reply = call("POST", f"{codeless.url}/agents/{agent}/message:send", sent)
    assert reply.status == 200, reply.body
    task: dict[str, Any] = reply.json()["task"]
    return task


def read(codeless: ServerProcess, agent: str, task_id: str) -> dict[str, Any]:
    task: dict[str, Any] = call("GET", f"{codeless.url}/agents/{agent}/tasks/{task_id}").json()
    return task


def state(task: dict[str, Any]) -> str:
    return str(task["status"]["state"]).removeprefix("TASK_STATE_")


def text(task: dict[str, Any]) -> str:
    return "".join(part["text"] for artifact in task["artifacts"] for part in artifact["parts"])


def begun(codeless: ServerProcess, agent: str) -> tuple[str, int]:
    """The task of a command that runs, and the process id of that."""
    task_id = send(codeless, agent, {"text": "x"}, at_once=True)["id"]
    file = codeless.data.parent / "pids" / task_id
    pid = until(lambda: file.exists() and file.read_text().strip(), what="the command has begun")
    return task_id, int(pid)


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_a_command_answers_in_both_generations(codeless: ServerProcess) -> None:
    task = send(codeless, "upper", {"text": "hello"}, {"data": {"a": 1}})
    assert (state(task), text(task)) == ("COMPLETED", 'HELLO\n{"A":1}')
    older = {"message": {"messageId": "m-0.3", "role": "user", "parts": [{"kind": "text", "text": "old"}]}}
    reply = call(
        "POST", f"{codeless.url}/agents/upper/v1/message:send", older, headers={"A2A-Version": "0.3"}
    )
    assert reply.json()["artifacts"][0]["parts"] == [{"kind": "text", "text": "OLD"}]


def test_a_command_and_a_model_have_cards(codeless: ServerProcess) -> None:
    card = call("GET", f"{codeless.url}/agents/upper/.well-known/agent-card.json").json()
    assert (card["name"], card["description"], card["version"]) == ("Upper", "Writes in capitals.", "3.0")
    assert card["defaultInputModes"] == ["text/plain", "text/markdown", "application/json"]
    card = call("GET", f"{codeless.url}/agents/model/.well-known/agent-card.json").json()
    assert (card["name"], card["capabilities"]["streaming"]) == ("model", True)
    assert KEY not in json.dumps(card)


def test_a_file_that_is_no_text_is_refused(codeless: ServerProcess) -> None:
    assert state(send(codeless, "upper", {"raw": "iVBORw0KGgo="})) == "REJECTED"
    message = {"messageId": "png", "role": "ROLE_USER", "parts": [{"raw": "aGk=", "mediaType": "image/png"}]}
    reply = call("POST", f"{codeless.url}/agents/upper/message:send", {"message": message})
    assert reply.json()["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


def test_a_cancel_ends_a_command(codeless: ServerProcess) -> None:
    task_id, pid = begun(codeless, "slow")
    reply = call("POST", f"{codeless.url}/agents/slow/tasks/{task_id}:cancel", {})
    assert state(reply.json()) == "CANCELED"
    until(lambda: is_gone(pid), what="the command is gone", seconds=3)


def test_a_deadline_ends_a_command(codeless: ServerProcess) -> None:
    task_id, pid = begun(codeless, "late")
    until(lambda: state(read(codeless, "late", task_id)) == "FAILED", what="the deadline ends the task")
    until(lambda: is_gone(pid), what="the command is gone", seconds=3)


def test_a_model_answers(codeless: ServerProcess, models: ModelServer) -> None:
    task = send(codeless, "model", {"text": "so be it"})
    assert (state(task), text(task)) == ("COMPLETED", "so be it ")
    assert models.told("asked")["headers"]["authorization"] == f"Bearer {KEY}"


def test_an_answer_is_streamed_as_it_comes(codeless: ServerProcess) -> None:
    said = str(Part([chunk("one "), 0.3, chunk("two"), chunk(finish="stop")]))
    message = {"messageId": "streamed", "role": "ROLE_USER", "parts": [{"text": said}]}
    reply = call("POST", f"{codeless.url}/agents/model/message:stream", {"message": message})
    events = [json.loads(line[6:]) for line in reply.body.decode().splitlines() if line[:6] == "data: "]
    chunks = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
    assert [(one["artifact"]["parts"][0]["text"], one.get("append", False)) for one in chunks] == [
        ("one ", False),
        ("two", True),
    ]
    assert len({one["artifact"]["artifactId"] for one in chunks}) == 1
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_deadline_lets_go_of_a_model(codeless: ServerProcess, models: ModelServer) -> None:
    task = send(codeless, "late-model", {"text": str(Part([chunk("half")], end="hold"))})
    assert state(task) == "FAILED"
    models.told("gone", 3)


def test_a_program_that_cannot_be_run_is_refused_by_check_and_at_the_start(tmp_path: Path) -> None:
    config = tmp_path / "dragoman.toml"
    for program, refusal in (
        (str(tmp_path / "none"), f"agents.gone.command: there is no program {tmp_path}/none"),
        (str(config), f"agents.gone.command: {config} may not be executed; allow it with `chmod +x`"),
    ):
        config.write_text(f'[agents.gone]\ncommand = ["{program}"]\n', encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "check", "--config", str(config)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (2, f"dragoman: {refusal}\n")
        with pytest.raises(ServerDidNotStartError, match=re.escape(f"dragoman: {refusal}")):
            ServerProcess(tmp_path / "data", config=config).start()


def test_neither_keys_nor_messages_are_logged(codeless: ServerProcess) -> None:
    secret = "nobody else must read this"
    send(codeless, "model", {"text": secret})
    send(codeless, "model", {"text": str(Part(['{"error":{"message":"' + secret + '"}}'], status=401))})
    send(codeless, "upper", {"text": secret})
    until(lambda: "credential (401)" in codeless.log_file.read_text(), what="the refusal is logged")
    logged = codeless.log_file.read_text()
    assert KEY not in logged
    assert secret not in logged
