"""Extensions as callers of 0.3 meet them: named in either header, refused by name, their data in metadata."""

from typing import Any

import pytest

from tests.interaction.v0_3.answers import EXTENSION, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import send_params
from tests.interaction.v0_3.requirements import covers

FIRST, SECOND = "urn:test:first:v1", "urn:test:second:v1"
FACTS, GRAPH = "urn:dragoman:ext:run-facts:v1", "urn:dragoman:ext:flow-graph:v1"


@covers("extensions.required")
@pytest.mark.parametrize(
    ("operation", "params"),
    [("SendMessage", send_params()), ("GetTask", {"id": "nope"}), ("CancelTask", {"id": "nope"})],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_without_a_required_extension_an_operation_is_refused_by_its_name(
    caller: Caller, operation: str, params: Any
) -> None:
    strict = caller.to("strict")
    identifier = 1 if caller.binding == "jsonrpc" else None
    refused(strict.call(operation, params), EXTENSION, identifier=identifier)
    named = {"X-A2A-Extensions": FIRST}
    told = refused(strict.call(operation, params, headers=named), EXTENSION, identifier=identifier)
    assert SECOND in told["message"] and FIRST not in told["message"]


@covers("extensions.required", "extensions.echo")
@pytest.mark.parametrize(
    "named",
    [
        {"X-A2A-Extensions": f"{FIRST},{SECOND}"},
        {"A2A-Extensions": f"{FIRST}, {SECOND}"},
        {"X-A2A-Extensions": FIRST, "A2A-Extensions": SECOND},
    ],
    ids=["x", "plain", "both"],
)
def test_required_extensions_may_be_named_in_either_header(caller: Caller, named: dict[str, str]) -> None:
    reply = caller.to("strict").call("SendMessage", send_params(), headers=named)
    assert reply.value["status"]["state"] == "completed"
    assert reply.headers["x-a2a-extensions"] == f"{FIRST}, {SECOND}"
    assert "a2a-extensions" not in reply.headers


@covers("extensions.metadata")
def test_data_of_extensions_stand_in_metadata_through_every_state(form: Caller) -> None:
    graph = form.to("graph")
    named = {"X-A2A-Extensions": f"{FACTS}, {GRAPH}"}
    place = {"kind": "task", "at": 10**30, "node": {"role": "user"}}
    params = send_params(metadata={GRAPH: place})
    with graph.open("SendStreamingMessage", params, headers=named) as stream:
        items = stream.rest()
    assert [item.state for item in items] == ["submitted", "working", "input-required"]
    for number, item in enumerate(items, 1):
        metadata = item.value["metadata"]
        assert metadata[GRAPH] == place
        assert metadata[FACTS]["sequence"] == number == item.id
    task_id = items[0].value["id"]
    done = graph.call("SendMessage", send_params("left", taskId=task_id)).value
    assert (done["status"]["state"], done["metadata"]) == ("completed", {GRAPH: place})
    assert done["history"][0]["metadata"] == {GRAPH: place}
