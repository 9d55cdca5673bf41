"""The audit of a running server: what was sent, cancelled and denied, by whom and from where, and nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.bindings.hosted import PREFIX
from tests.durability.ledger import dragoman
from tests.harness import stores
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.security.conftest import (
    AGENTS,
    BOB,
    CAROL,
    FULL,
    MUTE,
    READ,
    SECRETS,
    SERVER,
    TENANTS,
    Sender,
    started,
)

HOSTED = """
[hosted]
enabled = true
[agents.kept]
python = "dragoman.agents.demo:demo"
tenant = "acme"
workspace = "lab"
"""
TEXT = "a text that nobody else may read"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of its own, whose audit nobody else fills."""
    with started(tmp_path_factory.mktemp("audit"), SERVER + AGENTS + HOSTED + TENANTS) as running:
        yield running


@pytest.fixture
def sender(client: httpx2.Client, audited: ServerProcess) -> Sender:
    return Sender(client, audited)


def export(server: ServerProcess, *words: str) -> list[Row]:
    """What `dragoman audit export` prints, as JSON."""
    done = dragoman(
        "audit", "export", "--json", *words, "--data", str(server.data), folder=server.data.parent
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def after(server: ServerProcess, number: int, **wanted: Any) -> Row:
    """The first row after that number that has these values, once it is there."""

    def find() -> Row | None:
        rows = [row for row in export(server) if row["id"] > number]
        return next((row for row in rows if all(row[name] == value for name, value in wanted.items())), None)

    return until(find, what=f"{wanted} in the audit", every=0.3)


def last(server: ServerProcess) -> int:
    return max((row["id"] for row in export(server)), default=0)


def call(
    sender: Sender, token: str | None, method: str, path: str, document: Any = None, **headers: str
) -> Any:
    credential = {"Authorization": f"Bearer {token}"} if token else {}
    return sender._client.request(
        method,
        sender.server.url + path,
        json=document,
        headers={"A2A-Version": "1.0", **credential, **headers},
    )


def message(text: str, message_id: str) -> dict[str, Any]:
    return {"message": {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}}


def test_sends_and_cancels_are_there_as_soon_as_they_are_answered(sender: Sender) -> None:
    first = call(sender, FULL, "POST", "/agents/ours/message:send", message(TEXT, "1")).json()["task"]["id"]
    call(sender, FULL, "POST", "/agents/ours/message:send", message(TEXT, "1"))
    slow = {**message("slow 60", "2"), "configuration": {"returnImmediately": True}}
    second = call(sender, BOB, "POST", "/agents/ours/message:send", slow).json()["task"]["id"]
    assert call(sender, BOB, "POST", f"/agents/ours/tasks/{second}:cancel", {}).status_code == 200
    rows = export(sender.server)[-4:]
    by_alice = {
        "tenant": "acme",
        "principal": "alice",
        "credential": "tenants.acme.principals.alice.tokens[0]",
        "address": "127.0.0.1",
        "detail": "",
        "times": 1,
    }
    by_bob = by_alice | {"principal": "bob", "credential": "tenants.acme.principals.bob.tokens[0]"}
    expected = [
        by_alice | {"action": "SendMessage", "target": f"agents/ours/tasks/{first}", "outcome": "ok"},
        by_alice | {"action": "SendMessage", "target": f"agents/ours/tasks/{first}", "outcome": "replayed"},
        by_bob | {"action": "SendMessage", "target": f"agents/ours/tasks/{second}", "outcome": "ok"},
        by_bob | {"action": "CancelTask", "target": f"agents/ours/tasks/{second}", "outcome": "ok"},
    ]
    assert [{name: row[name] for name in expected[0]} for row in rows] == expected
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)


def test_a_stream_is_a_send_and_reads_are_nothing(sender: Sender) -> None:
    stream = call(sender, FULL, "POST", "/agents/ours/message:stream", message(TEXT, "3"))
    task_id = json.loads(stream.text.split("data: ")[1].split("\n")[0])["task"]["id"]
    before = last(sender.server)
    assert export(sender.server)[-1]["action"] == "SendStreamingMessage"
    assert export(sender.server)[-1]["target"] == f"agents/ours/tasks/{task_id}"
    for path in (
        f"/agents/ours/tasks/{task_id}",
        "/agents/ours/tasks",
        "/healthz",
        "/agents/ours/.well-known/agent-card.json",
    ):
        assert call(sender, FULL, "GET", path).status_code == 200
    call(sender, FULL, "GET", "/agents/ours/tasks/no-such-task")
    assert last(sender.server) == before


@pytest.mark.parametrize(
    ("token", "path", "wanted"),
    [
        (None, "/agents/ours/tasks", {"action": "Access", "principal": "", "outcome": "UNAUTHENTICATED"}),
        ("not-" + FULL, "/agents/ours/tasks", {"action": "Access", "principal": "", "outcome": "UNAUTHENTICATED"}),
        (
            MUTE,
            "/agents/ours/tasks",
            {"action": "Access", "principal": "alice", "outcome": "INSUFFICIENT_SCOPE", "detail": "ai:answer"},
        ),
        (CAROL, "/agents/ours/tasks", {"principal": "carol", "tenant": "beta", "outcome": "AGENT_NOT_FOUND"}),
        (CAROL, f"{PREFIX}kept/.well-known/agent-card.json", {"principal": "carol", "outcome": "AGENT_NOT_FOUND"}),
    ],
)  # fmt: skip
def test_denied_access_is_there_within_a_few_seconds(
    sender: Sender, token: str | None, path: str, wanted: Row
) -> None:
    before = last(sender.server)
    for _ in range(3):
        assert call(sender, token, "GET", path).status_code in (401, 403, 404)
    agent = "kept" if "kept" in path else "ours"
    row = after(sender.server, before, target=f"agents/{agent}", address="127.0.0.1", **wanted)
    assert row["times"] <= 3


