"""What is finished reads the same after a restart, to the byte."""

import json
from typing import Any

import pytest

from tests.durability.ledger import LedgerServer
from tests.durability.ledger_store import TERMINAL
from tests.harness import stores
from tests.harness.polling import until
from tests.harness.wire import Reply, call

MESSAGES: list[dict[str, Any]] = [
    {"parts": [{"text": "plain words"}]},
    {
        "parts": [{"text": "Zürich 東京 \u2028\u2029\u0085\u0000 🐪"}],
        "metadata": {"k": [1, 10**30, 1.5, None]},
    },
    {
        "parts": [
            {"data": {"z": 1, "a": {"kind": "text", "role": "agent"}}},
            {"raw": "AAECAw==", "filename": "f"},
        ]
    },
    {"parts": [{"url": "https://example.org/x", "mediaType": "text/html"}], "contextId": "talk-1"},
    {"parts": [{"text": "stream 20"}], "contextId": "talk-1"},
    {"parts": [{"text": "fail because"}], "contextId": "talk-1"},
    {"parts": [{"text": "reject because"}], "contextId": "talk-2"},
    {"parts": [{"text": "crash"}]},
    {"parts": [{"text": "big 256"}], "contextId": "talk-2"},
    {"parts": [{"text": "data some words"}], "extensions": ["urn:x"], "referenceTaskIds": ["other"]},
]
QUERIES = (
    "",
    "?includeArtifacts=true&historyLength=10",
    "?pageSize=3",
    "?contextId=talk-1",
    "?status=TASK_STATE_FAILED&pageSize=1",
    "?statusTimestampAfter=2020-01-01T00:00:00Z&pageSize=2",
)
DEMO = """
[agents.demo]
python = "dragoman.agents.demo:demo"
"""


@pytest.mark.parametrize("how", ["killed", "terminated"])
def test_tasks_that_were_finished_before_a_restart_read_the_same_after_it(
    server: LedgerServer, how: str
) -> None:
    server = server.configured(DEMO)
    with server:
        sent = [_send(server, number, message) for number, message in enumerate(MESSAGES)]
        ids = [answer["task"]["id"] for answer in sent]
        canceled = _send(server, 99, {"parts": [{"text": "slow 60"}]}, at_once=True)["task"]["id"]
        assert call("POST", f"{server.url}/agents/demo/tasks/{canceled}:cancel").status == 200
        ids.append(canceled)
        before = _everything(server, ids)
        states = [json.loads(before[task_id])["status"]["state"] for task_id in ids]
        assert set(states) == {f"TASK_STATE_{state}" for state in TERMINAL}
        token = json.loads(before["list ?pageSize=3"])["nextPageToken"]
        second_page = _bytes(call("GET", f"{server.url}/agents/demo/tasks?pageSize=3&pageToken={token}"))

        if how == "killed":
            server.kill()
        server.restart()

        assert _everything(server, ids) == before
        after = call("GET", f"{server.url}/agents/demo/tasks?pageSize=3&pageToken={token}")
        assert _bytes(after) == second_page
        again = [_send(server, number, message) for number, message in enumerate(MESSAGES)]
        assert again == sent
    server.store.check()


def test_a_server_started_again_and_again_loses_nothing(server: LedgerServer) -> None:
    with server:
        task_ids = []
        for number in range(2):
            reply = call("POST", f"{server.url}/agents/worker/message:send", _body(f"m{number}", "quick"))
            task_ids.append(reply.json()["task"]["id"])
            server.kill()
            server.start()
        listed = call("GET", f"{server.url}/agents/worker/tasks").json()
        assert [task["id"] for task in listed["tasks"]] == task_ids[::-1]
        assert listed["totalSize"] == 2
        assert {server.state("worker", task_id) for task_id in task_ids} == {"COMPLETED"}
    counted = "max(id) FROM replica" if stores.is_postgres() else "epoch FROM server"
    assert server.store.rows(f"SELECT {counted}") == [(3,)]


def test_totals_are_right_after_a_crash_in_the_middle_of_writing(server: LedgerServer) -> None:
    with server:
        for number in range(20):
            call(
                "POST",
                f"{server.url}/agents/worker/message:send",
                _body(f"m{number}", "slow 1", at_once=True),
            )
        server.kill()
        server.start()
        until(
            lambda: set(server.store.states().values()) == {"COMPLETED"},
            what="all runs are finished",
            seconds=20,
        )
        listed = call("GET", f"{server.url}/agents/worker/tasks").json()
        assert (len(listed["tasks"]), listed["totalSize"]) == (20, 20)
        for state, total in (("COMPLETED", 20), ("WORKING", 0), ("SUBMITTED", 0)):
            page = call("GET", f"{server.url}/agents/worker/tasks?status=TASK_STATE_{state}").json()
            assert (len(page["tasks"]), page["totalSize"]) == (total, total)
    server.store.check()


def _everything(server: LedgerServer, ids: list[str]) -> dict[str, bytes]:
    """The bytes of every task and of some listings."""
    found = {task_id: _bytes(server.get("demo", task_id)) for task_id in ids}
    for query in QUERIES:
        found[f"list {query}"] = _bytes(call("GET", f"{server.url}/agents/demo/tasks{query}"))
    return found


def _bytes(reply: Reply) -> bytes:
    assert reply.status == 200, reply
    return reply.body


def _send(
    server: LedgerServer, number: int, message: dict[str, Any], *, at_once: bool = False
) -> dict[str, Any]:
    document: dict[str, Any] = {"message": {"messageId": f"message-{number}", "role": "ROLE_USER", **message}}
    if at_once:
        document["configuration"] = {"returnImmediately": True}
    reply = call("POST", f"{server.url}/agents/demo/message:send", document)
    assert reply.status == 200, reply
    answer: dict[str, Any] = reply.json()
    return answer


def _body(message_id: str, text: str, *, at_once: bool = False) -> dict[str, Any]:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": message, "configuration": {"returnImmediately": at_once}}
