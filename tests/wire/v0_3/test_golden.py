"""The 0.3 wire is what the golden files say, document by document, in both of its forms."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest

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
    InternalError,
    InvalidParams,
    MessageIdConflict,
    TaskNotCancelable,
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
from dragoman.protocol import media
from dragoman.protocol.headers import Headers
from dragoman.protocol.protojson import parse
from dragoman.protocol.spec import Codec, HttpCall, HttpDialect, Occasion
from dragoman.protocol.v0_3 import SPEC
from dragoman.stores import records
from tests.wire.golden import HttpRequest, document, placeless
from tests.wire.sameness import exact, shape
from tests.wire.v0_3.golden import CODECS, Golden, golden

FOLDER = Path(__file__).parent
CASES = sorted(path for path in FOLDER.glob("*.json") if not path.name.startswith("_"))
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
RESULTS: dict[str, tuple[type[Any], Callable[[Codec, Any, bool], bytes]]] = {
    "Task answer": (Task, lambda codec, value, last: codec.answer(value)),
    "Message answer": (Message, lambda codec, value, last: codec.answer(value)),
    "Task": (Task, lambda codec, value, last: codec.task(value)),
    "TaskPage": (TaskPage, lambda codec, value, last: codec.page(value)),
    "PushConfig": (PushConfig, lambda codec, value, last: codec.push_config(value)),
    "PushConfigs": (PushConfigs, lambda codec, value, last: codec.push_configs(value)),
    "Task item": (Task, lambda codec, value, last: codec.item(value, last)),
    "Message item": (Message, lambda codec, value, last: codec.item(value, last)),
    "TaskEvent": (TaskEvent, lambda codec, value, last: codec.item(value, last)),
}
BASE, ALIAS, OFFICIAL = SPEC.http


def having(member: str) -> Any:
    """The cases that have a member, by name."""
    chosen = [path for path in CASES if getattr(golden(path), member) is not None]
    return pytest.mark.parametrize("path", chosen, ids=lambda path: path.stem)


def expected(case: Golden) -> tuple[Operation, Any]:
    operation = Operation(case.operation)
    return operation, msgspec.json.decode(case.request, type=REQUESTS[operation])


def read(dialect: HttpDialect, request: HttpRequest) -> tuple[Operation, Any]:
    match = dialect.routes.match(request.method, request.path)
    body = parse(bytes(request.body)).check() if bytes(request.body) else None
    query = parse_qs(request.query, keep_blank_values=True)
    call = HttpCall(match.variables, query, body, "demo")
    return match.endpoint.operation, placeless(match.endpoint.decode(call))


def doubling() -> HttpDialect:
    """What the official place is for a client that doubles."""
    assert OFFICIAL.choose is not None
    chosen = OFFICIAL.choose(Headers([(b"user-agent", b"python-httpx/0.28.1")]))
    assert chosen is not None
    return chosen


@having("kinds")
@pytest.mark.parametrize("dialect", [BASE, ALIAS], ids=["base", "alias"])
def test_a_request_at_seed_as_places_is_read_as_what_it_means(path: Path, dialect: HttpDialect) -> None:
    case = golden(path)
    assert case.kinds is not None
    assert read(dialect, case.kinds) == expected(case)


@having("proto")
def test_a_request_at_the_official_place_is_read_as_what_it_means(path: Path) -> None:
    case = golden(path)
    assert case.proto is not None
    assert read(OFFICIAL, case.proto) == expected(case)
    assert read(doubling(), case.doubled or case.proto) == expected(case)


@having("jsonrpc")
def test_a_jsonrpc_request_is_read_as_what_it_means(path: Path) -> None:
    case = golden(path)
    assert case.jsonrpc is not None
    method = SPEC.jsonrpc.methods[case.jsonrpc.method]
    request = method.decode(parse(bytes(case.jsonrpc.params)).check(), "demo")
    assert (method.operation, placeless(request)) == expected(case)


@having("replies")
@pytest.mark.parametrize("form", CODECS)
def test_a_result_is_written_as_its_form_has_it(path: Path, form: str) -> None:
    case = golden(path)
    assert case.replies is not None
    kind, encode = RESULTS[case.kind]
    result = msgspec.json.decode(case.result, type=kind)
    wanted = {
        "kinds": case.replies.kinds,
        "proto": case.replies.proto,
        "doubled": case.replies.doubled if bytes(case.replies.doubled) else case.replies.proto,
    }[form]
    if not bytes(wanted):
        # A listing is none of the official place's.
        assert (case.kind, form) in {("TaskPage", "proto"), ("TaskPage", "doubled")}
        return
    assert shape(document(encode(CODECS[form], result, case.last))) == shape(document(wanted))


def test_every_operation_has_a_golden_request_in_each_form_that_has_it() -> None:
    read = [golden(path) for path in CASES]
    every = {*map(str, Operation)}
    with_kinds = {case.operation for case in read if case.kinds is not None}
    assert with_kinds == every
    assert {case.operation for case in read if case.proto is not None} == with_kinds - {"ListTasks"}
    assert {case.operation for case in read if case.jsonrpc is not None} == every - {"ListTasks"}
    assert {case.jsonrpc.method for case in read if case.jsonrpc is not None} == set(SPEC.jsonrpc.methods)


def test_every_path_has_a_golden_request() -> None:
    for dialect, member in ((ALIAS, "kinds"), (OFFICIAL, "proto")):
        requests: Iterator[HttpRequest | None] = (getattr(golden(path), member) for path in CASES)
        asked = [(request.method, request.path) for request in requests if request is not None]
        found = {(method, dialect.routes.match(method, path).template) for method, path in asked}
        assert found == {(method, template) for template, methods in dialect.routes for method in methods}


def test_every_form_of_a_stream_item_has_a_golden_document() -> None:
    cases = [golden(path) for path in CASES if path.name.startswith("stream_")]
    replies = [case.replies for case in cases if case.replies is not None]
    with_kinds = {document(one.kinds)["kind"] for one in replies}
    assert with_kinds == {"task", "message", "status-update", "artifact-update"}
    in_proto = {name for one in replies for name in document(one.proto)}
    assert in_proto == {"task", "message", "statusUpdate", "artifactUpdate"}


@pytest.mark.parametrize("form", ["kinds", "proto"])
def test_a_message_of_all_kinds_survives_wire_model_storage_model_and_wire_unchanged(form: str) -> None:
    sent = json.loads((FOLDER / "_message_of_all_kinds.json").read_bytes())[form]
    body = parse(json.dumps(sent, ensure_ascii=False).encode()).check()
    dialect = ALIAS if form == "kinds" else OFFICIAL
    request = dialect.routes.match("POST", "/message:send").endpoint.decode(HttpCall({}, {}, body, "demo"))
    assert isinstance(request, SendMessage)
    assert request.accepted_output_modes == ("text/markdown", "application/json")
    assert (request.history_length, request.return_immediately, request.push) == (3, True, None)
    assert exact(document(request.metadata)) == exact(sent["metadata"])

    kept = records.decode_change(records.encode(Received(request.message, TaskState.SUBMITTED)))
    assert kept == Received(request.message, TaskState.SUBMITTED)
    assert isinstance(kept, Received)
    answer = document(CODECS[form].answer(kept.message))
    assert shape(answer) == shape(sent["message"] if form == "kinds" else {"message": sent["message"]})


def test_both_forms_of_the_message_of_all_kinds_mean_the_same() -> None:
    case = json.loads((FOLDER / "_message_of_all_kinds.json").read_bytes())
    requests = []
    for form, dialect in (("kinds", ALIAS), ("proto", OFFICIAL)):
        body = parse(json.dumps(case[form]).encode()).check()
        match = dialect.routes.match("POST", "/message:send")
        requests.append(match.endpoint.decode(HttpCall({}, {}, body, "demo")))
    assert requests[0] == requests[1]


ERRORS: dict[str, DragomanError] = {
    "TaskNotFound": TaskNotFound("task-1"),
    "TaskNotCancelable": TaskNotCancelable("Task task-1 is finished"),
    "InvalidParams": InvalidParams(
        [
            FieldViolation("message.parts[0].file.bytes", "is not base64"),
            FieldViolation("message.role", "is required"),
        ]
    ),
    "MessageIdConflict": MessageIdConflict.of("message.messageId", "was used for another message"),
    "UnsupportedMediaType": media.unsupported(["application/json"]),
    "InternalError": InternalError(),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_written_as_its_binding_has_it(name: str) -> None:
    wanted = json.loads((FOLDER / "_errors.json").read_bytes())[name]
    for dialect in SPEC.http:
        reply = dialect.encode_error(ERRORS[name], Occasion("/agents/demo/v1/message:send", "r-1"))
        assert (reply.status, reply.content_type) == (wanted["http"], "application/problem+json")
        assert json.loads(reply.body) == wanted["document"]
    assert json.loads(SPEC.jsonrpc.encode_error(ERRORS[name])) == wanted["jsonrpc"]


def test_a_card_is_written_as_0_3_has_it() -> None:
    card = AgentCard(
        name="Demo",
        description="Echoes.",
        version="2.1.0",
        interfaces=(
            AgentInterface(url="https://a.example/agents/demo", binding="HTTP+JSON", version="1.0"),
            AgentInterface(url="https://a.example/agents/demo/v1", binding="HTTP+JSON", version="0.3"),
            AgentInterface(url="https://a.example/agents/demo/rpc", binding="JSONRPC", version="0.3"),
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
    wanted = json.loads((FOLDER / "_agent_card.json").read_bytes())
    assert SPEC.card(card) == wanted
