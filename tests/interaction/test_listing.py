"""ListTasks: members, filters, order, artifacts and history."""

import json
import time
from typing import Any

import pytest

from tests.harness.polling import until
from tests.interaction.answers import PARAMS, refused
from tests.interaction.callers import Caller, HttpCaller, Request, RpcCaller
from tests.interaction.following import got, sent
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers

MEMBERS = {"tasks", "nextPageToken", "pageSize", "totalSize"}


@pytest.fixture
def context() -> str:
    """A context of its own for each test."""
    return new_id("ctx")


def listed(caller: Caller, **params: Any) -> dict[str, Any]:
    """A page."""
    page: dict[str, Any] = caller.call("ListTasks", params).result
    assert set(page) == MEMBERS
    return page


def ids(page: dict[str, Any]) -> list[str]:
    """The ids of the tasks on a page."""
    return [task["id"] for task in page["tasks"]]


@covers("list.members", "voice.19")
def test_an_empty_list_has_all_four_members(caller: Caller, context: str) -> None:
    empty = {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    assert caller.call("ListTasks", {"contextId": context}).result == empty
    assert caller.call("ListTasks", {"contextId": context, "pageSize": 7}).result == empty | {"pageSize": 7}


@covers("list.members", "list.outline")
def test_a_listed_task_has_its_status_and_neither_history_nor_artifacts(caller: Caller, context: str) -> None:
    task = sent(caller, contextId=context)
    page = listed(caller, contextId=context)
    outline = {name: task[name] for name in ("id", "contextId", "status")}
    assert page == {"tasks": [outline], "nextPageToken": "", "pageSize": 50, "totalSize": 1}


@covers("list.artifacts")
@pytest.mark.parametrize("wanted", [False, True])
def test_artifacts_are_there_exactly_if_they_were_asked_for_and_then_even_if_there_are_none(
    caller: Caller, context: str, wanted: bool
) -> None:
    with_result, without = sent(caller, contextId=context), sent(caller, "fail", contextId=context)
    page = listed(caller, contextId=context, includeArtifacts=wanted)
    found = {task["id"]: task.get("artifacts") for task in page["tasks"]}
    if wanted:
        assert found == {with_result["id"]: with_result["artifacts"], without["id"]: []}
    else:
        assert found == {with_result["id"]: None, without["id"]: None}
        assert not [task for task in page["tasks"] if "artifacts" in task]


@covers("list.history", "voice.28")
@pytest.mark.parametrize(("length", "kept"), [(None, 0), (0, 0), (1, 1), (2, 2), (999_999_999, 3)])
def test_history_in_a_list_is_left_out_unless_it_was_asked_for(
    caller: Caller, holding: str, length: int | None, kept: int
) -> None:
    hold = caller.to("hold")
    for text in ("b", "c"):
        params = send_params(text, taskId=holding, configuration={"returnImmediately": True})
        hold.call("SendMessage", params)
    params = {"contextId": got(hold, holding)["contextId"]} | (
        {} if length is None else {"historyLength": length}
    )
    history = listed(hold, **params)["tasks"][0].get("history", [])
    assert [message["parts"][0]["text"] for message in history] == ["wait", "b", "c"][3 - kept :]


@covers("list.order")
def test_tasks_come_newest_status_change_first(caller: Caller, context: str) -> None:
    hold = caller.to("hold")
    tasks = [sent(hold, "wait", wait=False, contextId=context)["id"] for _ in range(4)]
    for moved in (tasks[1], tasks[3], tasks[0], tasks[2]):
        hold.call("CancelTask", {"id": moved})
        # Times are told in milliseconds; within one, the order is that of the ids.
        passed = time.time_ns() // 1_000_000 + 1
        until(lambda passed=passed: time.time_ns() // 1_000_000 > passed, what="the next millisecond")
    page = listed(hold, contextId=context)
    assert ids(page) == [tasks[2], tasks[0], tasks[3], tasks[1]]
    stamps = [(task["status"]["timestamp"], task["id"]) for task in page["tasks"]]
    assert stamps == sorted(stamps, reverse=True)


STATES = {
    "hello": "TASK_STATE_COMPLETED",
    "fail": "TASK_STATE_FAILED",
    "reject": "TASK_STATE_REJECTED",
    "crash": "TASK_STATE_FAILED",
}


@covers("list.status", "list.total")
def test_the_status_filter_finds_exactly_the_tasks_in_that_state(caller: Caller, context: str) -> None:
    tasks = [(sent(caller, text, contextId=context)["id"], state) for text, state in STATES.items()]
    for number, state in {1: "SUBMITTED", 2: "WORKING", 3: "COMPLETED", 4: "FAILED", 5: "CANCELED"}.items():
        page = listed(caller, contextId=context, status=f"TASK_STATE_{state}")
        expected = [task for task, found in reversed(tasks) if found == f"TASK_STATE_{state}"]
        assert (ids(page), page["totalSize"]) == (expected, len(expected))
        assert listed(caller, contextId=context, status=number) == page
    for unset in ("TASK_STATE_UNSPECIFIED", 0):
        assert listed(caller, contextId=context, status=unset)["totalSize"] == 4


@covers("list.status", "list.total")
def test_the_status_filter_and_its_total_follow_a_task_from_state_to_state(
    caller: Caller, context: str
) -> None:
    hold = caller.to("hold")
    task = sent(hold, "wait", wait=False, contextId=context)
    assert listed(hold, contextId=context, status="TASK_STATE_CANCELED")["totalSize"] == 0
    hold.call("CancelTask", {"id": task["id"]})
    for state, count in (("SUBMITTED", 0), ("WORKING", 0), ("CANCELED", 1)):
        page = listed(hold, contextId=context, status=f"TASK_STATE_{state}")
        assert (len(page["tasks"]), page["totalSize"]) == (count, count)


WRONG: list[tuple[str, Any]] = [
    *(
        ("status", value)
        for value in ("FOO", "completed", "TASK_STATE_CANCELLED", "TASK_STATE_", 9, -1, "1.5")
    ),
    *(("pageSize", value) for value in (0, -1, 101, 1000, 2**31, 10**20, "x", 1.5)),
    *(
        ("statusTimestampAfter", value)
        for value in ("x", "2026-01-01", "2026-01-01T00:00:00", "1767225600", 5)
    ),
    *(("statusTimestampAfter", value) for value in ("2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z")),
    *(
        ("statusTimestampAfter", value)
        for value in ("2026-01-01T25:00:00Z", "2026-01-01T00:00:00.1234567890Z")
    ),
    *(("includeArtifacts", value) for value in ("yes", "TRUE", "1", 2)),
    *(("contextId", value) for value in ("x" * 257,)),
    *(("pageToken", value) for value in ("garbage", "AAAA", "=", "x" * 5000, "é", "a b", "0")),
]


@covers("list.filters-checked")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda value: str(value)[:20])
def test_a_wrong_parameter_is_refused_by_name_and_never_dropped(
    caller: Caller, name: str, value: Any
) -> None:
    refused(caller.call("ListTasks", {name: value}), PARAMS, fields=[name], identifier=1)


@covers("list.filters-checked")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("status", value) for value in (True, False, [], {}, ["TASK_STATE_WORKING"], 1.5)),
        *(("pageSize", value) for value in (True, [], {}, "")),
        *(("contextId", value) for value in (5, [], {}, True, False)),
        *(("pageToken", value) for value in (5, [], {}, False)),
        *(("includeArtifacts", value) for value in ("true", 1, 0, [], {})),
        *(("statusTimestampAfter", value) for value in (5, [], {}, False, "")),
    ],
    ids=repr,
)
def test_a_parameter_of_a_wrong_type_is_refused_by_name(rpc: RpcCaller, name: str, value: Any) -> None:
    refused(rpc.call("ListTasks", {name: value}), PARAMS, fields=[name], identifier=1)


