"""Thousands of requests that are nearly right: none is our fault, hangs, or leaves a row unless it was accepted."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.server import ServerProcess
from tests.interaction.answers import DOMAIN, Reply
from tests.interaction.callers import HttpCaller, RpcCaller
from tests.interaction.following import sent
from tests.interaction.mutations import Mutator, answered, check_all, flip_anywhere
from tests.interaction.requirements import covers
from tests.interaction.rows import Rows
from tests.interaction.sockets import Socket


@pytest.fixture
def mutator(http: HttpCaller, rpc: RpcCaller) -> Mutator:
    """Makes requests of both bindings, some of them about finished tasks."""
    return Mutator([http, rpc], [sent(http)["id"], sent(http, "fail")["id"]])


def check_form(reply: Reply) -> bool:
    """Check that a reply is whole and in a form that its caller can read; tell whether it accepted a message."""
    assert reply.status < 500, reply
    assert reply.headers.get("x-request-id"), reply
    if reply.content_type == "text/event-stream":
        return _check_stream(reply)
    document = json.loads(reply.body)
    assert isinstance(document, dict), document
    if "jsonrpc" in document:
        assert set(document) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), document
        if "result" in document:
            return _accepted(reply, document["result"])
        error = document["error"]
        assert set(error) == {"code", "message", "data"} and error["code"] < 0, error
        details = error["data"]
    elif reply.status == 200:
        return _accepted(reply, document)
    elif reply.content_type == "application/problem+json":
        # A mutation of the version header made it a request of another generation.
        assert (document["status"], document["reason"]) == (reply.status, document["reason"].upper()), reply
        return False
    else:
        error = document["error"]
        assert set(error) == {"code", "status", "message", "details"} and error["code"] == reply.status, error
        details = error["details"]
    assert details[0]["domain"] == DOMAIN and details[0]["reason"], details
    return False


def _accepted(reply: Reply, result: object) -> bool:
    """Whether a result is the answer to a message that was new."""
    answer = isinstance(result, dict) and (set(result) in ({"task"}, {"message"}))
    return answer and "idempotent-replayed" not in reply.headers


def _check_stream(reply: Reply) -> bool:
    frames = reply.body.decode().split("\n\n")
    assert frames.pop() == "", reply
    first = None
    for frame in frames:
        data = json.loads(frame.split("data: ", 1)[1])
        assert "error" not in data, frame
        first = first or data.get("result", data)
    return first is not None and _accepted(reply, first)


@covers("mutants.form", "mutants.rows")
@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(300)
def test_requests_that_are_nearly_right_are_answered_well_and_leave_rows_only_if_accepted(
    server: ServerProcess, rows: Rows, mutator: Mutator, count: int
) -> None:
    before = rows.counts()
    pairs = answered(server.url, [mutator.make(number) for number in range(count)])
    assert len(pairs) == count
    accepted = check_all(pairs, lambda mutant, reply: check_form(reply))
    after = rows.counts()
    assert (after["identity"] - before["identity"], after["task"] - before["task"]) == (accepted, accepted)
    assert 0.05 < accepted / count < 0.6


@covers("mutants.raw", "mutants.rows")
@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.soak)])
@pytest.mark.timeout(300)
def test_requests_with_bytes_changed_anywhere_are_answered_or_closed_in_time(
    server: ServerProcess, rows: Rows, mutator: Mutator, count: int
) -> None:
    """A changed length may make the server wait for more: it does so no longer than a body may take."""
    before = rows.counts()

    def ask(number: int) -> Reply | None:
        with Socket(server.url, seconds=15) as socket:
            socket.send_what_is_taken(flip_anywhere(number, mutator.make(number).request.text()))
            return next(socket.replies(), None)

    with ThreadPoolExecutor(25) as pool:
        replies = [reply for reply in pool.map(ask, range(count)) if reply is not None]
    assert not [reply for reply in replies if reply.status >= 500]
    ours = [reply for reply in replies if reply.content_type != "text/plain"]
    accepted = sum(check_form(reply) for reply in ours)
    assert rows.counts()["identity"] - before["identity"] == accepted
    assert len(replies) > count * 0.9
