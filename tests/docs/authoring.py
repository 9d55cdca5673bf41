"""The part of the reference for authors of agents: signatures and words, taken from the source."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.agents import agent, called, run
from dragoman.model import card, message

_BLOCK = re.compile(r"^(Args|Raises|Attributes):$", re.MULTILINE)


def agents_part() -> str:
    """Return the classes that an author touches, each with its members."""
    pieces = [
        _heading(agent.Agent),
        _function(agent.Agent, "__init__"),
        *(_member(agent.Agent, name) for name in ("handler", "from_function", "on_startup", "on_shutdown")),
        _heading(run.Run),
        _facts(),
        *(_member(run.Run, name) for name in _acts()),
        _heading(run.BlockingRun),
        _blocking(),
        _struct(called.Called),
        *(_struct(kind) for kind in (card.Skill, card.Provider, card.Extension)),
        *(_struct(kind) for kind in (message.TextPart, message.RawPart, message.UrlPart, message.DataPart)),
        *(_struct(kind) for kind in (message.Artifact, message.Message)),
    ]
    return "\n".join(pieces)


def _heading(kind: type[Any]) -> str:
    return f"## {kind.__name__}\n\n{_words(kind)}\n"


def _member(kind: type[Any], name: str) -> str:
    return f"### {kind.__name__}.{name}\n\n{_function(kind, name)}"


def _function(kind: type[Any], name: str) -> str:
    return f"```python signature\n{_signature(kind, name)}\n```\n\n{_words(getattr(kind, name))}\n"


def _signature(kind: type[Any], name: str) -> str:
    """Return a method's `def` as it stands in the source, decorators and body left out; of overloads each one's."""
    *overloads, node = _methods(kind, name)
    source = _lines(kind)
    if overloads:
        lines = [source[one.lineno - 1].strip() for one in overloads]
        return "\n".join(lines)
    lines = source[node.lineno - 1 : node.body[0].lineno - 1]
    return textwrap.dedent("\n".join(lines)).rstrip() + " ..."


def _words(thing: Any) -> str:
    """Return a docstring as Markdown: its blocks of names become lists."""
    text = inspect.getdoc(thing) or ""
    pieces = _BLOCK.split(text)
    found = pieces[0].rstrip()
    for title, block in zip(pieces[1::2], pieces[2::2], strict=True):
        body, _, rest = block.strip("\n").partition("\n\n")
        items = re.split(r"\n(?=\S)", textwrap.dedent(body))
        lines = [re.sub(r"\s*\n\s*", " ", item) for item in items]
        found += f"\n\n{title}:\n\n" + "\n".join(
            f"- `{one.replace(':', '`:', 1)}" if ":" in one else f"- {one}" for one in lines
        )
        found += f"\n\n{textwrap.dedent(rest)}" if rest else ""
    return re.sub(r"(?m)^    (.*)$", r"    \1", found)


def _facts() -> str:
    """Return the table of what both kinds of Run know."""
    rows = [
        f"| `run.{name}` | `{_returns(node)}` | {_first(getattr(run.Run, name))} |"
        for name, node in _properties(run.Run)
    ]
    return (
        "| fact | type | meaning |\n|---|---|---|\n"
        + "\n".join(row.replace(" | None", " or None") for row in rows)
        + "\n"
    )


def _blocking() -> str:
    names = [name for name in _acts() if hasattr(run.BlockingRun, name)]
    same = ", ".join(f"`{name}`" for name in names)
    own = [name for name in vars(run.BlockingRun) if name not in vars(run.Run) and not name.startswith("_")]
    pieces = [f"The same, not awaited: {same}.\n", f"`run.cancelled`: {_words(run.BlockingRun.cancelled)}\n"]
    return "\n".join([*pieces, *(_member(run.BlockingRun, name) for name in own)])


def _acts() -> list[str]:
    return [name for name, one in vars(run.Run).items() if inspect.iscoroutinefunction(one)]


def _properties(kind: type[Any]) -> Iterator[tuple[str, ast.FunctionDef]]:
    for one in reversed(kind.__mro__):
        for name, value in vars(one).items():
            if isinstance(value, property) and not name.startswith("_"):
                node = _method(one, name)
                assert isinstance(node, ast.FunctionDef)
                yield name, node


def _struct(kind: type[Any]) -> str:
    """Return the fields of a value, in the order of its constructor."""
    rows = []
    for one in kind.__mro__:
        if inspect.getmodule(one) is not inspect.getmodule(kind):
            continue
        for node in _class(one).body:
            if isinstance(node, ast.AnnAssign):
                value = f"`{ast.unparse(node.value)}`" if node.value is not None else "needed"
                shown = {"`ABSENT`": "none"}.get(value, value)
                rows.append(f"| `{ast.unparse(node.target)}` | `{ast.unparse(node.annotation)}` | {shown} |")
    text = f"{_heading(kind)}\n| field | type | default |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    for name, value in vars(kind).items():
        if isinstance(value, property):
            text += f"\n`{kind.__name__}.{name}`: {_words(value)}\n"
        elif isinstance(value, classmethod) and not name.startswith("_"):
            text += f"\n{_member(kind, name)}"
    return text


def _first(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def _returns(node: ast.FunctionDef) -> str:
    return ast.unparse(node.returns) if node.returns is not None else ""


def _method(kind: type[Any], name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return a method's definition, the implementing one where it has overloads."""
    return _methods(kind, name)[-1]


def _methods(kind: type[Any], name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the definitions of a method: its overloads, and the one that implements it last."""
    found = [
        node
        for node in _class(kind).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    if not found:
        raise LookupError(f"{kind.__name__} has no {name} of its own")
    return found


def _class(kind: type[Any]) -> ast.ClassDef:
    for node in ast.parse("\n".join(_lines(kind))).body:
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            return node
    raise LookupError(f"no class {kind.__name__} in its module")


def _lines(kind: type[Any]) -> list[str]:
    return Path(inspect.getfile(kind)).read_text(encoding="utf-8").splitlines()
