"""The fleet of deploy/ at work: its proxy before two servers and two workers, over PostgreSQL and Temporal."""

import http.client
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.fleet import HEARTBEAT, READ_TIMEOUT, Fleet, events, may_not
from tests.durability.rolling import ENDED, HEADERS, Caller, Load, sending
from tests.harness.polling import until
from tests.harness.postgres import rows
from tests.harness.server import ServerProcess

pytestmark = [pytest.mark.alone, pytest.mark.needs("nginx", "openssl"), pytest.mark.timeout(180)]

SEND = "/agents/demo/message:send"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with Fleet() as made:
        yield made


@pytest.fixture
def caller(fleet: Fleet) -> Iterator[Caller]:
    with fleet.caller() as made:
        yield made


def at_once(text: str) -> dict[str, Any]:
    return sending(text) | {"configuration": {"returnImmediately": True}}


def lines(reply: http.client.HTTPResponse) -> Iterator[str]:
    """The lines of a stream, as they come."""
    for line in reply:
        yield line.decode().rstrip("\n")


def task_of(line: str) -> str:
    found = re.search(r'"(?:id|taskId)":"([^"]+)"', line)
    assert found, line
    return found[1]


def state(caller: Caller, task_id: str) -> str:
    found: str = caller.read(f"/agents/demo/tasks/{task_id}")["status"]["state"]
    return found.removeprefix("TASK_STATE_")


def metric(server: ServerProcess, name: str) -> float:
    text = urllib.request.urlopen(f"{server.url}/metrics", timeout=10).read().decode()
    found = re.search(rf"^{name} (.+)$", text, re.MULTILINE)
    assert found
    return float(found[1])


def test_a_stream_comes_through_event_by_event(fleet: Fleet, caller: Caller) -> None:
    with caller.call("/agents/demo/message:stream", sending("slow 4")) as reply:
        told = lines(reply)
        first = next(line for line in told if line.startswith("data: "))
        with fleet.caller() as other:
            assert state(other, task_of(first)) == "WORKING", "the first event is there before the end"
        assert ENDED.search("\n".join(told))


