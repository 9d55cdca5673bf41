"""What a message may hold: text, within bounds, and nothing else."""

import json
from typing import Any

import pytest

from tests.interaction.answers import NO_PUSH, PARAMS, PART_TYPE, TOO_LARGE, UNSUPPORTED, Reply, refused
from tests.interaction.callers import RpcCaller
from tests.interaction.following import sent, texts
from tests.interaction.hosted.callers import Hosted
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import message, new_id, send_params
from tests.interaction.sockets import Socket

BODY_LIMIT = 64 * 1024
SENDS = pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
EMOJI = "🕊"


def echoed(reply: Reply) -> str:
    """What the agent gave back."""
    (text,) = texts(reply.task)
    return text


@covers("input.text")
@pytest.mark.parametrize(
    "member",
    [
        {"messageId": ""},
        {"messageId": None},
        {"role": "ROLE_AGENT"},
        {"role": None},
        {"parts": []},
        {"parts": None},
        {"parts": [{}]},
        {"parts": [{"kind": "text", "text": "x"}]},
    ],
    ids=json.dumps,
)
@SENDS
@pytest.mark.usefixtures("nothing_stored")
def test_a_message_has_an_id_the_users_role_and_parts(
    alice: Hosted, operation: str, member: dict[str, Any]
) -> None:
    reply = alice.call(operation, {"message": {**message(), **member}})
    refused(reply, PARAMS, identifier=1)
    (name,) = member
    assert reply.fields[0].startswith(f"message.{name}")


@covers("input.text")
def test_text_of_any_script_is_taken_as_it_is(alice: Hosted) -> None:
    for text in ("Größe: 名前 🕊", "a\u2028b\u2029c\x85d", "\0\x1b\ufeff", " ", "\n"):
        assert echoed(alice.call("SendMessage", send_params(text))) == text


