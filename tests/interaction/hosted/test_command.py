"""`dragoman approvals`, against a real server."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.harness.paths import SOURCE
from tests.interaction.following import ended, sent, state_of, texts
from tests.interaction.hosted.callers import TOKENS, Hosted
from tests.interaction.hosted.requirements import covers

Ran = subprocess.CompletedProcess[str]


def run(alice: Hosted, *words: str, who: str | None = "BOB", url: str = "") -> Ran:
    """Run the command as somebody."""
    environment = {"PYTHONPATH": str(SOURCE)}
    if who is not None:
        environment["DRAGOMAN_API_KEY"] = TOKENS[who]
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "approvals", *words, "--url", url or alice.origin],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def waiting(alice: Hosted) -> dict[str, Any]:
    """A task of alice's that waits for an approval."""
    return sent(alice, "approve Delete the backup")


@covers("approval.command")
def test_it_lists_what_waits(alice: Hosted, waiting: dict[str, Any]) -> None:
    approval = alice.by("BOB").approval_of(waiting)
    plain = run(alice, "list")
    assert (plain.returncode, plain.stderr) == (0, "")
    head, *rows = [line.split("\t") for line in plain.stdout.splitlines()]
    assert head == ["id", "agent", "for", "action", "details", "since", "until"]
    (row,) = [row for row in rows if row[0] == approval["id"]]
    assert row[1:4] == ["demo", "alice", "Delete the backup"]
    assert row[5:] == [approval["createdAt"], approval["expiresAt"]]
    printed = json.loads(run(alice, "list", "--json").stdout)
    assert approval in printed
    # Of another tenant, for which something of another test's may wait.
    others = run(alice, "list", who="GINA")
    assert others.returncode == 0
    assert approval["id"] not in others.stdout
    # Of a tenant whose agents ask for none.
    empty = run(alice, "list", who="PAT")
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", "nothing waits for an approval\n")


@covers("approval.command")
@pytest.mark.parametrize(("word", "verdict"), [("approve", "approved"), ("deny", "denied")])
def test_it_shows_what_would_be_done_and_decides_it(
    alice: Hosted, waiting: dict[str, Any], word: str, verdict: str
) -> None:
    approval_id = alice.by("BOB").approval_of(waiting)["id"]
    done = run(alice, word, approval_id, "--note", "as agreed")
    assert (done.returncode, done.stdout) == (0, f"{approval_id} is {verdict} by bob\n"), done.stderr
    assert "Delete the backup" in done.stderr
    assert '"asked": "approve Delete the backup"' in done.stderr
    assert texts(ended(alice, waiting["id"])) == [f"Delete the backup was {verdict} by bob: as agreed"]
    again = run(alice, word, approval_id)
    assert again.returncode == 1
    assert "dragoman approvals list" in again.stderr


@covers("approval.command")
def test_it_prints_json_for_programs(alice: Hosted, waiting: dict[str, Any]) -> None:
    approval = alice.by("BOB").approval_of(waiting)
    done = run(alice, "deny", approval["id"], "--json")
    assert json.loads(done.stdout) == {**approval, "decision": "deny", "decidedBy": "bob", "note": ""}
    ended(alice, waiting["id"])


@covers("approval.command")
def test_what_a_terminal_would_obey_is_not_printed(alice: Hosted) -> None:
    task = sent(alice, "approve \x1b[2J\x1b]0;owned\x07 now")
    approval_id = alice.by("BOB").approval_of(task)["id"]
    for words in (["list"], ["approve", approval_id]):
        printed = run(alice, *words)
        assert printed.returncode == 0, printed.stderr
        assert not set("\x1b\x07") & set(printed.stdout + printed.stderr)
        assert "now" in printed.stdout + printed.stderr
    ended(alice, task["id"])


@covers("approval.command")
def test_it_says_why_something_is_refused(alice: Hosted, waiting: dict[str, Any]) -> None:
    approval_id = alice.by("BOB").approval_of(waiting)["id"]
    for who, said in ((None, "DRAGOMAN_API_KEY holds no token"), ("ALICE", "a2a:approve")):
        refused = run(alice, "approve", approval_id, who=who)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert said in refused.stderr
    for who in ("GINA", "DORA"):
        assert "no approval" in run(alice, "approve", approval_id, who=who).stderr
    unreachable = run(alice, "list", url="http://127.0.0.1:9")
    assert (unreachable.returncode, "Is the server running?" in unreachable.stderr) == (1, True)
    elsewhere = run(alice, "list", url=f"{alice.origin}/nothing/here")
    assert (elsewhere.returncode, "404" in elsewhere.stderr) == (1, True)
    assert state_of(alice, waiting["id"]) == "TASK_STATE_INPUT_REQUIRED"
