"""JSON-RPC in 0.3: methods, envelopes, and requests without an id."""

import json
from typing import Any

import pytest

from tests.interaction.v0_3.answers import ENVELOPE, MALFORMED, NO_METHOD, PARAMS, refused
from tests.interaction.v0_3.callers import METHODS, Caller
from tests.interaction.v0_3.messages import message, send_params, sent
from tests.interaction.v0_3.requirements import covers


def envelope(**members: Any) -> bytes:
    """The text of a request that would be served, with other members; `...` takes one out."""
    whole = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": send_params()} | members
    return json.dumps({name: value for name, value in whole.items() if value is not ...}).encode()


@covers("methods.known")
def test_every_method_of_0_3_is_known(rpc: Caller) -> None:
    for operation, method in METHODS.items():
        reply = rpc.deliver(rpc.post(envelope(method=method, params={"id": "nope"})), operation)
        code = reply.json()["error"]["code"]
        assert code != NO_METHOD.code, method


@covers("methods.unknown")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "method",
    [
        *(
            "message/ssend",
            "nonexistent/method",
            "Message/Send",
            "message/send ",
            "message.send",
            "tasks/list",
        ),
        *("tasks/send", "tasks/sendSubscribe", "agent/authenticatedExtendedCard", "rpc.discover", "é", "\0"),
    ],
)
def test_a_method_that_nobody_has_is_not_found(rpc: Caller, method: str) -> None:
    refused(rpc.deliver(rpc.post(envelope(method=method))), NO_METHOD, identifier=1)


@covers("envelope.malformed")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "body",
    [
        *(b"{bad", b"", b"{", b'{"jsonrpc": "2.0", "method": "message/send", "params": {"foo": "bar"}'),
        *(envelope()[:-1], envelope() + b"x", b"\xff\xfe{}", b"\xef\xbb\xbf" + envelope()),
    ],
    ids=range(8),
)
def test_a_body_that_is_no_json_is_a_parse_error_with_a_null_id(rpc: Caller, body: bytes) -> None:
    refused(rpc.deliver(rpc.post(body)), MALFORMED)


@covers("envelope.wrong")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "body", [b"[]", b"[" + envelope() + b"]", b"[" + envelope() + b"," + envelope(id=2) + b"]", b"5", b"null"]
)
def test_a_batch_and_what_is_no_object_are_invalid_requests(rpc: Caller, body: bytes) -> None:
    refused(rpc.deliver(rpc.post(body)), ENVELOPE)


@covers("envelope.wrong")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("jsonrpc", value) for value in (..., None, "1.0", "aaa", 2.0, 2)),
        *(("method", value) for value in (..., None, "", 5, [])),
    ],
    ids=repr,
)
def test_a_wrong_envelope_is_an_invalid_request_under_its_id(rpc: Caller, name: str, value: Any) -> None:
    refused(rpc.deliver(rpc.post(envelope(**{name: value}))), ENVELOPE, identifier=1)


@covers("envelope.wrong")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("value", [{}, {"bad": "type"}, [], True, 1.5, 1.0], ids=repr)
def test_an_id_of_another_type_is_an_invalid_request_with_a_null_id(rpc: Caller, value: Any) -> None:
    refused(rpc.deliver(rpc.post(envelope(id=value))), ENVELOPE)


@covers("envelope.id")
@pytest.mark.parametrize("value", [0, -1, 2**64, "", "a", "1", "é\u2028\0", None], ids=repr)
def test_an_id_comes_back_as_it_was(rpc: Caller, value: Any) -> None:
    """JS clients compare the id of a reply with their own, type and all."""
    good = rpc.deliver(rpc.post(envelope(id=value)), "SendMessage")
    assert good.value["status"]["state"] == "completed"
    assert (good.json()["id"], type(good.json()["id"])) == (value, type(value))
    bad = rpc.deliver(rpc.post(envelope(id=value, params={})))
    refused(bad, PARAMS, fields=["message"], identifier=value)


@covers("envelope.id")
def test_the_events_of_a_stream_have_the_id_of_the_request(rpc: Caller) -> None:
    for value in (7, "a\u2028b", "x" * 300):
        body = envelope(method="message/stream", id=value, params={"message": message()})
        text = rpc.deliver(rpc.post(body)).body.decode()
        data = [
            json.loads(line.removeprefix("data: ")) for line in text.split("\n") if line.startswith("data")
        ]
        assert len(data) > 1 and {event["id"] for event in data} == {value}
        assert "\u2028" not in text


@covers("envelope.params")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("value", [[], [1], "x", 5, True, 0, False, ""], ids=repr)
def test_params_that_are_no_object_are_invalid_params(rpc: Caller, value: Any) -> None:
    refused(rpc.deliver(rpc.post(envelope(params=value))), PARAMS, fields=["params"], identifier=1)


@covers("envelope.notification")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("method", ["message/send", "message/stream"])
def test_a_notification_is_an_invalid_request_and_runs_nothing(rpc: Caller, method: str) -> None:
    refused(rpc.deliver(rpc.post(envelope(id=..., method=method))), ENVELOPE)


@covers("envelope.notification")
def test_a_notification_that_would_cancel_or_subscribe_does_neither(rpc: Caller, holding: str) -> None:
    hold = rpc.to("hold")
    for method in ("tasks/cancel", "tasks/resubscribe", "tasks/get"):
        refused(hold.deliver(hold.post(envelope(id=..., method=method, params={"id": holding}))), ENVELOPE)
    assert hold.call("GetTask", {"id": holding}).value["status"]["state"] == "working"


@covers("envelope.faults-first")
@pytest.mark.usefixtures("nothing_stored")
def test_what_else_is_wrong_without_an_id_is_told_first(rpc: Caller) -> None:
    """The upstream kit asks for unknown methods and wrong params without an id."""
    refused(rpc.deliver(rpc.post(envelope(id=..., method="message/ssend", params={}))), NO_METHOD)
    wrong = envelope(id=..., params={"": "not_a_dict"})
    refused(rpc.deliver(rpc.post(wrong)), PARAMS, fields=["message"])
    refused(rpc.deliver(rpc.post(envelope(id=..., jsonrpc="aaa", params={}))), ENVELOPE)
    refused(rpc.deliver(rpc.post(envelope(id=..., method=...))), ENVELOPE)


@covers("envelope.unknown")
def test_unknown_members_of_the_envelope_are_ignored(rpc: Caller) -> None:
    reply = rpc.deliver(rpc.post(envelope(trace={"a": 1}, meta=None)), "SendMessage")
    assert reply.value["status"]["state"] == "completed"


@covers("envelope.wrong")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "member", [b'"jsonrpc":"2.0",', b'"method":"tasks/get",', b'"params":{},', b'"id":7,']
)
def test_a_member_of_the_envelope_that_is_given_twice_is_refused_by_name(rpc: Caller, member: bytes) -> None:
    reply = rpc.deliver(rpc.post(envelope().replace(b"{", b"{" + member, 1)))
    refused(reply, PARAMS, fields=[member.split(b'"')[1].decode()], identifier=1)


@covers("envelope.slash")
def test_the_endpoint_answers_with_and_without_a_final_slash(rpc: Caller) -> None:
    task = sent(rpc)
    request = rpc.request("GetTask", {"id": task["id"]})
    for target in (rpc.path(), rpc.path("/")):
        assert rpc.deliver(request.at(target), "GetTask").value == task
