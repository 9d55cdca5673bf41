"""Pages of other origins: what a browser asks before it calls, and what it then lets the page see."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.answers import NOT_ALLOWED, Reply, refused
from tests.interaction.callers import Caller, HttpCaller, Request, RpcCaller
from tests.interaction.messages import new_id, send_params
from tests.interaction.requirements import covers

APP = "https://app.example.com"
OTHER_APP = "http://localhost:3000"
STRANGER = "https://stranger.example"

PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "a2a-version,content-type",
}
EXPOSED = (
    "A2A-Version, X-Request-Id, Idempotent-Replayed, A2A-Extensions, X-A2A-Extensions, Retry-After, ETag"
)


@contextmanager
def serving(folder: Path, origins: str) -> Iterator[ServerProcess]:
    config = folder / "dragoman.toml"
    config.write_text(f"[server]\ncors_origins = {origins}\n", encoding="utf-8")
    with ServerProcess(folder / "data", config=config) as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that two origins may call."""
    with serving(tmp_path_factory.mktemp("shared"), f'["{APP}", "{OTHER_APP}"]') as running:
        yield running


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that every page may call."""
    with serving(tmp_path_factory.mktemp("public"), '["*"]') as running:
        yield running


@pytest.fixture(params=[HttpCaller, RpcCaller], ids=["http", "jsonrpc"])
def page(request: pytest.FixtureRequest, client: httpx2.Client, shared: ServerProcess) -> Caller:
    """A caller of the shared server's demo agent, over each binding in turn."""
    made: Caller = request.param(client, shared.url)
    return made


@pytest.fixture
def web(client: httpx2.Client, shared: ServerProcess) -> HttpCaller:
    """A caller of the shared server over HTTP+JSON."""
    return HttpCaller(client, shared.url)


def of_cors(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith("access-control-")}


def opened(reply: Reply, origin: str = APP) -> None:
    """Check that the page of an origin may read a reply, and that caches know for whom it is."""
    assert of_cors(reply.headers) == {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": EXPOSED,
    }
    assert reply.headers["vary"].split(", ")[-1] == "Origin"


PATHS = [
    "/agents/demo/message:send",
    "/agents/demo/tasks/nope:cancel",
    "/agents/demo/rpc",
    "/agents/demo/.well-known/agent-card.json",
    "/healthz",
    "/agents/nobody/tasks",
]


@covers("cors.preflight")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", [APP, OTHER_APP])
def test_a_preflight_is_answered_on_every_path_without_a_version(
    web: HttpCaller, path: str, origin: str
) -> None:
    reply = web.deliver(Request("OPTIONS", path, {"Origin": origin, **PREFLIGHT}))
    assert (reply.status, reply.body) == (204, b"")
    assert of_cors(reply.headers) == {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, HEAD, POST, DELETE",
        "access-control-allow-headers": (
            "A2A-Version, A2A-Extensions, X-A2A-Extensions, Content-Type, Authorization, Last-Event-ID, X-Request-Id"
        ),
        "access-control-max-age": "600",
    }
    assert reply.headers["vary"] == "Origin"
    assert "content-length" not in reply.headers
    assert reply.headers["x-request-id"]


@covers("cors.preflight")
def test_a_preflight_is_in_the_log_under_its_request_id(web: HttpCaller, shared: ServerProcess) -> None:
    headers = {"Origin": APP, "X-Request-Id": "page-7", **PREFLIGHT}
    web.deliver(Request("OPTIONS", "/agents/demo/tasks", headers))
    (line,) = until(
        lambda: [line for line in shared.log_lines() if line.get("request_id") == "page-7"],
        what="the preflight is logged",
    )
    assert (line["method"], line["route"], line["status"]) == ("OPTIONS", "preflight", 204)


@covers("cors.closed")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": STRANGER, **PREFLIGHT},
        {"Origin": "null", **PREFLIGHT},
        {"Origin": f"{APP}.stranger.example", **PREFLIGHT},
        {"Origin": f"{APP}:444", **PREFLIGHT},
        {"Origin": "http://app.example.com", **PREFLIGHT},
        {"Origin": "*", **PREFLIGHT},
        PREFLIGHT,
    ],
    ids=["stranger", "null", "longer", "port", "scheme", "star", "none"],
)
def test_a_preflight_of_anybody_else_is_no_preflight(web: HttpCaller, headers: dict[str, str]) -> None:
    reply = web.deliver(Request("OPTIONS", "/agents/demo/tasks", {"A2A-Version": "1.0", **headers}))
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
    assert of_cors(reply.headers) == {}
    assert reply.headers["vary"] == "A2A-Version, Accept, Origin"


@covers("cors.open")
def test_options_that_ask_for_no_method_are_refused_in_a_form_that_the_page_can_read(web: HttpCaller) -> None:
    reply = web.deliver(Request("OPTIONS", "/agents/demo/tasks", {"A2A-Version": "1.0", "Origin": APP}))
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
    opened(reply)


