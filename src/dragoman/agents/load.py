"""Loading agents: from a Python file, or from `module:attribute`."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from dragoman.agents.agent import Agent, AgentError


def load_file(path: Path) -> list[Agent]:
    """Return the agents that a Python file defines at its top level, in order.

    Raises:
        AgentError: the file is missing, fails to import, defines no agent, or one without a handler. The message
            names file and line.
    """
    if not path.is_file():
        raise AgentError(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(f"dragoman_agents_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise AgentError(f"{path}: not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        # So that an agent file can import its neighbours, as it could when run by itself.
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (
        Exception,
        SystemExit,
    ) as error:  # whatever the file does wrong is told to its author, with the place
        raise AgentError(_place(error, path)) from error
    return _checked(_agents(module), str(path))


def load_attribute(reference: str) -> Agent:
    """Return the agent at `module:attribute` (or `file.py:attribute`).

    Raises:
        AgentError: there is none; the message says what was found instead.
    """
    source, _, attribute = reference.rpartition(":")
    if not source:
        raise AgentError(f"{reference!r} must have the form module:attribute or file.py:attribute")
    if source.endswith(".py"):
        found = [agent for agent in load_file(Path(source)) if _named(source, attribute) is agent]
        if not found:
            raise AgentError(f"{source}: has no agent named {attribute}")
        return found[0]
    try:
        module = importlib.import_module(source)
    except (Exception, SystemExit) as error:  # as above
        raise AgentError(_place(error, Path(source))) from error
    agent = getattr(module, attribute, None)
    if not isinstance(agent, Agent):
        raise AgentError(f"{source} has no agent named {attribute!r}; it has {_names(module) or 'none'}")
    return _checked([agent], source)[0]


def check_ids(agents: Sequence[Agent]) -> None:
    """Make sure that no two agents have one id.

    Raises:
        AgentError: two have; the message names both places.
    """
    places: dict[str, str] = {}
    for agent in agents:
        if agent.id in places:
            raise AgentError(f"{agent.place}: the agent id {agent.id!r} is taken by {places[agent.id]}")
        places[agent.id] = agent.place


def _named(source: str, attribute: str) -> object:
    return getattr(sys.modules.get(f"dragoman_agents_{Path(source).stem}"), attribute, None)


def _agents(module: ModuleType) -> list[Agent]:
    seen: list[Agent] = []
    for value in vars(module).values():
        if isinstance(value, Agent) and value not in seen:
            seen.append(value)
    return seen


def _names(module: ModuleType) -> str:
    return ", ".join(name for name, value in vars(module).items() if isinstance(value, Agent))


def _checked(agents: list[Agent], source: str) -> list[Agent]:
    if not agents:
        raise AgentError(
            f"{source}: defines no agent. Put `agent = Agent(id=..., ...)` with a handler at its top level, "
            "or `agent = Agent.from_function(f)`"
        )
    for agent in agents:
        if not agent.has_handler:
            raise AgentError(
                f"{agent.place}: agent {agent.id!r} has no handler. Write one below it: "
                "@agent.handler, then async def answer(run): ..."
            )
    return agents


def _place(error: BaseException, path: Path) -> str:
    if isinstance(error, AgentError):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"{error.filename or path}:{error.lineno or 1}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    place = f"{path}:{inside[-1].lineno}" if inside else str(path)
    return f"{place}: {type(error).__name__}: {error}"
