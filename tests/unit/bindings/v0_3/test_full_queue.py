"""What callers of A2A 0.3 are told when an agent's queue is full, at each place where 0.3 is served."""

import json
from typing import Any

import pytest

from dragoman.bindings.exchange import Reply
from tests.unit.bindings.test_pipeline import BASE, call, headers, serving
from tests.unit.gateway.scripted import World, play

KINDS = {"message": {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}}
PROTO = {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hello"}]}}


@pytest.mark.parametrize(
    ("place", "body"), [("", KINDS), ("/v1", KINDS), ("/v1/v1", PROTO)], ids=["base", "alias", "official"]
)
@pytest.mark.parametrize("verb", ["send", "stream"])
def test_over_http_it_is_a_problem_document(place: str, body: Any, verb: str) -> None:
    async def scenario() -> None:
        world = World()
        world.engine.room = 0
        async with serving(world, "0.3") as (ask, _):
            reply = await ask("POST", f"{BASE}{place}/message:{verb}", body)
        assert isinstance(reply, Reply)
        assert (reply.status, headers(reply)["retry-after"]) == (429, "5")
        assert headers(reply)["content-type"] == "application/problem+json"
        problem = json.loads(reply.body)
        assert problem["type"] == "QuotaExceededError"
        assert (problem["status"], problem["code"], problem["reason"]) == (429, -32000, "QUOTA_EXCEEDED")
        assert problem["detail"] == problem["message"] != ""
        assert world.store.logs == {}

    play(scenario())


@pytest.mark.parametrize(
    ("method", "accept"),
    [
        ("message/send", "application/json"),
        ("message/stream", "application/json"),
        ("message/stream", "text/event-stream"),
    ],
)
def test_over_jsonrpc_it_is_an_error_under_the_requests_id(method: str, accept: str) -> None:
    async def scenario() -> None:
        world = World()
        world.engine.room = 0
        async with serving(world, "0.3") as (ask, _):
            reply = await ask("POST", f"{BASE}/rpc", call(method, KINDS, 7), {"accept": accept})
        assert isinstance(reply, Reply)
        assert (reply.status, headers(reply)["retry-after"]) == (200, "5")
        assert headers(reply)["content-type"] == accept
        answer = json.loads(reply.body.removeprefix(b"data: "))
        assert (answer["id"], answer["error"]["code"]) == (7, -32000)
        (info,) = answer["error"]["data"]
        assert (info["reason"], info["metadata"]) == ("QUOTA_EXCEEDED", {"limit": "max_waiting"})
        assert world.store.logs == {}

    play(scenario())
