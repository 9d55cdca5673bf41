"""One task, two generations: what one of them began is right in the other, both ways."""

from typing import Any

import pytest

from tests.interaction.callers import HttpCaller, RpcCaller
from tests.interaction.messages import new_id
from tests.interaction.messages import send_params as newer_params
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.dialects import STATES
from tests.interaction.v0_3.events import folded
from tests.interaction.v0_3.messages import data_part, file_part, got, send_params, sent, text_part
from tests.interaction.v0_3.requirements import covers

Newer = HttpCaller | RpcCaller

NOTE = "urn:dragoman:ext:part:v1"

TWINS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (text_part("x"), {"text": "x"}),
    (text_part("", metadata={"kind": "y", "n": 2**70}), {"text": "", "metadata": {"kind": "y", "n": 2**70}}),
    (
        text_part("x", metadata={NOTE: {"filename": "a.md", "mediaType": "text/markdown"}}),
        {"text": "x", "filename": "a.md", "mediaType": "text/markdown"},
    ),
    (
        text_part("x", metadata={"own": 1, NOTE: {"mediaType": "text/markdown"}}),
        {"text": "x", "mediaType": "text/markdown", "metadata": {"own": 1}},
    ),
    (file_part(b"\0\xff"), {"raw": "AP8="}),
    (file_part(b"", name="a", mimeType="a/b"), {"raw": "", "filename": "a", "mediaType": "a/b"}),
    ({"kind": "file", "file": {"uri": "https://e.example"}}, {"url": "https://e.example"}),
    (
        {"kind": "file", "file": {"uri": "x:y", "name": "a", "mimeType": "a/b"}, "metadata": {"k": 1}},
        {"url": "x:y", "filename": "a", "mediaType": "a/b", "metadata": {"k": 1}},
    ),
    (data_part({"z": 1, "a": {"kind": "x"}}), {"data": {"z": 1, "a": {"kind": "x"}}}),
    (data_part({}), {"data": {}}),
    (data_part({"value": [1, None]}, metadata={"data_part_compat": True}), {"data": [1, None]}),
    (data_part({"value": None}, metadata={"data_part_compat": True}), {"data": None}),
    (
        data_part({"value": "x"}, metadata={"own": 1, "data_part_compat": True}),
        {"data": "x", "metadata": {"own": 1}},
    ),
    (
        data_part({"value": 5}, metadata={NOTE: {"mediaType": "application/json"}, "data_part_compat": True}),
        {"data": 5, "mediaType": "application/json"},
    ),
    (data_part({"value": {"a": 1}}), {"data": {"value": {"a": 1}}}),
    (
        text_part("x", metadata={"deep": [{NOTE: {}}], NOTE: {"mediaType": "a/b"}}),
        {"text": "x", "mediaType": "a/b", "metadata": {"deep": [{NOTE: {}}]}},
    ),
]
"""A part as 0.3 has it, and the same part as 1.0 has it."""


@covers("generations.parts", "difference.part-names", "difference.data-values")
@pytest.mark.parametrize(("old", "new"), TWINS, ids=lambda value: str(value)[:40])
def test_a_part_of_either_generation_is_the_same_part_in_the_other(
    form: Caller, newer: Newer, old: dict[str, Any], new: dict[str, Any]
) -> None:
    task = form.call("SendMessage", send_params(parts=[old])).value
    assert task["history"][0]["parts"] == task["artifacts"][0]["parts"] == [old]
    read = newer.call("GetTask", {"id": task["id"]}).result
    assert read["history"][0]["parts"] == read["artifacts"][0]["parts"] == [new]

    task = newer.call("SendMessage", newer_params(parts=[new])).task
    shown = got(form, task["id"])
    assert shown["history"][0]["parts"] == shown["artifacts"][0]["parts"] == [old]


TAKEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"text": "x", "filename": "a", "metadata": {NOTE: 1}}, text_part("x", metadata={NOTE: 1})),
    (
        {"data": [1], "metadata": {"data_part_compat": False}},
        data_part({"value": [1]}, metadata={"data_part_compat": False}),
    ),
]


