"""Pages: their sizes, their tokens, and whose they are."""

import base64
import time
from typing import Any

import httpx2
import pytest

from tests.harness.server import ServerProcess
from tests.interaction.answers import PARAMS, refused
from tests.interaction.callers import Caller, HttpCaller
from tests.interaction.following import sent
from tests.interaction.messages import new_id
from tests.interaction.requirements import covers


@pytest.fixture
def context(caller: Caller) -> str:
    """A context with seven tasks."""
    made = new_id("ctx")
    for _ in range(7):
        sent(caller, contextId=made)
    return made


def pages(caller: Caller, **params: Any) -> list[dict[str, Any]]:
    """All pages of a listing."""
    found: list[dict[str, Any]] = []
    token = ""
    while not found or token:
        found.append(caller.call("ListTasks", {**params, "pageToken": token} if token else params).result)
        token = found[-1]["nextPageToken"]
        assert len(found) < 50
    return found


@covers("pages.sizes")
@pytest.mark.parametrize(
    ("size", "counts"), [(1, [1] * 7), (2, [2, 2, 2, 1]), (3, [3, 3, 1]), (7, [7]), (100, [7])]
)
def test_pages_hold_every_task_once_in_order(
    caller: Caller, context: str, size: int, counts: list[int]
) -> None:
    whole = caller.call("ListTasks", {"contextId": context}).result["tasks"]
    found = pages(caller, contextId=context, pageSize=size)
    assert [len(page["tasks"]) for page in found] == counts
    assert [task for page in found for task in page["tasks"]] == whole
    assert {(page["pageSize"], page["totalSize"]) for page in found} == {(size, 7)}
    assert found[-1]["nextPageToken"] == ""


@covers("pages.sizes")
@pytest.mark.parametrize("size", [0, 101, -1])
def test_a_page_size_outside_1_to_100_is_refused(caller: Caller, size: int) -> None:
    refused(caller.call("ListTasks", {"pageSize": size}), PARAMS, fields=["pageSize"], identifier=1)


@covers("pages.sizes")
def test_a_page_without_a_size_holds_50(caller: Caller) -> None:
    context = new_id("ctx")
    for _ in range(51):
        sent(caller, contextId=context)
    page = caller.call("ListTasks", {"contextId": context}).result
    assert (len(page["tasks"]), page["pageSize"], page["totalSize"]) == (50, 50, 51)
    assert page["nextPageToken"]


OTHER_FILTERS: list[dict[str, Any]] = [
    {"contextId": "another"},
    {"status": "TASK_STATE_FAILED"},
    {"statusTimestampAfter": "2020-01-01T00:00:00Z"},
]


@covers("pages.tokens")
@pytest.mark.parametrize("change", OTHER_FILTERS, ids=lambda change: next(iter(change)))
def test_a_token_is_good_for_its_own_filters_alone(
    caller: Caller, context: str, change: dict[str, Any]
) -> None:
    token = caller.call("ListTasks", {"contextId": context, "pageSize": 2}).result["nextPageToken"]
    params = {"contextId": context, "pageSize": 2, "pageToken": token} | change
    refused(caller.call("ListTasks", params), PARAMS, fields=["pageToken"], identifier=1)
    del params["contextId"]
    refused(caller.call("ListTasks", params), PARAMS, fields=["pageToken"], identifier=1)


@covers("pages.tokens")
def test_a_token_of_one_agent_is_refused_by_another(caller: Caller, context: str) -> None:
    token = caller.call("ListTasks", {"contextId": context, "pageSize": 2}).result["nextPageToken"]
    params = {"contextId": context, "pageSize": 2, "pageToken": token}
    refused(caller.to("digest").call("ListTasks", params), PARAMS, fields=["pageToken"], identifier=1)


@covers("pages.tokens")
def test_a_token_goes_on_with_another_page_size_and_over_the_other_binding(
    caller: Caller, other: Caller, context: str
) -> None:
    first = caller.call("ListTasks", {"contextId": context, "pageSize": 2}).result
    params = {
        "contextId": context,
        "pageSize": 5,
        "pageToken": first["nextPageToken"],
        "includeArtifacts": True,
    }
    rest = other.call("ListTasks", params).result
    whole = caller.call("ListTasks", {"contextId": context, "includeArtifacts": True}).result
    assert rest["tasks"] == whole["tasks"][2:]
    assert rest["nextPageToken"] == ""


