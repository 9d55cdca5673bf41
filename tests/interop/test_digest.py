"""The `digest` agent summarises the example texts for the official SDKs."""

import re
from pathlib import Path

import pytest

from tests.harness.paths import EXAMPLE_TEXTS
from tests.harness.server import ServerProcess
from tests.interop.sdks import JAVASCRIPT, PYTHON_NEW, PYTHON_OLD, Sdk, state, text

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

MARKDOWN_AS_FILE = EXAMPLE_TEXTS / "dragomans.md"
PLAIN_TEXT = EXAMPLE_TEXTS / "lighthouses.txt"


def _plain(markdown: str) -> str:
    """Words and punctuation alone: no emphasis, no line ends."""
    return " ".join(re.sub(r"[*_`]", "", markdown).split())


def _sentences(markdown: str) -> list[str]:
    """What the summary says, heading and figures left out."""
    lines = [
        line.strip() for line in markdown.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    prose = _plain(" ".join(re.sub(r"^(?:[-*>]|\d+\.)\s+", "", line) for line in lines))
    return [sentence for sentence in re.split(r"(?<=[.!?])\s+", prose) if len(sentence) >= 40]


@pytest.mark.parametrize("sdk", [*PYTHON_NEW, PYTHON_OLD[1], JAVASCRIPT[0]], ids=str)
@pytest.mark.parametrize("source", [MARKDOWN_AS_FILE, PLAIN_TEXT], ids=lambda path: path.name)
def test_digest_answers_a_shorter_markdown_text_in_sentences_of_its_source(
    server: ServerProcess, sdk: Sdk, source: Path
) -> None:
    task = sdk.drive(server.url, f"digest={source}", agent="digest")["digest"]["task"]
    assert state(task) == "TASK_STATE_COMPLETED"
    (artifact,) = task["artifacts"]
    assert {part["mediaType"] for part in artifact["parts"]} == {"text/markdown"}
    summary, original = text(artifact["parts"]), source.read_text(encoding="utf-8")
    assert len(summary) < len(original) / 2
    taken = [sentence for sentence in _sentences(summary) if sentence in _plain(original)]
    assert len(taken) >= 3, summary
