"""Links between documents: where they lead, and what is wrong with them."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs import snippets
from tests.docs.snippets import shown

_LINK = re.compile(r"(?<!!)\[(?:[^\]\\`]|\\.|`[^`]*`)*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*")
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:")


def wrong_links(document: Path) -> Iterator[str]:
    """Yield a line for each link of a document that leads nowhere; links to other hosts are not looked at."""
    for number, line in snippets.outside(document):
        if line.startswith("    "):
            continue
        for link in _LINK.finditer(line):
            place, _, anchor = link[1].partition("#")
            if _OUTSIDE.match(place):
                continue
            target = (document.parent / place).resolve() if place else document
            if not target.exists():
                yield f"{shown(document)}:{number}: {link[1]}: there is no such file"
            elif anchor and anchor not in anchors(target):
                yield f"{shown(document)}:{number}: {link[1]}: {shown(target)} has no heading #{anchor}"


def anchors(document: Path) -> set[str]:
    """Return the anchors that a Markdown viewer gives the headings of a document."""
    found: set[str] = set()
    for _, line in snippets.outside(document):
        heading = _HEADING.fullmatch(line)
        if heading is None:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        numbered = (f"{anchor}-{count}" for count in range(1, 1000))
        found.add(anchor if anchor not in found else next(one for one in numbered if one not in found))
    return found
