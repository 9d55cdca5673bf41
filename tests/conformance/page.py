"""The page about conformance, which tests hold to what the kits find."""

from collections.abc import Iterator

from tests.harness.paths import CHECKOUT

PAGE = (CHECKOUT / "docs" / "reference" / "conformance.md").read_text(encoding="utf-8")


def table(*columns: str) -> Iterator[list[str]]:
    """The rows of the page's table with these columns."""
    head = "".join(f" {column} |" if column else " |" for column in columns)
    _, _, below = PAGE.partition(f"\n|{head}\n")
    assert below, f"the page has no table with the columns {columns}"
    for line in below.splitlines()[1:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]
