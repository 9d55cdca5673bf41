"""Every way to be refused in 0.3, at every place: its form, its names and codes; and nothing is stored."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.interaction.conftest import BODY_LIMIT
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import (
    BAD_AGENT,
    BODY_TYPE,
    CONFLICT,
    MALFORMED,
    NO_AGENT,
    NO_METHOD,
    NO_PUSH,
    NOT_ACCEPTABLE,
    NOT_ALLOWED,
    NOT_CANCELABLE,
    PARAMS,
    PART_TYPE,
    TASK_NOT_FOUND,
    TOO_LARGE,
    UNSUPPORTED,
    Refusal,
    Reply,
    refused,
)
from tests.interaction.v0_3.callers import Caller, envelope
from tests.interaction.v0_3.messages import file_part, send_params, sent
from tests.interaction.v0_3.requirements import covers


def _again(caller: Caller) -> Reply:
    params = send_params("one")
    caller.call("SendMessage", params)
    return caller.call("SendMessage", send_params("two", messageId=params["message"]["messageId"]))


def _unknown(caller: Caller) -> Reply:
    if caller.binding == "jsonrpc":
        return caller.deliver(caller.post(envelope("tasks/nope", {})))
    return caller.deliver(caller.request("GetTask", {"id": "x"}).at(caller.path("/tasks/x:nope")))


def _wrong_method(caller: Caller) -> Reply:
    return caller.deliver(caller.request("SendMessage", send_params()).by("PUT"))


def _send(caller: Caller, **changes: Any) -> Reply:
    return caller.deliver(caller.request("SendMessage", send_params()).with_headers(**changes))


CASES: dict[str, tuple[Refusal, Callable[[Caller], Reply], list[str]]] = {
    "task": (TASK_NOT_FOUND, lambda caller: caller.call("GetTask", {"id": "nope"}), []),
    "finished": (
        NOT_CANCELABLE,
        lambda caller: caller.call("CancelTask", {"id": sent(caller, "fail")["id"]}),
        [],
    ),
    "turn": (
        UNSUPPORTED,
        lambda caller: caller.call("SendMessage", send_params(taskId=sent(caller, "fail")["id"])),
        [],
    ),
    "push": (
        NO_PUSH,
        lambda caller: caller.call(
            "SendMessage", send_params(configuration={"pushNotificationConfig": {"url": "https://e.example"}})
        ),
        [],
    ),
    "part type": (
        PART_TYPE,
        lambda caller: caller.to("hold").call(
            "SendMessage", send_params(parts=[file_part(b"", mimeType="image/png")])
        ),
        [],
    ),
    "agent": (BAD_AGENT, lambda caller: caller.to("mute").call("SendMessage", send_params()), []),
    "field": (
        PARAMS,
        lambda caller: caller.call("SendMessage", send_params(messageId="")),
        ["message.messageId"],
    ),
    "message id": (CONFLICT, _again, ["message.messageId"]),
    "json": (MALFORMED, lambda caller: caller.call("SendMessage", b"{bad"), []),
    "method": (NO_METHOD, _unknown, []),
    "nobody": (NO_AGENT, lambda caller: caller.to("nobody").call("SendMessage", send_params()), []),
    "http method": (NOT_ALLOWED, _wrong_method, []),
    "accept": (NOT_ACCEPTABLE, lambda caller: _send(caller, accept="text/html"), []),
    "body": (TOO_LARGE, lambda caller: caller.call("SendMessage", b" " * (BODY_LIMIT + 1)), []),
    "type": (BODY_TYPE, lambda caller: _send(caller, content_type="application/a2a+json"), []),
    "no type": (BODY_TYPE, lambda caller: _send(caller, content_type=None), []),
}
NULL_ID = {"json"}
LEAVES_SOMETHING = {"finished", "turn", "agent", "message id"}
"""Cases that send a message, too, which is accepted."""


@covers("errors.form", "difference.newer-errors")
@pytest.mark.parametrize("case", CASES)
def test_every_refusal_has_its_names_and_codes_and_stores_nothing(
    caller: Caller, rows: Rows, case: str
) -> None:
    refusal, make, fields = CASES[case]
    before = rows.counts()
    reply = make(caller)
    identifier = None if case in NULL_ID or (refusal.transport and case != "accept") else 1
    refused(reply, refusal, fields=fields, identifier=identifier)
    if case not in LEAVES_SOMETHING:
        assert rows.counts() == before


PUSH = [
    ("CreateTaskPushNotificationConfig", {"id": "x", "url": "https://example.com"}),
    ("GetTaskPushNotificationConfig", {"id": "x", "configId": "y"}),
    ("ListTaskPushNotificationConfigs", {"id": "x"}),
    ("DeleteTaskPushNotificationConfig", {"id": "x", "configId": "y"}),
]


@covers("errors.push")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(("operation", "params"), PUSH, ids=lambda value: str(value)[:24])
def test_push_configurations_are_not_supported(
    caller: Caller, operation: str, params: dict[str, str]
) -> None:
    refused(caller.call(operation, params, as_is=True), NO_PUSH, identifier=1)


@covers("errors.push")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("config", [{"url": "https://example.com/hook"}, {}])
def test_a_send_with_a_push_configuration_is_refused(
    caller: Caller, operation: str, config: dict[str, str]
) -> None:
    params = send_params(configuration={"blocking": True, "pushNotificationConfig": config})
    refused(caller.call(operation, params), NO_PUSH, identifier=1)


@covers("errors.extended-card")
def test_an_extended_card_is_not_supported(rpc: Caller) -> None:
    refused(rpc.call("GetExtendedAgentCard", {}), UNSUPPORTED, identifier=1)
    body = b'{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}'
    refused(rpc.deliver(rpc.post(body)), UNSUPPORTED, identifier=1)


@covers("errors.streaming")
@pytest.mark.usefixtures("nothing_stored")
def test_an_agent_that_cannot_stream_refuses_both_streaming_operations(caller: Caller) -> None:
    still = caller.to("still")
    refused(still.call("SendStreamingMessage", send_params()), UNSUPPORTED, identifier=1)
    refused(still.call("SubscribeToTask", {"id": "nope"}), UNSUPPORTED, identifier=1)


@covers("errors.texts")
def test_the_detail_tells_what_is_wrong_and_names_the_field(web: Caller) -> None:
    reply = web.call("SendMessage", send_params(messageId=""))
    document = reply.json()
    assert document["detail"].startswith("message.messageId: ")
    assert document["fieldViolations"] == [
        {"field": "message.messageId", "description": document["detail"].removeprefix("message.messageId: ")}
    ]
