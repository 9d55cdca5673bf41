"""GetTask: what is there, and how much history."""

from typing import Any

import pytest

from tests.interaction.callers import Request
from tests.interaction.v0_3.answers import PARAMS, TASK_NOT_FOUND, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import got, send_params, sent
from tests.interaction.v0_3.requirements import covers


@covers("get.task")
@pytest.mark.parametrize("text", ["hello", "fail x", "stream 5", "file x", "data y"])
def test_a_task_reads_as_it_was_answered(caller: Caller, text: str) -> None:
    task = sent(caller, text)
    assert got(caller, task["id"]) == task


@covers("get.task")
def test_a_task_is_bare_in_every_form(caller: Caller) -> None:
    task = sent(caller)
    result = caller.call("GetTask", {"id": task["id"]}).result
    assert result["id"] == task["id"]
    assert result.get("kind") == ("task" if caller.has_kinds else None)


@covers("get.unknown")
def test_a_task_that_does_not_exist_or_is_another_agents_is_not_found(caller: Caller) -> None:
    refused(caller.call("GetTask", {"id": "nope"}), TASK_NOT_FOUND, identifier=1)
    task = sent(caller)
    refused(caller.to("digest").call("GetTask", {"id": task["id"]}), TASK_NOT_FOUND, identifier=1)


LENGTHS = [(None, 3, 3), (0, 0, 3), (1, 1, 1), (2, 2, 2), (99, 3, 3), (2**31 - 1, 3, 3)]


@covers("get.history", "difference.no-history")
@pytest.mark.parametrize(("length", "with_kinds", "in_proto"), LENGTHS)
def test_history_is_as_long_as_asked_for_and_the_newest_of_it(
    caller: Caller, holding: str, length: int | None, with_kinds: int, in_proto: int
) -> None:
    hold = caller.to("hold")
    for text in ("b", "c"):
        hold.call("SendMessage", send_params(text, taskId=holding, configuration={"blocking": False}))
    params = {} if length is None else {"historyLength": length}
    history = got(hold, holding, **params).get("history", [])
    kept = with_kinds if caller.has_kinds else in_proto
    assert [said["parts"][0]["text"] for said in history] == ["wait", "b", "c"][3 - kept :]


@covers("get.history")
@pytest.mark.parametrize("length", [-1, "x", "1.5", 2**31, "9" * 30, True, "true"])
def test_a_history_length_that_is_none_is_refused(form: Caller, length: Any) -> None:
    reply = form.call("GetTask", {"id": "nope", "historyLength": length})
    refused(reply, PARAMS, fields=["historyLength"], identifier=1)


@covers("get.history", "clients.spellings")
def test_the_query_is_read_in_both_spellings_but_not_in_both_at_once(official: Caller) -> None:
    """The upstream kit asks for `history_length`."""
    task = sent(official)
    for query in ("historyLength=1", "history_length=1", "historyLength=", "unknown=1&historyLength=7"):
        request = Request("GET", official.path(f"/tasks/{task['id']}?{query}"), official.place.headers)
        assert official.deliver(request, "GetTask").value == task
    query = "historyLength=1&history_length=1"
    request = Request("GET", official.path(f"/tasks/{task['id']}?{query}"), official.place.headers)
    refused(official.deliver(request), PARAMS, fields=["historyLength"])


@covers("get.id")
@pytest.mark.parametrize("operation", ["GetTask", "CancelTask", "SubscribeToTask"])
@pytest.mark.parametrize("identifier", ["", None, 5, ["x"], {}], ids=repr)
def test_a_task_id_must_be_text(rpc: Caller, operation: str, identifier: object) -> None:
    refused(rpc.call(operation, {"id": identifier}), PARAMS, fields=["id"], identifier=1)
    refused(rpc.call(operation, {}), PARAMS, fields=["id"], identifier=1)


@covers("get.metadata", "difference.request-metadata")
def test_metadata_of_a_reading_request_is_taken_and_means_nothing(rpc: Caller) -> None:
    task = sent(rpc)
    params = {"id": task["id"], "metadata": {"kind": "x"}}
    assert rpc.call("GetTask", params).value == task
    with rpc.open("SubscribeToTask", params) as stream:
        assert [item.value for item in stream.rest()] == [task]
