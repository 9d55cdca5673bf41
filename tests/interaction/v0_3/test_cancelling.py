"""CancelTask, in each of its spellings."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.polling import until
from tests.interaction.callers import Request
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import NOT_CANCELABLE, PARAMS, TASK_NOT_FOUND, Reply, refused
from tests.interaction.v0_3.callers import Caller, typed
from tests.interaction.v0_3.messages import got, sent
from tests.interaction.v0_3.requirements import covers


def cancelled(caller: Caller, target: str, body: bytes | None = None) -> Reply:
    """The reply to a cancel at this target."""
    headers = caller.place.headers
    request = Request("POST", target, typed(headers) if body else headers, body)
    return caller.deliver(request, "CancelTask")


@covers("cancel.running")
def test_cancelling_a_running_task_answers_canceled_and_stores_it(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    task = hold.call("CancelTask", {"id": holding}).value
    assert task["status"]["state"] == "canceled"
    assert task["history"][0]["parts"][0]["text"] == "wait"
    assert got(hold, holding) == task


@covers("cancel.running", "form.proto")
def test_the_proto_spells_it_with_two_l(official: Caller, holding: str) -> None:
    result = official.to("hold").call("CancelTask", {"id": holding}).result
    assert result["status"]["state"] == "TASK_STATE_CANCELLED"


@covers("cancel.spellings")
@pytest.mark.parametrize("spelling", [":cancel", "/cancel"])
@pytest.mark.parametrize("body", [None, b"{}", b'{"metadata":{"why":1}}'])
def test_seed_a_cancels_by_colon_and_by_slash(
    seed_a: Caller, holding: str, spelling: str, body: bytes | None
) -> None:
    hold = seed_a.to("hold")
    reply = cancelled(hold, hold.path(f"/tasks/{holding}{spelling}"), body)
    assert (reply.value["id"], reply.value["status"]["state"]) == (holding, "canceled")


@covers("cancel.bodies", "clients.cancel")
@pytest.mark.parametrize("body", [None, b"", b"{}", b'{"name":"tasks/ID"}'], ids=str)
def test_official_clients_cancel_with_a_resource_name_an_empty_body_or_none(
    official: Caller, holding: str, body: bytes | None
) -> None:
    hold = official.to("hold")
    text = body.replace(b"ID", holding.encode()) if body is not None else None
    request = Request("POST", hold.path(f"/tasks/{holding}:cancel"), typed(hold.place.headers), text)
    assert hold.deliver(request, "CancelTask").value["status"]["state"] == "canceled"


@covers("cancel.bodies")
@pytest.mark.parametrize("name", ["tasks/other", "other", "tasks/", "x", 5, ["tasks/ID"], {}], ids=repr)
def test_a_body_that_names_another_resource_is_refused(official: Caller, holding: str, name: Any) -> None:
    hold = official.to("hold")
    reply = hold.call("CancelTask", {"id": holding, "name": name}, as_is=True)
    refused(reply, PARAMS, fields=["name"])
    assert got(hold, holding)["status"]["state"] == "working"


@covers("cancel.bodies")
def test_a_body_that_names_another_task_is_refused(web: Caller, holding: str) -> None:
    hold = web.to("hold")
    reply = cancelled(hold, hold.path(f"/tasks/{holding}:cancel"), b'{"id":"other"}')
    refused(reply, PARAMS, fields=["id"])
    assert got(hold, holding)["status"]["state"] == "working"


@covers("cancel.bodies")
@pytest.mark.parametrize("metadata", [[], "m", 3, True])
def test_metadata_of_a_cancel_must_be_an_object(form: Caller, holding: str, metadata: object) -> None:
    reply = form.to("hold").call("CancelTask", {"id": holding, "metadata": metadata})
    refused(reply, PARAMS, fields=["metadata"], identifier=1)
    assert got(form.to("hold"), holding)["status"]["state"] == "working"


@covers("cancel.stops")
def test_cancelling_stops_the_handler(caller: Caller, tmp_path: Path) -> None:
    beacon = tmp_path / "beacon"
    hold = caller.to("hold")
    task = sent(hold, f"beacon {beacon}", wait=False)
    until(lambda: Path(f"{beacon}.began").exists(), what="the handler began")
    hold.call("CancelTask", {"id": task["id"]})
    until(lambda: Path(f"{beacon}.stopped").exists(), what="the handler was stopped")


@covers("cancel.refused")
@pytest.mark.parametrize("text", ["hello", "fail", "reject"])
def test_a_finished_task_cannot_be_cancelled(caller: Caller, rows: Rows, text: str) -> None:
    task = sent(caller, text)
    with rows.unchanged():
        refused(caller.call("CancelTask", {"id": task["id"]}), NOT_CANCELABLE, identifier=1)
    assert got(caller, task["id"]) == task


@covers("cancel.refused")
def test_a_second_cancel_and_one_of_no_task_are_refused(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    hold.call("CancelTask", {"id": holding})
    refused(hold.call("CancelTask", {"id": holding}), NOT_CANCELABLE, identifier=1)
    refused(hold.call("CancelTask", {"id": "nope"}), TASK_NOT_FOUND, identifier=1)


@covers("cancel.waiting")
@pytest.mark.parametrize("agent", ["asks", "waits"])
def test_a_task_that_waits_for_its_caller_can_be_cancelled(caller: Caller, agent: str) -> None:
    task = sent(caller.to(agent))
    assert caller.to(agent).call("CancelTask", {"id": task["id"]}).value["status"]["state"] == "canceled"
