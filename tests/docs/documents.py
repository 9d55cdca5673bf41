"""Which documents there are."""

from tests.harness.paths import CHECKOUT

DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
"""Those whose snippets are run or checked."""

LINKED = [
    *DOCUMENTS,
    *(CHECKOUT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "tests/docs/README.md")),
]
"""Those whose links are checked."""
