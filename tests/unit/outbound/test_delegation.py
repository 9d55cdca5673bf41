"""A remote agent may answer in any way it likes: each way has one status, one send, bounded cost, and no leak."""

import asyncio
import base64
import json
import os
import re
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import pytest

from dragoman.egress import EgressPolicy
from dragoman.egress.client import Egress
from dragoman.gateway.remotes import Outcome, Remote
from dragoman.model import Message, Role, TextPart
from dragoman.model.errors import NotReconcilable, Unavailable
from dragoman.outbound.delegation import RemoteAgents
from dragoman.outbound.vault import KEY_BYTES, Vault
from tests.harness.receiver import Receiver
from tests.harness.rogue import CLOSE, HANG, RESET, Asked, Rogue, Script, bomb, reply, task

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]

LOOPBACK = EgressPolicy(schemes=("http", "https"), ports=None, allowed=(ip_network("127.0.0.0/8"),))
SECRET = "s3cr3t-of-the-remote-agent"
MESSAGE = Message(message_id="t-1", role=Role.USER, parts=(TextPart(text="Hello"),))
SECONDS = 1.0
MIB = 1024 * 1024


class Names:
    """A resolver whose answers are given in turn, the last one again and again."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ip_address(one) for one in answer]


def remote(vault: Vault, url: str, *, tenant: str = "acme", origin: str = "") -> Remote:
    place = origin or LOOPBACK.place_of(url)
    sealed = vault.seal(SECRET.encode(), tenant, place)
    return Remote(id="r", tenant="acme", name="r", endpoint_url=url, origin=place, sealed=sealed)


def sent(
    url: str,
    *,
    names: Resolve | None = None,
    vault: Vault | None = None,
    opened_by: Vault | None = None,
    policy: EgressPolicy = LOOPBACK,
    at_once: bool = False,
    times: int = 1,
    **registered: Any,
) -> Outcome:
    async def run() -> Outcome:
        egress = Egress(
            policy,
            user_agent="test/1",
            connect_seconds=SECONDS / 2,
            total_seconds=SECONDS,
            idle_seconds=0,
            resolve=names,
        )
        own = vault or Vault([os.urandom(KEY_BYTES)])
        agents = RemoteAgents(egress, lambda: opened_by or own)
        try:
            for _ in range(times):
                outcome = await agents.send(remote(own, url, **registered), "d-1", MESSAGE, at_once=at_once)
            return outcome
        finally:
            await agents.close()

    return asyncio.run(run())


def test_the_request_is_one_of_a2a_1_0_and_the_reply_is_passed_on_as_it_came() -> None:
    odd = (
        b'{"id": "x", "jsonrpc":"2.0", "result":{ "task":{"status":{"state":"TASK_STATE_WORKING"},"id":"r-1",'
    )
    odd += b'"big":123456789012345678901234567890,"f":1.10,"metadata":{"kind":"\\u0000"}} , "more": [1]} }'

    def script(asked: Asked) -> Sequence[bytes]:
        return [bytes(step) for step in reply(odd.replace(b'"x"', json.dumps(asked.id).encode()))]

    with Rogue(script) as other:
        outcome = sent(other.url("/a/rpc?x=y"))
        (asked,) = other.got()
    assert asked.path == "/a/rpc?x=y"
    assert asked.json() == {
        "jsonrpc": "2.0",
        "id": "d-1",
        "method": "SendMessage",
        "params": {"message": {"messageId": "t-1", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}},
    }
    assert {name: asked.headers[name] for name in ("content-type", "a2a-version", "authorization")} == {
        "content-type": "application/json",
        "a2a-version": "1.0",
        "authorization": f"Bearer {SECRET}",
    }
    begin = odd.index(b'{ "task"')
    assert bytes(outcome.result) == odd[begin : odd.rindex(b"}")].rstrip()
    assert (outcome.status, outcome.remote_task_id, outcome.error) == ("working", "r-1", "")


def test_a_remote_agent_may_be_asked_not_to_wait() -> None:
    with Rogue() as other:
        assert sent(other.url(), at_once=True).status == "completed"
        assert other.got()[0].json()["params"]["configuration"] == {"returnImmediately": True}


def test_a_bare_message_is_an_answer() -> None:
    said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Hi"}]}
    with Rogue(lambda one: reply({"jsonrpc": "2.0", "id": one.id, "result": {"message": said}})) as other:
        outcome = sent(other.url())
    assert (outcome.status, outcome.remote_task_id) == ("completed", "")
    assert json.loads(bytes(outcome.result)) == {"message": said}


@pytest.mark.parametrize(
    "state", "SUBMITTED WORKING COMPLETED FAILED CANCELED REJECTED INPUT_REQUIRED AUTH_REQUIRED".split()
)
def test_the_status_is_the_state_of_the_remote_task(state: str) -> None:
    with Rogue(lambda asked: reply(task(asked, f"TASK_STATE_{state}"))) as other:
        assert sent(other.url()).status == state.lower()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"


def answered(**members: Any) -> Script:
    """An answer with these members of the envelope changed; one that is `None` is left out."""

    def script(asked: Asked) -> Sequence[bytes | float | str]:
        whole = {**task(asked), **members}
        return reply({name: value for name, value in whole.items() if value is not None})

    return script


def raw(body: bytes, *headers: str, status: int = 200, kind: str = "application/json") -> Script:
    return lambda asked: reply(
        body.replace(b"ID", json.dumps(asked.id).encode()), status, *headers, kind=kind
    )


WRONG: dict[str, tuple[Script, str]] = {
    # Cut, broken or late, each at another phase of the reply.
    "closed after the request": (lambda asked: [CLOSE], "connection|no reply"),
    "reset after the request": (lambda asked: [RESET], "connection broke"),
    "never answers": (lambda asked: [HANG], "no whole reply"),
    "cut in the status line": (lambda asked: [b"HTTP/1.1 20", CLOSE], "no reply|broke"),
    "cut in the headers": (lambda asked: [HEAD[:60], CLOSE], "no reply|broke"),
    "cut after the headers": (lambda asked: [HEAD, CLOSE], "no reply|broke"),
    "cut in the body": (lambda asked: [HEAD, b'{"jsonrpc"', CLOSE], "no reply|broke"),
    "reset in the body": (lambda asked: [HEAD, b'{"jsonrpc"', 0.05, RESET], "broke|no reply"),
    "cut in a chunk": (
        lambda asked: [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{", CLOSE],
        "no reply|broke",
    ),
    "a byte now and then": (lambda asked: [HEAD, *([b" ", 0.1] * 50)], "no whole reply"),
    "headers now and then": (lambda asked: [b"HTTP/1.1 200 OK\r\n", *([b"X: y\r\n", 0.1] * 50)], "no whole"),
    "interim replies without end": (
        lambda asked: [step for _ in range(40) for step in (b"HTTP/1.1 102 Processing\r\n\r\n", 0.05)],
        "no whole reply",
    ),
    # Whole, but no answer to this.
    "wrong id": (answered(id="d-2"), "another request"),
    "no id": (answered(id=None), "another request"),
    "null id": (raw(b'{"jsonrpc":"2.0","id":null,"result":{}}'), "another request"),
    "a number for an id": (answered(id=1), "another request"),
    "no version of JSON-RPC": (answered(jsonrpc=None), "JSON-RPC 2.0"),
    "neither result nor error": (answered(result=None), "neither"),
    "result and error": (answered(error={"code": -1, "message": "x"}), "or both"),
    "two results": (raw(b'{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}'), "twice"),
    "two answers": (lambda asked: reply(json.dumps(task(asked)).encode() * 2), "not JSON"),
    "a batch": (lambda asked: reply([task(asked)]), "no object"),
    "an error without a code": (answered(result=None, error={"message": "x"}), "no code"),
    # Whole, but no result of this method.
    "null": (answered(result={"task": None}), "no task"),
    "a task and a message": (
        answered(result={"task": {"id": "a"}, "message": {"messageId": "b"}}),
        "or both",
    ),
    "a task without an id": (answered(result={"task": {"status": {"state": "TASK_STATE_WORKING"}}}), "no id"),
    "a message without parts": (
        answered(result={"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": []}}),
        "no parts",
    ),
    "a message of the user's": (
        answered(result={"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}),
        "not the agent's",
    ),
    # Something else altogether.
    "nothing": (raw(b""), "not JSON"),
    "HTML": (raw(b"<html>502</html>", kind="text/html"), "not JSON"),
    "an event stream": (raw(b"data: {}\n\n", kind="text/event-stream"), "not JSON"),
    "half a JSON text": (raw(b'{"jsonrpc":"2.0","id":ID'), "not JSON"),
    "no UTF-8": (raw(b'{"jsonrpc":"2.0","id":ID,"x":"\xff"}'), "not UTF-8"),
    "nested without end": (raw(b"[" * 100_000), "nested"),
    "NaN": (raw(b'{"jsonrpc":"2.0","id":ID,"result":NaN}'), "not JSON"),
    "a lone surrogate": (raw(b'{"jsonrpc":"2.0","id":ID,"result":{"task":{"x":"\\ud800"}}}'), "JSON has not"),
    "compressed": (raw(bomb(100), "Content-Encoding: gzip"), "not JSON|not UTF-8"),
    "10 MiB": (raw(b" " * 10 * MIB), "more than 1048576 bytes"),
    "10 MiB in chunks": (
        lambda asked: (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]
            + [b"100000\r\n" + b" " * MIB + b"\r\n"] * 10
        ),
        "more than 1048576 bytes",
    ),
    "10 MiB of headers": (
        lambda asked: [b"HTTP/1.1 200 OK\r\n"] + [b"X: " + b"y" * MIB + b"\r\n"] * 10,
        "no reply|broke",
    ),
    "another protocol": (lambda asked: [b"220 mail.example ESMTP\r\n\r\n"], "no reply"),
    "500": (raw(b"{}", status=500), "answered 500"),
    "503 with an answer": (lambda asked: reply(task(asked), 503), "answered 503"),
    "304": (lambda asked: [b"HTTP/1.1 304 Not Modified\r\n\r\n"], "answered 304"),
    "101": (
        lambda asked: [b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
        "no reply of HTTP",
    ),
}
"""What comes back → what is said of it. All of it is `unknown`: the message may have been taken."""


@pytest.mark.parametrize("how", WRONG)
def test_what_is_no_answer_is_unknown_after_exactly_one_send(how: str) -> None:
    script, words = WRONG[how]
    with Rogue(script) as other:
        tracemalloc.start()
        began = time.monotonic()
        try:
            outcome = sent(other.url())
            took = time.monotonic() - began
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (len(other.got()), other.connections) == (1, 1)
    assert outcome.status == "unknown", outcome
    assert outcome.error and SECRET not in outcome.error
    assert re.search(words, outcome.error), outcome.error
    assert (bytes(outcome.result), outcome.remote_task_id) == (b"", "")
    assert took < SECONDS * 5
    # The other side's own megabytes are in this process too.
    assert peak < 80 * MIB


@pytest.mark.parametrize(
    "state", ["TASK_STATE_UNSPECIFIED", "completed", "TASK_STATE_DREAMING", 0, 99, None, True, {}], ids=repr
)
def test_a_task_in_a_state_that_nobody_knows_is_unknown_and_can_be_asked_for(state: Any) -> None:
    with Rogue(answered(result={"task": {"id": "r-1", "status": {"state": state}}})) as other:
        outcome = sent(other.url())
    assert (outcome.status, outcome.remote_task_id, bytes(outcome.result)) == ("unknown", "r-1", b"")


@pytest.mark.parametrize("reads", ["connect", "head"])
def test_a_connection_that_ends_before_the_request_was_read_is_unknown(reads: str) -> None:
    with Rogue(lambda asked: [0.1, RESET], reads=reads) as other:
        assert sent(other.url()).status == "unknown"
        assert other.connections == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_wherever_it_leads(code: int) -> None:
    with Receiver() as elsewhere, Rogue() as other:
        for place in (other.url(), elsewhere.url("/"), "http://169.254.169.254/", "//x"):
            other.script = lambda asked, place=place: reply(b"", code, f"Location: {place}")
            before = len(other.got())
            outcome = sent(other.url())
            assert (outcome.status, "redirect" in outcome.error) == ("unknown", True)
            assert len(other.got()) == before + 1
        assert elsewhere.connections == 0


def test_what_comes_after_the_answer_is_nobodys() -> None:
    def script(asked: Asked) -> Sequence[bytes | float | str]:
        first, second = reply(task(asked)), reply(task(asked, "TASK_STATE_FAILED"))
        return [*first, *second]

    with Rogue(script) as other:
        assert sent(other.url(), times=3).status == "completed"
        assert (len(other.got()), other.connections) == (3, 3)


# -------------------------------------------------------------------------------------------- what is certainly nothing


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (-32001, "No", "No"),
        (-32603, "a\r\nb\x1b[31m\0c", "a b\ufffd[31m\ufffdc"),
        (-32000, "x" * 5000, "x" * 299 + "…"),
        (7, "", "gave no reason"),
        (10**30, {"a": 1}, "gave no reason"),
    ],
)
def test_an_error_of_the_remote_agents_is_a_failure_with_its_code(
    code: int, message: Any, words: str
) -> None:
    with Rogue(answered(result=None, error={"code": code, "message": message})) as other:
        outcome = sent(other.url())
    assert (outcome.status, outcome.code) == ("failed", min(code, 2**31 - 1))
    assert words in outcome.error and len(outcome.error) <= 300


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (401, b"", 401, "answered 401"),
        (404, b"<html>", 404, "answered 404"),
        (429, b'{"error":{"code":429,"message":"Slow down"}}', 429, "Slow down"),
        (403, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Not you"}}', -32000, "Not you"),
        (400, b'{"error":{"code":true,"message":"Odd"}}', 400, "Odd"),
    ],
)
def test_a_refusal_by_http_is_a_failure(status: int, body: bytes, code: int, words: str) -> None:
    with Rogue(raw(body, status=status)) as other:
        outcome = sent(other.url())
        assert len(other.got()) == 1
    assert (outcome.status, outcome.code, outcome.error) == ("failed", code, outcome.error)
    assert words in outcome.error


def test_a_place_where_nobody_listens_is_a_failure() -> None:
    with Rogue() as other:
        url = other.url()
    assert sent(url).status == "failed"


def test_a_server_without_tls_is_a_failure() -> None:
    with Rogue(reads="connect", script=lambda asked: [b"HTTP/1.1 400 Bad\r\n\r\n"]) as other:
        outcome = sent(other.url().replace("http:", "https:"))
    assert (outcome.status, other.got()) == ("failed", [])


async def _nobody(host: str, port: int) -> Sequence[Address]:
    raise OSError("no such name")


async def _slow(host: str, port: int) -> Sequence[Address]:
    await asyncio.sleep(60)
    return []


@pytest.mark.parametrize(
    "names",
    [
        _nobody,
        _slow,
        Names([]),
        Names(["10.0.0.1"]),
        Names(["169.254.169.254"]),
        Names(["127.0.0.1", "192.168.0.1"]),
        Names(["::1"]),
        Names(["::ffff:127.0.0.1"]),
        Names(["64:ff9b::7f00:1"]),
        Names(["2002:7f00:1::"]),
        Names(["0.0.0.0"]),
        Names(["fe80::1%1"]),
    ],
)
def test_a_name_that_leads_nowhere_good_is_a_failure_that_tells_no_address(names: Resolve) -> None:
    with Rogue() as other:
        began = time.monotonic()
        outcome = sent(other.url(host="agents.example.com"), names=names)
        assert (outcome.status, other.connections) == ("failed", 0)
        assert time.monotonic() - began < SECONDS * 3
    assert not any(part in outcome.error for part in ("10.0", "169.254", "192.168", "::", "127."))


def test_a_name_that_changes_between_look_ups_is_looked_at_each_time() -> None:
    with Rogue() as other:
        names = Names(["127.0.0.1"], ["10.0.0.1"])
        url = other.url(host="agents.example.com")
        assert sent(url, names=names, times=2).status == "failed"
        # The first one arrived, and no connection was kept for the second.
        assert (len(other.got()), names.asked) == (1, 2)
        assert other.got()[0].headers["host"] == f"agents.example.com:{other.port}"


def test_each_send_has_a_connection_of_its_own() -> None:
    keep = "Connection: keep-alive"
    with Rogue(lambda asked: [*reply(task(asked), 200, keep), 0.2]) as other:
        assert sent(other.url(), times=3).status == "completed"
        assert (other.connections, len(other.got())) == (3, 3)


# ------------------------------------------------------------------------------------------------------- the credential


def test_a_token_goes_nowhere_but_to_the_origin_and_the_tenant_that_it_was_given_for() -> None:
    with Rogue() as other:
        vault = Vault([os.urandom(KEY_BYTES)])
        for wrong in ({"origin": "https://other.example"}, {"tenant": "beta"}):
            if "origin" in wrong:
                sealed = vault.seal(SECRET.encode(), "acme", "https://other.example")
            else:
                sealed = vault.seal(SECRET.encode(), "beta", LOOPBACK.place_of(other.url()))
            outcome = asyncio.run(_send_sealed(vault, other.url(), sealed))
            assert outcome.status == "failed"
            assert "another tenant's or another origin's" in outcome.error
        assert other.connections == 0


async def _send_sealed(vault: Vault, url: str, sealed: bytes) -> Outcome:
    agents = RemoteAgents(Egress(LOOPBACK, user_agent="t", idle_seconds=0), lambda: vault)
    place = LOOPBACK.place_of(url)
    one = Remote(id="r", tenant="acme", name="r", endpoint_url=url, origin=place, sealed=sealed)
    try:
        return await agents.send(one, "d-1", MESSAGE, at_once=False)
    finally:
        await agents.close()


def test_a_token_whose_key_is_gone_is_a_failure_before_anything_is_sent() -> None:
    with Rogue() as other:
        outcome = sent(other.url(), opened_by=Vault([os.urandom(KEY_BYTES)]))
        assert (outcome.status, other.connections) == ("failed", 0)
        assert "no key" in outcome.error


def test_a_token_of_a_key_that_was_replaced_is_sent_as_before() -> None:
    old, new = os.urandom(KEY_BYTES), os.urandom(KEY_BYTES)
    text = b"\n".join(map(base64.b64encode, (new, old))).decode()
    with Rogue() as other:
        outcome = sent(other.url(), vault=Vault([old]), opened_by=Vault.of_text(text, "here"))
        assert outcome.status == "completed"
        assert other.got()[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (answered(result={"task": {"id": SECRET, "status": {"state": "TASK_STATE_WORKING"}}}), "unknown"),
        (
            answered(result={"task": {"id": "r", "status": {"state": "TASK_STATE_WORKING"}, "x": SECRET}}),
            "unknown",
        ),
        (answered(result=None, error={"code": -1, "message": f"not {SECRET}"}), "failed"),
        (
            raw(json.dumps({"error": {"code": 401, "message": f"Bearer {SECRET}"}}).encode(), status=401),
            "failed",
        ),
    ],
)
def test_a_token_that_comes_back_is_not_kept(script: Script, status: str) -> None:
    with Rogue(script) as other:
        outcome = sent(other.url())
    assert outcome.status == status
    assert SECRET not in repr(outcome) and SECRET.encode() not in bytes(outcome.result)


def test_a_reply_with_line_breaks_in_a_header_breaks_nothing() -> None:
    def script(asked: Asked) -> Sequence[bytes]:
        (whole,) = reply(task(asked), 200, "X-A: b\r\n folded", "X-C: d\rAuthorization: e")
        return [bytes(whole)]

    with Rogue(script) as other:
        assert sent(other.url()).status in ("completed", "unknown")
        assert len(other.got()) == 1


# -------------------------------------------------------------------------------------------------------------- asking


def asked_for(url: str, task_id: str = "remote-1") -> Outcome:
    async def run() -> Outcome:
        vault = Vault([os.urandom(KEY_BYTES)])
        egress = Egress(LOOPBACK, user_agent="t", total_seconds=SECONDS, idle_seconds=0)
        agents = RemoteAgents(egress, lambda: vault)
        try:
            return await agents.ask(remote(vault, url), task_id)
        finally:
            await agents.close()

    return asyncio.run(run())


def test_a_remote_task_is_asked_for_by_its_id() -> None:
    with Rogue() as other:
        outcome = asked_for(other.url())
        (asked,) = other.got()
    assert (asked.method, asked.json()["params"]) == ("GetTask", {"id": "remote-1"})
    assert asked.headers["a2a-version"] == "1.0"
    assert (outcome.status, outcome.remote_task_id) == ("completed", "remote-1")
    assert json.loads(bytes(outcome.result))["task"]["status"] == {"state": "TASK_STATE_COMPLETED"}


@pytest.mark.parametrize("how", ["never answers", "wrong id", "HTML", "500", "10 MiB", "two answers"])
def test_what_is_no_answer_to_that_may_be_asked_again(how: str) -> None:
    with Rogue(WRONG[how][0]) as other, pytest.raises(Unavailable, match="no answer that counts"):
        asked_for(other.url())


@pytest.mark.parametrize("status", [408, 425, 429])
def test_a_refusal_of_the_moment_may_be_asked_again(status: int) -> None:
    with Rogue(raw(b"{}", status=status)) as other, pytest.raises(Unavailable):
        asked_for(other.url())


def test_another_task_than_the_one_asked_for_is_no_answer() -> None:
    with Rogue() as other, pytest.raises(Unavailable, match="another task"):
        asked_for(other.url(), "remote-2")


def test_a_task_that_the_remote_agent_does_not_know_cannot_be_reconciled() -> None:
    script = answered(result=None, error={"code": -32001, "message": "Task not found"})
    with Rogue(script) as other, pytest.raises(NotReconcilable, match=r"Task not found \(-32001\)"):
        asked_for(other.url())
