"""`/v1/v1`: what official 0.3 HTTP+JSON clients were seen to send, as it was seen, and what they need in return.

Python SDKs (0.3.26, and 1.3.0 at an interface of 0.3) put base64 of base64 into files and read it so; the JavaScript
SDK and everybody else does not. They are told apart by their HTTP library's User-Agent, because a request without a
body has nothing else.
"""

import base64
import json
from typing import Any

import pytest

from tests.interaction.callers import Request
from tests.interaction.messages import new_id
from tests.interaction.v0_3.answers import PARAMS, TASK_NOT_FOUND, refused
from tests.interaction.v0_3.callers import ALIAS, DOUBLED, PROTO, Caller
from tests.interaction.v0_3.messages import file_part, got, send_params, sent
from tests.interaction.v0_3.requirements import covers

RAW = b"\x00\xff\x01raw"
SINGLE = "AP8BcmF3"
DOUBLE = "QVA4QmNtRjM="

PYTHON = {
    "User-Agent": "python-httpx/0.28.1",
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "keep-alive",
}
PYTHON_STREAMS = {**PYTHON, "Accept": "text/event-stream", "Cache-Control": "no-store"}
NEWER_PYTHON = {**PYTHON, "A2A-Version": "0.3"}
JAVASCRIPT = {
    "User-Agent": "node",
    "Accept": "application/json",
    "Accept-Language": "*",
    "Content-Type": "application/json",
    "Sec-Fetch-Mode": "cors",
}
CLIENTS = {"python": PYTHON, "newer python": NEWER_PYTHON, "javascript": JAVASCRIPT}


def shown_file(caller: Caller, headers: dict[str, str], task_id: str) -> dict[str, Any]:
    """The file in the first artifact of a task, as a client with these headers is shown it."""
    request = Request("GET", caller.path(f"/tasks/{task_id}"), headers)
    file: dict[str, Any] = caller.deliver(request).result["artifacts"][0]["parts"][0]["file"]
    return file


@pytest.fixture
def proto(base: Caller) -> Caller:
    """A caller at the place of official clients."""
    return base.at(PROTO)


@covers("files.bytes", "difference.file-bytes")
@pytest.mark.parametrize(
    ("sender", "written"), [("python", DOUBLE), ("newer python", DOUBLE), ("javascript", SINGLE)]
)
def test_a_file_means_the_same_from_each_client_and_is_shown_to_each_as_it_needs_it(
    proto: Caller, base: Caller, sender: str, written: str
) -> None:
    content = {
        "messageId": new_id(),
        "role": "ROLE_USER",
        "content": [
            {"file": {"fileWithBytes": written, "mimeType": "application/octet-stream", "name": "a.bin"}}
        ],
    }
    headers = {"Content-Type": "application/json", **CLIENTS[sender]}
    body = json.dumps({"message": content, "configuration": {"blocking": True}}).encode()
    reply = proto.deliver(Request("POST", proto.path("/message:send"), headers, body))
    task = reply.result["task"]
    assert task["artifacts"][0]["parts"][0]["file"]["fileWithBytes"] == written
    # What was meant is seen where no client doubles anything.
    meant = got(base, task["id"])["artifacts"][0]["parts"][0]["file"]
    assert meant == {"bytes": SINGLE, "mimeType": "application/octet-stream", "name": "a.bin"}
    shown = {
        name: shown_file(proto, headers, task["id"])["fileWithBytes"] for name, headers in CLIENTS.items()
    }
    assert shown == {"python": DOUBLE, "newer python": DOUBLE, "javascript": SINGLE}


@covers("files.bytes")
def test_an_empty_file_is_empty_for_everybody(official: Caller, base: Caller) -> None:
    task = official.call("SendMessage", send_params(parts=[file_part(b"")])).value
    assert task["artifacts"][0]["parts"] == [file_part(b"")]
    assert got(base, task["id"])["artifacts"][0]["parts"] == [file_part(b"")]


@covers("files.bytes")
def test_streams_show_files_as_each_client_needs_them(proto: Caller) -> None:
    task = sent(proto, "file x")
    single = base64.b64encode(b"x").decode()
    double = base64.b64encode(single.encode()).decode()
    target = proto.path(f"/tasks/{task['id']}:subscribe")
    for headers, written in ((PYTHON_STREAMS, double), (JAVASCRIPT, single)):
        method = "GET" if headers is PYTHON_STREAMS else "POST"
        text = proto.deliver(Request(method, target, headers)).body.decode()
        assert f'"fileWithBytes":"{written}"' in text


@covers("files.bytes")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "content", [SINGLE, base64.b64encode(b"\xff\xfe").decode(), base64.b64encode(b"a b").decode()]
)
def test_a_doubled_file_whose_inside_is_no_base64_is_refused_by_name(base: Caller, content: str) -> None:
    doubled = base.at(DOUBLED)
    content_part = {"file": {"fileWithBytes": content}}
    message = {"messageId": new_id(), "role": "ROLE_USER", "content": [content_part]}
    reply = doubled.call("SendMessage", {"message": message}, as_is=True)
    refused(reply, PARAMS, fields=["message.content[0].file.fileWithBytes"])


