"""What the pages say of the hosted profile is so: its numbers, and what took the place of each retired path."""

import re
from pathlib import Path

import pytest

from dragoman import config
from dragoman.bindings.approvals import LONGEST_TEXT
from dragoman.bindings.hosted import BODY_LIMIT
from dragoman.bindings.retired import RETIRED
from dragoman.gateway.access import LOOK
from dragoman.gateway.approvals import LONGEST_NOTE
from dragoman.gateway.policy import HOSTED
from dragoman.stores.sqlite.ownership import HEARTBEAT_SECONDS
from tests.harness.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "reference" / "hosted.md"
APPROVALS = CHECKOUT / "docs" / "how-to" / "approvals.md"
RECORD = CHECKOUT / "docs" / "decisions" / "0014-the-hosted-profile-is-rules-over-the-same-gateway.md"
CHANGES = CHECKOUT / "CHANGELOG.md"
OBSERVERS = config.Observers()

NUMBERS = [
    (PAGE, r"1 to (\d+) parts", HOSTED.text_only.parts if HOSTED.text_only else 0),
    (PAGE, r"\| text \| ([\d,]+) Unicode", HOSTED.text_only.characters if HOSTED.text_only else 0),
    (PAGE, r"\| body \| (\d+) KiB", BODY_LIMIT / 1024),
    (PAGE, r"holds up to (\d+) MiB", (HOSTED.result_bytes or 0) / 1024 / 1024),
    (PAGE, r"ends after (\d+) seconds", config.seconds(OBSERVERS.window, "window")),
    (PAGE, r"or for (\d+) seconds; then", config.seconds(OBSERVERS.window, "window")),
    (PAGE, r"a principal has (\d+) of them", OBSERVERS.principal),
    (PAGE, r"a tenant (\d+), and everybody", OBSERVERS.tenant),
    (PAGE, r"and everybody (\d+) \(", OBSERVERS.everybody),
    (PAGE, r"`text` has 1 to ([\d,]+) characters", LONGEST_TEXT),
    (APPROVALS, r"up to ([\d,]+) characters; may", LONGEST_NOTE),
]


@pytest.mark.parametrize(("page", "sentence", "value"), NUMBERS)
def test_a_number_is_that_of_the_code(page: Path, sentence: str, value: float) -> None:
    found = re.findall(sentence, page.read_text(encoding="utf-8"))
    assert {float(one.replace(",", "")) for one in found} == {float(value)}


def test_streams_end_within_the_time_that_the_page_says() -> None:
    (seconds,) = re.findall(r"Live streams end within (\d+) seconds", PAGE.read_text(encoding="utf-8"))
    assert float(seconds) >= LOOK + HEARTBEAT_SECONDS, (
        "what another process changed is noticed by the heartbeat"
    )


def test_an_hour_is_the_deadline_of_a_run() -> None:
    assert config.seconds(config.Hosted().deadline, "hosted.deadline") == 3600


@pytest.mark.parametrize("page", [PAGE, RECORD, CHANGES], ids=lambda page: page.name)
@pytest.mark.parametrize("path", RETIRED)
def test_every_retired_path_is_named_with_what_took_its_place(path: str, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    name = path.replace("{id}", "ID")
    assert name in text or f"/{name.rpartition('/')[2]}" in text
    methods, _ = RETIRED[path]
    assert all(method in text for method in methods)