def test_a_quiet_stream_is_kept_and_only_what_shows_no_life_is_cut_off(fleet: Fleet, caller: Caller) -> None:
    task = caller.read(SEND, sending("ask"))["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    began = time.monotonic()
    with fleet.caller() as other, other.call(f"/agents/demo/tasks/{task['id']}:subscribe", {}) as reply:
        told = lines(reply)
        alive = 0
        while time.monotonic() - began < 3 * READ_TIMEOUT:
            alive += next(told) == ": keep-alive"
        assert alive >= 3 * READ_TIMEOUT / HEARTBEAT / 2
        answer = sending("blue")
        answer["message"]["taskId"] = task["id"]
        caller.read(SEND, answer)
        assert ENDED.search("\n".join(told))
    # The time-out is there: a blocking send that says nothing for so long is cut off, and not sent again.
    slow = sending(f"slow {READ_TIMEOUT + 1:g}")
    with caller.call(SEND, slow) as reply:
        reply.read()
        assert reply.status == 504
    again = caller.read(SEND, slow | {"configuration": {"returnImmediately": True}})["task"]
    until(lambda: state(caller, again["id"]) == "COMPLETED", what="its run to go on all the same")
    text = f"{slow['message']['messageId']}".encode()
    assert rows(fleet.database, "SELECT count(*) FROM identity WHERE message_id = $1", text)[0][0] == 1


def test_a_task_is_cancelled_by_way_of_the_other_server(fleet: Fleet, caller: Caller) -> None:
    def other_server_cancels() -> bool:
        task = caller.read(SEND, at_once("slow 60"))["task"]
        path = f"/agents/demo/tasks/{task['id']}:cancel"
        assert caller.read(path, {})["status"]["state"] == "TASK_STATE_CANCELED"
        until(lambda: any(path in line for line in fleet.proxied()), what="the proxy to have noted it")
        sent, cancelled = [line for line in fleet.proxied() if " 200 " in line][-2:]
        assert (SEND in sent, path in cancelled) == (True, True)
        used = {sent.split()[-1], cancelled.split()[-1]}
        return used == {fleet.upstream(server) for server in fleet.servers}

    # Servers take turns, but somebody else's request may come in between.
    until(other_server_cancels, what="the turn to come to the other server in between")
    until(
        lambda: all(metric(one, 'dragoman_runs_running{agent="demo"}') == 0 for one in fleet.workers),
        what="the handlers to be stopped",
    )


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_a_stream_goes_on_at_the_other_server_when_its_own_is_stopped(
    fleet: Fleet, caller: Caller, end: str
) -> None:
    seen = ""
    with caller.call("/agents/demo/message:stream", sending("slow 8")) as reply:
        told = lines(reply)
        while len(events(seen)) < 4:
            seen += next(told) + "\n"
        (server,) = [one for one in fleet.servers if metric(one, "dragoman_streams")]
        address = fleet.upstream(server)
        getattr(server, end)()
        try:
            for line in told:
                seen += line + "\n"
        except (http.client.IncompleteRead, ConnectionError):
            assert end == "kill"
    assert (": the server is stopping" in seen) == (end == "terminate")
    assert not ENDED.search(seen)
    after = str(events(seen)[-1])
    path = f"/agents/demo/tasks/{task_of(seen)}:subscribe"
    with fleet.caller() as other, other.call(path, {}, **{"Last-Event-ID": after}) as reply:
        rest = reply.read().decode()
    server.start(listen=address)
    assert ENDED.search(rest)
    numbers = events(seen) + events(rest)
    assert numbers == list(range(1, len(numbers) + 1))


def test_servers_are_restarted_one_by_one_behind_the_proxy_and_no_request_fails(fleet: Fleet) -> None:
    def hello(caller: Caller) -> None:
        task = caller.read(SEND, sending("hello"))["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED", task

    def look(caller: Caller) -> None:
        assert caller.read("/agents/demo/tasks?pageSize=1")["tasks"]

    with Load(fleet.caller, {"hello": (4, hello), "look": (4, look)}) as load:
        for server in fleet.servers:
            until(load.more(5), what="calls to have gone well", seconds=30)
            address = fleet.upstream(server)
            assert server.terminate() == 0
            until(load.more(5), what="calls to have gone well at the other server", seconds=30)
            server.start(listen=address)
        until(load.more(5), what="calls to have gone well", seconds=30)
    assert load.failures == []


def test_servers_know_where_requests_come_from_and_believe_nobody_but_the_proxy(fleet: Fleet) -> None:
    def refused(made: http.client.HTTPConnection, claim: str) -> dict[str, Any]:
        """What the servers log of a bad token."""
        number = f"probe-{time.time_ns()}"
        headers = HEADERS | {"Authorization": "Bearer nonsense", "X-Request-Id": number}
        made.request(
            "GET",
            "/agents/demo/tasks",
            headers=headers | {"X-Forwarded-For": claim, "Forwarded": f"for={claim}"},
        )
        reply = made.getresponse()
        reply.read()
        made.close()
        assert reply.status == 401
        return until(
            lambda: next((line for line in logged() if line.get("request_id") == number), None),
            what="the request to be logged",
        )

    def logged() -> list[dict[str, Any]]:
        return [line for server in fleet.servers for line in server.log_lines()]

    claim, port = "203.0.113.9", int(fleet.proxy.split(":")[1])
    by_proxy = http.client.HTTPSConnection(
        "127.0.0.1", port, context=fleet.tls, source_address=("127.0.0.2", 0)
    )
    assert refused(by_proxy, claim)["address"] == "127.0.0.2"
    direct = http.client.HTTPConnection(fleet.upstream(fleet.servers[0]), source_address=("127.0.0.3", 0))
    assert refused(direct, claim)["address"] == "127.0.0.3"


def test_callers_see_the_surfaces_and_not_what_is_for_operators(fleet: Fleet, caller: Caller) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        with caller.call(path) as reply:
            reply.read()
            assert reply.status == 404
    card = caller.read("/agents/demo/.well-known/agent-card.json")
    assert {one["url"].split("/agents/")[0] for one in card["supportedInterfaces"]} == {
        "https://localhost:8443"
    }
    assert card["signatures"]
    with Caller([fleet.proxy], context=fleet.tls) as stranger, stranger.call("/agents/demo/tasks") as reply:
        assert (reply.status, json.loads(reply.read())["error"]["status"]) == (401, "UNAUTHENTICATED")


def test_servers_and_workers_may_read_and_write_rows_and_change_no_table(fleet: Fleet) -> None:
    served = fleet.environment["DRAGOMAN_STORE_URL"]
    assert {row[0] for row in rows(served, "SELECT current_user")} == {"dragoman"}
    for statement in (
        "CREATE TABLE mine (id integer)",
        "ALTER TABLE task ADD COLUMN mine integer",
        "DROP TABLE event",
        "TRUNCATE event",
        "CREATE ROLE mine",
    ):
        assert may_not(served, statement), statement
    processes = rows(
        fleet.database, "SELECT DISTINCT usename FROM pg_stat_activity WHERE application_name = 'dragoman'"
    )
    assert {row[0] for row in processes} == {"dragoman"}
