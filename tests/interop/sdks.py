"""The official SDKs as the tests drive them, and readers for what they report."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.harness.clients import ClientEnvironment
from tests.harness.paths import CLIENT_SPECS

JSONRPC, HTTP_JSON = "JSONRPC", "HTTP+JSON"
TERMINAL = {f"TASK_STATE_{state}" for state in ("COMPLETED", "FAILED", "CANCELED", "REJECTED")}
UNFINISHED = {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}

Json = dict[str, Any]


@dataclass(frozen=True)
class Sdk:
    """One official SDK over one binding."""

    environment: str
    script: Path
    binding: str

    def __str__(self) -> str:
        return f"{self.environment} {self.binding}"

    def drive(
        self, server_url: str, *scenarios: str, agent: str = "demo", below: str = "/agents", bearer: str = ""
    ) -> "Report":
        """Run scenarios of the driver (its standard ones if none is named) against one agent of the server.

        `below` is where the server's agents stand, and `bearer` a token for all requests.
        """
        seen = ClientEnvironment(self.environment).run_driver(
            self.script,
            f"{server_url}{below}/{agent}",
            self.binding,
            *scenarios,
            environment={"AGENT_BEARER": bearer} if bearer else None,
        )
        return Report(self, server_url, seen)


@dataclass(frozen=True)
class Report:
    """What a driver saw, by scenario."""

    sdk: Sdk
    server_url: str
    seen: Json

    def __getitem__(self, scenario: str) -> Any:
        result = self.seen[scenario]
        if isinstance(result, dict) and "raised" in result:
            raise AssertionError(f"{self.sdk}: {scenario} raised\n{result['raised']}")
        return result

    @property
    def agent_url(self) -> str:
        """The base of the demo agent, which the standard scenarios speak to."""
        return f"{self.server_url}/agents/demo"


def _python(version: str, binding: str) -> Sdk:
    return Sdk(f"a2a-sdk-{version}", CLIENT_SPECS / "a2a-sdk" / "driver.py", binding)


def _javascript(binding: str) -> Sdk:
    return Sdk("a2a-js-sdk-1.3.0", CLIENT_SPECS / "a2a-js-sdk-1.3.0" / "driver.mjs", binding)


PYTHON_NEW = [_python("1.3.0", JSONRPC), _python("1.3.0", HTTP_JSON)]
PYTHON_OLD = [_python("1.2.2", JSONRPC), _python("1.2.2", HTTP_JSON)]
JAVASCRIPT = [_javascript(JSONRPC), _javascript(HTTP_JSON)]
ALL_SDKS = [*PYTHON_NEW, *PYTHON_OLD, *JAVASCRIPT]


def state(holder: Json) -> str:
    """The state of a task or a status update."""
    return str(holder["status"]["state"])


def text(parts: Iterable[Json]) -> str:
    """The text parts of a message or artifact, joined."""
    return "".join(part.get("text", "") for part in parts)


def artifact_text(task: Json) -> str:
    """The text of the one artifact that the task must have."""
    (artifact,) = task["artifacts"]
    return text(artifact["parts"])


def raw_bytes(part: Json) -> bytes:
    """The content of a `raw` part."""
    return base64.b64decode(part["raw"], validate=True)


def kinds(events: list[Json]) -> list[str]:
    """Which member each stream event carries."""
    return [kind for event in events for kind in event]


def only(events: list[Json], kind: str) -> list[Json]:
    """The payloads of one kind, in order."""
    return [event[kind] for event in events if kind in event]


def assert_task_stream(events: list[Json]) -> None:
    """A Task first, then updates of that task, of which the last and no other is terminal."""
    assert kinds(events)[0] == "task"
    assert set(kinds(events)[1:]) <= {"statusUpdate", "artifactUpdate"}
    task = events[0]["task"]
    updates = [payload for event in events[1:] for payload in event.values()]
    assert {(update["taskId"], update["contextId"]) for update in updates} == {
        (task["id"], task["contextId"])
    }
    assert state(task) in UNFINISHED
    terminal = [state(update) in TERMINAL for update in only(events, "statusUpdate")]
    assert terminal == [False] * (len(terminal) - 1) + [True]
    assert kinds(events)[-1] == "statusUpdate"
    # As times: clients write them with no fraction at a whole second, and then text sorts them wrong.
    stamps = [
        datetime.fromisoformat(update["status"]["timestamp"]) for update in only(events, "statusUpdate")
    ]
    assert stamps == sorted(stamps)
