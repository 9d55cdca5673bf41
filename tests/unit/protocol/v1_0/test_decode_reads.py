"""Reading the requests that name a task or a listing."""

from typing import Any

import pytest

from dragoman.model import Cursor, Filters, Scope, TaskState
from dragoman.model.errors import InvalidParams
from dragoman.model.operation import CancelTask, GetTask, ListTasks, SubscribeToTask
from dragoman.model.payload import pack
from dragoman.protocol.v1_0.decode import decode_cancel, decode_get, decode_list, decode_subscribe

ONE_TASK = [decode_get, decode_cancel, decode_subscribe]


def refused(decode: Any, params: dict[str, Any]) -> str:
    with pytest.raises(InvalidParams) as refusal:
        decode(params, "demo")
    (violation,) = refusal.value.violations
    return violation.field


@pytest.mark.parametrize("decode", ONE_TASK)
@pytest.mark.parametrize("identifier", [None, "", 5, True, ["t"], {}])
def test_a_request_for_a_task_must_name_it(decode: Any, identifier: Any) -> None:
    assert refused(decode, {"id": identifier}) == "id"
    assert refused(decode, {}) == "id"
    assert refused(decode, {"taskId": "t", "name": "tasks/t"}) == "id"


@pytest.mark.parametrize("decode", [*ONE_TASK, decode_list])
@pytest.mark.parametrize("tenant", ["other", "DEMO", 5, ["demo"]])
def test_another_tenant_is_refused(decode: Any, tenant: Any) -> None:
    assert refused(decode, {"id": "t", "tenant": tenant}) == "tenant"


def test_requests_for_a_task_are_read() -> None:
    assert decode_get({"id": "t", "tenant": "demo"}, "demo") == GetTask(task_id="t")
    assert decode_get({"id": "t", "history_length": 0}, "demo") == GetTask(task_id="t", history_length=0)
    assert decode_get({"id": "t", "historyLength": "3"}, "demo") == GetTask(task_id="t", history_length=3)
    assert decode_subscribe({"id": "t", "unknown": {}}, "demo") == SubscribeToTask(task_id="t")
    assert decode_cancel({"id": "t"}, "demo") == CancelTask(task_id="t")
    assert decode_cancel({"id": "t", "metadata": {"n": 2**70}}, "demo") == CancelTask(
        task_id="t", metadata=pack({"n": 2**70})
    )


@pytest.mark.parametrize("length", [-1, 1.5, "x", True, [], 2**31])
def test_a_wrong_history_length_is_refused(length: Any) -> None:
    assert refused(decode_get, {"id": "t", "historyLength": length}) == "historyLength"
    assert refused(decode_get, {"id": "t", "history_length": length}) == "historyLength"
    assert refused(decode_list, {"historyLength": length}) == "historyLength"


@pytest.mark.parametrize("metadata", [[], "x", 5, True])
def test_wrong_metadata_of_a_cancel_is_refused(metadata: Any) -> None:
    assert refused(decode_cancel, {"id": "t", "metadata": metadata}) == "metadata"


def test_a_listing_that_asks_for_nothing_is_read() -> None:
    assert decode_list({}, "demo") == ListTasks()
    absent = dict.fromkeys(
        ["contextId", "status", "pageSize", "pageToken", "historyLength", "includeArtifacts"]
    )
    assert decode_list(absent, "demo") == ListTasks()


@pytest.mark.parametrize("camel", [True, False])
def test_every_member_of_a_listing_is_read_in_either_spelling(camel: bool) -> None:
    cursor = Cursor(5, "t", Filters(Scope("a", "b", "c"), None, None, None).fingerprint())
    members: dict[tuple[str, str], Any] = {
        ("contextId", "context_id"): "c",
        ("status", "status"): "TASK_STATE_WORKING",
        ("pageSize", "page_size"): 100,
        ("pageToken", "page_token"): cursor.token(),
        ("historyLength", "history_length"): 7,
        ("statusTimestampAfter", "status_timestamp_after"): "1970-01-01T00:00:01Z",
        ("includeArtifacts", "include_artifacts"): True,
    }
    params = {name if camel else snake: value for (name, snake), value in members.items()}
    assert decode_list(params, "demo") == ListTasks(
        context_id="c",
        state=TaskState.WORKING,
        page_size=100,
        cursor=cursor,
        history_length=7,
        after=1000,
        include_artifacts=True,
    )


@pytest.mark.parametrize("state", TaskState)
def test_a_state_is_read_by_name_or_number(state: TaskState) -> None:
    assert decode_list({"status": f"TASK_STATE_{state.name}"}, "demo").state is state
    assert decode_list({"status": int(state)}, "demo").state is state


@pytest.mark.parametrize("status", [None, 0, "TASK_STATE_UNSPECIFIED"])
def test_an_unspecified_state_filters_nothing(status: Any) -> None:
    assert decode_list({"status": status}, "demo").state is None


UNKNOWN = "WORKING working task_state_working TASK_STATE_CANCELLED TASK_STATE_ 2".split()


@pytest.mark.parametrize("status", [*UNKNOWN, 9, -1, True, False, [], [2], {}, {"TASK_STATE_WORKING": 1}])
def test_an_unknown_state_is_refused(status: Any) -> None:
    assert refused(decode_list, {"status": status}) == "status"


@pytest.mark.parametrize("size", [0, 101, -1, 150, 1.5, "x", True, 2**40])
def test_a_page_has_one_to_a_hundred_tasks(size: Any) -> None:
    assert refused(decode_list, {"pageSize": size}) == "pageSize"
    assert decode_list({"pageSize": 1}, "demo").page_size == 1


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("contextId", 5),
        ("contextId", "c" * 257),
        ("pageToken", "garbage"),
        ("pageToken", 5),
        ("pageToken", "A" * 1025),
        ("statusTimestampAfter", "yesterday"),
        ("statusTimestampAfter", 5),
        ("statusTimestampAfter", "2026-01-01T00:00:00"),
        ("includeArtifacts", "true"),
        ("includeArtifacts", 1),
    ],
)
def test_a_wrong_member_of_a_listing_is_refused_by_its_name(member: str, value: Any) -> None:
    assert refused(decode_list, {member: value}) == member
