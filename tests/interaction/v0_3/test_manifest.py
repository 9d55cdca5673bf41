"""The manifest of 0.3 and its tests say the same: every requirement is proved, every test says what it proves."""

import ast
from collections.abc import Iterator

from tests.interaction.manifest import (
    Proof,
    by_fixture,
    check_proofs,
    check_requirements,
    check_table,
    proofs,
)
from tests.interaction.v0_3.requirements import GROUPS, REQUIREMENTS

BY_FIXTURE = {
    "caller": GROUPS["all"],
    "all_places": GROUPS["all"],
    "limited": GROUPS["all"],
    "idle_streams": GROUPS["all"],
    "mutator": GROUPS["all"],
    "web": GROUPS["web"],
    "seed_a": GROUPS["seed A"],
    "kinds": GROUPS["kinds"],
    "official": GROUPS["official"],
    "form": GROUPS["forms"],
    "form_with_kinds": GROUPS["2 forms"],
    "form_in_proto": frozenset({"proto"}),
    "proto": frozenset({"proto"}),
    "base": frozenset({"base"}),
    "rpc": frozenset({"rpc"}),
}
"""Fixture → the places that a test with it goes over."""


def over(node: ast.FunctionDef) -> Iterator[str]:
    """The places that a test goes over: by its fixtures, or those that it calls at a server of its own."""
    yield from by_fixture(BY_FIXTURE)(node)
    if "crashing" in [argument.arg for argument in node.args.args]:
        named = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        yield from GROUPS["forms"] if "FORMS" in named else GROUPS["all"]


def found() -> Iterator[Proof]:
    """The tests of this folder."""
    return proofs(__file__, over)


def test_every_test_names_requirements_that_the_manifest_has() -> None:
    check_proofs(found(), REQUIREMENTS)


def test_every_requirement_is_proved_at_each_of_its_places() -> None:
    check_requirements(found(), REQUIREMENTS)


def test_every_requirement_has_a_source_and_a_sentence_of_its_own() -> None:
    check_table(REQUIREMENTS)
