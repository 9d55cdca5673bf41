"""`/openapi.json`: a valid OpenAPI 3.1 document that describes every route, and that real replies keep to."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from dragoman.model.operation import Operation
from dragoman.protocol.v1_0.http import ROUTES
from dragoman.protocol.v1_0.openapi import OPERATIONS, QUERY
from tests.harness.server import ServerProcess
from tests.interaction.answers import NOT_ALLOWED, VERSION, check_negotiated, refused
from tests.interaction.callers import HttpCaller, Request
from tests.interaction.messages import message, send_params
from tests.interaction.requirements import covers

PATH = "/openapi.json"
CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def document(client: httpx2.Client, server: ServerProcess) -> Any:
    """The document of the session's server."""
    reply = client.get(server.url + PATH)
    assert reply.status_code == 200
    return reply.json()


@pytest.fixture(scope="module")
def closed(document: Any) -> Any:
    """The document's components with every object closed: what is not described is an error."""
    components = copy.deepcopy(document["components"])
    for schema in walk(components["schemas"]):
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
    return components


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") == "object":
            yield value
        for inner in value.values():
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def follows(components: Any, schema: Any, value: Any) -> list[str]:
    """Say where a value leaves a schema of the document."""
    validator = Draft202012Validator(
        {**schema, "components": components}, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def of(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@covers("openapi.whole")
def test_the_document_is_openapi_3_1(document: Any) -> None:
    assert document["openapi"].startswith("3.1.")
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@covers("openapi.whole")
def test_every_route_of_the_table_is_described_and_no_other(document: Any) -> None:
    described = {
        (path, method)
        for path, item in document["paths"].items()
        for method in item
        if method != "parameters"
    }
    routes = {
        (f"/agents/{{agent}}{template}", method.lower()) for template, methods in ROUTES for method in methods
    }
    assert described == routes | {(f"/agents/{{agent}}{CARD}", "get")}


@covers("openapi.whole")
def test_every_operation_and_every_query_parameter_is_described(document: Any) -> None:
    assert set(OPERATIONS) == set(Operation)
    named = {
        parameter["name"]
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
        for parameter in operation["parameters"]
        if parameter.get("in") == "query"
    }
    assert named == set(QUERY)
    identifiers = re.findall(r'"operationId": "(\w+)"', json.dumps(document))
    assert (
        len(identifiers) == len(set(identifiers)) == sum(len(item) - 1 for item in document["paths"].values())
    )


@covers("openapi.whole")
def test_every_schema_is_used(document: Any) -> None:
    text = json.dumps(document)
    for kind, components in document["components"].items():
        for name in components:
            assert f'"#/components/{kind}/{name}"' in text, (kind, name)


@covers("openapi.whole")
def test_the_agents_that_are_served_are_named_under_the_servers_own_url(
    document: Any, server: ServerProcess
) -> None:
    assert document["servers"] == [{"url": server.url}]
    agents = document["components"]["parameters"]["agent"]["schema"]["enum"]
    assert agents[:2] == ["demo", "digest"] and "hold" in agents


class Described:
    """Calls operations and holds each reply against what the document says of it."""

    def __init__(self, http: HttpCaller, document: Any, closed: Any) -> None:
        self.http = http
        self._document = document
        self._closed = closed

    def operation(self, name: str) -> Any:
        """An operation by its id."""
        for item in self._document["paths"].values():
            for method, operation in item.items():
                if method != "parameters" and operation["operationId"] == name:
                    return operation
        raise KeyError(name)

    def call(self, name: str, params: Any = None, *, status: int = 200, agent: str = "demo") -> Any:
        """Call an operation; its request, status, headers and body must be as described."""
        operation = self.operation(name)
        request = self.http.to(agent).request(name, params)
        if request.body is not None and status == 200:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            assert follows(self._closed, schema, json.loads(request.body)) == []
        reply = self.http.deliver(request)
        assert reply.status == status, reply
        response = self.resolved(operation["responses"][str(status)])
        for header in response["headers"]:
            assert header.lower() in reply.headers or header in (
                "A2A-Extensions",
                "Idempotent-Replayed",
            ), (header, reply.headers)
        schema = response["content"][reply.content_type]["schema"]
        assert follows(self._closed, schema, reply.json()) == []
        return reply.json()

    def resolved(self, value: Any) -> Any:
        """What a reference names, or the value itself."""
        if "$ref" not in value:
            return value
        _, _, kind, name = value["$ref"].split("/")
        return self._document["components"][kind][name]


@pytest.fixture
def described(http: HttpCaller, document: Any, closed: Any) -> Described:
    """A caller that holds replies against the document."""
    return Described(http, document, closed)


EVERYTHING = {
    "parts": [
        {"text": "data a b", "metadata": {"k": [1]}, "filename": "f", "mediaType": "text/plain"},
        {"raw": "AAE=", "filename": "b"},
        {"url": "https://a.example/x"},
        {"data": {"a": None}},
        {"data": None},
    ],
    "metadata": {"x": {"y": 2}},
    "extensions": ["urn:x"],
    "referenceTaskIds": [],
}


@covers("openapi.true")
@pytest.mark.parametrize("text", ["hello", "stream 3", "big 4", "file", "data x", "fail", "reject", "crash"])
def test_answers_to_sends_and_the_tasks_behind_them_are_as_described(described: Described, text: str) -> None:
    task = described.call("SendMessage", send_params(text))["task"]
    described.call("GetTask", {"id": task["id"]})


@covers("openapi.true")
def test_messages_in_answers_are_as_described(described: Described) -> None:
    assert "message" in described.call("SendMessage", send_params("message hi"))


@covers("openapi.true")
def test_all_that_a_message_may_hold_is_described(described: Described) -> None:
    configuration = {"acceptedOutputModes": ["text/plain"], "historyLength": 5, "returnImmediately": False}
    params = {"message": {**message(), **EVERYTHING}, "configuration": configuration, "metadata": {"m": 1}}
    task = described.call("SendMessage", params)["task"]
    assert described.call("GetTask", {"id": task["id"], "historyLength": 5})["history"]


@covers("openapi.true")
def test_a_page_of_tasks_is_as_described(described: Described) -> None:
    described.call("SendMessage", send_params("hello"))
    page = described.call("ListTasks", {"pageSize": 2, "includeArtifacts": True, "historyLength": 2})
    assert page["tasks"]


@covers("openapi.true")
def test_a_cancelled_task_is_as_described(described: Described) -> None:
    started = described.call(
        "SendMessage", send_params("wait", configuration={"returnImmediately": True}), agent="hold"
    )
    assert described.call("CancelTask", {"id": started["task"]["id"]}, agent="hold")


@covers("openapi.true")
def test_push_notification_configurations_are_as_described(described: Described) -> None:
    task = described.call("SendMessage", send_params("hello"), agent="hooked")["task"]["id"]
    config = {
        "id": "c",
        "url": "https://a.example",
        "authentication": {"scheme": "Bearer", "credentials": "x"},
    }
    described.call("CreateTaskPushNotificationConfig", {"taskId": task, **config}, agent="hooked")
    one = {"taskId": task, "id": "c"}
    assert described.call("GetTaskPushNotificationConfig", one, agent="hooked")["id"] == "c"
    page = {"taskId": task, "pageSize": 1, "pageToken": "a"}
    assert described.call("ListTaskPushNotificationConfigs", page, agent="hooked")["configs"]
    assert described.call("DeleteTaskPushNotificationConfig", one, agent="hooked") == {}
    described.call("GetTaskPushNotificationConfig", one, agent="hooked", status=404)
    for number in range(16):
        full = {"taskId": task, "id": str(number), "url": "https://a.example"}
        described.call("CreateTaskPushNotificationConfig", full, agent="hooked")
    one_more = {"taskId": task, "url": "https://a.example"}
    described.call("CreateTaskPushNotificationConfig", one_more, agent="hooked", status=429)


@covers("openapi.true")
@pytest.mark.parametrize(
    ("operation", "params", "status"),
    [
        ("SendMessage", {"message": {"parts": []}}, 400),
        ("SendMessage", b"{", 400),
        ("GetTask", {"id": "nope"}, 404),
        ("CancelTask", {"id": "nope"}, 404),
        ("ListTasks", {"pageSize": 0}, 400),
        ("CreateTaskPushNotificationConfig", {"taskId": "t", "url": "https://a.example"}, 400),
        ("GetTaskPushNotificationConfig", {"taskId": "t", "id": "c"}, 400),
        ("ListTaskPushNotificationConfigs", {"taskId": "t"}, 400),
        ("DeleteTaskPushNotificationConfig", {"taskId": "t", "id": "c"}, 400),
        ("GetExtendedAgentCard", {}, 400),
    ],
)
def test_refusals_are_as_described(described: Described, operation: str, params: Any, status: int) -> None:
    described.call(operation, params, status=status)


@covers("openapi.true")
def test_a_conflict_is_as_described(described: Described) -> None:
    params = send_params("hello")
    described.call("SendMessage", params)
    params["message"]["parts"] = [{"text": "other"}]
    described.call("SendMessage", params, status=409)


@covers("openapi.true")
@pytest.mark.parametrize("text", ["hello", "stream 3", "slow 0.4", "message hi", "fail", "file"])
def test_every_event_of_a_stream_is_as_described(
    http: HttpCaller, described: Described, closed: Any, text: str
) -> None:
    content = described.operation("SendStreamingMessage")["responses"]["200"]["content"]
    assert list(content) == ["text/event-stream"]
    with http.open("SendStreamingMessage", send_params(text)) as stream:
        frames = [json.loads(frame.data) for frame in stream.frames() if frame.data is not None]
    assert frames
    for frame in frames:
        assert follows(closed, content["text/event-stream"]["x-event-data"], frame) == []


@covers("openapi.true")
def test_the_card_is_as_described(http: HttpCaller, described: Described, closed: Any) -> None:
    for agent in ("demo", "digest"):
        reply = http.deliver(Request("GET", f"/agents/{agent}{CARD}", {"A2A-Version": "1.0"}))
        assert follows(closed, of("AgentCard"), reply.json()) == []
        for header in described.operation("GetAgentCard")["responses"]["200"]["headers"]:
            assert header.lower() in reply.headers


@covers("openapi.whole")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("Part", {}),
        ("Part", {"text": "a", "data": 1}),
        ("Part", {"kind": "text", "text": 1}),
        ("Message", {"messageId": "", "role": "ROLE_USER", "parts": [{"text": "a"}]}),
        ("Message", {"messageId": "m", "role": "user", "parts": [{"text": "a"}]}),
        ("Message", {"messageId": "m", "role": "ROLE_USER", "parts": []}),
        ("SendMessageRequest", {}),
        ("SendMessageResponse", {}),
        ("TaskStatus", {"state": "completed"}),
        ("TaskStatus", {"state": "TASK_STATE_WORKING", "timestamp": 7}),
        ("ListTasksResponse", {"tasks": []}),
        ("Error", {"error": {"code": 400, "status": "X", "message": "m", "details": [{"@type": "x"}]}}),
    ],
)
def test_the_schemas_refuse_what_the_standard_does_not_allow(document: Any, schema: str, value: Any) -> None:
    assert follows(document["components"], of(schema), value)


