"""The clauses of the hosted profile and their tests say the same: each is proved, every test says what it proves."""

import ast

from tests.harness.paths import CHECKOUT
from tests.interaction.hosted.requirements import ELSEWHERE, REQUIREMENTS
from tests.interaction.manifest import (
    Proof,
    by_fixture,
    check_proofs,
    check_requirements,
    check_table,
    proofs,
)


def found() -> list[Proof]:
    """The tests of this folder, and those of others that are named in the table."""
    elsewhere = [Proof(f"{path}::{name}", (one,), frozenset()) for one, (path, name) in ELSEWHERE.items()]
    return [*proofs(__file__, by_fixture({})), *elsewhere]


def test_every_test_names_clauses_that_the_table_has() -> None:
    check_proofs(found(), REQUIREMENTS)


def test_every_clause_is_proved() -> None:
    check_requirements(found(), REQUIREMENTS)


def test_every_clause_has_a_source_and_a_sentence_of_its_own() -> None:
    check_table(REQUIREMENTS)


def test_every_chapter_of_the_contract_is_in_the_table() -> None:
    chapters = {one.source for one in REQUIREMENTS.values()}
    assert chapters == {
        *(
            f"B {chapter}"
            for chapter in "intro discover table identity input output windows approval moving".split()
        ),
        *(f"H {number}" for number in range(1, 10)),
        *("P 1", "P 4", "P 5", "C 5", "O 15"),
    }


def test_what_is_proved_elsewhere_is_there() -> None:
    for path, name in ELSEWHERE.values():
        tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
        assert name in {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }, (path, name)
