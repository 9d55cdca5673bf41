"""Thousands of 0.3 requests that are nearly right: none is our fault, hangs, or leaves a row unless it was accepted."""

import json
import re
from typing import Any

import pytest

from tests.harness.server import ServerProcess
from tests.interaction.answers import DOMAIN, Reply
from tests.interaction.mutations import Mutant, answered, check_all
from tests.interaction.rows import Rows
from tests.interaction.v0_3.answers import PROBLEM
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import sent
from tests.interaction.v0_3.mutations import Mutator
from tests.interaction.v0_3.requirements import covers


@pytest.fixture
def mutator(all_places: list[Caller]) -> Mutator:
    """Makes requests at every place, some of them about finished tasks."""
    return Mutator(all_places, [sent(all_places[0])["id"], sent(all_places[0], "fail")["id"]])


def sends(mutant: Mutant) -> bool:
    """Whether a request, whatever became of it, is one that sends a message if it is anything."""
    path = re.split("[?#]", mutant.request.target)[0]
    if path.endswith(("/rpc", "/rpc/")):
        try:
            document = json.loads(mutant.request.body or b"")
        except ValueError:
            return False
        method = document.get("method") if isinstance(document, dict) else None
        return method in ("message/send", "message/stream")
    return path.endswith((":send", ":stream"))


def check(mutant: Mutant, reply: Reply) -> bool:
    """Check that a reply is whole and in a form that its caller can read; tell whether it accepted a message."""
    assert reply.status < 500, reply
    assert reply.headers.get("x-request-id"), reply
    replayed = "idempotent-replayed" in reply.headers
    if reply.content_type == "text/event-stream":
        return _check_stream(reply) and sends(mutant) and not replayed
    document = json.loads(reply.body)
    assert isinstance(document, dict), document
    if "jsonrpc" in document:
        assert set(document) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), document
        return _check_response(document) and sends(mutant) and not replayed
    if reply.status == 200:
        assert reply.content_type == "application/json", reply
        return sends(mutant) and not replayed
    if reply.content_type == PROBLEM:
        assert document["status"] == reply.status and document["trace_id"] == reply.headers["x-request-id"]
        assert re.fullmatch(r"[A-Z][A-Za-z]+Error", document["type"]), document
        assert document["code"] < 0 and document["reason"] and document["detail"], document
        return False
    # A version was refused, or a mutation made it a request of 1.0.
    assert document["error"]["details"][0]["domain"] == DOMAIN, document
    return False


def _check_response(document: dict[str, Any]) -> bool:
    if "error" in document:
        error = document["error"]
        assert set(error) == {"code", "message", "data"} and error["code"] < 0, error
        assert error["data"][0]["domain"] == DOMAIN, error
    return "result" in document


def _check_stream(reply: Reply) -> bool:
    frames = reply.body.decode().split("\n\n")
    assert frames.pop() == "", reply
    items = [json.loads(frame.split("data: ", 1)[1]) for frame in frames]
    if "error" in items[0]:
        # Over JSON-RPC a stream that is refused is a stream of the error.
        assert len(items) == 1 and "jsonrpc" in items[0], reply
        return _check_response(items[0])
    assert not any("error" in item for item in items), reply
    return True


@covers("mutants.form", "mutants.rows")
@pytest.mark.parametrize("count", [3000, pytest.param(60_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(300)
def test_requests_that_are_nearly_right_are_answered_well_and_leave_rows_only_if_accepted(
    server: ServerProcess, rows: Rows, mutator: Mutator, count: int
) -> None:
    before = rows.counts()
    pairs = answered(server.url, [mutator.make(number) for number in range(count)])
    assert len(pairs) == count
    accepted = check_all(pairs, check)
    after = rows.counts()
    assert (after["identity"] - before["identity"], after["task"] - before["task"]) == (accepted, accepted)
    assert 0.05 < accepted / count < 0.6
