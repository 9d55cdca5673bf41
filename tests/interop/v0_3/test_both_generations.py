"""Official clients of 0.3 and 1.0 at the same time, on one server process and one agent."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.server import ServerProcess
from tests.harness.wire import call
from tests.interop import sdks
from tests.interop.sdks import PYTHON_NEW, Json, Report, Sdk, artifact_text, raw_bytes, state, text
from tests.interop.v0_3 import sdks as sdks_0_3
from tests.interop.v0_3.refusals import NOT_FOUND, assert_refused
from tests.interop.v0_3.sdks import ALL_SDKS, content

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SCENARIOS = ("echo", "stream_chunks", "cancel", "errors", "artifacts")

Summary = tuple[str, str, str, list[tuple[str, str]], list[object]]


def _summary_of_1_0(task: Json) -> Summary:
    """A task without the form of its version: identity, state, history and what its artifacts hold."""

    def carried(part: Json) -> object:
        return raw_bytes(part) if "raw" in part else part.get("text", part.get("data"))

    return (
        task["id"],
        task["contextId"],
        state(task).removeprefix("TASK_STATE_").lower(),
        [(each["role"].removeprefix("ROLE_").lower(), text(each["parts"])) for each in task["history"]],
        [carried(part) for artifact in task.get("artifacts", ()) for part in artifact["parts"]],
    )


def _summary_of_0_3(task: Json) -> Summary:
    """The same of a task as a 0.3 SDK shows it."""
    return (
        task["id"],
        task["contextId"],
        state(task),
        sdks_0_3.history_texts(task),
        [content(part) for artifact in task.get("artifacts", ()) for part in artifact["parts"]],
    )


def _generation(report: Report) -> str:
    return "0.3" if report.sdk in ALL_SDKS else "1.0"


@pytest.fixture(scope="module")
def reports(server: ServerProcess) -> list[Report]:
    """Every 0.3 SDK and the newest Python SDK over both bindings, all eight drivers running at the same time."""
    clients = [*ALL_SDKS, *PYTHON_NEW]
    with ThreadPoolExecutor(max_workers=len(clients)) as threads:
        return list(threads.map(lambda sdk: sdk.drive(server.url, *SCENARIOS), clients))


def test_every_scenario_of_every_client_comes_to_its_end(reports: list[Report]) -> None:
    assert [report.seen.keys() - {"calls"} for report in reports] == [set(SCENARIOS)] * 8
    assert all(report[scenario] is not None for report in reports for scenario in SCENARIOS)


def test_each_client_is_answered_with_its_own_task_in_its_own_generation(reports: list[Report]) -> None:
    tasks = [report["echo"] if _generation(report) == "0.3" else report["echo"]["task"] for report in reports]
    assert len({task["id"] for task in tasks}) == 8
    assert len({artifact_text(task) for task in tasks}) == 1
    assert [state(task) for task in tasks] == ["completed"] * 6 + ["TASK_STATE_COMPLETED"] * 2


def test_no_stream_carries_another_clients_events(reports: list[Report]) -> None:
    for report in reports:
        events = report["stream_chunks"]["events"]
        check = sdks_0_3 if _generation(report) == "0.3" else sdks
        check.assert_task_stream(events)
        assert artifact_text(report["stream_chunks"]["task"]) == "".join(
            f"chunk {number} " for number in range(1, 6)
        )


def test_cancel_and_refusals_mean_the_same_to_all(reports: list[Report]) -> None:
    for report in reports:
        canceled = state(report["cancel"]["read"]).removeprefix("TASK_STATE_").lower()
        assert canceled == "canceled"
        error = report["errors"]["get unknown"]
        if _generation(report) == "0.3":
            assert_refused(report, error, NOT_FOUND)
        else:
            assert error["type"] == NOT_FOUND.name


@pytest.mark.parametrize("sdk", ALL_SDKS, ids=str)
def test_tasks_of_a_0_3_client_read_the_same_in_1_0(server: ServerProcess, sdk: Sdk) -> None:
    context = str(uuid.uuid4())
    left = [_summary_of_0_3(task) for task in sdk.drive(server.url, f"leave={context}")["leave"]]
    assert [summary[2] for summary in left] == ["completed", "completed", "failed", "completed", "completed"]
    assert {summary[1] for summary in left} == {context}
    for newer in PYTHON_NEW:
        recalled = newer.drive(server.url, f"recall={context}")["recall"]
        assert [_summary_of_1_0(task) for task in recalled["read"]] == left[::-1]
        assert [task["id"] for task in recalled["listed"]] == [summary[0] for summary in left[::-1]]


@pytest.mark.parametrize("sdk", ALL_SDKS, ids=str)
def test_tasks_of_a_1_0_client_read_the_same_in_0_3(
    server: ServerProcess, sdk: Sdk, left_in_1_0: list[Json]
) -> None:
    wanted = ",".join(task["id"] for task in left_in_1_0)
    read = sdk.drive(server.url, f"read={wanted}")["read"]
    assert [_summary_of_0_3(task) for task in read] == [_summary_of_1_0(task) for task in left_in_1_0]


@pytest.fixture(scope="module")
def left_in_1_0(server: ServerProcess) -> list[Json]:
    """Finished tasks of several kinds, made and read by a 1.0 client."""
    tasks: list[Json] = PYTHON_NEW[0].drive(server.url, "leave")["leave"]["read"]
    assert len(tasks) == 5
    return tasks


@pytest.mark.parametrize("sdk", ALL_SDKS, ids=str)
def test_a_running_task_of_a_1_0_caller_is_followed_and_canceled_in_0_3(
    server: ServerProcess, sdk: Sdk
) -> None:
    base = f"{server.url}/agents/demo"
    message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": "slow 60"}]}
    request = {"message": message, "configuration": {"returnImmediately": True}}
    task_id = call("POST", f"{base}/message:send", request).json()["task"]["id"]
    seen = sdk.drive(server.url, f"follow_and_cancel={task_id}")["follow_and_cancel"]
    sdks_0_3.assert_task_stream(seen["events"])
    assert {seen["events"][0]["id"], seen["canceled"]["id"]} == {task_id}
    assert state(seen["events"][-1]) == state(seen["canceled"]) == "canceled"
    read = call("GET", f"{base}/tasks/{task_id}").json()
    assert state(read) == "TASK_STATE_CANCELED"
    stamp = seen["canceled"]["status"].get("timestamp")  # the Python SDK drops it over HTTP+JSON
    assert stamp in {None, read["status"]["timestamp"]}
