"""Every snippet of every document works, and gives what is shown."""

from pathlib import Path

import pytest

from tests.docs import snippets
from tests.docs.documents import DOCUMENTS
from tests.docs.reading import Reading


@pytest.mark.needs("bash", "curl")
@pytest.mark.timeout(600)  # the first one may have to make the SDK's environment
@pytest.mark.parametrize("document", DOCUMENTS, ids=snippets.shown)
def test_a_reader_who_follows_the_document_gets_what_it_shows(document: Path, tmp_path: Path) -> None:
    with Reading(document, tmp_path / "reader") as reading:
        for snippet in snippets.read(document):
            reading.follow(snippet)
        reading.end()
