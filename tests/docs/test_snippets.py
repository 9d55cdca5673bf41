"""The reader itself: snippets that are wrong are found, and what differs from run to run is not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs import snippets
from tests.docs.commands import serve_command
from tests.docs.comparing import Bindings, Mismatch, compare_json, compare_stream, compare_text, read_stream
from tests.docs.reading import Reading
from tests.docs.record import layout
from tests.docs.snippets import SnippetError

FIRST, SECOND, THIRD = (f"01a2294b-9f4a-7000-b3cd-0808fe62e1e{digit}" for digit in "123")


def follow(folder: Path, text: str) -> Reading:
    """Follow a document."""
    document = folder / "page.md"
    document.write_text(text, encoding="utf-8")
    with Reading(document, folder / "reader") as reading:
        for snippet in snippets.read(document):
            reading.follow(snippet)
        reading.end()
    return reading


def fence(info: str, body: str = "") -> str:
    """Return a fenced snippet."""
    return f"```{info}\n{body}```\n"


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (fence("sh"), "not one of"),
        (fence("", "x\n"), "not one of"),
        (fence("rust run"), "not one of"),
        (fence("sh execute"), "not one of"),
        (fence("sh run=x"), "takes no"),
        (fence("python agent"), "needs"),
        (fence("sh run retry=3"), "no option 'retry'"),
        ("```sh run\necho\n", "no closing fence"),
        (fence("sh run", "false\n"), "exit code 1, not 0"),
        (fence("sh run exit=2", "exit 3\n"), "exit code 3, not 2"),
        (fence("sh syntax", "if true; then\n"), "syntax error"),
        (fence("sh run", "echo a\n") + fence("text output", "b\n"), "shown: b"),
        (fence("sh run", "echo a; echo b\n") + fence("text output", "a\n"), "more came"),
        (fence("sh run", "echo a\n") + fence("json output", "{}\n"), "not JSON"),
        (fence("json example", "{,}\n"), "not JSON"),
        (fence("json file=a.json", "{}\n"), "nothing after it in the document uses a.json"),
        (fence("toml config", "[server]\nlitsen = 1\n"), "did you mean listen"),
        (fence("toml config refused", "[server]\n"), "is not refused"),
        (fence("python sdk", "def\n"), "line 1"),
        (fence("python sdk-0.3", "import a2a.helpers\n"), "exit code 1, not 0"),
        (fence("python signature", "def f(: ...\n"), "line 1"),
        (fence("sh kill", "kill 1\n"), "no server runs"),
        (fence("sh serve", "python -m http.server\n"), "must be `dragoman serve"),
        (fence("text help=serve", "Usage\n"), "stale"),
        (fence("text diagram", "x" * 111 + "\n"), "wider"),
        (fence("python agent=files.py example", "x = 1\n"), "is not what examples/files.py holds"),
    ],
)
def test_a_wrong_snippet_is_found_with_its_place(tmp_path: Path, text: str, finding: str) -> None:
    with pytest.raises(SnippetError, match=r"page\.md:\d+: ") as caught:
        follow(tmp_path, text)
    assert finding in str(caught.value)


def test_snippets_in_lists_and_with_longer_fences_are_read_whole(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "- a\n\n  ```sh run\n  echo a\n    echo b\n  ```\n\n````text example\n```\n````\n", encoding="utf-8"
    )
    assert [one.text for one in snippets.read(page)] == ["echo a\n  echo b\n", "```\n"]
    assert [line for line in snippets.outside(page) if line[1]] == [(1, "- a")]


def test_variables_and_files_stay_for_later_snippets(tmp_path: Path) -> None:
    text = fence("text file=note.txt", "words\n") + fence("sh run", "name=note.txt\n")
    text += fence("sh run", "cat $name\n") + fence("text output", "words\n")
    assert follow(tmp_path, text).output == "words\n"


AGENT = """
from dragoman import Agent
one, two = (Agent.from_function(lambda text: text, id=id) for id in ("one", "two"))
"""


def test_an_agent_that_is_served_and_never_called_is_found(tmp_path: Path) -> None:
    text = fence("python agent=a.py", AGENT) + fence("sh serve", "dragoman serve a.py\n")
    with pytest.raises(SnippetError, match="serves the agent two and never calls it"):
        follow(tmp_path, text + fence("sh run", "dragoman send one abc\n"))


def test_a_serve_line_is_taken_apart(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    line = "DRAGOMAN_SERVER_DRAIN=5s dragoman serve a.py \\\n  b.py --config c.toml --data d 2> e.log  # so\n"
    page.write_text(fence("sh serve", line), encoding="utf-8")
    wanted = serve_command(snippets.read(page)[0])
    assert (wanted.agents, wanted.config, wanted.data, wanted.log) == (
        ["a.py", "b.py"],
        "c.toml",
        "d",
        "e.log",
    )
    assert wanted.environment == {"DRAGOMAN_SERVER_DRAIN": "5s"}


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        (f"{FIRST} and {FIRST}", f"{SECOND} and {SECOND}"),
        ("at 2026-01-31T12:00:00.000Z", "at 2027-02-01T00:00:00.123Z"),
        ("date: Sun, 29 Nov 2026 21:38:05 GMT", "date: Mon, 30 Nov 2026 01:02:03 GMT"),
        ("x-request-id: f24105979b-47", "x-request-id: 0123456789-1"),
        ("content-length: 12", "content-length: 400"),
        ("from …/demo.py", "from /somewhere/else/demo.py"),
        ("a\n…\nd\n", "a\nb\nc\nd\n"),
        ("a\n…\nd\n", "a\nd\n"),
        ("a  \n", "a"),
    ],
)
def test_what_differs_from_run_to_run_is_the_same(shown: str, came: str) -> None:
    compare_text(shown, came, Bindings())


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        (f"{FIRST} and {FIRST}", f"{SECOND} and {THIRD}"),
        (f"{FIRST} and {SECOND}", f"{THIRD} and {THIRD}"),
        ("status 200", "status 404"),
        ("a\n…\nd\n", "a\nb\n"),
        ("content-type: 12", "content-type: 400"),
    ],
)
def test_what_says_something_else_is_not(shown: str, came: str) -> None:
    with pytest.raises(Mismatch):
        compare_text(shown, came, Bindings())


@pytest.mark.parametrize(
    ("shown", "came", "same"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, True),
        ({"a": 1, "…": "…"}, {"a": 1, "b": 2}, True),
        ({"a": "…"}, {"a": [1, 2]}, True),
        ({"ms": 1.5}, {"ms": 30.25}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "…": "…"}, {"b": 1}, False),
        ({"a": 1}, {"a": 2}, False),
        ({"a": True}, {"a": 1}, False),
        ([1], [1, 2], False),
        ({"id": FIRST, "in": [FIRST]}, {"id": SECOND, "in": [THIRD]}, False),
    ],
)
def test_json_is_compared_member_by_member(shown: Any, came: Any, same: bool) -> None:
    def compare() -> None:
        compare_json(shown, came, Bindings())

    _expect(compare, same)


def test_a_command_is_run_with_the_id_that_came_in_the_place_of_the_shown_one() -> None:
    bindings = Bindings()
    compare_text(f"task {FIRST}", f"task {SECOND}", bindings)
    assert bindings.to_actual(f"show {FIRST}, not {THIRD}") == f"show {SECOND}, not {THIRD}"


STREAM = (
    'id: 1\ndata: {"task": {\n    "id": "a"\n  }}\n\n…\n\n: keep-alive\n\nevent: error\ndata: {"error": 1}\n'
)


def test_the_data_of_a_shown_stream_may_be_broken_over_lines() -> None:
    first, any_number, _, last = read_stream(STREAM)
    assert (first, any_number) == ({"id": "1", "data": {"task": {"id": "a"}}}, "…")
    assert last == {"event": "error", "data": {"error": 1}}


@pytest.mark.parametrize(("came", "same"), [("1 2 3 9", True), ("1 9", True), ("1 8", False), ("9", False)])
def test_events_may_be_left_out_of_a_shown_stream(came: str, same: bool) -> None:
    shown = list(read_stream("data: 1\n\n…\n\ndata: 9\n"))
    events = list(read_stream("\n\n".join(f"data: {number}" for number in came.split())))
    _expect(lambda: compare_stream(shown, events, Bindings()), same)


def test_recorded_json_is_the_same_json() -> None:
    value = {"a": [{"b": "x" * 60, "c": ["y" * 60, 1.5, None]}], "d": {}, "e": {"f": {"g": "z" * 120}}}
    assert json.loads(layout(value)) == value
    assert layout({"a": [1, {"b": 2}]}) == '{"a": [1, {"b": 2}]}'


def _expect(compare: Callable[[], None], same: bool) -> None:
    if same:
        compare()
    else:
        with pytest.raises(Mismatch):
            compare()
