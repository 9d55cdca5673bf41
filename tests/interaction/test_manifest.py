"""The manifest and the tests say the same: every requirement is proved, every test says what it proves."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.interaction.requirements import REQUIREMENTS

FOLDER = Path(__file__).parent

BY_FIXTURE = {
    "caller": {"http", "jsonrpc"},
    "fragile_caller": {"http", "jsonrpc"},
    "mutator": {"http", "jsonrpc"},
    "idle_streams": {"http", "jsonrpc"},
    "page": {"http", "jsonrpc"},
    "http": {"http"},
    "web": {"http"},
    "public": {"http"},
    "versions": {"http"},
    "rpc": {"jsonrpc"},
}
"""Fixture → the bindings that a test with it goes over."""

USERS_VOICE = """
    1 6 8 10 12 13 14 15 16 17 18 19 21 22 23 24 28 30 34 36 37 38 40 42 43 48 49 50 51 52 54 69 70 72 77
""".split()
"""The rows of reports by users of other servers that concern 1.0 without push notifications and authentication."""


@dataclass(frozen=True)
class Proof:
    """One test function: the requirements that it names, and the bindings that it goes over."""

    place: str
    ids: tuple[str, ...]
    bindings: frozenset[str]


def proofs() -> Iterator[Proof]:
    """Every test of this folder but those of this file."""
    for path in sorted(FOLDER.glob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text, path.name).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield _proof(path, node)


def _proof(path: Path, node: ast.FunctionDef) -> Proof:
    ids: list[str] = []
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "covers":
            ids += [one.value for one in decorator.args if isinstance(one, ast.Constant)]
    over = [BY_FIXTURE.get(argument.arg, set()) for argument in node.args.args]
    if "fragile" in [argument.arg for argument in node.args.args]:
        over.append({"http", "jsonrpc"} if "RpcCaller" in ast.dump(node) else {"http"})
    if "serving" in ast.dump(node):
        over.append({"http"})
    return Proof(f"{path.name}::{node.name}", tuple(ids), frozenset().union(*over))


def test_every_test_names_requirements_that_the_manifest_has() -> None:
    silent = [proof.place for proof in proofs() if not proof.ids]
    unknown = [(proof.place, one) for proof in proofs() for one in proof.ids if one not in REQUIREMENTS]
    assert (silent, unknown) == ([], [])


def test_every_requirement_is_proved_over_each_of_its_bindings() -> None:
    over: dict[str, set[str]] = {}
    for proof in proofs():
        for one in proof.ids:
            over.setdefault(one, set()).update(proof.bindings)
    unproved = [one for one in REQUIREMENTS if one not in over]
    lacking = {
        one: sorted(requirement.bindings - over[one])
        for one, requirement in REQUIREMENTS.items()
        if one in over and not requirement.bindings <= over[one]
    }
    assert (unproved, lacking) == ([], {})


def test_every_report_of_other_servers_users_that_concerns_this_build_is_a_requirement() -> None:
    rows = [one.source for one in REQUIREMENTS.values() if one.id.startswith("voice.")]
    assert rows == [f"voice {number}" for number in USERS_VOICE]


def test_every_requirement_has_a_source_and_a_sentence_of_its_own() -> None:
    assert not [one.id for one in REQUIREMENTS.values() if not one.source or len(one.behaviour) < 15]
    sentences = [one.behaviour for one in REQUIREMENTS.values()]
    assert len(set(sentences)) == len(sentences)