@covers("openapi.kept")
def test_the_document_is_kept_as_cards_are(http: HttpCaller) -> None:
    first = http.deliver(Request("GET", PATH))
    check_negotiated(first.headers)
    assert first.headers["content-type"] == "application/json"
    assert first.headers["cache-control"] == "public, max-age=300"
    known = http.deliver(Request("GET", PATH, {"If-None-Match": first.headers["etag"]}))
    assert (known.status, known.body) == (304, b"")
    assert known.headers["etag"] == first.headers["etag"]
    head = http.deliver(Request("HEAD", PATH))
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(first.body))


@covers("openapi.kept")
@pytest.mark.parametrize("target", [PATH, f"{PATH}?A2A-Version=1.0"])
def test_a_version_may_be_named(http: HttpCaller, target: str) -> None:
    headers = {} if "?" in target else {"A2A-Version": "1.0"}
    assert http.deliver(Request("GET", target, headers)).body == http.deliver(Request("GET", PATH)).body


@covers("openapi.kept")
def test_a_version_that_is_not_served_has_no_document(http: HttpCaller) -> None:
    refused(http.deliver(Request("GET", PATH, {"A2A-Version": "2.0"})), VERSION)


@covers("openapi.kept")
def test_the_document_is_only_for_reading(http: HttpCaller) -> None:
    reply = http.deliver(Request("POST", PATH, {"A2A-Version": "1.0"}))
    refused(reply, NOT_ALLOWED)
    assert reply.headers["allow"] == "GET, HEAD"


@covers("openapi.whole")
def test_the_url_outside_and_the_base_path_are_described(client: httpx2.Client, tmp_path: Path) -> None:
    config = tmp_path / "dragoman.toml"
    config.write_text(
        '[server]\npublic_url = "https://agents.example.com"\nbase_path = "/a2a"\n', encoding="utf-8"
    )
    with ServerProcess(tmp_path / "data", config=config) as behind:
        found = client.get(f"{behind.url}/a2a{PATH}").json()
    assert found["servers"] == [{"url": "https://agents.example.com/a2a"}]
