"""Loading agents: what is wrong is told with file and line."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.agents import Agent, AgentError
from dragoman.agents.load import load_attribute, load_file

HEAD = "from dragoman import Agent\n"
GOOD = HEAD + "one = Agent.from_function(lambda text: text, id='one')\n"


@pytest.fixture(autouse=True)
def _unchanged_imports() -> Iterator[None]:
    """Leave the import path and the loaded modules as they were."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def file(folder: Path, text: str, name: str = "agents.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(AgentError) as refusal:
        load_file(path)
    return str(refusal.value)


def test_the_agents_of_a_file_are_loaded_in_order_and_once(tmp_path: Path) -> None:
    text = GOOD + "two = Agent.from_function(lambda text: text, id='two')\nalso_one = one\nother = 5\n"
    assert [agent.id for agent in load_file(file(tmp_path, text))] == ["one", "two"]


def test_an_agent_of_a_file_has_its_place_there(tmp_path: Path) -> None:
    path = file(tmp_path, HEAD + "\n\nagent = Agent(id='a')\n@agent.handler\nasync def f(run): ...\n")
    (agent,) = load_file(path)
    assert agent.place == f"{path}:4"


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    file(tmp_path, "ID = 'neighbour'\n", "neighbour_of_agents.py")
    text = (
        HEAD + "from neighbour_of_agents import ID\nagent = Agent.from_function(lambda text: text, id=ID)\n"
    )
    assert [agent.id for agent in load_file(file(tmp_path, text))] == ["neighbour"]


def test_two_files_of_one_name_do_not_disturb_each_other(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = file(tmp_path, GOOD)
    other = file(tmp_path / "other", GOOD.replace("one", "other"))
    assert [agent.id for path in (one, other, one) for agent in load_file(path)] == ["one", "other", "one"]


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "missing.py"
    assert refused(path) == f"{path}: there is no such file"
    assert refused(tmp_path) == f"{tmp_path}: there is no such file"


def test_a_file_that_is_not_python_by_its_name_is_refused(tmp_path: Path) -> None:
    assert "its name must end in .py" in refused(file(tmp_path, GOOD, "agents.txt"))


@pytest.mark.parametrize(
    ("text", "line", "kind"),
    [
        (HEAD + "\nagent = Agent(id=\n", 3, "SyntaxError"),
        (HEAD + "def f(:\n    pass\n", 2, "SyntaxError"),
        (HEAD + "if True:\nx = 1\n", 3, "IndentationError"),
        (HEAD + "\n\nraise RuntimeError('no model')\n", 4, "RuntimeError: no model"),
        (HEAD + "import a_module_that_is_nowhere\n", 2, "ModuleNotFoundError"),
        (HEAD + "def make():\n    return 1 / 0\n\nagent = make()\n", 3, "ZeroDivisionError"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError"),
        ("agent = Agent()\n", 1, "NameError"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_file_and_line(
    tmp_path: Path, text: str, line: int, kind: str
) -> None:
    path = file(tmp_path, text)
    said = refused(path)
    assert said.startswith(f"{path}:{line}: ")
    assert kind in said


def test_a_mistake_in_a_neighbour_is_told_with_the_neighbours_place(tmp_path: Path) -> None:
    neighbour = file(tmp_path, "x = (\n", "broken_neighbour.py")
    assert refused(file(tmp_path, HEAD + "import broken_neighbour\n")).startswith(
        f"{neighbour}:1: SyntaxError"
    )


def test_a_wrong_agent_is_told_with_its_own_place(tmp_path: Path) -> None:
    path = file(tmp_path, HEAD + "\nagent = Agent(id='Not An Id')\n")
    assert refused(path).startswith(f"{path}:3: agent 'Not An Id': id")


@pytest.mark.parametrize(
    "text", ["", HEAD, "agent = 'Agent'\n", HEAD + "def make():\n    return Agent(id='a')\n"]
)
def test_a_file_without_an_agent_is_told_how_to_write_one(tmp_path: Path, text: str) -> None:
    path = file(tmp_path, text)
    said = refused(path)
    assert said.startswith(f"{path}: defines no agent")
    assert "Agent(id=" in said and "from_function" in said


def test_an_agent_without_handler_is_told_how_to_write_one(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD + "\nagent = Agent(id='mute')\n")
    said = refused(path)
    assert said.startswith(f"{path}:4: agent 'mute' has no handler")
    assert "@agent.handler" in said


def test_an_attribute_of_a_module_is_loaded() -> None:
    agent = load_attribute("dragoman.agents.demo:demo")
    assert isinstance(agent, Agent)
    assert agent.id == "demo"


def test_an_attribute_of_a_file_is_loaded(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD + "two = Agent.from_function(lambda text: text, id='two')\n")
    assert load_attribute(f"{path}:two").id == "two"


@pytest.mark.parametrize("attribute", ["three", "Agent", "", "number"])
def test_an_attribute_of_a_file_that_is_no_agent_is_refused_by_name(tmp_path: Path, attribute: str) -> None:
    path = file(tmp_path, GOOD + "number = 5\n")
    with pytest.raises(AgentError, match=f"has no agent named {attribute}"):
        load_attribute(f"{path}:{attribute}")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("dragoman.agents.demo", "must have the form module:attribute"),
        ("", "must have the form module:attribute"),
        (":demo", "must have the form module:attribute"),
        ("dragoman.agents.demo:nothing", "no agent named 'nothing'; it has demo"),
        ("dragoman.agents.demo:answer", "no agent named 'answer'"),
        ("json:dumps", "no agent named 'dumps'; it has none"),
        ("a_module_that_is_nowhere:agent", "ModuleNotFoundError"),
        ("dragoman..agents:agent", "Error"),
        ("nowhere.py:agent", "there is no such file"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused_with_what_is_there(reference: str, said: str) -> None:
    with pytest.raises(AgentError) as refusal:
        load_attribute(reference)
    assert said in str(refusal.value)