@covers("cors.open")
def test_a_page_reads_results_and_the_headers_that_it_needs(page: Caller) -> None:
    params = send_params()
    first = page.call("SendMessage", params, headers={"Origin": APP})
    again = page.call("SendMessage", params, headers={"Origin": APP})
    for reply in (first, again):
        opened(reply)
        assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert reply.headers["vary"] == "A2A-Version, Accept, Origin"
    assert again.headers["idempotent-replayed"] == "true"


@covers("cors.open")
@pytest.mark.parametrize(
    ("operation", "params", "headers"),
    [
        ("GetTask", {"id": "nope"}, {}),
        ("SendMessage", b"{", {}),
        ("SendMessage", b"{}", {"Content-Type": "text/plain"}),
        ("ListTasks", {}, {"Accept": "text/html"}),
        ("ListTasks", {}, {"A2A-Version": "7.0"}),
        ("SendStreamingMessage", {"message": {}}, {}),
    ],
    ids=["not-found", "malformed", "media-type", "accept", "version", "stream"],
)
def test_a_page_reads_errors(page: Caller, operation: str, params: object, headers: dict[str, str]) -> None:
    reply = page.call(operation, params, headers={"Origin": APP, **headers})
    assert "error" in reply.json()
    opened(reply)


@covers("cors.open")
def test_a_page_reads_streams(page: Caller) -> None:
    headers = {"Origin": OTHER_APP, "Accept": "text/event-stream"}
    with page.open("SendStreamingMessage", send_params("stream 2"), headers=headers) as stream:
        items = stream.rest()
    assert items[-1].state == "TASK_STATE_COMPLETED"
    assert of_cors(stream.headers) == {
        "access-control-allow-origin": OTHER_APP,
        "access-control-expose-headers": EXPOSED,
    }
    assert stream.headers["vary"] == "A2A-Version, Accept, Origin"


@covers("cors.open")
def test_a_page_reads_cards_and_is_told_that_it_has_them_already(web: HttpCaller) -> None:
    path = "/agents/demo/.well-known/agent-card.json"
    card = web.deliver(Request("GET", path, {"Origin": APP}))
    opened(card)
    known = web.deliver(Request("GET", path, {"Origin": APP, "If-None-Match": card.headers["etag"]}))
    assert (known.status, known.body) == (304, b"")
    opened(known)


@covers("cors.open")
def test_what_is_in_no_version_is_opened_too(web: HttpCaller) -> None:
    for path, status in (("/healthz", 200), ("/nowhere", 404)):
        reply = web.deliver(Request("GET", path, {"Origin": APP}))
        assert reply.status == status
        opened(reply)


@covers("cors.closed")
@pytest.mark.parametrize("headers", [{}, {"Origin": STRANGER}], ids=["no-origin", "stranger"])
def test_nobody_else_is_told_of_it_but_caches_are(page: Caller, headers: dict[str, str]) -> None:
    reply = page.call("SendMessage", send_params(), headers=headers)
    assert reply.task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert of_cors(reply.headers) == {}
    assert reply.headers["vary"] == "A2A-Version, Accept, Origin"


@covers("cors.any")
@pytest.mark.parametrize("origin", [APP, STRANGER, "null"])
def test_a_star_opens_the_server_to_every_page_and_replies_vary_by_none(
    client: httpx2.Client, public: ServerProcess, origin: str
) -> None:
    web = HttpCaller(client, public.url)
    asked = web.deliver(Request("OPTIONS", "/agents/demo/tasks", {"Origin": origin, **PREFLIGHT}))
    assert (asked.status, asked.headers["access-control-allow-origin"]) == (204, "*")
    assert "vary" not in asked.headers
    reply = web.call("SendMessage", send_params(messageId=new_id("star")), headers={"Origin": origin})
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in reply.headers
    assert reply.headers["vary"] == "A2A-Version, Accept"


@covers("cors.off")
def test_without_origins_a_preflight_is_a_wrong_method(http: HttpCaller) -> None:
    headers = {"A2A-Version": "1.0", "Origin": APP, **PREFLIGHT}
    for path, allow in (("/agents/demo/tasks", "GET, HEAD"), ("/agents/demo/message:send", "POST")):
        reply = http.deliver(Request("OPTIONS", path, headers))
        refused(reply, NOT_ALLOWED)
        assert reply.headers["allow"] == allow
        assert of_cors(reply.headers) == {}


@covers("cors.off")
def test_without_origins_no_reply_is_opened(http: HttpCaller) -> None:
    reply = http.call("SendMessage", send_params(), headers={"Origin": APP})
    assert of_cors(reply.headers) == {}
    assert reply.headers["vary"] == "A2A-Version, Accept"
