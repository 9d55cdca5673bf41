"""The reference of remote agents says what the code does: its paths, its numbers, and its statuses."""

import re
from pathlib import Path

import pytest

from dragoman.bindings.delegations import DELEGATIONS, TASKS
from dragoman.bindings.remotes import AGENTS, LARGEST_PAGE, PAGE
from dragoman.egress.client import CONNECT_SECONDS, TOTAL_SECONDS
from dragoman.gateway.delegate import MOST_OF_TENANT, MOST_UNDER_WAY
from dragoman.gateway.remotes import (
    FAILED,
    LONGEST_NAME,
    LONGEST_TOKEN,
    MOST_REMOTES,
    SENDING,
    UNKNOWN,
)
from dragoman.protocol.requests import LONGEST_ID
from tests.harness.paths import CHECKOUT

REFERENCE = CHECKOUT / "docs" / "reference" / "remotes.md"
GUIDE = CHECKOUT / "docs" / "how-to" / "call-other-agents.md"

NUMBERS = [
    (REFERENCE, r"`limit` \((\d+), at most", PAGE),
    (REFERENCE, r"at most (\d+)\), `after`", LARGEST_PAGE),
    (REFERENCE, r"1 to ([\d,]+) printable characters\.", LONGEST_NAME),
    (REFERENCE, r"1 to ([\d,]+) printable ASCII", LONGEST_TOKEN),
    (REFERENCE, r"up to ([\d,]+) registrations", MOST_REMOTES),
    (REFERENCE, r"1 to (\d+) characters; the id of the message", LONGEST_ID),
    (REFERENCE, r"(\d+) seconds for a connection", CONNECT_SECONDS),
    (REFERENCE, r"(\d+) for the whole reply", TOTAL_SECONDS),
    (REFERENCE, r"(\d+) delegations of a tenant are sent", MOST_OF_TENANT),
    (REFERENCE, r"and (\d+) of\s+everybody", MOST_UNDER_WAY),
    (GUIDE, r"take longer than (\d+) seconds", TOTAL_SECONDS),
]


@pytest.mark.parametrize(("page", "sentence", "value"), NUMBERS)
def test_a_number_is_that_of_the_code(page: Path, sentence: str, value: float) -> None:
    found = re.findall(sentence, page.read_text(encoding="utf-8"))
    assert {float(one.replace(",", "")) for one in found} == {float(value)}


def test_every_path_is_in_the_reference() -> None:
    shown = set(re.findall(r"\| `(/v1/a2a/[^`]+)` \| [A-Z]", REFERENCE.read_text(encoding="utf-8")))
    one, delegation = f"{AGENTS}/ID", f"{DELEGATIONS}ID"
    assert shown == {AGENTS, one, f"{one}:discover", TASKS, delegation, f"{delegation}:reconcile"}


@pytest.mark.parametrize("status", [FAILED, SENDING, UNKNOWN, "completed"])
def test_every_status_that_is_no_state_is_explained(status: str) -> None:
    assert f"| `{status}` |" in REFERENCE.read_text(encoding="utf-8")
