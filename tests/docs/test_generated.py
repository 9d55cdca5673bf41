"""The generated parts of the reference are fresh, and what people wrote for them is whole."""

import re
from pathlib import Path

import pytest

from dragoman.agents import child
from dragoman.agents.command import LONGEST_LINE
from dragoman.egress.client import TOTAL_SECONDS
from dragoman.engines.agent_loop import GRACE
from dragoman.gateway.observe import MAX_EVENTS
from dragoman.gateway.query import HISTORY
from dragoman.gateway.send import WINDOW
from dragoman.gateway.subscribe import HEARTBEAT_SECONDS
from dragoman.model.push import MOST_CONFIGS
from dragoman.outbound.webhooks import TRIES
from dragoman.protocol.requests import LONGEST_ID
from dragoman.protocol.v0_3 import SPEC
from dragoman.stores.sqlite.ownership import HEARTBEAT_TIMEOUT_MS
from tests.docs import pages, words
from tests.docs.documents import DOCUMENTS
from tests.docs.generate import fresh, generated
from tests.docs.snippets import shown
from tests.harness.paths import CHECKOUT

GENERATE = "run `PYTHONPATH=src:. .venv/bin/python -m tests.docs.generate`"


def test_every_part_stands_in_the_reference() -> None:
    assert generated().keys() == pages.PARTS.keys()


@pytest.mark.parametrize("document", sorted(set(generated().values())), ids=shown)
def test_the_part_is_fresh(document: Path) -> None:
    assert document.read_text(encoding="utf-8") == fresh(document), GENERATE


def test_every_configuration_key_has_a_meaning_and_no_other() -> None:
    assert words.KEYS.keys() == pages.keys()
    assert pages.keys() >= words.UNSET.keys()


def test_every_error_has_a_remedy_and_no_other() -> None:
    names = {kind.__name__ for kind in pages.error_kinds()}
    assert words.REMEDIES.keys() == names


def test_every_error_stands_in_the_reference_once() -> None:
    reasons = re.findall(r"^\| `([A-Z0-9_]+)` \|", pages.errors_part(), re.MULTILINE)
    assert sorted(reasons) == sorted(kind.reason for kind in pages.error_kinds())


def test_every_method_of_0_3_has_params_and_a_result_and_no_other() -> None:
    assert words.METHODS.keys() == SPEC.jsonrpc.methods.keys()


NUMBERS = [
    ("how-to/streaming.md", r"for (\d+) seconds, the line `: keep-alive`", HEARTBEAT_SECONDS),
    ("how-to/streaming.md", r"more than (\d+) events", MAX_EVENTS),
    ("how-to/without-code.md", r"or after (\d+) seconds, what is left", child.GRACE),
    ("how-to/without-code.md", r"for (\d+) seconds after its end", child.GRACE),
    ("how-to/without-code.md", r"up to (\d+) characters and", LONGEST_LINE),
    ("how-to/cancel.md", r"Cleaning up may take (\d+) seconds", GRACE),
    ("how-to/configuration.md", r"waits for up to (\d+) seconds", WINDOW),
    ("how-to/multi-part.md", r"give up to (\d+) messages", HISTORY),
    ("how-to/multi-part.md", r"text of up to (\d+) characters", LONGEST_ID),
    ("how-to/operate.md", r"hangs for (\d+) seconds", HEARTBEAT_TIMEOUT_MS / 1000),
    ("how-to/durable-steps.md", r"hangs for more than (\d+) seconds", HEARTBEAT_TIMEOUT_MS / 1000),
    ("reference/http.md", r"for (\d+) seconds, the comment", HEARTBEAT_SECONDS),
    ("reference/http-operations.md", r"for up to (\d+) seconds; then", WINDOW),
    ("how-to/webhooks.md", r"up to (\d+) configurations", MOST_CONFIGS),
    ("how-to/webhooks.md", r"sent (\d+) times", TRIES),
    ("how-to/webhooks.md", r"within (\d+) seconds, or", TOTAL_SECONDS),
    ("reference/http-operations.md", r"0: none; left out: (\d+) ", HISTORY),
]


@pytest.mark.parametrize(("name", "sentence", "value"), NUMBERS)
def test_a_number_in_a_sentence_is_that_of_the_code(name: str, sentence: str, value: float) -> None:
    found = re.findall(sentence, (CHECKOUT / "docs" / name).read_text(encoding="utf-8"))
    assert {float(one) for one in found} == {float(value)}


def test_every_document_begins_with_its_title() -> None:
    assert not [path for path in DOCUMENTS if not path.read_text(encoding="utf-8").startswith("# ")]


@pytest.mark.parametrize("example", sorted((CHECKOUT / "examples").glob("*.py")), ids=shown)
def test_an_example_is_short_explained_and_part_of_a_document(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert text.count("\n") <= 40
    fence = f"```python agent={example.name} example\n{text}```"
    assert any(fence in document.read_text(encoding="utf-8") for document in DOCUMENTS)