@covers("files.callers")
@pytest.mark.parametrize(
    "agent",
    [
        *("python-httpx2/2.16.2", "python-requests/2.32", "Python-HTTPX/0.28", "my python-httpx/0.28.1", ""),
        *("Mozilla/5.0", "a2a-tck-rest/0.3", "python-httpx"),
    ],
)
def test_everybody_else_is_taken_at_the_protos_word(proto: Caller, agent: str) -> None:
    task = sent(proto, parts=[file_part(RAW)])
    assert shown_file(proto, {"User-Agent": agent}, task["id"])["fileWithBytes"] == SINGLE


@covers("files.callers")
def test_nobody_doubles_at_the_other_places(seed_a: Caller, rpc: Caller) -> None:
    for caller in (seed_a, rpc):
        params = send_params(parts=[file_part(RAW)])
        reply = caller.call("SendMessage", params, headers={"User-Agent": "python-httpx/0.28.1"})
        assert reply.value["artifacts"][0]["parts"] == [file_part(RAW)]


SEEN: dict[str, tuple[dict[str, str], str]] = {
    "python": (
        PYTHON,
        '{"message":{"messageId":"%s","role":"ROLE_USER","content":[{"text":"hi","metadata":{"n":1.0}},'
        '{"data":{"data":{"k":{"deep":[1.0,null]}}}}],"metadata":{"m":1.0}},'
        '"configuration":{"blocking":true},"metadata":{"r":1.0}}',
    ),
    "javascript": (
        JAVASCRIPT,
        '{"message":{"messageId":"%s","contextId":"","taskId":"","role":"ROLE_USER","content":[{"text":"hi"}],'
        '"metadata":null,"extensions":[]},"configuration":{"blocking":true}}',
    ),
    "newer python": (
        NEWER_PYTHON,
        '{"request":{"message_id":"%s","role":"ROLE_USER","content":[{"text":"hi"},'
        '{"file":{"file_with_bytes":"QVA4QmNtRjM=","mime_type":"a/b","name":"x"}},'
        '{"data":{"data":{"value":[1.0]}},"metadata":{"data_part_compat":true}}]},'
        '"configuration":{"blocking":true,"history_length":3}}',
    ),
    "kit": (
        {"User-Agent": "A2A-TCK-REST-Client/0.3.0", "Accept": "application/json"},
        '{"message":{"message_id":"%s","context_id":null,"role":"ROLE_USER","content":[{"text":"hi"}]}}',
    ),
}


@covers("clients.requests")
@pytest.mark.parametrize("sender", SEEN)
def test_a_send_is_read_as_each_client_was_seen_to_write_it(proto: Caller, sender: str) -> None:
    headers, template = SEEN[sender]
    identifier = new_id()
    headers = {"Content-Type": "application/json", **headers}
    target = proto.path("/message:send")
    reply = proto.deliver(Request("POST", target, headers, (template % identifier).encode()), "SendMessage")
    task = reply.result["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["history"][0]["messageId"] == identifier
    assert task["history"][0]["content"][0]["text"] == "hi"


@covers("clients.requests")
@pytest.mark.parametrize("sender", CLIENTS)
def test_a_polling_client_is_answered_at_once(proto: Caller, sender: str) -> None:
    """`"configuration": {}` is what a configuration whose one wish is false looks like."""
    content = {"messageId": new_id(), "role": "ROLE_USER", "content": [{"text": "wait"}]}
    body = json.dumps({"message": content, "configuration": {}}).encode()
    hold = proto.to("hold")
    headers = {"Content-Type": "application/json", **CLIENTS[sender]}
    task = hold.deliver(Request("POST", hold.path("/message:send"), headers, body)).result["task"]
    assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    hold.call("CancelTask", {"id": task["id"]})


@covers("clients.errors")
@pytest.mark.parametrize("sender", CLIENTS)
def test_an_error_has_what_each_client_types_it_by(proto: Caller, sender: str) -> None:
    """JavaScript by `code` and `message`, newer Python by `type` and `message`, Python by the status alone."""
    reply = proto.deliver(Request("GET", proto.path("/tasks/nope"), CLIENTS[sender]))
    document = refused(reply, TASK_NOT_FOUND)
    assert (document["code"], document["type"]) == (-32001, "TaskNotFoundError")
    assert document["message"] == "Task not found"


@covers("clients.numbers")
def test_a_number_of_a_client_that_has_doubles_alone_is_a_number(official: Caller) -> None:
    """`1.0` is not `1`, but where a number is asked for it is one."""
    params = send_params(configuration={"blocking": True, "historyLength": 1.0})
    assert len(official.call("SendMessage", params).value["history"]) == 1


@covers("clients.card")
def test_the_card_at_the_official_place_serves_as_the_authenticated_one(official: Caller) -> None:
    reply = official.deliver(Request("GET", official.path("/card"), official.place.headers))
    alias = official.deliver(Request("GET", official.at(ALIAS).path("/card")))
    assert (reply.status, reply.body) == (200, alias.body)
