"""A test that a document names as proof is there, under that name."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS
from tests.docs.snippets import shown
from tests.harness.paths import CHECKOUT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FILES = re.compile(r"`(?:tests/durability/)?(test_\w+\.py)`")
DURABILITY = CHECKOUT / "docs" / "explanation" / "durability.md"


def names_in(file: str) -> set[str]:
    """The names of the tests in a file; none if there is no such file."""
    path = CHECKOUT / file
    if not path.is_file():
        return set()
    module = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {one.name for one in module.body if isinstance(one, functions) and one.name.startswith("test_")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_every_test_that_is_named_is_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    missing = [f"{file}::{name}" for file, name in NAMED.findall(text) if name not in names_in(file)]
    assert not missing


def test_the_page_on_durability_names_its_tests_and_files_that_are_there() -> None:
    text = DURABILITY.read_text(encoding="utf-8")
    assert len(NAMED.findall(text)) > 30
    files = set(FILES.findall(text))
    assert files
    assert not [name for name in files if not (CHECKOUT / "tests" / "durability" / name).is_file()]