@covers("pages.tokens")
def test_a_token_that_was_changed_anywhere_is_refused_or_a_place_of_the_same_listing(
    caller: Caller, context: str
) -> None:
    token = caller.call("ListTasks", {"contextId": context, "pageSize": 2}).result["nextPageToken"]
    whole = {task["id"] for task in caller.call("ListTasks", {"contextId": context}).result["tasks"]}
    for index, letter in enumerate(token):
        changed = f"{token[:index]}{'A' if letter != 'A' else 'B'}{token[index + 1 :]}"
        reply = caller.call("ListTasks", {"contextId": context, "pageToken": changed})
        if reply.reason:
            refused(reply, PARAMS, fields=["pageToken"], identifier=1)
        else:
            assert {task["id"] for task in reply.result["tasks"]} <= whole
    for changed in (token[:-1], token + "A", token + "=", token.swapcase(), token * 2, token[::-1]):
        params = {"contextId": context, "pageToken": changed}
        refused(caller.call("ListTasks", params), PARAMS, fields=["pageToken"], identifier=1)


@covers("pages.tokens")
@pytest.mark.parametrize(
    "content", [b"", b"\x93\x01\x02\x03", b"\x80", b"[1]", b"\xc1", b"\x93" + b"\xff" * 40]
)
def test_a_token_that_this_server_never_made_is_refused(caller: Caller, content: bytes) -> None:
    token = base64.urlsafe_b64encode(content).rstrip(b"=").decode() or "_"
    refused(caller.call("ListTasks", {"pageToken": token}), PARAMS, fields=["pageToken"], identifier=1)


@covers("pages.stale")
def test_a_token_stays_good_while_new_tasks_come_and_old_ones_stand(caller: Caller, context: str) -> None:
    whole = caller.call("ListTasks", {"contextId": context}).result["tasks"]
    first = caller.call("ListTasks", {"contextId": context, "pageSize": 3}).result
    for _ in range(5):
        sent(caller, contextId=context)
    params = {"contextId": context, "pageSize": 100, "pageToken": first["nextPageToken"]}
    for _ in range(2):
        rest = caller.call("ListTasks", params).result
        assert rest["tasks"] == whole[3:]
        assert rest["totalSize"] == 12


@pytest.fixture(scope="module")
def heavy(client: httpx2.Client, server: ServerProcess) -> str:
    """A context with forty tasks whose results are a mebibyte each."""
    made = new_id("ctx")
    for _ in range(40):
        sent(HttpCaller(client, server.url), "big 1024", contextId=made)
    return made


@covers("pages.cost")
@pytest.mark.alone
def test_a_page_costs_what_it_holds_and_not_what_it_was_asked_for(http: HttpCaller, heavy: str) -> None:
    """A page holds one of these tasks, however many it might have held."""
    params = {"contextId": heavy, "includeArtifacts": True}
    one, forty = (_seconds(http, 1, params | {"pageSize": size}) for size in (1, 40))
    assert forty < 2.5 * one, (one, forty)


@covers("pages.cost")
@pytest.mark.alone
def test_a_list_without_artifacts_costs_the_same_whatever_the_results_are(
    http: HttpCaller, heavy: str
) -> None:
    light = new_id("ctx")
    for _ in range(40):
        sent(http, contextId=light)
    small, large = (_seconds(http, 40, {"contextId": context}) for context in (light, heavy))
    assert large < 5 * small, (small, large)


def _seconds(http: HttpCaller, count: int, params: dict[str, Any]) -> float:
    """The time of the quickest of several lists, each of which has `count` tasks."""
    took = []
    for _ in range(5):
        began = time.perf_counter()
        page = http.call("ListTasks", params).result
        took.append(time.perf_counter() - began)
        assert len(page["tasks"]) == count
    return min(took)
