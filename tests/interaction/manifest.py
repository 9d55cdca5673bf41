"""Manifests: what the server promises as a table, one line a requirement, and the tests that prove each of them.

A line has an id, the bindings over which a test must prove it (a group by its name, `-` where it is about none),
its source, and the behaviour in one sentence. Tests name ids by the decorator of `marker`, and which bindings a test
goes over is told by its fixtures.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

Bindings = frozenset[str]


@dataclass(frozen=True)
class Requirement:
    """One promise: `bindings` are those over which it must be proved."""

    id: str
    bindings: Bindings
    source: str
    behaviour: str


def read_table(table: str, groups: Mapping[str, Bindings]) -> dict[str, Requirement]:
    """Every requirement of a table by its id; a name that is no group is a binding by itself."""
    found: dict[str, Requirement] = {}
    for line in table.strip().splitlines():
        identifier, bindings, source, behaviour = (piece.strip() for piece in line.split("|"))
        if identifier in found:
            raise ValueError(f"{identifier} is listed twice")
        over = groups.get(bindings, frozenset({bindings}))
        found[identifier] = Requirement(identifier, over, source, behaviour)
    return found


def marker(requirements: Mapping[str, Requirement]) -> Callable[..., pytest.MarkDecorator]:
    """The decorator by which a test names what it proves. An id that is not in the manifest fails the import."""

    def covers(*ids: str) -> pytest.MarkDecorator:
        unknown = [identifier for identifier in ids if identifier not in requirements]
        if unknown:
            raise KeyError(f"not in the manifest: {', '.join(unknown)}")
        return pytest.mark.requirement(*ids)

    return covers


@dataclass(frozen=True)
class Proof:
    """One test function: the requirements that it names, and the bindings that it goes over."""

    place: str
    ids: tuple[str, ...]
    bindings: Bindings


Over = Callable[[ast.FunctionDef], Iterable[str]]
"""Tells which bindings a test function goes over."""


def by_fixture(bindings: Mapping[str, Bindings]) -> Over:
    """Tell it by the fixtures that the function takes."""

    def over(node: ast.FunctionDef) -> Iterator[str]:
        for argument in node.args.args:
            yield from bindings.get(argument.arg, ())

    return over


def proofs(test_manifest: str, over: Over) -> Iterator[Proof]:
    """Every test of the folder of a `test_manifest.py` (its `__file__`), but for those in that file itself."""
    for path in sorted(Path(test_manifest).parent.glob("test_*.py")):
        if path.name == Path(test_manifest).name:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8"), path.name).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                place = f"{path.name}::{node.name}"
                yield Proof(place, tuple(_ids(node)), frozenset(over(node)))


def _ids(node: ast.FunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "covers":
            yield from (one.value for one in decorator.args if isinstance(one, ast.Constant))


def check_proofs(found: Iterable[Proof], requirements: Mapping[str, Requirement]) -> None:
    """Every test names requirements that the manifest has."""
    found = list(found)
    silent = [proof.place for proof in found if not proof.ids]
    unknown = [(proof.place, one) for proof in found for one in proof.ids if one not in requirements]
    assert (silent, unknown) == ([], [])


def check_requirements(found: Iterable[Proof], requirements: Mapping[str, Requirement]) -> None:
    """Every requirement is proved over each of its bindings."""
    over: dict[str, set[str]] = {}
    for proof in found:
        for one in proof.ids:
            over.setdefault(one, set()).update(proof.bindings)
    unproved = [one for one in requirements if one not in over]
    lacking = {
        one: sorted(requirement.bindings - over[one])
        for one, requirement in requirements.items()
        if one in over and not requirement.bindings <= over[one]
    }
    assert (unproved, lacking) == ([], {})


def check_table(requirements: Mapping[str, Requirement]) -> None:
    """Every requirement has a source, and a sentence of its own."""
    assert not [one.id for one in requirements.values() if not one.source or len(one.behaviour) < 15]
    sentences = [one.behaviour for one in requirements.values()]
    assert len(set(sentences)) == len(sentences)
