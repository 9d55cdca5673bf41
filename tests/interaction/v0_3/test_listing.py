"""Listing tasks, which seed A has over HTTP and the 0.3 standard has not: A2A 1.0's page with 0.3's tasks."""

from typing import Any

import pytest

from tests.interaction.callers import Request
from tests.interaction.messages import new_id
from tests.interaction.v0_3.answers import NO_METHOD, PARAMS, refused
from tests.interaction.v0_3.callers import Caller, envelope
from tests.interaction.v0_3.dialects import Kinds
from tests.interaction.v0_3.messages import send_params, sent
from tests.interaction.v0_3.requirements import covers

MEMBERS = {"tasks", "nextPageToken", "pageSize", "totalSize"}


@pytest.fixture
def context() -> str:
    """A context of its own for each test."""
    return new_id("ctx")


def listed(caller: Caller, **params: Any) -> dict[str, Any]:
    """A page."""
    page: dict[str, Any] = caller.call("ListTasks", params).result
    assert set(page) == MEMBERS
    for task in page["tasks"]:
        Kinds().task(task)
    return page


def ids(page: dict[str, Any]) -> list[str]:
    """The ids of the tasks on a page."""
    return [task["id"] for task in page["tasks"]]


@covers("list.page", "difference.listing")
def test_a_page_has_all_four_members_and_tasks_as_0_3_has_them(seed_a: Caller, context: str) -> None:
    empty = {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    assert listed(seed_a, contextId=context) == empty
    task = sent(seed_a, contextId=context)
    outline = {name: task[name] for name in ("kind", "id", "contextId", "status")}
    assert outline["status"]["state"] == "completed"
    assert listed(seed_a, contextId=context) == empty | {"tasks": [outline], "totalSize": 1}


@covers("list.page")
def test_artifacts_and_history_come_if_they_are_asked_for(seed_a: Caller, context: str) -> None:
    sent(seed_a, "fail", contextId=context)
    task = sent(seed_a, contextId=context)
    page = listed(seed_a, contextId=context, includeArtifacts=True, historyLength=1)
    assert page["tasks"][0] == task
    assert page["tasks"][1]["artifacts"] == []
    assert "artifacts" not in listed(seed_a, contextId=context, includeArtifacts=False)["tasks"][0]


STATES = {"hello": "completed", "fail": "failed", "reject": "rejected", "crash": "failed"}


@covers("list.status")
def test_the_status_filter_takes_the_states_of_0_3(seed_a: Caller, context: str) -> None:
    tasks = [(sent(seed_a, text, contextId=context)["id"], state) for text, state in STATES.items()]
    for state in ("submitted", "working", "input-required", "completed", "canceled", "failed", "rejected"):
        expected = [task for task, found in reversed(tasks) if found == state]
        page = listed(seed_a, contextId=context, status=state)
        assert (ids(page), page["totalSize"]) == (expected, len(expected))


@covers("list.status")
def test_a_task_that_waits_is_found_by_its_state(seed_a: Caller, context: str) -> None:
    for agent, state in (("asks", "input-required"), ("waits", "auth-required")):
        task = sent(seed_a.to(agent), contextId=context)
        assert ids(listed(seed_a.to(agent), contextId=context, status=state)) == [task["id"]]


WRONG: list[tuple[str, Any]] = [
    *(
        ("status", value)
        for value in ("FOO", "TASK_STATE_COMPLETED", "COMPLETED", "cancelled", "3", "unknown")
    ),
    *(("status", value) for value in ("input_required", " completed")),
    *(("pageSize", value) for value in (0, -1, 101, 10**20, "x", 1.5)),
    *(("statusTimestampAfter", value) for value in ("x", "2026-01-01", "2026-02-30T00:00:00Z")),
    *(("includeArtifacts", value) for value in ("yes", "TRUE", "1")),
    *(("historyLength", value) for value in (-1, "x")),
    *(("contextId", value) for value in ("x" * 257,)),
    *(("pageToken", value) for value in ("garbage", "AAAA", "x" * 5000)),
]


@covers("list.filters")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda value: str(value)[:20])
def test_a_wrong_parameter_is_refused_by_name_and_never_dropped(
    seed_a: Caller, name: str, value: Any
) -> None:
    refused(seed_a.call("ListTasks", {name: value}), PARAMS, fields=[name])


@covers("list.filters")
def test_the_time_filter_is_inclusive(seed_a: Caller, context: str) -> None:
    task = sent(seed_a, contextId=context)
    stamp = task["status"]["timestamp"]
    assert ids(listed(seed_a, contextId=context, statusTimestampAfter=stamp)) == [task["id"]]
    later = f"{int(stamp[:4]) + 1}{stamp[4:]}"
    assert ids(listed(seed_a, contextId=context, statusTimestampAfter=later)) == []


@covers("list.filters")
def test_snake_case_is_read_the_last_of_several_counts_and_unknown_ones_do_not(
    seed_a: Caller, context: str
) -> None:
    task = sent(seed_a, contextId=context)
    query = f"context_id={context}&page_size=3&page_size=2&include_artifacts=true&x=1&tenant=other"
    request = Request("GET", seed_a.path(f"/tasks?{query}"), seed_a.place.headers)
    page = seed_a.deliver(request).result
    assert (ids(page), page["pageSize"]) == ([task["id"]], 2)
    assert page["tasks"][0]["artifacts"] == task["artifacts"]
    both = Request("GET", seed_a.path("/tasks?contextId=a&context_id=a"), seed_a.place.headers)
    refused(seed_a.deliver(both), PARAMS, fields=["contextId"])


@covers("list.pages")
def test_pages_hold_each_task_once_and_newest_first(seed_a: Caller, context: str) -> None:
    tasks = [sent(seed_a, contextId=context)["id"] for _ in range(5)]
    seen, token = [], ""
    for size in (2, 2, 1):
        page = listed(seed_a, contextId=context, pageSize=2, pageToken=token)
        assert (len(page["tasks"]), page["totalSize"], page["pageSize"]) == (size, 5, 2)
        seen += ids(page)
        token = page["nextPageToken"]
    assert (seen, token) == (tasks[::-1], "")


@covers("list.pages")
def test_a_token_is_good_for_its_own_listing_alone(seed_a: Caller, context: str) -> None:
    for _ in range(2):
        sent(seed_a, contextId=context)
    token = listed(seed_a, contextId=context, pageSize=1)["nextPageToken"]
    reply = seed_a.call("ListTasks", {"contextId": context, "pageToken": token, "status": "failed"})
    refused(reply, PARAMS, fields=["pageToken"])
    assert len(listed(seed_a, contextId=context, pageToken=token)["tasks"]) == 1


@covers("list.total")
def test_bare_messages_are_neither_listed_nor_counted(seed_a: Caller, context: str) -> None:
    seed_a.call("SendMessage", send_params("message hi", contextId=context))
    task = sent(seed_a, contextId=context)
    page = listed(seed_a, contextId=context)
    assert (ids(page), page["totalSize"]) == ([task["id"]], 1)


@covers("list.nowhere-else")
def test_official_clients_have_no_listing(official: Caller) -> None:
    """The 0.3 proto has no such method, and official servers no such path."""
    reply = official.deliver(Request("GET", official.path("/tasks"), official.place.headers))
    refused(reply, NO_METHOD)


@covers("list.nowhere-else")
@pytest.mark.parametrize("method", ["tasks/list", "tasks/List"])
def test_jsonrpc_has_no_listing(rpc: Caller, method: str) -> None:
    refused(rpc.deliver(rpc.post(envelope(method, {}))), NO_METHOD, identifier=1)