@covers("list.after", "list.total")
def test_the_time_filter_is_inclusive_and_reads_any_offset(caller: Caller, context: str) -> None:
    first = sent(caller, contextId=context)
    second = sent(caller, contextId=context)
    stamp = second["status"]["timestamp"]
    assert first["status"]["timestamp"] <= stamp
    for text in (stamp, stamp.replace("Z", "+00:00"), stamp.replace("T", "t").replace("Z", "z")):
        assert second["id"] in ids(listed(caller, contextId=context, statusTimestampAfter=text))
    later = f"{stamp[:-1]}Z".replace(stamp[:4], str(int(stamp[:4]) + 1), 1)
    page = listed(caller, contextId=context, statusTimestampAfter=later)
    assert (page["tasks"], page["totalSize"]) == ([], 0)
    assert listed(caller, contextId=context, statusTimestampAfter="1969-01-01T00:00:00Z")["totalSize"] == 2
    east = f"{int(stamp[:4]) + 1}{stamp[4:-1]}+14:00"
    assert listed(caller, contextId=context, statusTimestampAfter=east)["totalSize"] == 0


@covers("list.after")
def test_the_time_filter_leaves_out_what_changed_before(caller: Caller, context: str) -> None:
    old = sent(caller, contextId=context)["status"]["timestamp"]

    def later() -> dict[str, Any] | None:
        task = sent(caller, contextId=context)
        return task if task["status"]["timestamp"] > old else None

    new = until(later, what="a status time, which has milliseconds, is another one")
    stamp = new["status"]["timestamp"]
    page = listed(caller, contextId=context, statusTimestampAfter=stamp)
    assert (ids(page), page["totalSize"]) == ([new["id"]], 1)