def cut(text: str, parts: int) -> list[dict[str, str]]:
    """A text in so many parts."""
    size = -(-len(text) // parts)
    return [{"text": text[start : start + size]} for start in range(0, len(text), size)]


@covers("input.characters")
@pytest.mark.parametrize("parts", [1, 2, 16])
@pytest.mark.parametrize(
    "text",
    ["a" * 32_000, "é" * 32_000, "é" * 31_999 + EMOJI, EMOJI * 15_000, "名" * 20_000],
    ids=["1 byte", "2 bytes", "one astral", "astral", "3 bytes"],
)
def test_as_many_as_32_000_characters_are_taken_whatever_their_width(
    alice: Hosted, text: str, parts: int
) -> None:
    params = {"message": message(parts=cut(text, parts))}
    assert echoed(alice.call("SendMessage", params)) == text


@covers("input.characters")
@pytest.mark.usefixtures("nothing_stored")
@SENDS
@pytest.mark.parametrize("parts", [1, 2, 16])
@pytest.mark.parametrize(
    "text",
    ["a" * 32_001, "é" * 32_001, "a" * 32_000 + EMOJI, "a" * 60_000],
    ids=["1 byte", "2 bytes", "one astral", "many"],
)
def test_one_character_too_many_is_refused_however_it_is_cut(
    alice: Hosted, operation: str, text: str, parts: int
) -> None:
    reply = alice.call(operation, {"message": message(parts=cut(text, parts))})
    refused(reply, PARAMS, fields=["message.parts"], identifier=1)
    assert "32000" in reply.json()["error"]["message"]


@covers("input.characters")
def test_an_astral_character_counts_once_also_where_it_comes_in_two_escapes(alice: Hosted) -> None:
    """`json` writes it as a surrogate pair, which is 12 bytes and two units of UTF-16, but one character."""
    whole = json.dumps({"message": message(EMOJI * 5_300)}).encode()
    assert echoed(alice.call("SendMessage", whole)) == EMOJI * 5_300
    mixed = "a" * 31_500 + EMOJI * 500
    assert echoed(alice.call("SendMessage", json.dumps({"message": message(mixed)}).encode())) == mixed
    over = json.dumps({"message": message(mixed + "a")}).encode()
    refused(alice.call("SendMessage", over), PARAMS, fields=["message.parts"], identifier=1)


@covers("input.parts")
def test_16_parts_are_taken(alice: Hosted) -> None:
    params = {"message": message(parts=[{"text": f"{number} "} for number in range(16)])}
    assert echoed(alice.call("SendMessage", params)) == "".join(f"{number} " for number in range(16))


@covers("input.parts")
@pytest.mark.usefixtures("nothing_stored")
@SENDS
@pytest.mark.parametrize("count", [17, 100])
def test_more_than_16_parts_are_refused(alice: Hosted, operation: str, count: int) -> None:
    reply = alice.call(operation, {"message": message(parts=[{"text": "x"}] * count)})
    refused(reply, PARAMS, fields=["message.parts"], identifier=1)
    assert "16" in reply.json()["error"]["message"]


@covers("input.parts")
@pytest.mark.usefixtures("nothing_stored")
@SENDS
@pytest.mark.parametrize("index", [0, 1, 15])
def test_an_empty_part_is_refused_by_its_place(alice: Hosted, operation: str, index: int) -> None:
    parts = [{"text": "x"} for _ in range(16)]
    parts[index]["text"] = ""
    reply = alice.call(operation, {"message": message(parts=parts)})
    refused(reply, PARAMS, fields=[f"message.parts[{index}].text"], identifier=1)


def padded(alice: Hosted, size: int) -> bytes:
    """A send whose body has exactly so many bytes; white space is what fills it."""
    request = alice.request("SendMessage", send_params("x"))
    assert request.body is not None
    return request.body[:-1] + b" " * (size - len(request.body)) + b"}"


@covers("input.body")
def test_a_body_of_64_kib_is_read(alice: Hosted) -> None:
    body = padded(alice, BODY_LIMIT)
    assert len(body) == BODY_LIMIT
    assert echoed(alice.deliver(alice.post(body))) == "x"
    with Socket(alice.origin) as socket:
        socket.send(_chunked(alice, body))
        assert echoed(socket.reply("jsonrpc")) == "x"


@covers("input.body")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("more", [1, 1024, 1024 * 1024])
def test_one_byte_more_is_refused_by_its_length_and_by_its_chunks(alice: Hosted, more: int) -> None:
    body = padded(alice, BODY_LIMIT + more)
    refused(alice.deliver(alice.post(body)), TOO_LARGE)
    with Socket(alice.origin) as socket:
        socket.send_what_is_taken(_chunked(alice, body))
        refused(socket.reply("jsonrpc"), TOO_LARGE)


@covers("input.body")
def test_the_limit_is_the_profiles_own(alice: Hosted) -> None:
    params = {"message": message("x" * 100_000)}
    refused(alice.call("SendMessage", params), TOO_LARGE)
    open_surface = RpcCaller(alice.client, alice.origin, "demo")
    assert open_surface.call("SendMessage", params, headers=alice.credential).task["artifacts"]


def _chunked(alice: Hosted, body: bytes) -> bytes:
    """A request whose body comes in chunks of 1,000 bytes, without a length."""
    head = alice.post(b"").with_headers(transfer_encoding="chunked", content_length=None)
    lines = [
        f"POST {head.target} HTTP/1.1",
        "host: test",
        *(f"{name}: {value}" for name, value in head.headers.items()),
    ]
    pieces = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + chunks + b"0\r\n\r\n"


CONTENT = {
    "raw": {"raw": "AAAA"},
    "url": {"url": "https://example.org/file"},
    "data": {"data": {"a": 1}},
    "null data": {"data": None},
    "a named file": {"raw": "", "filename": "a.txt", "mediaType": "text/plain"},
}


@covers("input.files")
@pytest.mark.usefixtures("nothing_stored")
@SENDS
@pytest.mark.parametrize("part", CONTENT.values(), ids=CONTENT)
@pytest.mark.parametrize("beside", [True, False], ids=["beside text", "alone"])
def test_anything_but_text_is_refused_by_name(
    alice: Hosted, operation: str, part: dict[str, Any], beside: bool
) -> None:
    parts = [{"text": "x"}, part] if beside else [part]
    (name,) = {"raw", "url", "data"} & part.keys()
    reply = alice.call(operation, {"message": message(parts=parts)})
    refused(reply, PARAMS, fields=[f"message.parts[{len(parts) - 1}].{name}"], identifier=1)


@covers("input.files")
@pytest.mark.usefixtures("nothing_stored")
def test_a_text_that_says_it_is_no_text_is_refused(alice: Hosted) -> None:
    params = {"message": message(parts=[{"text": "{}", "mediaType": "application/json"}])}
    refused(alice.call("SendMessage", params), PART_TYPE, identifier=1)


FORBIDDEN_FIELDS: dict[str, tuple[str, Any]] = {
    "metadata of the request": ("metadata", {"metadata": {"a": 1}}),
    "metadata of the message": ("message.metadata", {"message": {"metadata": {"a": 1}}}),
    "metadata of a part": (
        "message.parts[0].metadata",
        {"message": {"parts": [{"text": "x", "metadata": {"a": 1}}]}},
    ),
    "extensions": ("message.extensions", {"message": {"extensions": ["urn:x"]}}),
    "references": ("message.referenceTaskIds", {"message": {"referenceTaskIds": ["x"]}}),
    "references by the other spelling": (
        "message.referenceTaskIds",
        {"message": {"reference_task_ids": ["x"]}},
    ),
    "a context": ("message.contextId", {"message": {"contextId": new_id()}}),
    "a tenant": ("tenant", {"tenant": "acme"}),
    "the agent as a tenant": ("tenant", {"tenant": "demo"}),
    "another tenant": ("tenant", {"tenant": "globex"}),
}


@covers("input.metadata", "input.references", "input.context", "strangers.tenant")
@pytest.mark.usefixtures("nothing_stored")
@SENDS
@pytest.mark.parametrize(("field", "members"), FORBIDDEN_FIELDS.values(), ids=FORBIDDEN_FIELDS)
def test_each_member_that_is_not_taken_is_refused_by_name(
    alice: Hosted, operation: str, field: str, members: dict[str, Any]
) -> None:
    params = {**members, "message": {**message("x"), **members.get("message", {})}}
    refused(alice.call(operation, params), PARAMS, fields=[field], identifier=1)


@covers("input.text")
def test_members_that_are_empty_are_as_good_as_absent(alice: Hosted) -> None:
    empty = {"metadata": {}, "extensions": [], "referenceTaskIds": [], "contextId": "", "taskId": ""}
    params = {"message": message("x", **empty), "metadata": {}, "tenant": "", "configuration": {}}
    assert echoed(alice.call("SendMessage", params)) == "x"


@covers("input.metadata", "input.references")
@pytest.mark.usefixtures("nothing_stored")
def test_every_wrong_member_is_named_at_once(alice: Hosted) -> None:
    params = {
        "metadata": {"a": 1},
        "message": message(
            parts=[{"text": ""}, {"url": "https://example.org"}],
            metadata={"b": 2},
            extensions=["urn:x"],
            referenceTaskIds=["y"],
            contextId="z",
        ),
    }
    reply = alice.call("SendMessage", params)
    refused(reply, PARAMS, identifier=1)
    assert sorted(reply.fields) == [
        "message.contextId",
        "message.extensions",
        "message.metadata",
        "message.parts[0].text",
        "message.parts[1].url",
        "message.referenceTaskIds",
        "metadata",
    ]


@covers("strangers.tenant")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("tenant", ["acme", "globex", "demo", "x"])
def test_no_operation_takes_a_tenant(alice: Hosted, tenant: str) -> None:
    for operation, params in (
        ("GetTask", {"id": "x"}),
        ("ListTasks", {}),
        ("CancelTask", {"id": "x"}),
        ("SubscribeToTask", {"id": "x"}),
    ):
        reply = alice.call(operation, {**params, "tenant": tenant})
        refused(reply, PARAMS, fields=["tenant"], identifier=1)
    assert alice.call("ListTasks", {"tenant": ""}).status == 200


@covers("input.context")
def test_contexts_are_given_out_one_to_a_task(alice: Hosted) -> None:
    contexts = {sent(alice)["contextId"] for _ in range(3)}
    assert len(contexts) == 3
    assert all(len(one) == 36 for one in contexts)


@covers("input.extensions")
@pytest.mark.parametrize("name", ["A2A-Extensions", "X-A2A-Extensions"])
@pytest.mark.parametrize("value", ["urn:dragoman:ext:idempotency:v1", "urn:x, urn:y", ""])
def test_a_header_that_asks_for_extensions_is_ignored(alice: Hosted, name: str, value: str) -> None:
    reply = alice.call("SendMessage", send_params("x"), headers={name: value})
    assert echoed(reply) == "x"
    assert "a2a-extensions" not in reply.headers


@covers("input.continuation", "resume.input")
@SENDS
@pytest.mark.parametrize("state", ["finished", "asking", "running", "unknown"])
def test_a_message_to_a_task_is_refused_and_not_stored(
    alice: Hosted, request: pytest.FixtureRequest, operation: str, state: str
) -> None:
    rows = request.getfixturevalue("rows")
    named = {
        "finished": lambda: sent(alice, "x")["id"],
        "asking": lambda: sent(alice, "ask")["id"],
        "running": lambda: request.getfixturevalue("held"),
        "unknown": new_id,
    }
    caller = alice.to("probe") if state == "running" else alice
    task_id = named[state]()
    with rows.unchanged():
        reply = caller.call(operation, send_params("approved", taskId=task_id))
        refused(reply, UNSUPPORTED, identifier=1)


@covers("input.push")
@pytest.mark.usefixtures("nothing_stored")
@SENDS
@pytest.mark.parametrize("spelling", ["taskPushNotificationConfig", "task_push_notification_config"])
def test_a_push_configuration_in_a_send_is_refused(alice: Hosted, operation: str, spelling: str) -> None:
    configuration = {spelling: {"url": "https://example.org/hook"}}
    refused(alice.call(operation, send_params("x", configuration=configuration)), NO_PUSH, identifier=1)
