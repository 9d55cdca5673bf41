"""`python -m tests.docs.generate`: write the generated parts of the documents anew."""

import re
import sys
from pathlib import Path

from tests.docs.documents import DOCUMENTS
from tests.docs.pages import PARTS

_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fresh(document: Path) -> str:
    """Return the text of a document with its generated parts made anew."""
    return _PART.sub(
        lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n{part[3]}", document.read_text(encoding="utf-8")
    )


def generated() -> dict[str, Path]:
    """Return the document that holds each generated part."""
    return {part[2]: path for path in DOCUMENTS for part in _PART.finditer(path.read_text(encoding="utf-8"))}


def main() -> int:
    """Write what is stale."""
    for document in DOCUMENTS:
        text = fresh(document)
        if text != document.read_text(encoding="utf-8"):
            document.write_text(text, encoding="utf-8")
            print(f"written: {document}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
