"""`dragoman send` with a token: where it comes from, to whom it is shown, and that nobody else sees it."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.harness.paths import SOURCE
from tests.security.conftest import FULL, READ, Sender

Ran = subprocess.CompletedProcess[str]


def send(sender: Sender, *words: str, agent: str = "ours", **variables: str) -> Ran:
    """Run the command."""
    return run(f"{sender.server.url}/agents/{agent}", "hello", *words, variables=variables)


def run(*words: str, variables: Mapping[str, str]) -> Ran:
    command = [sys.executable, "-m", "dragoman", "send", *words]
    environment = {"PYTHONPATH": str(SOURCE), **variables}
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip


@pytest.mark.parametrize("words", [(), ("--stream",), ("--json",)])
def test_the_usual_variable_is_shown_to_an_agent_on_this_machine(
    sender: Sender, words: tuple[str, ...]
) -> None:
    done = send(sender, *words, DRAGOMAN_API_KEY=f" {FULL}\n")
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    assert FULL not in done.stdout + done.stderr


def test_another_variable_can_be_named(sender: Sender) -> None:
    done = send(sender, "--token-env", "MY_TOKEN", MY_TOKEN=FULL, DRAGOMAN_API_KEY=READ)
    assert (done.returncode, done.stdout) == (0, "hello\n")


def test_a_token_that_allows_too_little_is_told_with_its_scope(sender: Sender) -> None:
    done = send(sender, DRAGOMAN_API_KEY=READ)
    assert done.returncode == 1
    assert "answered 403: This credential lacks the scope a2a:delegate" in done.stderr
    assert READ not in done.stderr


def test_without_a_token_the_option_is_named(sender: Sender) -> None:
    done = send(sender)
    assert done.returncode == 1
    assert done.stderr.endswith("; name the variable that holds a token with --token-env, such as --token-env "
                                "DRAGOMAN_API_KEY\n")  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "the environment variable MY_TOKEN holds no token"),
        ({"MY_TOKEN": " "}, "the environment variable MY_TOKEN holds no token"),
        ({"MY_TOKEN": "two words-that-are-secret"}, "MY_TOKEN holds something that is no token"),
        ({"MY_TOKEN": "a-secret\r\nX-Other: 1"}, "MY_TOKEN holds something that is no token"),
    ],
)
def test_what_is_no_token_is_not_sent_and_not_printed(
    sender: Sender, variables: dict[str, str], said: str
) -> None:
    done = send(sender, "--token-env", "MY_TOKEN", DRAGOMAN_API_KEY=FULL, **variables)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"dragoman: {said}\n")


def test_there_is_no_way_to_say_a_token_on_the_command_line(sender: Sender) -> None:
    done = send(sender, "--token", FULL)
    assert done.returncode == 2
    assert "No such option: --token" in done.stderr
