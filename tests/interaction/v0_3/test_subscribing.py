"""Subscribing again to a task: every spelling, what comes first, and how a dropped stream is taken up."""

import pytest

from tests.interaction.callers import Request
from tests.interaction.v0_3.answers import PARAMS, TASK_NOT_FOUND, UNSUPPORTED, refused
from tests.interaction.v0_3.callers import Caller, typed
from tests.interaction.v0_3.events import Item, folded
from tests.interaction.v0_3.messages import got, send_params, sent
from tests.interaction.v0_3.requirements import covers

STREAMED = {"Accept": "text/event-stream"}


@covers("subscribe.snapshot")
def test_a_subscription_begins_with_the_task_as_it_stands_and_ends_with_it(
    caller: Caller, holding: str
) -> None:
    hold = caller.to("hold")
    task = got(hold, holding)
    with hold.open("SubscribeToTask", {"id": holding}) as stream:
        first = stream.next()
        hold.call("CancelTask", {"id": holding})
        rest = stream.rest()
    assert (first.kind, first.value) == ("task", task)
    assert [(item.state, item.final) for item in rest] == [("canceled", True)]


@covers("subscribe.spellings")
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("spelling", [":subscribe", "/subscribe"])
def test_seed_a_subscribes_by_colon_and_by_slash_by_get_and_by_post(
    seed_a: Caller, method: str, spelling: str
) -> None:
    task = sent(seed_a)
    target = seed_a.path(f"/tasks/{task['id']}{spelling}")
    with seed_a.follow(Request(method, target, seed_a.place.headers)) as stream:
        assert [item.value for item in stream.rest()] == [task]


@covers("subscribe.spellings", "clients.subscribe")
@pytest.mark.parametrize(
    ("method", "body"), [("GET", None), ("POST", None), ("POST", b""), ("POST", b"{}")], ids=str
)
def test_official_clients_subscribe_by_get_and_by_post_with_a_type_and_without_a_body(
    official: Caller, method: str, body: bytes | None
) -> None:
    task = sent(official)
    headers = typed(official.place.headers) if body is not None else official.place.headers
    request = Request(method, official.path(f"/tasks/{task['id']}:subscribe"), headers, body)
    with official.follow(request) as stream:
        assert [item.value for item in stream.rest()] == [task]


@covers("subscribe.bodies")
def test_a_body_that_names_another_task_is_refused(web: Caller, holding: str) -> None:
    hold = web.to("hold")
    target = hold.path(f"/tasks/{holding}:subscribe")
    reply = hold.deliver(Request("POST", target, typed(hold.place.headers), b'{"id":"other"}'))
    refused(reply, PARAMS, fields=["id"])


@covers("subscribe.bodies")
def test_a_body_that_names_another_resource_is_refused(official: Caller, holding: str) -> None:
    hold = official.to("hold")
    target = hold.path(f"/tasks/{holding}:subscribe")
    for name, right in (("tasks/other", False), (f"tasks/{holding}", True)):
        body = f'{{"name":"{name}"}}'.encode()
        with hold.follow(Request("POST", target, typed(hold.place.headers), body)) as stream:
            if right:
                assert stream.next().value["id"] == holding
            else:
                refused(stream.reply(), PARAMS, fields=["name"])


@covers("subscribe.finished", "difference.finished-subscription")
@pytest.mark.parametrize("text", ["hello", "fail", "reject", "crash"])
def test_a_finished_task_is_shown_and_the_stream_ends(caller: Caller, text: str) -> None:
    task = sent(caller, text)
    with caller.open("SubscribeToTask", {"id": task["id"]}, headers=STREAMED) as stream:
        items = stream.rest()
    assert [(item.kind, item.value) for item in items] == [("task", task)]


