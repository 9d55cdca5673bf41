"""SubscribeToTask: the snapshot, what follows, and how a dropped stream is taken up again."""

from pathlib import Path

import pytest

from tests.harness.polling import until
from tests.interaction.answers import PARAMS, TASK_NOT_FOUND, UNSUPPORTED, refused
from tests.interaction.callers import READY, Caller, HttpCaller, Request
from tests.interaction.events import folded
from tests.interaction.following import ended, got, sent, state_of, texts
from tests.interaction.messages import send_params
from tests.interaction.requirements import covers
from tests.interaction.sockets import Socket


@covers("subscribe.snapshot")
def test_a_subscription_begins_with_the_task_as_it_stands(caller: Caller, holding: str) -> None:
    task = got(caller.to("hold"), holding)
    with caller.to("hold").open("SubscribeToTask", {"id": holding}) as stream:
        first = stream.next()
    assert (first.kind, first.value) == ("task", task)


@covers("subscribe.methods")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_http_subscribes_by_get_and_by_post(http: HttpCaller, method: str) -> None:
    hold = http.to("hold")
    task = sent(hold, "wait", wait=False)
    request = Request(method, f"/agents/hold/tasks/{task['id']}:subscribe", READY)
    with hold.follow(request) as stream:
        assert stream.next().value["id"] == task["id"]
        hold.call("CancelTask", {"id": task["id"]})
        assert stream.rest()[-1].state == "TASK_STATE_CANCELED"


@covers("subscribe.finished", "voice.22", "voice.15")
@pytest.mark.parametrize("text", ["hello", "fail", "reject", "crash"])
def test_a_finished_task_is_refused_as_a_plain_error_and_no_stream(caller: Caller, text: str) -> None:
    task = sent(caller, text)
    with caller.open("SubscribeToTask", {"id": task["id"]}) as stream:
        refused(stream.reply(), UNSUPPORTED, identifier=1)


@covers("subscribe.finished", "voice.22")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_http_refuses_a_finished_task_by_either_method(http: HttpCaller, method: str) -> None:
    task = sent(http)
    reply = http.deliver(Request(method, f"/agents/demo/tasks/{task['id']}:subscribe", READY))
    refused(reply, UNSUPPORTED)
    reply = http.deliver(Request(method, "/agents/demo/tasks/nope:subscribe", READY))
    refused(reply, TASK_NOT_FOUND)


@covers("subscribe.follows", "voice.36")
def test_a_dropped_stream_does_not_stop_the_run_and_is_taken_up_by_a_snapshot(caller: Caller) -> None:
    with caller.open("SendStreamingMessage", send_params("slow 1")) as stream:
        task_id = stream.next().value["id"]
        stream.next()
    with caller.open("SubscribeToTask", {"id": task_id}) as stream:
        items = stream.rest()
    assert (items[0].kind, items[-1].state) == ("task", "TASK_STATE_COMPLETED")
    task = got(caller, task_id)
    assert folded(items)["artifacts"] == task["artifacts"]
    assert texts(task) == ["Took 1 s."]


@covers("subscribe.follows", "voice.36")
def test_a_dropped_blocking_send_does_not_stop_the_run(
    caller: Caller, socket: Socket, tmp_path: Path
) -> None:
    gate, context = tmp_path / "open", f"ctx-{tmp_path}-{caller.binding}"
    hold = caller.to("hold")
    socket.send(hold.request("SendMessage", send_params(f"until {gate}", contextId=context)).text())
    listed = until(
        lambda: hold.call("ListTasks", {"contextId": context}).result["tasks"], what="the task is listed"
    )
    socket.close()
    gate.touch()
    assert texts(ended(hold, listed[0]["id"])) == ["released"]


