"""The 1.0 wire is what the golden files say, document by document."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest
from msgspec import Raw

from dragoman.model import (
    AgentCard,
    AgentInterface,
    Capabilities,
    Extension,
    Message,
    Provider,
    PushConfig,
    PushConfigs,
    Received,
    Skill,
    Task,
    TaskEvent,
    TaskPage,
    TaskState,
)
from dragoman.model.errors import (
    DragomanError,
    FieldViolation,
    InvalidParams,
    MessageIdConflict,
    TaskNotFound,
)
from dragoman.model.operation import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    ListTasks,
    Operation,
    SendMessage,
    SubscribeToTask,
)
from dragoman.protocol import negotiation
from dragoman.protocol.protojson import parse
from dragoman.protocol.spec import HttpCall, Occasion
from dragoman.protocol.v1_0 import SPEC
from dragoman.stores import records
from tests.wire.golden import FOLDER, Golden, cases, document, golden, placeless
from tests.wire.sameness import exact, shape

CODEC = SPEC.jsonrpc.codec
CASES = cases("v1_0")
REQUESTS = {
    Operation.SEND_MESSAGE: SendMessage,
    Operation.SEND_STREAMING_MESSAGE: SendMessage,
    Operation.GET_TASK: GetTask,
    Operation.LIST_TASKS: ListTasks,
    Operation.CANCEL_TASK: CancelTask,
    Operation.SUBSCRIBE_TO_TASK: SubscribeToTask,
    Operation.CREATE_PUSH_CONFIG: CreatePushConfig,
    Operation.GET_PUSH_CONFIG: GetPushConfig,
    Operation.LIST_PUSH_CONFIGS: ListPushConfigs,
    Operation.DELETE_PUSH_CONFIG: DeletePushConfig,
    Operation.GET_EXTENDED_CARD: GetExtendedCard,
}
RESULTS: dict[str, tuple[type[Any], Callable[[Any], bytes]]] = {
    "Task answer": (Task, CODEC.answer),
    "Message answer": (Message, CODEC.answer),
    "Task": (Task, CODEC.task),
    "TaskPage": (TaskPage, CODEC.page),
    "PushConfig": (PushConfig, CODEC.push_config),
    "PushConfigs": (PushConfigs, CODEC.push_configs),
    "Task item": (Task, lambda item: CODEC.item(item, False)),
    "Message item": (Message, lambda item: CODEC.item(item, False)),
    "TaskEvent": (TaskEvent, lambda item: CODEC.item(item, False)),
}


def having(member: str) -> Any:
    """The cases that have a member, by name."""
    chosen = [path for path in CASES if bytes(getattr(golden(path), member) or Raw(b""))]
    return pytest.mark.parametrize("path", chosen, ids=lambda path: path.stem)


def expected_request(case: Golden) -> tuple[Operation, Any]:
    operation = Operation(case.operation)
    return operation, msgspec.json.decode(case.request, type=REQUESTS[operation])


@having("request")
def test_an_http_request_is_read_as_what_it_means(path: Path) -> None:
    case = golden(path)
    assert case.http is not None
    (dialect,) = SPEC.http
    match = dialect.routes.match(case.http.method, case.http.path)
    body = parse(bytes(case.http.body)).check() if bytes(case.http.body) else None
    query = parse_qs(case.http.query, keep_blank_values=True)
    call = HttpCall(match.variables, query, body, "demo")
    assert (match.endpoint.operation, placeless(match.endpoint.decode(call))) == expected_request(case)


@pytest.mark.parametrize(
    "path", [path for path in CASES if golden(path).jsonrpc is not None], ids=lambda path: path.stem
)
def test_a_jsonrpc_request_is_read_as_what_it_means(path: Path) -> None:
    case = golden(path)
    assert case.jsonrpc is not None
    method = SPEC.jsonrpc.methods[case.jsonrpc.method]
    request = method.decode(parse(bytes(case.jsonrpc.params)).check(), "demo")
    assert (method.operation, placeless(request)) == expected_request(case)


@having("result")
def test_a_result_is_written_as_the_standard_has_it(path: Path) -> None:
    case = golden(path)
    kind, encode = RESULTS[case.kind]
    result = msgspec.json.decode(case.result, type=kind)
    assert shape(document(encode(result))) == shape(document(case.reply))


def test_every_operation_has_a_golden_request_in_both_bindings() -> None:
    read = [golden(path) for path in CASES]
    assert {case.operation for case in read if case.http is not None} - {""} == {*map(str, Operation)}
    assert {case.jsonrpc.method for case in read if case.jsonrpc is not None} == {*map(str, Operation)}


def test_every_form_of_a_stream_item_has_a_golden_document() -> None:
    replies = [document(golden(path).reply) for path in CASES if path.name.startswith("stream_")]
    assert {name for reply in replies for name in reply} == {
        "task",
        "message",
        "statusUpdate",
        "artifactUpdate",
    }


def test_a_message_of_all_kinds_survives_wire_model_storage_model_and_wire_unchanged() -> None:
    case = json.loads((FOLDER / "v1_0/_message_of_all_kinds.json").read_bytes())
    sent = case["request"]
    body = json.dumps(sent, ensure_ascii=False).encode()
    request = SPEC.jsonrpc.methods["SendMessage"].decode(parse(body).check(), "demo")
    assert isinstance(request, SendMessage)
    assert request.accepted_output_modes == ("text/markdown", "application/json")
    assert (request.history_length, request.return_immediately, request.push) == (3, True, None)
    assert exact(document(request.metadata)) == exact(sent["metadata"])

    read = records.decode_change(records.encode(Received(request.message, TaskState.SUBMITTED)))
    assert read == Received(request.message, TaskState.SUBMITTED)
    assert isinstance(read, Received)
    answer = document(CODEC.answer(read.message))
    assert shape(answer) == shape({"message": sent["message"]})

    again = SPEC.jsonrpc.methods["SendMessage"].decode(answer, "demo")
    assert isinstance(again, SendMessage)
    assert again.message == request.message


def test_the_message_of_all_kinds_has_numbers_that_doubles_would_lose() -> None:
    text = (FOLDER / "v1_0/_message_of_all_kinds.json").read_text(encoding="utf-8")
    assert str(2**53 + 1) in text and str(2**70) in text and str(-(2**70)) in text
    assert float(2**53 + 1) != 2**53 + 1


ERRORS: dict[str, DragomanError] = {
    "TaskNotFound": TaskNotFound("task-1"),
    "VersionNotSupported": negotiation.unsupported("0.5", ["1.0", "0.3"]),
    "InvalidParams": InvalidParams(
        [
            FieldViolation("message.parts[0].raw", "is not base64"),
            FieldViolation("message.role", "is required"),
        ]
    ),
    "MessageIdConflict": MessageIdConflict.of("message.messageId", "was used for another message"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_written_as_the_standard_has_it(name: str) -> None:
    wanted = json.loads((FOLDER / "v1_0/_errors.json").read_bytes())[name]
    (dialect,) = SPEC.http
    reply = dialect.encode_error(ERRORS[name], Occasion("/agents/demo/message:send", "r-1"))
    assert (reply.status, reply.content_type) == (wanted["http"], "application/json")
    assert json.loads(reply.body) == wanted["document"]
    assert json.loads(SPEC.jsonrpc.encode_error(ERRORS[name])) == wanted["jsonrpc"]


def test_a_card_is_written_as_the_standard_has_it() -> None:
    card = AgentCard(
        name="Demo",
        description="Echoes.",
        version="2.1.0",
        interfaces=(
            AgentInterface(url="https://a.example/agents/demo", binding="HTTP+JSON", version="1.0"),
            AgentInterface(url="https://a.example/agents/demo/rpc", binding="JSONRPC", version="1.0"),
        ),
        capabilities=Capabilities(
            extensions=(
                Extension(uri="urn:example:ext:v1", description="An extension.", required=True),
                Extension(uri="urn:example:ext:v2"),
            )
        ),
        skills=(
            Skill(
                id="echo",
                name="Echo",
                description="Sends it back.",
                tags=("echo", "test"),
                examples=("Hello",),
                input_modes=("text/plain",),
                output_modes=("application/json",),
            ),
            Skill(id="quiet", name="Quiet", description="Says nothing.", tags=("test",)),
        ),
        input_modes=("text/plain",),
        output_modes=("text/plain", "application/json"),
        provider=Provider(organization="Example", url="https://example.org"),
        documentation_url="https://example.org/docs",
        icon_url="https://example.org/icon.png",
    )
    wanted = json.loads((FOLDER / "v1_0/_agent_card.json").read_bytes())
    assert SPEC.card(card) == wanted