@covers("subscribe.refused")
def test_a_task_that_does_not_exist_is_refused(caller: Caller) -> None:
    refused(caller.call("SubscribeToTask", {"id": "nope"}), TASK_NOT_FOUND, identifier=1)
    refused(caller.to("still").call("SubscribeToTask", {"id": "nope"}), UNSUPPORTED, identifier=1)


@covers("subscribe.question")
def test_a_subscription_stays_at_a_question_and_sees_what_becomes_of_the_answer(caller: Caller) -> None:
    agent = caller.to("asks")
    task = sent(agent, "begin")
    with agent.open("SubscribeToTask", {"id": task["id"]}) as stream:
        assert stream.next().state == "input-required"
        sent(agent, "four", taskId=task["id"])
        rest = stream.rest()
    assert "task" not in [item.kind for item in rest]
    assert (rest[0].state, rest[-1].state) == ("working", "completed")
    assert [item.final for item in rest] == [False] * (len(rest) - 1) + [True]


@covers("subscribe.question")
def test_a_question_seen_by_a_subscription_is_not_final(caller: Caller, kinds: Caller) -> None:
    """The stream of the send ends there, the subscription beside it does not: `final` differs between the two."""
    agent = caller.to("asks")
    with agent.open("SendStreamingMessage", send_params("begin")) as stream:
        first = stream.next()
        params, headers = {"id": first.value["id"]}, {"Last-Event-ID": str(first.id)}
        with kinds.to("asks").open("SubscribeToTask", params, headers=headers) as following:
            sending = stream.rest()
            seen: list[Item] = []
            for item in following.items():
                seen.append(item)
                if item.state == "input-required":
                    break
    assert [item.final for item in sending] == [False] * (len(sending) - 1) + [True]
    assert not any(item.final for item in seen)
    assert [item.id for item in seen] == [item.id for item in sending]


@covers("subscribe.resume")
@pytest.mark.parametrize("after", [1, 3, 7])
def test_last_event_id_goes_on_after_that_event_without_a_task(caller: Caller, after: int) -> None:
    with caller.open("SendStreamingMessage", send_params("stream 8")) as stream:
        whole = stream.rest()
    task_id = whole[0].value["id"]
    with caller.open("SubscribeToTask", {"id": task_id}, headers={"Last-Event-ID": str(after)}) as stream:
        rest = stream.rest()
    assert rest == [item for item in whole if item.id is not None and item.id > after]
    assert (rest[0].kind != "task", rest[-1].final) == (True, True)


@covers("subscribe.resume")
def test_last_event_id_of_the_last_event_of_a_finished_task_is_an_empty_stream(caller: Caller) -> None:
    with caller.open("SendStreamingMessage", send_params("hello")) as stream:
        whole = stream.rest()
    headers = {"Last-Event-ID": str(whole[-1].id)}
    with caller.open("SubscribeToTask", {"id": whole[0].value["id"]}, headers=headers) as stream:
        assert stream.rest() == []


@covers("subscribe.resume")
@pytest.mark.parametrize("value", ["999999", "x", "-1", "0", "1.5", ""])
def test_a_last_event_id_that_is_none_of_the_task_starts_from_a_snapshot(
    caller: Caller, holding: str, value: str
) -> None:
    headers = {"Last-Event-ID": value}
    with caller.to("hold").open("SubscribeToTask", {"id": holding}, headers=headers) as stream:
        assert stream.next().kind == "task"


@covers("subscribe.resume")
def test_a_stream_dropped_between_chunks_is_resumed_without_loss_or_repetition(form: Caller) -> None:
    with form.open("SendStreamingMessage", send_params("slow 0.4")) as stream:
        before = [stream.next() for _ in range(2)]
    headers = {"Last-Event-ID": str(before[-1].id)}
    with form.open("SubscribeToTask", {"id": before[0].value["id"]}, headers=headers) as stream:
        after = stream.rest()
    numbers = [item.id or 0 for item in (*before, *after)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    task = got(form, before[0].value["id"])
    assert folded([*before, *after])["artifacts"] == task["artifacts"]