@covers("list.query")
def test_http_takes_the_last_of_a_repeated_parameter_and_ignores_unknown_ones(
    http: HttpCaller, context: str
) -> None:
    task = sent(http, contextId=context)
    path = f"/agents/demo/tasks?contextId=other&contextId={context}&unknown=1&pageSize=3&pageSize=2"
    page = http.deliver(Request("GET", path, {"A2A-Version": "1.0"})).result
    assert (ids(page), page["pageSize"]) == ([task["id"]], 2)


@covers("list.query", "fields.spellings")
def test_http_filters_by_snake_case_too_and_never_drops_a_filter(http: HttpCaller, context: str) -> None:
    task = sent(http, contextId=context)
    page = listed(http, context_id=context, page_size=1, include_artifacts=True, history_length=1)
    assert (page["tasks"], page["pageSize"]) == ([task], 1)


@covers("list.query", "fields.spellings")
def test_jsonrpc_lists_by_snake_case_too(rpc: RpcCaller, context: str) -> None:
    task = sent(rpc, contextId=context)
    page = listed(rpc, context_id=context, page_size=1, include_artifacts=True, history_length=1)
    assert page["tasks"] == [task]


@covers("list.bounded")
def test_a_page_is_at_most_a_mebibyte_and_holds_at_least_one_task(caller: Caller, context: str) -> None:
    for size in (700, 2000, 300, 300, 300):
        sent(caller, f"big {size}", contextId=context)
    seen, token = [], ""
    for _ in range(10):
        reply = caller.call("ListTasks", {"contextId": context, "includeArtifacts": True, "pageToken": token})
        page = reply.result
        assert page["totalSize"] == 5
        assert len(page["tasks"]) == 1 or len(json.dumps(page)) <= 1024 * 1024
        seen.append([len(task["artifacts"][0]["parts"][0]["text"]) // 1024 for task in page["tasks"]])
        token = page["nextPageToken"]
        if not token:
            break
    assert seen == [[300, 300, 300], [2000], [700]]


@covers("list.bounded")
def test_a_page_of_two_tasks_never_passes_the_mebibyte_by_a_byte(caller: Caller, context: str) -> None:
    """Two tasks whose own texts are together just a mebibyte: the frame around them must count as well."""
    for _ in range(2):
        sent(caller, "x" * 260_000, contextId=context)
    params = {"contextId": context, "includeArtifacts": True, "historyLength": 1}
    spare = 1024 * 1024 - len(caller.call("ListTasks", params).body)
    assert 0 < spare < 100_000
    again = new_id("ctx")
    for extra in (0, (spare + 30) // 2):  # a text counts twice, in the history and in the echo
        sent(caller, "x" * (260_000 + extra), contextId=again)
    body = caller.call("ListTasks", params | {"contextId": again}).body
    assert len(body) <= 1024 * 1024


@pytest.fixture
def hidden(caller: Caller, context: str) -> None:
    """Messages that were answered with bare messages in the context."""
    for _ in range(2):
        caller.call("SendMessage", send_params("message hi", contextId=context))


@covers("list.total", "send.bare-message")
@pytest.mark.usefixtures("hidden")
def test_runs_that_were_answered_with_a_bare_message_are_neither_listed_nor_counted(
    caller: Caller, context: str
) -> None:
    task = sent(caller, contextId=context)
    page = listed(caller, contextId=context)
    assert (ids(page), page["totalSize"]) == ([task["id"]], 1)
