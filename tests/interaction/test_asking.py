"""A task whose agent asks: whose turn it is, what an answer does, and what streams show of both."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.interaction.answers import NOT_CANCELABLE, UNSUPPORTED, refused
from tests.interaction.callers import Caller
from tests.interaction.events import folded
from tests.interaction.following import ended, got, sent, texts
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows

INPUT, AUTH = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"
WORKING, COMPLETED, CANCELED = "TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"

BOTH = pytest.mark.parametrize(("word", "state"), [("ask", INPUT), ("auth", AUTH)], ids=["ask", "auth"])


def said(task: dict[str, Any]) -> str:
    """What the agent says in the status of a task."""
    assert task["status"]["message"]["role"] == "ROLE_AGENT"
    return "".join(part["text"] for part in task["status"]["message"]["parts"])


def turns(task: dict[str, Any]) -> list[tuple[str, str]]:
    """Who said what, in order."""
    return [
        (message["role"].removeprefix("ROLE_"), message["parts"][0]["text"]) for message in task["history"]
    ]


@covers("ask.waits", "ask.auth")
@BOTH
def test_a_send_is_answered_with_the_question(caller: Caller, word: str, state: str) -> None:
    task = sent(caller, f"{word} Which one?")
    assert (task["status"]["state"], said(task)) == (state, "Which one?")
    assert task["status"]["message"]["taskId"] == task["id"]
    assert task["status"]["message"]["contextId"] == task["contextId"]
    assert turns(task) == [("USER", f"{word} Which one?")]
    assert got(caller, task["id"]) == task


@covers("ask.answered", "ask.history")
def test_the_next_message_answers_and_the_task_goes_on(caller: Caller) -> None:
    asked = sent(caller, "ask Which one?")
    answer = sent(caller, "the second", taskId=asked["id"])
    assert (answer["id"], answer["contextId"]) == (asked["id"], asked["contextId"])
    assert (answer["status"]["state"], texts(answer)) == (COMPLETED, ["the second"])
    assert turns(answer) == [("USER", "ask Which one?"), ("AGENT", "Which one?"), ("USER", "the second")]
    assert answer["history"][1] == asked["status"]["message"]
    assert got(caller, asked["id"]) == answer
    params = send_params("too late", taskId=asked["id"])
    refused(caller.call("SendMessage", params), UNSUPPORTED, identifier=1)


@covers("ask.answered")
def test_an_answer_may_come_over_the_other_binding_with_any_parts(caller: Caller, other: Caller) -> None:
    asked = sent(caller, "ask")
    parts = [{"data": {"n": 10**30, "kind": "text"}}, {"raw": "AAEC", "filename": "f"}, {"text": "é\u2028"}]
    answer = sent(other, taskId=asked["id"], contextId=asked["contextId"], parts=parts)
    assert answer["artifacts"][0]["parts"] == parts
    assert got(caller, asked["id"]) == answer


@covers("ask.answered")
def test_an_answer_that_does_not_wait_finds_the_task_at_work(caller: Caller) -> None:
    asked = sent(caller, "ask")
    begun = sent(caller, "the second", wait=False, taskId=asked["id"])
    assert begun["status"]["state"] in (WORKING, COMPLETED)
    assert turns(begun)[-1] == ("USER", "the second")
    assert texts(ended(caller, asked["id"])) == ["the second"]


@covers("ask.auth")
def test_any_message_answers_when_an_authorization_is_asked_for(caller: Caller) -> None:
    asked = sent(caller, "auth")
    answer = sent(caller, "done", taskId=asked["id"])
    assert (answer["status"]["state"], texts(answer)) == (COMPLETED, ["Authorized: done"])


@covers("ask.again", "ask.history")
def test_each_of_several_questions_has_its_own_answer(caller: Caller) -> None:
    asker = caller.to("asker")
    task = sent(asker, "begin")
    for number in range(4):
        assert (task["status"]["state"], said(task)) == (INPUT, f"{number} so far; more?")
        assert texts(task) == [f"heard {n}" for n in range(number)]
        task = sent(asker, f"{number}" if number < 3 else "stop", taskId=task["id"])
    assert task["status"]["state"] == COMPLETED
    assert texts(task) == ["heard 0", "heard 1", "heard 2", "said 0, 1, 2"]
    spoken = [text for number in range(4) for text in (f"{number} so far; more?", f"{number}")]
    assert [text for _, text in turns(task)] == ["begin", *spoken[:-1], "stop"]


@covers("ask.streams")
def test_the_stream_of_a_send_ends_with_the_question_and_that_of_the_answer_goes_on(
    caller: Caller, rows: Rows
) -> None:
    with caller.open("SendStreamingMessage", send_params("ask Which one?")) as stream:
        items = stream.rest()
    assert [item.kind for item in items] == ["task", "statusUpdate"]
    assert items[-1].state == INPUT
    asked = got(caller, items[0].value["id"])
    assert items[-1].value["status"] == asked["status"]
    params = send_params("the second", taskId=asked["id"])
    with caller.open("SendStreamingMessage", params) as stream:
        items += stream.rest()
    task = got(caller, asked["id"])
    assert (items[-1].state, texts(task)) == (COMPLETED, ["the second"])
    assert folded(items)["artifacts"] == task["artifacts"]
    numbers = [item.id or 0 for item in items]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == rows.query("SELECT seq FROM task WHERE id = ?", asked["id"])[0][0]


@covers("ask.streams", "ask.auth")
def test_the_stream_of_a_send_stays_while_an_authorization_is_asked_for(
    caller: Caller, other: Caller
) -> None:
    with caller.open("SendStreamingMessage", send_params("auth Sign in.")) as stream:
        first, asking = stream.next(), stream.next()
        assert (asking.state, asking.value["status"]["message"]["parts"]) == (AUTH, [{"text": "Sign in."}])
        answer = sent(other, "done", taskId=first.value["id"])
        items = [first, asking, *stream.rest()]
    assert [item.state for item in items if item.state][1:] == [AUTH, WORKING, COMPLETED]
    assert folded(items)["artifacts"] == answer["artifacts"]


@covers("ask.subscriptions")
@BOTH
def test_a_subscription_stays_through_question_and_answer(
    caller: Caller, other: Caller, word: str, state: str
) -> None:
    asked = sent(caller, f"{word} Which one?")
    with caller.open("SubscribeToTask", {"id": asked["id"]}) as stream:
        first = stream.next()
        assert (first.kind, first.value) == ("task", asked)
        answer = sent(other, "the second", taskId=asked["id"])
        items = stream.rest()
    assert [item.state for item in items if item.state] == [WORKING, COMPLETED]
    assert folded([first, *items])["artifacts"] == answer["artifacts"]


@covers("ask.subscriptions")
def test_a_subscription_sees_the_question_and_stays(caller: Caller, other: Caller) -> None:
    asker = caller.to("asker")
    task = sent(asker, "begin")
    with asker.open("SubscribeToTask", {"id": task["id"]}) as stream:
        states = [stream.next().state]
        sent(other.to("asker"), "0", taskId=task["id"])
        sent(other.to("asker"), "stop", taskId=task["id"])
        states += [item.state for item in stream.rest() if item.state]
    assert states == [INPUT, WORKING, INPUT, WORKING, COMPLETED]


@covers("ask.replayed")
def test_an_answer_that_is_sent_again_is_the_same_answer(caller: Caller, other: Caller, rows: Rows) -> None:
    asked = sent(caller, "ask")
    params = send_params("the second", taskId=asked["id"])
    first = caller.call("SendMessage", params)
    with rows.unchanged():
        for again in (caller, other):
            reply = again.call("SendMessage", params)
            assert reply.headers["idempotent-replayed"] == "true"
            assert reply.task == first.task
    assert len(first.task["history"]) == 3


@covers("ask.replayed")
def test_a_question_is_asked_once_however_often_its_message_is_sent(caller: Caller, rows: Rows) -> None:
    params = send_params("ask Which one?")
    first = caller.call("SendMessage", params).task
    with rows.unchanged():
        assert caller.call("SendMessage", params).task == first
        with caller.open("SendStreamingMessage", params) as stream:
            (item,) = stream.rest()
    assert (item.kind, item.value) == ("task", first)


@covers("ask.races")
def test_of_many_answers_at_once_one_is_taken_and_all_are_kept(caller: Caller) -> None:
    asked = sent(caller.to("asker"), "begin")
    ids = [new_id() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(
            pool.map(
                lambda number: caller.to("asker").call(
                    "SendMessage",
                    send_params(f"answer {number}", taskId=asked["id"], messageId=ids[number]),
                ),
                range(8),
            )
        )
    assert {reply.task["status"]["state"] for reply in replies} == {INPUT}
    task = got(caller.to("asker"), asked["id"])
    assert task["status"]["state"] == INPUT
    heard = [message for message in task["history"][1:] if message["role"] == "ROLE_USER"]
    assert sorted(message["messageId"] for message in heard) == sorted(ids)
    questions = [message for message in task["history"] if message["role"] == "ROLE_AGENT"]
    answered = len(questions)
    assert 1 <= answered <= 8
    assert texts(task) == [f"heard {number}" for number in range(answered)]
    done = sent(caller.to("asker"), "stop", taskId=asked["id"])
    assert done["status"]["state"] == COMPLETED
    assert len(texts(done)[-1].split(", ")) == answered


@covers("ask.cancelled")
@BOTH
def test_a_task_that_waits_is_cancelled_at_once(caller: Caller, rows: Rows, word: str, state: str) -> None:
    asked = sent(caller, f"{word} Which one?")
    assert asked["status"]["state"] == state
    task = caller.call("CancelTask", {"id": asked["id"]}).result
    assert task["status"]["state"] == CANCELED
    assert turns(task) == [("USER", f"{word} Which one?"), ("AGENT", "Which one?")]
    with rows.unchanged():
        refused(
            caller.call("SendMessage", send_params("too late", taskId=asked["id"])), UNSUPPORTED, identifier=1
        )
        refused(caller.call("CancelTask", {"id": asked["id"]}), NOT_CANCELABLE, identifier=1)


@covers("ask.cancelled")
def test_a_cancel_ends_the_stream_that_waits_for_an_authorization(caller: Caller, other: Caller) -> None:
    with caller.open("SendStreamingMessage", send_params("auth")) as stream:
        task_id = stream.next().value["id"]
        assert stream.next().state == AUTH
        other.call("CancelTask", {"id": task_id})
        assert [item.state for item in stream.rest()] == [CANCELED]


@covers("ask.listed")
@BOTH
def test_tasks_that_wait_are_listed_in_their_state(caller: Caller, word: str, state: str) -> None:
    context = new_id("ctx")
    asked = [sent(caller, f"{word} {number}?", contextId=context) for number in range(2)]
    sent(caller, "hello", contextId=context)
    page = caller.call("ListTasks", {"contextId": context, "status": state}).result
    assert (page["totalSize"], [task["id"] for task in page["tasks"]]) == (
        2,
        [asked[1]["id"], asked[0]["id"]],
    )
    assert page["tasks"][0]["status"] == asked[1]["status"]
    sent(caller, "done", taskId=asked[0]["id"])
    page = caller.call("ListTasks", {"contextId": context, "status": state}).result
    assert (page["totalSize"], [task["id"] for task in page["tasks"]]) == (1, [asked[1]["id"]])