@covers("generations.parts", "difference.note-keys-taken")
@pytest.mark.parametrize(("new", "old"), TAKEN, ids=lambda value: str(value)[:40])
def test_metadata_that_has_our_keys_already_stays_as_it_is(
    form: Caller, newer: Newer, new: dict[str, Any], old: dict[str, Any]
) -> None:
    task = newer.call("SendMessage", newer_params(parts=[new])).task
    assert newer.call("GetTask", {"id": task["id"]}).result["history"][0]["parts"] == [new]
    assert got(form, task["id"])["history"][0]["parts"] == [old]


@covers("generations.parts")
@pytest.mark.parametrize(
    "metadata",
    [
        {NOTE: {}},
        {NOTE: {"filename": ""}},
        {NOTE: {"filename": 5}},
        {NOTE: {"filename": "a", "more": 1}},
        {NOTE: "a.md"},
        {NOTE: None},
        {"data_part_compat": True},
    ],
    ids=str,
)
def test_what_only_looks_like_a_note_is_metadata_like_any_other(
    form: Caller, newer: Newer, metadata: dict[str, Any]
) -> None:
    parts = [text_part("x", metadata=metadata), data_part({"a": 1}, metadata=metadata)]
    task = form.call("SendMessage", send_params(parts=parts)).value
    assert task["history"][0]["parts"] == parts
    read = newer.call("GetTask", {"id": task["id"]}).result["history"][0]["parts"]
    assert read == [{"text": "x", "metadata": metadata}, {"data": {"a": 1}, "metadata": metadata}]


ENDS = {"hello": "completed", "fail no": "failed", "reject no": "rejected", "stream 3": "completed"}


@covers("generations.tasks")
@pytest.mark.parametrize("text", ENDS)
def test_a_task_of_0_3_is_right_in_1_0_and_the_other_way_round(form: Caller, newer: Newer, text: str) -> None:
    old = sent(form, text, metadata={"kind": "task"}, extensions=["urn:x"])
    read = newer.call("GetTask", {"id": old["id"]}).result
    new = newer.call("SendMessage", newer_params(text, metadata={"kind": "task"}, extensions=["urn:x"])).task
    shown = got(form, new["id"])
    for older, younger in ((old, read), (shown, new)):
        assert older["status"]["state"] == ENDS[text]
        assert younger["status"]["state"] == f"TASK_STATE_{ENDS[text].upper()}"
        for name in ("id", "contextId"):
            assert older[name] == younger[name]
        assert older["status"]["timestamp"] == younger["status"]["timestamp"]
        assert [one["messageId"] for one in older["history"]] == [
            one["messageId"] for one in younger["history"]
        ]
        assert older["history"][0]["metadata"] == younger["history"][0]["metadata"] == {"kind": "task"}
        artifacts = [[part["text"] for part in one["parts"]] for one in older.get("artifacts", [])]
        assert artifacts == [[part["text"] for part in one["parts"]] for one in younger.get("artifacts", [])]
        said = older["status"].get("message"), younger["status"].get("message")
        if said[0] or said[1]:
            assert (said[0]["role"], said[1]["role"]) == ("agent", "ROLE_AGENT")
            assert said[0]["messageId"] == said[1]["messageId"]