def test_a_write_that_a_scope_does_not_cover_names_the_scope(sender: Sender) -> None:
    before = last(sender.server)
    assert call(sender, READ, "POST", "/agents/ours/message:send", message(TEXT, "4")).status_code == 403
    wanted = {"action": "SendMessage", "outcome": "INSUFFICIENT_SCOPE", "detail": "a2a:delegate"}
    assert after(sender.server, before, **wanted)["principal"] == "alice"


def test_a_change_that_is_refused_is_there_with_its_reason(sender: Sender) -> None:
    task = call(sender, FULL, "POST", "/agents/ours/message:send", message(TEXT, "5")).json()["task"]["id"]
    before = last(sender.server)
    assert call(sender, BOB, "POST", f"/agents/ours/tasks/{task}:cancel", {}).status_code == 404
    assert call(sender, FULL, "POST", f"/agents/ours/tasks/{task}:cancel", {}).status_code == 400
    assert call(sender, FULL, "POST", "/agents/ours/message:send", message("other", "5")).status_code == 409
    for who, action, outcome in (
        ("bob", "CancelTask", "TASK_NOT_FOUND"),
        ("alice", "CancelTask", "TASK_NOT_CANCELABLE"),
        ("alice", "SendMessage", "MESSAGE_ID_CONFLICT"),
    ):
        after(sender.server, before, principal=who, action=action, outcome=outcome, target="agents/ours")


def test_callers_of_public_agents_are_noted_as_such(sender: Sender) -> None:
    sent = call(sender, None, "POST", "/agents/anyones/message:send", message(TEXT, "6"))
    row = export(sender.server)[-1]
    assert (row["tenant"], row["principal"], row["credential"]) == ("local", "anonymous", "")
    assert row["target"] == f"agents/anyones/tasks/{sent.json()['task']['id']}"


def test_an_agent_that_is_not_there_and_text_of_callers_leave_nothing(sender: Sender) -> None:
    before = last(sender.server)
    call(sender, None, "GET", "/agents/injected%0Aname/tasks")
    call(sender, FULL, "GET", "/agents/nobody/tasks")
    row = after(sender.server, before, action="Access", outcome="UNAUTHENTICATED")
    assert row["target"] == ""
    rows = [row for row in export(sender.server) if row["id"] > before]
    assert {row["outcome"] for row in rows} == {"UNAUTHENTICATED"}


def test_no_text_and_no_secret_is_in_the_audit(sender: Sender) -> None:
    call(sender, FULL, "POST", "/agents/ours/message:send", message(TEXT, "7"))
    written = json.dumps(sender.rows.query("SELECT * FROM audit"))
    assert len(export(sender.server)) > 5
    for secret in (TEXT, *SECRETS.values()):
        assert secret not in written


def test_a_tenants_part_is_its_own(sender: Sender) -> None:
    call(sender, CAROL, "POST", "/agents/demo/message:send", message(TEXT, "8"))
    rows = export(sender.server, "--tenant", "beta")
    assert rows
    assert {row["tenant"] for row in rows} == {"beta"}


def test_a_flood_of_denials_is_a_few_rows(sender: Sender) -> None:
    before = last(sender.server)
    for _ in range(300):
        call(sender, "bad", "GET", "/agents/ours/tasks")
    after(sender.server, before, outcome="UNAUTHENTICATED")
    rows = until(
        lambda: [
            found
            for found in [[row for row in export(sender.server) if row["id"] > before]]
            if sum(row["times"] for row in found) == 300
        ],
        what="300 denials in the audit",
        every=0.3,
    )
    assert len(rows[0]) <= 10


def test_a_server_without_tenants_keeps_no_audit(tmp_path: Path, client: httpx2.Client) -> None:
    with started(tmp_path, "") as server:
        open_to_all = Sender(client, server)
        call(open_to_all, None, "POST", "/agents/demo/message:send", message(TEXT, "1"))
        call(open_to_all, "bad", "POST", "/agents/demo/tasks/none:cancel", {})
        assert server.terminate() == 0
        assert open_to_all.rows.query("SELECT count(*) FROM audit") == [(0,)]


def test_what_was_denied_just_before_the_end_is_there(tmp_path: Path, client: httpx2.Client) -> None:
    with started(tmp_path, AGENTS + TENANTS) as server:
        call(Sender(client, server), "bad", "GET", "/agents/ours/tasks")
        assert server.terminate() == 0
        assert [row["outcome"] for row in export(server)] == ["UNAUTHENTICATED"]


def test_what_is_older_than_its_retention_goes_and_what_came_since_stays(
    tmp_path: Path, client: httpx2.Client
) -> None:
    short = '[engine]\nsweep = "200ms"\n[retention]\naudit = "1m"\n'
    with started(tmp_path, short + AGENTS + TENANTS) as server:
        sender = Sender(client, server)
        call(sender, FULL, "POST", "/agents/demo/message:send", message(TEXT, "old"))
        assert [row["action"] for row in export(server)] == ["SendMessage"]
        stores.shift_clock(server.data, 120_000)
        until(lambda: not export(server), what="the old row is gone", every=0.3)
        call(sender, FULL, "POST", "/agents/demo/message:send", message(TEXT, "new"))
        (row,) = export(server)
        assert (row["action"], row["id"]) == ("SendMessage", 2)
        task = sender.rows.query("SELECT count(*) FROM task")
        assert task == [(2,)], "what the audit told of is still there"
