"""The JSON-RPC envelope: what is one, what is none, and under which id each is answered."""

import json
from typing import Any

import pytest

from tests.interaction.answers import ENVELOPE, MALFORMED, NO_METHOD, PARAMS, refused
from tests.interaction.callers import RpcCaller
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers


def envelope(**members: Any) -> bytes:
    """The text of a request that would be served, with other members; `...` takes one out."""
    whole = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send_params()} | members
    return json.dumps({name: value for name, value in whole.items() if value is not ...}).encode()


@covers("envelope.malformed", "voice.10")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "body",
    [
        *(b"{bad", b"", b" ", b"{", b'{"jsonrpc":"2.0"', envelope()[:-1], envelope() + b"x", envelope() * 2),
        *(b"\xff\xfe{}", b"\xef\xbb\xbf" + envelope(), b"null,", b"'x'", b"{\"a\":'b'}"),
        envelope().decode().encode("utf-16"),
    ],
    ids=range(14),
)
def test_a_body_that_is_no_json_is_a_parse_error_with_a_null_id(rpc: RpcCaller, body: bytes) -> None:
    refused(rpc.deliver(rpc.post(body)), MALFORMED)


@covers("envelope.batch")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "items", [[], [envelope()], [envelope(), envelope(id=2)]], ids=["none", "one", "two"]
)
def test_a_batch_is_an_invalid_request_and_runs_nothing(rpc: RpcCaller, items: list[bytes]) -> None:
    refused(rpc.deliver(rpc.post(b"[" + b",".join(items) + b"]")), ENVELOPE)


@covers("envelope.object")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("body", [b'"x"', b"5", b"null", b"true", b"1.5"])
def test_a_body_that_is_no_object_is_an_invalid_request(rpc: RpcCaller, body: bytes) -> None:
    refused(rpc.deliver(rpc.post(body)), ENVELOPE)


@covers("envelope.jsonrpc")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("value", [..., None, "1.0", "2", 2.0, 2, "", "2.0 ", ["2.0"]], ids=repr)
def test_jsonrpc_must_say_2_0(rpc: RpcCaller, value: Any) -> None:
    refused(rpc.deliver(rpc.post(envelope(jsonrpc=value))), ENVELOPE, identifier=1)


@covers("envelope.id")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("value", [{}, [], [1], {"id": 1}, True, False, 1.5, 1.0, -0.5], ids=repr)
def test_an_id_of_another_type_is_an_invalid_request_with_a_null_id(rpc: RpcCaller, value: Any) -> None:
    refused(rpc.deliver(rpc.post(envelope(id=value))), ENVELOPE)


@covers("envelope.id")
@pytest.mark.parametrize(
    "value",
    [0, -1, 10**18, 2**64, 10**40, "", "a", "1", "é\u2028\0", "x" * 1000, None],
    ids=lambda v: repr(v)[:20],
)
def test_an_id_comes_back_as_it_was(rpc: RpcCaller, value: Any) -> None:
    listing = {"method": "ListTasks", "params": {"contextId": "none"}}
    good = rpc.deliver(rpc.post(envelope(id=value, **listing)))
    assert (good.json()["id"], type(good.json()["id"])) == (value, type(value))
    assert good.result["totalSize"] == 0
    bad = rpc.deliver(rpc.post(envelope(id=value, params={})))
    refused(bad, PARAMS, fields=["message"], identifier=value)


@covers("envelope.notification")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "GetTask", "Nope"])
def test_a_notification_is_an_invalid_request_and_runs_nothing(rpc: RpcCaller, method: str) -> None:
    refused(rpc.deliver(rpc.post(envelope(id=..., method=method))), ENVELOPE)


@covers("envelope.method")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("value", [..., None, "", 5, [], {}, True], ids=repr)
def test_a_method_that_is_no_name_is_an_invalid_request(rpc: RpcCaller, value: Any) -> None:
    refused(rpc.deliver(rpc.post(envelope(method=value))), ENVELOPE, identifier=1)


@covers("envelope.method")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("value", ["nope", " ", "x" * 10_000, "é", "\0"], ids=lambda v: repr(v)[:10])
def test_a_method_that_nobody_has_is_not_found(rpc: RpcCaller, value: str) -> None:
    refused(rpc.deliver(rpc.post(envelope(method=value))), NO_METHOD, identifier=1)


@covers("envelope.params")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("value", [[], [1], "x", 5, True, 0, False, ""], ids=repr)
def test_params_that_are_no_object_are_invalid_params(rpc: RpcCaller, value: Any) -> None:
    refused(rpc.deliver(rpc.post(envelope(params=value))), PARAMS, fields=["params"], identifier=1)


@covers("envelope.params")
@pytest.mark.parametrize("value", [..., None, {}], ids=repr)
def test_params_may_be_left_out(rpc: RpcCaller, value: Any) -> None:
    reply = rpc.deliver(rpc.post(envelope(method="ListTasks", params=value)))
    assert set(reply.result) == {"tasks", "nextPageToken", "pageSize", "totalSize"}


@covers("envelope.unknown")
def test_unknown_members_of_the_envelope_are_ignored(rpc: RpcCaller) -> None:
    body = envelope(method="ListTasks", params={"contextId": new_id()}, trace={"a": 1}, meta=None)
    assert rpc.deliver(rpc.post(body)).result["tasks"] == []


@covers("envelope.duplicates")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("member", [b'"jsonrpc":"2.0",', b'"method":"GetTask",', b'"params":{},', b'"id":7,'])
def test_a_member_of_the_envelope_that_is_given_twice_is_refused_by_name(
    rpc: RpcCaller, member: bytes
) -> None:
    body = envelope().replace(b"{", b"{" + member, 1)
    reply = rpc.deliver(rpc.post(body))
    refused(reply, PARAMS, fields=[member.split(b'"')[1].decode()], identifier=1)


@covers("envelope.status")
@pytest.mark.usefixtures("nothing_stored")
def test_errors_after_the_envelope_was_read_are_http_200(rpc: RpcCaller) -> None:
    for method, params in (
        ("GetTask", {"id": "nope"}),
        ("Nope", {}),
        ("SendMessage", {}),
        ("CancelTask", {}),
    ):
        reply = rpc.deliver(rpc.post(envelope(method=method, params=params)))
        assert (reply.status, reply.json()["id"]) == (200, 1)
        assert reply.json()["error"]["code"] < 0


@covers("envelope.slash")
def test_the_endpoint_answers_with_and_without_a_final_slash(rpc: RpcCaller) -> None:
    request = rpc.request("ListTasks", {"contextId": "none"})
    for target in ("/agents/demo/rpc", "/agents/demo/rpc/"):
        reply = rpc.deliver(type(request)("POST", target, request.headers, request.body))
        assert reply.result["totalSize"] == 0
