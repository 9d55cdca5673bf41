"""Paths of 0.3: every spelling, ids and agents that look like routes, wrong paths and methods."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.interaction.callers import Request
from tests.interaction.messages import new_id
from tests.interaction.v0_3.answers import NO_AGENT, NO_METHOD, NOT_ALLOWED, TASK_NOT_FOUND, refused
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import got, send_params, sent
from tests.interaction.v0_3.requirements import covers

SEED_A_ONLY = {"/messages:send", "/messages:stream", "/tasks", "/tasks/x/cancel", "/tasks/x/subscribe"}

ALLOWED = {
    "/message:send": {"POST"},
    "/messages:send": {"POST"},
    "/message:stream": {"POST"},
    "/messages:stream": {"POST"},
    "/tasks": {"GET", "HEAD"},
    "/tasks/x": {"GET", "HEAD"},
    "/tasks/x:cancel": {"POST"},
    "/tasks/x/cancel": {"POST"},
    "/tasks/x:subscribe": {"GET", "HEAD", "POST"},
    "/tasks/x/subscribe": {"GET", "HEAD", "POST"},
    "/tasks/x/pushNotificationConfigs": {"GET", "HEAD", "POST"},
    "/tasks/x/pushNotificationConfigs/y": {"DELETE", "GET", "HEAD"},
    "/card": {"GET", "HEAD"},
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


@covers("path.methods")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("path", ALLOWED)
def test_a_wrong_method_is_405_with_allow(web: Caller, path: str) -> None:
    if path in SEED_A_ONLY and not web.has_kinds:
        refused(web.deliver(Request("GET", web.path(path), web.place.headers)), NO_METHOD)
        return
    for method in METHODS:
        reply = web.deliver(Request(method, web.path(path), web.place.headers))
        if method in ALLOWED[path]:
            assert reply.status != 405, (method, path)
        else:
            assert {*reply.headers["allow"].split(", ")} == ALLOWED[path]
            if method == "HEAD":
                assert (reply.status, reply.body) == (405, b"")
            else:
                refused(reply, NOT_ALLOWED)


@covers("path.spellings")
@pytest.mark.parametrize("noun", ["message", "messages"])
def test_seed_a_sends_by_singular_and_by_plural(seed_a: Caller, noun: str) -> None:
    request = seed_a.request("SendMessage", send_params())
    reply = seed_a.deliver(request.at(seed_a.path(f"/{noun}:send")), "SendMessage")
    assert reply.value["status"]["state"] == "completed"
    request = seed_a.request("SendStreamingMessage", send_params())
    with seed_a.follow(request.at(seed_a.path(f"/{noun}:stream"))) as stream:
        assert stream.rest()[-1].state == "completed"


@covers("path.head")
@pytest.mark.parametrize(
    "path", ["/tasks/nope", "/tasks/nope:subscribe", "/card", "/tasks/x/pushNotificationConfigs"]
)
def test_head_answers_as_get_does_without_a_body(web: Caller, path: str) -> None:
    got = web.deliver(Request("GET", web.path(path), web.place.headers))
    head = web.deliver(Request("HEAD", web.path(path), web.place.headers))
    assert (head.status, head.body) == (got.status, b"")
    # A problem document names the request, so its length may differ by that of the id.
    for name in ("content-type", "a2a-version", "vary", "etag", "allow"):
        assert head.headers.get(name) == got.headers.get(name)


UNKNOWN = [
    *("", "/", "/nope", "/tasks/", "//tasks", "/tasks/a/b", "/message", "/message:nope", "/message/send"),
    *("/MESSAGE:SEND", "/tasks/x:nope", "/tasks/:cancel", "/extendedAgentCard", "/v1/v1/tasks", "/v2/tasks"),
    *("/.well-known/agent.json", "/.well-known/", "/cards", "/card/", "/..%2fdemo/tasks", "/%00", "/%"),
    *("/tasks/x/pushNotificationConfigs/a/b", "/tasks/x:resubscribe", "/" + "x" * 8000),
]


@covers("path.unknown")
@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_is_not_found(web: Caller, method: str) -> None:
    for path in UNKNOWN:
        refused(web.deliver(Request(method, web.path(path), web.place.headers)), NO_METHOD)


@covers("path.unknown")
@pytest.mark.usefixtures("nothing_stored")
def test_an_unknown_agent_is_not_found(caller: Caller) -> None:
    for agent in ("nobody", "DEMO", "demo.", "%64emo", "a" * 100):
        refused(caller.to(agent).call("SendMessage", send_params()), NO_AGENT)


@covers("path.agents")
@pytest.mark.parametrize("agent", ["v1", "rpc", "tasks"])
def test_an_agent_may_be_called_as_a_place_or_a_path_is(caller: Caller, agent: str) -> None:
    named = caller.to(agent)
    task = sent(named)
    assert got(named, task["id"]) == task
    refused(caller.call("GetTask", {"id": task["id"]}), TASK_NOT_FOUND, identifier=1)
    with named.open("SubscribeToTask", {"id": task["id"]}) as stream:
        assert [item.value for item in stream.rest()] == [task]


LOOKALIKES = [
    *("v1", "rpc", "tasks", "cancel", "subscribe", "message:send", "a/cancel", "a/subscribe", "a:cancel"),
    *("x/pushNotificationConfigs", "card", ".well-known", "...", " ", "%", "%2F", "é", "\0", "?a=b", "#"),
    *("a%2Fcancel", "+", "x" * 2000),
]


@covers("path.task-ids")
@pytest.mark.parametrize("operation", ["GetTask", "CancelTask", "SubscribeToTask"])
def test_any_text_may_be_asked_for_as_a_task_and_is_not_found(caller: Caller, operation: str) -> None:
    for identifier in LOOKALIKES:
        refused(caller.call(operation, {"id": identifier}), TASK_NOT_FOUND, identifier=1)


@covers("path.task-ids")
@pytest.mark.parametrize("action", ["cancel", "subscribe"])
def test_an_action_by_slash_is_of_the_task_before_it(seed_a: Caller, action: str) -> None:
    for identifier in ("cancel", "subscribe", "tasks", "v1", "a%2Fcancel", "message:send"):
        target = seed_a.path(f"/tasks/{quote(identifier, safe='%')}/{action}")
        refused(seed_a.deliver(Request("POST", target, seed_a.place.headers)), TASK_NOT_FOUND)
        reply = seed_a.deliver(Request("GET", target, seed_a.place.headers))
        refused(reply, TASK_NOT_FOUND if action == "subscribe" else NOT_ALLOWED)


@covers("path.context-ids")
def test_a_context_may_be_called_anything(caller: Caller, base: Caller) -> None:
    for name in ("v1", "message:send", "tasks", "a/cancel", "a%2Fcancel", "%", "é?&=#", "\0"):
        context = f"{new_id()}/{name}"
        task = sent(caller, contextId=context)
        assert task["contextId"] == context
        listed: dict[str, Any] = base.call("ListTasks", {"contextId": context}).result
        assert [found["id"] for found in listed["tasks"]] == [task["id"]]


@covers("path.query")
@pytest.mark.parametrize(
    "query", ["%", "%zz", "&&&", "=", "tenant=other", "a" * 9000, "&".join(["a=b"] * 99)]
)
def test_a_query_of_nonsense_is_ignored(web: Caller, query: str) -> None:
    task = sent(web)
    request = web.request("GetTask", {"id": task["id"]})
    assert web.deliver(request.at(f"{request.target}?{query}"), "GetTask").value == task
