"""Contexts and further messages: which ids belong together, and what a message to a running task does."""

import pytest

from tests.interaction.answers import PARAMS, TASK_NOT_FOUND, UNSUPPORTED, refused
from tests.interaction.callers import Caller
from tests.interaction.following import got, sent
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows


@covers("turns.new-context")
def test_a_message_without_ids_gets_a_context_and_a_task_of_its_own(caller: Caller) -> None:
    first, second = sent(caller), sent(caller)
    assert len({first["id"], second["id"], first["contextId"], second["contextId"]}) == 4


@covers("turns.own-context")
@pytest.mark.parametrize("stem", ["ctx", "ünïcode 你好", "a/b?c#d", "  ", "../..", "'; DROP TABLE task; --"])
def test_a_context_id_of_the_caller_is_kept_and_groups_its_tasks(caller: Caller, stem: str) -> None:
    context = f"{stem} {new_id()}"
    tasks = [sent(caller, text, contextId=context) for text in ("one", "two")]
    assert [task["contextId"] for task in tasks] == [context, context]
    page = caller.call("ListTasks", {"contextId": context}).result
    assert [task["id"] for task in page["tasks"]] == [tasks[1]["id"], tasks[0]["id"]]


@covers("turns.unknown-task", "voice.24")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("task_id", ["nope", "01a22930-d861-7000-962b-5e603cfce363", "é", "\0", " "])
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_a_task_id_of_the_caller_never_makes_a_task(caller: Caller, operation: str, task_id: str) -> None:
    reply = caller.call(operation, send_params(taskId=task_id, contextId=new_id("ctx")))
    refused(reply, TASK_NOT_FOUND, identifier=1)


@covers("turns.task-only")
def test_a_message_to_a_running_task_needs_no_context_and_joins_its_history(
    caller: Caller, holding: str
) -> None:
    hold = caller.to("hold")
    before = got(hold, holding)
    more = send_params("one more thing", taskId=holding, configuration={"returnImmediately": True})
    after = hold.call("SendMessage", more).task
    assert (after["id"], after["contextId"]) == (holding, before["contextId"])
    assert [message["parts"] for message in got(hold, holding)["history"]] == [
        [{"text": "wait"}],
        [{"text": "one more thing"}],
    ]


@covers("turns.task-only")
def test_a_message_to_a_running_task_may_name_its_context(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    context = got(hold, holding)["contextId"]
    params = send_params("more", taskId=holding, contextId=context, configuration={"returnImmediately": True})
    assert hold.call("SendMessage", params).task["id"] == holding


@covers("turns.mismatch", "voice.23")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
def test_a_context_that_is_not_the_tasks_is_refused_and_nothing_is_stored(
    caller: Caller, rows: Rows, holding: str, operation: str
) -> None:
    hold = caller.to("hold")
    for context in (new_id("ctx"), got(hold, holding)["contextId"].upper()):
        with rows.unchanged():
            reply = hold.call(operation, send_params(taskId=holding, contextId=context))
            refused(reply, PARAMS, fields=["message.contextId"], identifier=1)
    assert len(got(hold, holding)["history"]) == 1


@covers("turns.mismatch", "voice.23")
def test_a_refused_message_may_be_sent_again_under_its_id(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    params = send_params(taskId=holding, contextId="another", configuration={"returnImmediately": True})
    refused(hold.call("SendMessage", params), PARAMS, identifier=1)
    del params["message"]["contextId"]
    assert hold.call("SendMessage", params).task["id"] == holding


@covers("turns.other-agent")
@pytest.mark.parametrize("operation", ["GetTask", "CancelTask", "SubscribeToTask"])
def test_a_task_of_one_agent_does_not_exist_at_another(caller: Caller, holding: str, operation: str) -> None:
    other = caller.to("demo")
    refused(other.call(operation, {"id": holding}), TASK_NOT_FOUND, identifier=1)
    refused(other.call("SendMessage", send_params(taskId=holding)), TASK_NOT_FOUND, identifier=1)
    context = got(caller.to("hold"), holding)["contextId"]
    assert other.call("ListTasks", {"contextId": context}).result["totalSize"] == 0


@covers("turns.finished", "voice.21")
def test_a_finished_task_is_refused_even_with_the_right_context(caller: Caller, rows: Rows) -> None:
    task = sent(caller)
    with rows.unchanged():
        params = send_params(taskId=task["id"], contextId=task["contextId"])
        refused(caller.call("SendMessage", params), UNSUPPORTED, identifier=1)
    follow_up = sent(caller, "again", contextId=task["contextId"], referenceTaskIds=[task["id"]])
    assert follow_up["contextId"] == task["contextId"] and follow_up["id"] != task["id"]
