"""The official SDKs of A2A 0.3 as the tests drive them, and readers for what they report, by `kind`."""

import base64
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tests.harness.paths import CLIENT_SPECS
from tests.interop.sdks import HTTP_JSON, JSONRPC, Json, Report, Sdk, text

OLDER_CLIENT = "A2AClient"
UNFINISHED = {"submitted", "working"}
TERMINAL = {"completed", "failed", "canceled", "rejected"}


def _sdk(environment: str, driver: str, binding: str) -> Sdk:
    return Sdk(environment, CLIENT_SPECS / environment / driver, binding)


CLIENTS = (JSONRPC, HTTP_JSON, OLDER_CLIENT)
PYTHON = [_sdk("a2a-sdk-0.3.26", "driver.py", client) for client in CLIENTS]
JAVASCRIPT = [_sdk("a2a-js-sdk-0.3.14", "driver.mjs", client) for client in CLIENTS]
ALL_SDKS = [*PYTHON, *JAVASCRIPT]

NEWER_SDKS = [
    Sdk(environment, CLIENT_SPECS / driver, f"{binding}@0.3")
    for environment, driver in (
        ("a2a-sdk-1.3.0", "a2a-sdk/driver.py"),
        ("a2a-js-sdk-1.3.0", "a2a-js-sdk-1.3.0/driver.mjs"),
    )
    for binding in (JSONRPC, HTTP_JSON)
]
"""The SDKs of A2A 1.0, given nothing but the 0.3 interfaces of the card."""


def over_http(report: Report) -> bool:
    """Whether the SDK spoke HTTP+JSON."""
    return report.sdk.binding.startswith(HTTP_JSON)


def is_python(report: Report) -> bool:
    """Whether the SDK is the Python one."""
    return report.sdk in PYTHON


def said(holder: Json) -> str:
    """The text of the status message of a task or status update, if it has one.

    Over HTTP+JSON the Python SDK reports an empty message where there was none.
    """
    return text(holder["status"].get("message", {}).get("parts", ()))


def content(part: Json) -> Any:
    """What a part carries: text, bytes, an address or data."""
    match part["kind"]:
        case "text":
            return part["text"]
        case "data":
            return part["data"]
        case _:
            file = part["file"]
            return base64.b64decode(file["bytes"], validate=True) if "bytes" in file else file["uri"]


def history_texts(task: Json) -> list[tuple[str, str]]:
    """Who said what, in the order of the history."""
    return [(message["role"], text(message["parts"])) for message in task.get("history", ())]


def of_kind(events: Iterable[Json], kind: str) -> list[Json]:
    """The stream events of one kind, in order."""
    return [event for event in events if event["kind"] == kind]


def assert_task_stream(events: list[Json]) -> None:
    """One Task, then updates of that task; the last one and no other is terminal, and says that it is final."""
    task, updates = events[0], events[1:]
    assert task["kind"] == "task"
    assert {update["kind"] for update in updates} <= {"status-update", "artifact-update"}
    assert {(update["taskId"], update["contextId"]) for update in updates} == {
        (task["id"], task["contextId"])
    }
    assert task["status"]["state"] in UNFINISHED
    assert updates[-1]["kind"] == "status-update"
    statuses = of_kind(updates, "status-update")
    ends = [update["status"]["state"] in TERMINAL for update in statuses]
    assert ends == [False] * (len(statuses) - 1) + [True]
    assert [update.get("final", False) for update in statuses] == ends
    stamps = [
        datetime.fromisoformat(update["status"]["timestamp"])
        for update in statuses
        if "timestamp" in update["status"]  # the Python SDK drops it over HTTP+JSON
    ]
    assert stamps == sorted(stamps)
