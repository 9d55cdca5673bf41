"""Media types of 0.3: JSON in, JSON and problem documents out, event streams."""

import pytest

from tests.interaction.callers import Request
from tests.interaction.v0_3.answers import BODY_TYPE, NOT_ACCEPTABLE, TASK_NOT_FOUND, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import got, send_params, sent
from tests.interaction.v0_3.requirements import covers


@covers("media.json")
@pytest.mark.parametrize(
    "content_type",
    ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8", "application/json;x=1"],
)
def test_json_is_read_in_any_case_and_with_any_charset(form: Caller, content_type: str) -> None:
    request = form.request("SendMessage", send_params()).with_headers(content_type=content_type)
    reply = form.deliver(request, "SendMessage")
    assert reply.value["status"]["state"] == "completed"
    assert reply.headers["content-type"] == "application/json"


@covers("media.wrong")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "content_type",
    ["application/a2a+json", "text/plain", "application/problem+json", "", "x", "application/*"],
)
def test_a_body_of_another_type_is_415_before_it_is_parsed(form: Caller, content_type: str) -> None:
    for operation in ("SendMessage", "SendStreamingMessage"):
        for params in (send_params(), b"{bad"):
            request = form.request(operation, params).with_headers(content_type=content_type)
            refused(form.deliver(request), BODY_TYPE)


@covers("media.no-body", "clients.cancel")
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/json"}], ids=str)
def test_a_post_without_a_body_needs_no_type_and_may_have_one(
    web: Caller, holding: str, headers: dict[str, str]
) -> None:
    hold = web.to("hold")
    request = Request("POST", hold.path(f"/tasks/{holding}:cancel"), {**hold.place.headers, **headers})
    assert hold.deliver(request, "CancelTask").value["status"]["state"] == "canceled"


@covers("media.no-body", "clients.get")
def test_a_get_may_name_a_type(web: Caller) -> None:
    task = sent(web)
    for content_type in ("application/json", "text/plain"):
        request = web.request("GetTask", {"id": task["id"]}, headers={"Content-Type": content_type})
        assert web.deliver(request, "GetTask").value == task


ACCEPTED = [
    "*/*",
    "application/json",
    "application/*",
    "text/html, application/json;q=0.1",
    "",
    "application/JSON",
]


@covers("media.accept")
@pytest.mark.parametrize("accept", ACCEPTED)
def test_a_result_is_json_for_whoever_takes_it(form: Caller, accept: str) -> None:
    reply = form.call("SendMessage", send_params(), headers={"Accept": accept})
    assert reply.value["status"]["state"] == "completed"
    assert reply.headers["content-type"] == "application/json"


@covers("media.accept")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "accept", ["text/html", "application/a2a+json", "application/json;q=0", "text/event-stream", "*/*;q=0"]
)
def test_a_result_that_accept_forbids_is_406_and_nothing_is_done(form: Caller, accept: str) -> None:
    reply = form.call("SendMessage", send_params(), headers={"Accept": accept})
    refused(reply, NOT_ACCEPTABLE, identifier=1)


@covers("media.accept")
def test_an_error_keeps_its_own_status_whatever_accept_says(form: Caller) -> None:
    reply = form.call("GetTask", {"id": "nope"}, headers={"Accept": "text/html"})
    refused(reply, TASK_NOT_FOUND, identifier=1)


@covers("media.accept")
def test_a_task_that_is_read_is_406_too(form: Caller) -> None:
    task = sent(form)
    refused(
        form.call("GetTask", {"id": task["id"]}, headers={"Accept": "text/html"}),
        NOT_ACCEPTABLE,
        identifier=1,
    )
    assert got(form, task["id"]) == task


@covers("media.streams")
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json", "*/*", "text/*", None])
def test_a_stream_is_an_event_stream_for_whoever_takes_json_or_streams(
    form: Caller, accept: str | None
) -> None:
    headers = {} if accept is None else {"Accept": accept}
    with form.open("SendStreamingMessage", send_params(), headers=headers) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.rest()[-1].state == "completed"


@covers("media.streams")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("accept", ["text/html", "text/event-stream;q=0", "application/a2a+json"])
def test_a_stream_that_accept_forbids_is_406_and_nothing_is_done(form: Caller, accept: str) -> None:
    reply = form.call("SendStreamingMessage", send_params(), headers={"Accept": accept})
    refused(reply, NOT_ACCEPTABLE, identifier=1)