@covers("subscribe.same", "stream.order")
def test_two_subscribers_over_either_binding_see_the_same_events(
    caller: Caller, other: Caller, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    hold, apart = caller.to("hold"), other.to("hold")
    task = sent(hold, f"until {gate}", wait=False)
    until(lambda: state_of(hold, task["id"]) == "TASK_STATE_WORKING", what="the task works")
    with (
        hold.open("SubscribeToTask", {"id": task["id"]}) as first,
        hold.open("SubscribeToTask", {"id": task["id"]}) as second,
        apart.open("SubscribeToTask", {"id": task["id"]}) as third,
    ):
        begun = [stream.next() for stream in (first, second, third)]
        gate.touch()
        rests = [stream.rest() for stream in (first, second, third)]
    assert begun[0] == begun[1] == begun[2]
    assert rests[0] == rests[1] == rests[2]
    assert [item.kind for item in rests[0]] == ["artifactUpdate", "statusUpdate"]


@covers("subscribe.same")
def test_a_subscriber_that_leaves_takes_nothing_from_the_others(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    with hold.open("SubscribeToTask", {"id": holding}) as staying:
        staying.next()
        with hold.open("SubscribeToTask", {"id": holding}) as leaving:
            leaving.next()
        hold.call("CancelTask", {"id": holding})
        assert [item.state for item in staying.rest()] == ["TASK_STATE_CANCELED"]


@covers("subscribe.resume", "voice.38")
@pytest.mark.parametrize("after", [3, 7, 20])
def test_last_event_id_goes_on_after_that_event_without_a_task(caller: Caller, after: int) -> None:
    with caller.open("SendStreamingMessage", send_params("stream 25")) as stream:
        whole = stream.rest()
    task_id = whole[0].value["id"]
    headers = {"Last-Event-ID": str(after)}
    with caller.open("SubscribeToTask", {"id": task_id}, headers=headers) as stream:
        rest = stream.rest()
    assert rest == [item for item in whole if item.id is not None and item.id > after]
    assert rest[0].kind != "task"


@covers("subscribe.resume", "voice.38")
def test_last_event_id_of_the_last_event_of_a_finished_task_is_an_empty_stream(caller: Caller) -> None:
    with caller.open("SendStreamingMessage", send_params("stream 3")) as stream:
        whole = stream.rest()
    headers = {"Last-Event-ID": str(whole[-1].id)}
    with caller.open("SubscribeToTask", {"id": whole[0].value["id"]}, headers=headers) as stream:
        assert stream.rest() == []


@covers("subscribe.resume", "voice.38")
def test_a_stream_dropped_between_chunks_is_resumed_without_loss_or_repetition(caller: Caller) -> None:
    with caller.open("SendStreamingMessage", send_params("slow 1")) as stream:
        before = [stream.next() for _ in range(3)]
    headers = {"Last-Event-ID": str(before[-1].id)}
    with caller.open("SubscribeToTask", {"id": before[0].value["id"]}, headers=headers) as stream:
        after = stream.rest()
    numbers = [item.id or 0 for item in (*before, *after)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    task = got(caller, before[0].value["id"])
    assert folded([*before, *after])["artifacts"] == task["artifacts"]


@covers("subscribe.resume")
@pytest.mark.parametrize("value", ["999999", "x", "-1", "1.5", "9" * 30, ""])
def test_a_last_event_id_that_is_none_of_the_task_starts_from_a_snapshot(
    caller: Caller, holding: str, value: str
) -> None:
    headers = {"Last-Event-ID": value}
    with caller.to("hold").open("SubscribeToTask", {"id": holding}, headers=headers) as stream:
        assert stream.next().kind == "task"


@covers("subscribe.fields")
def test_snake_case_and_unknown_fields_are_read_and_wrong_ones_named(caller: Caller, holding: str) -> None:
    hold = caller.to("hold")
    with hold.open("SubscribeToTask", {"id": holding, "future": {"a": 1}}) as stream:
        assert stream.next().value["id"] == holding
    refused(
        hold.call("SubscribeToTask", {"id": holding, "tenant": "x"}), PARAMS, fields=["tenant"], identifier=1
    )
