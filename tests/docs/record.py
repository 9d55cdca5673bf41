"""`python -m tests.docs.record [--again] DOCUMENT …`: follow documents, and write what came into outputs that differ.

For whoever writes documents: put an empty output after a command, record, and read what came with care: from then on
it is what the tests ask for. An id that stands alone in the empty output is used for the first id that comes. Outputs
that hold already are left as they are; with `--again` they are laid out anew, if they hold no `…`.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.docs import snippets
from tests.docs.comparing import ANY, Bindings, Event, read_stream, varying
from tests.docs.reading import Reading
from tests.docs.snippets import Snippet, SnippetError

WIDTH = 116
_OUTPUTS = {("text", "output"), ("json", "output"), ("text", "stream")}


def record(document: Path, *, again: bool) -> int:
    """Follow one document, write down what came, and return how many outputs were changed.

    Raises:
        SnippetError: something other than an output is wrong.
    """
    changed: list[tuple[Snippet, str]] = []
    with tempfile.TemporaryDirectory() as folder, Reading(document, Path(folder) / "reader") as reading:
        for snippet in snippets.read(document):
            is_output = (snippet.language, snippet.kind) in _OUTPUTS
            try:
                reading.follow(snippet)
                holds = True
            except SnippetError:
                if not is_output:
                    raise
                holds = False
            if is_output and (not holds or (again and ANY not in snippet.text)):
                changed.append((snippet, _shown(snippet, reading.output, reading.bindings)))
        reading.end()
    lines = document.read_text(encoding="utf-8").splitlines(keepends=True)
    for snippet, text in reversed(changed):
        lines[snippet.line : snippet.end - 1] = [text]
    document.write_text("".join(lines), encoding="utf-8")
    return len(changed)


def _shown(snippet: Snippet, output: str, bindings: Bindings) -> str:
    if snippet.language == "json":
        text = layout(json.loads(output)) + "\n"
    elif snippet.kind == "stream":
        text = "\n".join(_event(event) for event in read_stream(output))
    else:
        text = "".join(f"{line.rstrip()}\n" for line in output.strip("\n").splitlines())
    return bindings.to_shown(text, varying(snippet.text))


def _event(event: Event) -> str:
    lines = []
    for name, value in event.items() if isinstance(event, dict) else ():
        text = value if isinstance(value, str) else layout(value, len(name) + 2).replace("\n", "\n  ")
        lines.append(f"{name}: {text}".rstrip() + "\n")
    return "".join(lines)


def layout(value: Any, used: int = 0, indent: int = 0) -> str:
    """Return JSON text that is broken only where it does not fit on a line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + used + indent <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    begin, close = ("{", "}") if isinstance(value, dict) else ("[", "]")
    *before, last = _items(value, used + 1, indent)
    if isinstance(value, dict) and not any(isinstance(one, dict | list) for one in [*value.values()][:-1]):
        head = "".join(f"{item}, " for item in before)
        if len(head) + used + indent + len(last.partition("\n")[0]) < WIDTH:
            return f"{begin}{head}{last}{close}"
    elif len(value) == 1:
        return f"{begin}{last}{close}"
    gap = "\n" + " " * (indent + 2)
    return f"{begin}{gap}{f',{gap}'.join(_items(value, 1, indent + 2))}\n{' ' * indent}{close}"


def _items(value: dict[str, Any] | list[Any], used: int, indent: int) -> list[str]:
    if isinstance(value, list):
        return [layout(one, used, indent) for one in value]
    names = {name: json.dumps(name, ensure_ascii=False) + ": " for name in value}
    return [names[name] + layout(one, used + len(names[name]), indent) for name, one in value.items()]


def main(arguments: list[str]) -> int:
    """Record the documents that are named."""
    again = "--again" in arguments
    for name in arguments:
        if name == "--again":
            continue
        try:
            print(f"{name}: {record(Path(name).resolve(), again=again)} outputs written")
        except SnippetError as error:
            print(error, file=sys.stderr)
            return 1
    return 0 if arguments else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
