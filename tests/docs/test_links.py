"""Links between documents lead to files and headings that are there, and every document can be reached."""

from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, LINKED
from tests.docs.links import anchors, wrong_links
from tests.docs.snippets import shown
from tests.harness.paths import CHECKOUT

INDEX = CHECKOUT / "docs" / "README.md"


@pytest.mark.parametrize("document", LINKED, ids=shown)
def test_every_link_leads_somewhere(document: Path) -> None:
    assert not list(wrong_links(document))


def test_the_index_names_every_document() -> None:
    text = INDEX.read_text(encoding="utf-8")
    documents = [
        path.relative_to(INDEX.parent).as_posix() for path in DOCUMENTS if INDEX.parent in path.parents
    ]
    missing = [path for path in documents if path != "README.md" and f"({path})" not in text]
    assert not missing


def test_a_wrong_file_and_a_wrong_heading_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# There\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n[a](other.md#there) [b](other.md) [c](https://example.com/x)\n"
        "[d](none.md)\n[e](other.md#here), [f](#a) [g](#b)\n```text example\n[h](none.md)\n```\n",
        encoding="utf-8",
    )
    assert [line.partition("page.md:")[2].partition(": ")[0] for line in wrong_links(page)] == ["3", "4", "4"]


def test_headings_get_the_anchors_that_viewers_give_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# `dragoman tasks list`\n## It's a 1.0 [link](x.md)!\n## Twice\n## Twice\n", encoding="utf-8"
    )
    assert anchors(page) == {"dragoman-tasks-list", "its-a-10-link", "twice", "twice-1"}