@covers("generations.turns")
def test_a_conversation_may_go_on_in_the_other_generation(form: Caller, newer: Newer) -> None:
    task = sent(form.to("asks"), "begin")
    params = newer_params("five", taskId=task["id"])
    answered = newer.to("asks").call("SendMessage", params).task
    assert (answered["id"], answered["status"]["state"]) == (task["id"], "TASK_STATE_COMPLETED")
    assert [one["role"] for one in answered["history"]] == [
        "ROLE_USER",
        "ROLE_AGENT",
        "ROLE_AGENT",
        "ROLE_USER",
    ]

    began = newer.to("asks").call("SendMessage", newer_params("begin")).task
    assert began["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    ended = sent(form.to("asks"), "six", taskId=began["id"])
    assert (ended["id"], ended["status"]["state"]) == (began["id"], "completed")
    assert [one["role"] for one in ended["history"]] == ["user", "agent", "agent", "user"]


@covers("generations.cancel")
def test_a_task_may_be_cancelled_in_the_other_generation(form: Caller, newer: Newer) -> None:
    task = sent(form.to("hold"), "wait", wait=False)
    newer.to("hold").call("CancelTask", {"id": task["id"]})
    assert got(form.to("hold"), task["id"])["status"]["state"] == "canceled"
    params = newer_params("wait", configuration={"returnImmediately": True})
    other = newer.to("hold").call("SendMessage", params).task
    assert form.to("hold").call("CancelTask", {"id": other["id"]}).value["status"]["state"] == "canceled"


@covers("generations.streams")
def test_subscribers_of_both_generations_see_the_same_events(
    form: Caller, newer: Newer, holding: str
) -> None:
    with (
        form.to("hold").open("SubscribeToTask", {"id": holding}) as old,
        newer.to("hold").open("SubscribeToTask", {"id": holding}) as new,
    ):
        first = old.next(), new.next()
        form.to("hold").call("CancelTask", {"id": holding})
        rests = old.rest(), new.rest()
    assert first[0].id == first[1].id and first[0].value["id"] == first[1].value["id"]
    assert [item.id for item in rests[0]] == [item.id for item in rests[1]]
    assert (rests[0][-1].state, rests[1][-1].state) == ("canceled", "TASK_STATE_CANCELED")
    assert "final" not in rests[1][-1].value


@covers("generations.streams")
def test_a_stream_of_one_generation_is_taken_up_in_the_other(form: Caller, newer: Newer) -> None:
    with form.open("SendStreamingMessage", send_params("stream 8")) as stream:
        whole = stream.rest()
    headers = {"Last-Event-ID": str(whole[3].id)}
    with newer.open("SubscribeToTask", {"id": whole[0].value["id"]}, headers=headers) as stream:
        rest = stream.rest()
    assert [item.id for item in rest] == [item.id for item in whole[4:]]
    assert [part["text"] for part in folded(whole)["artifacts"][0]["parts"]][-len(rest) + 1 :] == [
        item.value["artifact"]["parts"][0]["text"] for item in rest[:-1]
    ]


@covers("generations.lists")
def test_a_list_holds_tasks_of_both_generations(seed_a: Caller, newer: Newer) -> None:
    context = new_id("ctx")
    old = sent(seed_a, contextId=context)["id"]
    new = newer.call("SendMessage", newer_params(contextId=context)).task["id"]
    page = seed_a.call("ListTasks", {"contextId": context}).result
    assert [task["id"] for task in page["tasks"]] == [new, old]
    read = newer.call("ListTasks", {"contextId": context}).result
    assert [task["id"] for task in read["tasks"]] == [new, old]


@covers("generations.parts")
def test_an_agent_that_answers_with_every_kind_of_part_is_read_in_both(form: Caller, newer: Newer) -> None:
    """What no 0.3 form can send (names of text, data that is no object) reads right in either generation."""
    task = sent(form.to("rich"))
    read = newer.to("rich").call("GetTask", {"id": task["id"]}).result
    old, new = task["artifacts"][0], read["artifacts"][0]
    for name in ("artifactId", "name", "description", "metadata", "extensions"):
        assert old[name] == new[name]
    assert len(old["parts"]) == len(new["parts"]) == 9
    assert new["parts"][1] == {
        "text": "noted",
        "filename": "a.md",
        "mediaType": "text/markdown",
        "metadata": {"kind": "x"},
    }
    noted = {"kind": "x", NOTE: {"filename": "a.md", "mediaType": "text/markdown"}}
    assert old["parts"][1] == text_part("noted", metadata=noted)
    assert new["parts"][6]["data"] == [1, [None, {"state": "x"}]]
    assert old["parts"][6]["data"] == {"value": [1, [None, {"state": "x"}]]}
    assert (new["parts"][7], old["parts"][7]["data"]) == ({"data": None}, {"value": None})
    # What 0.3 was shown, sent back by a 0.3 form, is what the agent said.
    echoed = form.call("SendMessage", send_params(parts=old["parts"])).value
    again = newer.call("GetTask", {"id": echoed["id"]}).result
    assert again["history"][0]["parts"] == new["parts"]


@covers("generations.states")
def test_every_state_has_a_name_in_both(seed_a: Caller, newer: Newer) -> None:
    """As filters: each generation takes its own names alone."""
    for state in STATES:
        name = f"TASK_STATE_{state.upper().replace('-', '_')}"
        context = {"contextId": new_id()}
        assert seed_a.call("ListTasks", {**context, "status": state}).result["totalSize"] == 0
        assert newer.call("ListTasks", {**context, "status": name}).result["totalSize"] == 0
        assert newer.call("ListTasks", {**context, "status": state}).reason == "INVALID_PARAMS"
        assert seed_a.call("ListTasks", {**context, "status": name}).is_refused
