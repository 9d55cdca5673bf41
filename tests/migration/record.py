"""`python -m tests.migration.record`: write down what a server of the newest schema leaves behind when it is killed.

The file is `data/NNNN.sql`. It is made once for each schema, before the next one comes, and never made anew: it stands
for the stores that are out there.
"""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.harness.wire import call

FOLDER = Path(__file__).parent
AGENTS = FOLDER / "agents" / "states_agents.py"
DATA = FOLDER / "data"


def send(
    server: ServerProcess, text: str, *, agent: str = "worker", wait: bool = True, task: str = ""
) -> Any:
    """Send a message, whose id is its text, and return the answer."""
    message: dict[str, Any] = {
        "messageId": text.replace(" ", "-"),
        "role": "ROLE_USER",
        "parts": [{"text": text}],
    }
    if task:
        message["taskId"] = task
    asked = {"message": message, "configuration": {"returnImmediately": not wait}}
    reply = call("POST", f"{server.url}/agents/{agent}/message:send", asked)
    assert reply.status == 200, reply
    return reply.json()


def fill(server: ServerProcess, file: Path) -> None:
    """Have a run in every state."""
    for text in ("complete größer", "fail", "reject", "ask", "authorize"):
        send(server, text)
    send(server, "reply", agent="free")
    answered = send(server, "ask again")["task"]["id"]
    send(server, "the second", task=answered)
    canceled = send(server, "sleep 60", wait=False)["task"]["id"]
    assert call("POST", f"{server.url}/agents/worker/tasks/{canceled}:cancel", {}).status == 200
    send(server, "sleep 1", wait=False)
    send(server, "wait for room", wait=False)
    with closing(sqlite3.connect(file)) as store:
        working = "SELECT 1 FROM task WHERE state = 2 AND seq > 1"
        waiting = "SELECT 1 FROM task WHERE state = 1 AND dispatch = 'pending'"
        until(lambda: store.execute(working).fetchone(), what="a run is at work")
        until(lambda: store.execute(waiting).fetchone(), what="a run waits for room")


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with ServerProcess(data, agents=[AGENTS]) as server:
            fill(server, data / "dragoman.db")
            server.kill()
        with closing(sqlite3.connect(data / "dragoman.db")) as store:
            (schema,) = store.execute("PRAGMA user_version").fetchone()
            (now,) = store.execute("SELECT now_ms FROM store_clock").fetchone()
            lines = [f"-- now_ms: {now}", *store.iterdump(), f"PRAGMA user_version = {schema};"]
    target = DATA / f"{schema:04}.sql"
    if target.exists():
        raise SystemExit(f"{target} is there already")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    main()
